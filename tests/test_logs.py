"""What a site or a server sent is escaped and cut in every log line of the package."""

from __future__ import annotations

import ast
from pathlib import Path, PurePath
from typing import Any

import pytest
from scrapy import Request
from scrapy.http import Response

import scrapy_rep
from scrapy_rep.fetch import tdm_files
from scrapy_rep.logs import MAX_TRACEBACK_LINES, MAX_VALUE_LENGTH, get_logger

HOSTILE = "\x1b[31m\u202e\nINFO: forged"
ESCAPED = r"\x1b[31m\u202e\nINFO: forged"
logger = get_logger("scrapy_rep.tests")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (HOSTILE, ESCAPED),
        (ValueError(HOSTILE), ESCAPED),
        (PurePath(HOSTILE), ESCAPED),
        (Request("http://u:p@h/"), "<GET http://h/>"),
        (Response(f"http://u:p@h/{HOSTILE}"), f"<200 http://h/{ESCAPED}>"),
        ("a" * 2000, "a" * (MAX_VALUE_LENGTH - 1) + "…"),
        (3, "3"),
        (None, "None"),
        ({"an": "item\n"}, r"{'an': 'item\n'}"),
    ],
)
def test_values(value: Any, expected: str, caplog: pytest.LogCaptureFixture) -> None:
    logger.warning("It is %(value)s.", {"value": value})
    logger.warning("It is %s in %d.", value, 1)
    assert caplog.messages == [f"It is {expected}.", f"It is {expected} in 1."]


def test_tracebacks(caplog: pytest.LogCaptureFixture) -> None:
    try:
        raise ValueError(HOSTILE + "b" * 5000 + "\n".join("c" * 1000))
    except ValueError:
        logger.exception("It failed")
    assert "\x1b" not in caplog.text
    assert "\u202e" not in caplog.text
    lines = caplog.text.split("\n")
    assert len(lines) <= MAX_TRACEBACK_LINES + 2
    assert all(len(line) <= MAX_VALUE_LENGTH for line in lines)
    assert caplog.records[0].exc_info is not None  # for other handlers


def test_every_module_has_such_a_logger() -> None:
    root = Path(scrapy_rep.__file__).parent
    found = [
        path.name
        for path in root.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node).startswith("logging.getLogger(")
        if "asyncio" not in ast.unparse(node)  # the logger of another library
    ]
    assert found == ["logs.py"]
    assert tdm_files.logger.filters == logger.filters

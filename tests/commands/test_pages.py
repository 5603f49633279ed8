"""The pages about the tools say what the tools do, and their sessions are real."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from jsonschema import Draft202012Validator

from scrapy_rep.commands.exits import EXIT_CODES, ExitCode
from scrapy_rep.commands.main import SUBCOMMANDS
from testing.console_pages import PAGES, pages, with_real_output

from .conftest import ROOT, schema

if TYPE_CHECKING:
    from pathlib import Path

SCHEMAS = sorted(
    path.name.removesuffix(".schema.json")
    for path in (ROOT / "scrapy_rep" / "commands" / "schemas").iterdir()
)


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.stem)
def test_sessions_are_real(page: Path) -> None:
    text = page.read_text("utf-8")
    assert with_real_output(text) == text  # else run python -m testing.console_pages


def test_the_index_has_every_subcommand_and_exit_code() -> None:
    text = (PAGES / "index.md").read_text("utf-8")
    assert set(re.findall(r"^\| \[`(\w+)`\]", text, re.MULTILINE)) == set(SUBCOMMANDS)
    rows = re.findall(r"^\| (\d+) \| (.*) \|$", text, re.MULTILINE)
    assert rows == [(str(code.value), meaning) for code, meaning in EXIT_CODES.items()]
    assert set(EXIT_CODES) == set(ExitCode)


@pytest.mark.parametrize("name", SCHEMAS)
def test_schemas_are_valid(name: str) -> None:
    found = schema(name)
    Draft202012Validator.check_schema(found)
    assert found["properties"]["version"] == {"const": 1}
    assert found["title"]


def test_schemas_share_their_definitions() -> None:
    known: dict[str, object] = {}
    for name in SCHEMAS:
        for key, definition in schema(name).get("$defs", {}).items():
            if key in ("robots_txt", "pace", "rule", "usage", "answer"):
                assert known.setdefault(key, definition) == definition
    assert {"robots_txt", "pace"} <= known.keys()
    checked = schema("view")["$defs"]["check"]["properties"]
    assert checked == schema("check")["properties"]

"""The pages about the tools say what the tools do, and their sessions are real."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from scrapy_rep.commands.context import schema
from scrapy_rep.commands.main import TOOLS
from testing.console_pages import PAGES, pages, with_real_output

from .conftest import RECORDS


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.stem)
def test_sessions_are_real(page: Path) -> None:
    text = page.read_text("utf-8")
    assert with_real_output(text) == text  # else run python -m testing.console_pages


def test_the_index_has_every_subcommand() -> None:
    text = (PAGES / "index.md").read_text("utf-8")
    assert set(re.findall(r"^\| \[`(\w+)`\]", text, re.MULTILINE)) == {
        name for group in TOOLS.values() for name in group
    }


@pytest.mark.parametrize("name", RECORDS)
def test_schemas_are_valid(name: str) -> None:
    found = schema([RECORDS[name]])
    Draft202012Validator.check_schema(found)
    first = found["$defs"][RECORDS[name].__name__]
    assert first["description"]
    assert {"type", "version"} <= first["properties"].keys()

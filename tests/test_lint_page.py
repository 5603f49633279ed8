"""The page about lint has a section for each code, and its examples show what they say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scrapy_rep.protocol.lint import Code, fix, lint

ROOT = Path(__file__).parent.parent
HEAD = (ROOT / "docs" / "reference" / "lint.md").read_text(encoding="utf-8")
INCLUDED = "scrapy_rep/commands/lint_codes.md"
TEXT = HEAD + (ROOT / INCLUDED).read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^### (.*)\n\n((?:(?!^##)[\s\S])*)", TEXT, re.MULTILINE))
SAFE, UNSAFE = " `--fix` corrects it.", " `--fix --unsafe-fixes` corrects it."


def test_there_is_a_section_for_each_code_and_no_other() -> None:
    assert f"{{include}} ../../{INCLUDED}\n" in HEAD
    assert [*SECTIONS] == [f"{code} {code.short_name}" for code in Code]


@pytest.mark.parametrize("code", Code)
def test_a_section_begins_with_the_severity(code: Code) -> None:
    first = SECTIONS[f"{code} {code.short_name}"].partition("\n")[0]
    assert first in {f"{str(code.severity).capitalize()}.{fixes}" for fixes in ("", SAFE, UNSAFE)}


@pytest.mark.parametrize("code", Code)
def test_the_examples(code: Code) -> None:
    section = SECTIONS[f"{code} {code.short_name}"]
    before, after = examples(section)
    assert code in codes_in(before)
    assert code not in codes_in(after)
    assert not [one for one in lint(after) if one.severity == "error"]
    assert len(lint(after)) <= 1
    is_safe, is_unsafe = SAFE in section, UNSAFE in section
    assert fix(before, [str(code)]) == (after if is_safe else before)
    assert fix(before, [str(code)], unsafe=True) == (after if is_safe or is_unsafe else before)


def codes_in(body: bytes) -> set[Code]:
    return {finding.code for finding in lint(body, crawlers={"gptbot": "GPTBot"})}


def examples(section: str) -> list[bytes]:
    """Return the two files of a section: as text, or as Python where text cannot show it."""
    found = re.findall(r"^```(text|python)\n([\s\S]*?)\n```$", section, re.MULTILINE)
    return [text.encode() if kind == "text" else eval(text) for kind, text in found]

"""The rules of the conformance page, and the page that names the tests of each rule."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
RULES = ROOT / "docs" / "about" / "conformance.md"
TESTS = ROOT / "tests" / "rules.md"


class Row(NamedTuple):
    """A row of a table whose first column is called "Rule", and the heading above the table."""

    heading: str
    rule: str
    second: str


def rules(page: Path) -> list[Row]:
    found = []
    heading, header = "", ""
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            heading = line
        if not line.startswith("|"):
            header = ""
            continue
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not header:
            header = cells[0]
        elif header == "Rule" and set(cells[0]) != {"-"}:
            found.append(Row(heading, cells[0], cells[1]))
    return found


def test_both_pages_have_the_same_rules_in_the_same_order() -> None:
    assert [row[:2] for row in rules(TESTS)] == [row[:2] for row in rules(RULES)]


def test_every_rule_has_a_test_that_exists() -> None:
    modules = {path.relative_to(ROOT).as_posix(): path for path in ROOT.glob("tests/**/test_*.py")}
    functions = {
        name
        for path in modules.values()
        for name in re.findall(
            r"^ *(?:async )?def (test_\w+)", path.read_text("utf-8"), re.MULTILINE
        )
    }
    existing = functions | set(modules)
    missing = {
        row.rule: names
        for row in rules(TESTS)
        if (names := set(re.findall(r"`([^`]+)`", row.second)) - existing) or not row.second
    }
    assert missing == {}

"""The lists of the reference pages are those of the code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click
from scrapy.settings import Settings as ScrapySettings

import scrapy_rep
import scrapy_rep.testing
from scrapy_rep import exceptions, meta_keys
from scrapy_rep.commands.context import EXIT_CODES, ExitCode, exit_code_help
from scrapy_rep.commands.main import TOOLS, tools
from scrapy_rep.frontier.engine import ATTRIBUTES
from scrapy_rep.settings import _SETTINGS, Settings

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PACKAGE = ROOT / "scrapy_rep"
TEXTS = {
    path.relative_to(ROOT).as_posix(): path.read_text("utf-8")
    for path in [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
}
PREFIX = "robotstxt/"

GAP = "…"
"""A part of a text that the code replaces."""


def first_cells(page: str, title: str = "") -> list[str]:
    """Return the code in the first cells of the tables of a page, below the heading if given."""
    text = TEXTS[f"docs/reference/{page}"]
    if title:
        text = re.split(r"^## ", text.partition(f"\n## {title}\n")[2], flags=re.MULTILINE)[0]
    cells = re.findall(r"^\| ([^|]*`[^|]*) \|", text, re.MULTILINE)
    return [code for cell in cells for code in re.findall(r"`([^`]+)`", cell)]


def first_rows(page: str, title: str) -> list[str]:
    """Return the first cells below a heading, each of which is code."""
    text = TEXTS[f"docs/reference/{page}"].partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    return re.findall(r"^\| `([^`]+)` \|", text, re.MULTILINE)


def text_of(node: ast.expr) -> str | None:
    """Return a literal text with ``GAP`` for the parts that are not literal, else None."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(part) or GAP for part in node.values)
    return None


@cache
def trees() -> list[ast.Module]:
    """Return the syntax trees of the package. Few tests use them, and they take long to make."""
    return [ast.parse(path.read_text("utf-8")) for path in PACKAGE.rglob("*.py")]


def calls() -> Iterator[tuple[ast.Call, str, list[str | None]]]:
    """Yield the calls in the package: the call, the name of what it calls, literal arguments."""
    for tree in trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                name = getattr(node.func, "attr", getattr(node.func, "id", ""))
                yield node, name, [text_of(argument) for argument in node.args]


# Settings


def test_each_setting_that_a_page_names_exists() -> None:
    known = {setting.name for setting in _SETTINGS.values()}
    for page, text in TEXTS.items():
        assert set(re.findall(r"\bREP_[A-Z0-9_]+[A-Z0-9]\b", text)) <= known, page


def test_the_settings_in_examples_are_usable() -> None:
    count = 0
    for page, text in TEXTS.items():
        for block in re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
            if re.search(r"^REP_\w+ = ", block, re.MULTILINE) and "import" not in block:
                values: dict[str, object] = {}
                exec(block, values)
                del values["__builtins__"]
                assert Settings.read(ScrapySettings(values)), page
                count += 1
    assert count > 8


# Meta keys


def test_meta_keys() -> None:
    defined = [value for name, value in vars(meta_keys).items() if name.isupper()]
    assert first_cells("meta.md", "Keys of scrapy-rep") == [
        value for value in defined if value != meta_keys.CACHED_FLAG
    ]
    assert meta_keys.CACHED_FLAG in first_cells("meta.md", "Flags")


# Stats


def stats_in_the_code() -> set[str]:
    """Return regular expressions for the names of all stats."""
    names = {exceptions.ItemNotIndexable.stat, exceptions.ItemUsageRefused.stat}
    for _, name, texts in calls():
        if name in ("inc_value", "set_value"):
            names.add(texts[0] or "")
        elif name == "_count" and len(texts) == 2 and texts[1]:  # of a kind of file
            names.add(f"{GAP}/{texts[1]}")
    for tree in trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and (text_of(node.value) or "").startswith(PREFIX):
                names.add(text_of(node.value) or "")
    patterns = {re.escape(name).replace(re.escape(GAP), ".+") for name in names - {""}}
    # The stats of a kind of file, and of its store, begin with a name that the kind of file has.
    return {re.sub(r"^\.\+/", rf"{PREFIX}(?:\\w+/)?", pattern) for pattern in patterns}


def test_stats() -> None:
    documented = {name for name in first_cells("stats.md") if name.startswith(PREFIX)}
    in_the_code = stats_in_the_code()
    assert len(in_the_code) > 30
    for name in documented:
        assert any(re.fullmatch(pattern, name) for pattern in in_the_code), name
    for pattern in in_the_code:
        assert any(re.fullmatch(pattern, name) for name in documented), pattern


# Log messages


def messages_in_the_code() -> Iterator[tuple[str, str]]:
    """Yield the level and the text of each message."""
    for call, name, texts in calls():
        if name == "_warn" and len(texts) == 2 and texts[1]:
            yield "warning", texts[1]
        elif isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) == "logger":
            level, text = ("warning", texts[1:]) if name == "log" else (name, texts)
            if text and text[0] and text[0] != "%s":  # a text that another function gives
                yield (
                    level.replace("exception", "error"),
                    re.sub(r"%\((\w+)\)[drs]", r"<\1>", text[0]),
                )


def test_log_messages() -> None:
    found = list(messages_in_the_code())
    assert len(found) > 30
    for level in ("error", "warning", "info", "debug"):
        documented = first_rows("log-messages.md", level.upper())
        assert set(documented) == {text for one, text in found if one == level}


# Signals


# Exceptions, exit codes, schemas, names


def test_exit_codes() -> None:
    text = TEXTS["docs/reference/exit-codes.md"]
    rows = re.findall(r"^\| (\d+) \| (.*) \|$", text, re.MULTILINE)
    assert rows == [(str(code.value), meaning) for code, meaning in EXIT_CODES.items()]
    for name, *texts in re.findall(
        r"^\| \[`(\w+)`\]\(.*?\) \| (.*?) ?\| (.*?) ?\|$", text, re.MULTILINE
    ):
        command = tools.get_command(click.Context(tools), name)
        codes = dict(zip((ExitCode.FOUND, ExitCode.UNKNOWN), texts, strict=True))
        shown = exit_code_help({**EXIT_CODES, ExitCode.OK: "none of the following", **codes})
        assert command is not None
        assert str(command.epilog).endswith(shown)
    assert set(re.findall(r"^\| \[`(\w+)`\]", text, re.MULTILINE)) == {
        name for group in TOOLS.values() for name in group
    }


def test_public_names() -> None:
    text = TEXTS["docs/reference/api.md"]
    documented: dict[str, list[str]] = {}
    module = ""
    for found in re.finditer(r"^\.\. (?:currentmodule:: (.*)|auto\w+:: (\w+))", text, re.MULTILINE):
        module = found[1] or module
        documented.setdefault(module, []).extend([found[2]] if found[2] else [])
    public = (scrapy_rep, scrapy_rep.stores, scrapy_rep.testing)
    assert {module: sorted(names) for module, names in documented.items()} == {
        module.__name__: sorted(module.__all__) for module in public
    }


# What the add-on changes


def test_the_attributes_that_are_not_public() -> None:
    text = TEXTS["docs/usage/what-changes.md"].partition("## Private attributes of Scrapy")[2]
    rows = re.findall(r"^\| `([\w.]+)`", text.partition("\n## ")[0], re.MULTILINE)
    assert rows == list(ATTRIBUTES)

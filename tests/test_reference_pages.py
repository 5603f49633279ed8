"""The lists of the reference pages are those of the code, and each rule has its tests."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click
import pytest
from scrapy.settings import Settings as ScrapySettings

from scrapy_rep import settings
from scrapy_rep.commands.context import EXIT_CODES, ExitCode, exit_code_help
from scrapy_rep.commands.main import TOOLS, tools
from scrapy_rep.protocol.lint import Code, fix, lint
from scrapy_rep.scrapy_internals import INTERNALS
from scrapy_rep.settings import _SETTINGS, Settings
from testing import design_page

ROOT = Path(__file__).parent.parent
TEXTS = {
    path.relative_to(ROOT).as_posix(): path.read_text("utf-8")
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
}

GAP = "…"
"""A part of a text that the code replaces."""


def section(page: str, title: str) -> str:
    """Return the text of a page below a heading."""
    return TEXTS[f"docs/{page}"].partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def first_cells(text: str) -> list[str]:
    """Return the code in the first cells of the tables of a text."""
    cells = re.findall(r"^\| ([^|]*`[^|]*) \|", text, re.MULTILINE)
    return [code for cell in cells for code in re.findall(r"`([^`]+)`", cell)]


def text_of(node: ast.expr) -> str | None:
    """Return a literal text with ``GAP`` for the parts that are not literal, else None."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(part) or GAP for part in node.values)
    return None


@cache
def expressions() -> list[ast.expr]:
    """Return all expressions in the package. Few tests use them, and they take long to make."""
    texts = [path.read_text("utf-8") for path in (ROOT / "scrapy_rep").rglob("*.py")]
    return [
        node for text in texts for node in ast.walk(ast.parse(text)) if isinstance(node, ast.expr)
    ]


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
    texts = {name: value for name, value in vars(settings).items() if isinstance(value, str)}
    defined = [value for name, value in texts.items() if name.isupper() and name[0] != "_"]
    defined.remove(settings.CACHED_FLAG)
    assert first_cells(section("reference/meta.md", "Keys of scrapy-rep")) == defined
    assert settings.CACHED_FLAG in first_cells(section("reference/meta.md", "Flags"))


# The picture of the parts


def test_the_picture_shows_the_imports() -> None:
    text = design_page.PAGE.read_text("utf-8")
    assert design_page.page(text) == text  # else run python -m testing.design_page


# Stats


def test_each_stat_on_the_page_is_set_in_the_code() -> None:
    # tests/crawl/conftest.py checks the converse: a crawl sets only stats that are on the page.
    texts = {text_of(node) or "" for node in expressions()}
    names = [text.replace(GAP, ".+") for text in texts if re.fullmatch(r"[a-z][a-z_/…]+", text)]
    code = re.compile(rf"(?:robotstxt/(?:tdmrep/)?)?(?:{'|'.join(names)})")
    stats = first_cells(TEXTS["docs/reference/stats.md"])
    assert len(stats) > 40
    assert [stat for stat in stats if not code.fullmatch(stat)] == []


# Log messages

LOGGERS = ("logger", "self._logger")


def messages_in_the_code() -> Iterator[tuple[str, str]]:
    """Yield the level and the text of each message."""
    for call in expressions():
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            continue
        level, texts = call.func.attr, [text_of(argument) for argument in call.args]
        if level == "_warn" and len(texts) == 2 and texts[1]:
            yield "warning", texts[1]
        elif ast.unparse(call.func.value) in LOGGERS:
            if level == "log":  # at a lower level after the first time
                is_info = "logging.INFO" in ast.unparse(call)
                level, texts = "info" if is_info else "warning", texts[1:]
            if texts and texts[0] and texts[0] != "%s":  # a text that another function gives
                text = re.sub(r"%\((\w+)\)[drs]", r"<\1>", texts[0])
                yield level.replace("exception", "error"), text


def test_log_messages() -> None:
    found = list(messages_in_the_code())
    assert len(found) > 30
    for level in ("error", "warning", "info", "debug"):
        text = section("reference/log-messages.md", level.upper())
        documented = re.findall(r"^\| `([^`]+?)(?: …)?` \|", text, re.MULTILINE)
        messages = {text for one, text in found if one == level}
        rows = [[text for text in messages if text.startswith(start)] for start in documented]
        assert [start for start, row in zip(documented, rows, strict=True) if len(row) != 1] == []
        assert {text for row in rows for text in row} == messages


def test_the_sample_log_has_each_message_at_info_and_warning() -> None:
    log = (ROOT / "docs/usage/info.log").read_text("utf-8")
    lines = re.findall(r"^\[scrapy_rep[.\w]+\] (INFO|WARNING): (.*)$", log, re.MULTILINE)
    for one in ("info", "warning"):
        samples = [text for level, text in lines if level.lower() == one]
        for message in {text for level, text in messages_in_the_code() if level == one}:
            pattern = re.compile(re.sub(r"<[\\_\w]+>|…", ".*", re.escape(message)))
            found = [sample for sample in samples if pattern.fullmatch(sample)]
            assert len(found) == 1, message
            samples.remove(found[0])
        assert samples == []


# Sentences

OLD_FORMS = re.compile(
    r"octets|\bis none\b|\bis no [A-Z]|\bwas had\b|cannot be had|\bbut for\b|\bsuch a\b|"
    r"\bso many\b|however many|the delay of the site|states nothing|the last one knew|in each way|"
    r"fails if its fact|may always have|behind any number|takes the CPU time that|\bof 1 request\b|"
    r"Reserving a host|none less would|Beside them|more than a verdict may|at least before it"
)
"""Forms that are hard to read for those who learned English late, and their relatives."""


def sentences(page: str) -> Iterator[str]:
    """Yield the sentences of a page. Code is one word, and the cells of tables are sentences."""
    text = re.sub(r"^(```+).*?^\1$|<!--.*?-->", "\n\n", page, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"(`+)[^`].*?\1", "code", text, flags=re.DOTALL)
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text)
    start = r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )|^#.*$|\|"
    for block in re.split(start, text, flags=re.MULTILINE):
        yield from re.split(r"(?<=[.!?])[)*\"]*\s+", " ".join(block.split()))


LISTS = "docs/reference/crawlers.md"
"""Its table lists crawlers, which are no sentences."""


def test_sentences_are_short_and_plain() -> None:
    pages = {**TEXTS, INCLUDED: (ROOT / INCLUDED).read_text("utf-8")}
    found = [(page, each) for page, text in pages.items() for each in sentences(text)]
    found += [("message", each) for _, text in messages_in_the_code() for each in sentences(text)]
    assert len(found) > 3_000
    long = [each for each in found if len(re.findall(r"\w[\w'.,-]*", each[1])) > 30]
    assert [each for each in long if each[0] != LISTS] == []
    assert [each for each in found if OLD_FORMS.search(each[1])] == []


# Exit codes, attributes


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


def test_what_scrapy_does_not_promise() -> None:
    text = section("usage/what-changes.md", "What Scrapy does not promise")
    assert re.findall(r"^\| `([\w.]+)`", text, re.MULTILINE) == list(INTERNALS)


# Lint

INCLUDED = "scrapy_rep/commands/lint_codes.md"
LINT = (ROOT / INCLUDED).read_text("utf-8")
SECTIONS = dict(re.findall(r"^### (.*)\n\n((?:(?!^##)[\s\S])*)", LINT, re.MULTILINE))
SAFE, UNSAFE = " `--fix` corrects it.", " `--fix --unsafe-fixes` corrects it."


def test_there_is_a_section_for_each_code_and_no_other() -> None:
    assert [*SECTIONS] == [f"{code} {code.short_name}" for code in Code]


def codes_in(body: bytes) -> set[Code]:
    return {finding.code for finding in lint(body, crawlers={"gptbot": "GPTBot"})}


OF_SITES = [code for code in Code if code.startswith("R7")]
"""The codes about the answer of a site, which have no examples."""


@pytest.mark.parametrize("code", OF_SITES)
def test_a_section_about_sites_has_the_severity(code: Code) -> None:
    text = SECTIONS[f"{code} {code.short_name}"]
    assert text.startswith(f"{str(code.severity).capitalize()}.\n")


@pytest.mark.parametrize("code", [code for code in Code if code not in OF_SITES])
def test_a_section_has_the_severity_and_two_examples(code: Code) -> None:
    text = SECTIONS[f"{code} {code.short_name}"]
    first = text.partition("\n")[0]
    assert first in {f"{str(code.severity).capitalize()}.{fixes}" for fixes in ("", SAFE, UNSAFE)}
    blocks = re.findall(r"^```(text|python)\n([\s\S]*?)\n```$", text, re.MULTILINE)
    # As Python where text cannot show it.
    before, after = (body.encode() if kind == "text" else eval(body) for kind, body in blocks)
    assert code in codes_in(before)
    assert code not in codes_in(after)
    assert not [one for one in lint(after) if one.severity == "error"]
    assert len(lint(after)) <= 1
    is_safe, is_unsafe = SAFE in text, UNSAFE in text
    assert fix(before, [str(code)]) == (after if is_safe else before)
    assert fix(before, [str(code)], unsafe=True) == (after if is_safe or is_unsafe else before)


# The conformance page, whose rules are the marks of tests


def test_each_rule_of_the_conformance_page_is_the_mark_of_a_test(
    request: pytest.FixtureRequest,
) -> None:
    table = r"^\| Rule \|.*\n\|[-|]*\n((?:\|.*\n)*)"
    rows = "".join(re.findall(table, TEXTS["docs/about/conformance.md"], re.MULTILINE))
    rules = set(re.findall(r"^\| (.*?) \|", rows.replace("`", ""), re.MULTILINE))
    items = request.session.items
    marks = {name for item in items for mark in item.iter_markers("rule") for name in mark.args}
    assert len(rules) > 60
    assert marks <= rules
    # A session with only some of the modules has only some of the marks.
    if {*ROOT.glob("tests/**/test_*.py")} <= {item.path for item in items}:
        assert marks == rules

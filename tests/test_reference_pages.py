"""The lists of the reference pages are those of the code."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from scrapy.settings import Settings as ScrapySettings

import scrapy_rep
from scrapy_rep import Reason, exceptions, meta_keys
from scrapy_rep.commands.exits import EXIT_CODES
from scrapy_rep.commands.main import SUBCOMMANDS
from scrapy_rep.origin import State
from scrapy_rep.settings import Settings, setting_reference
from scrapy_rep.stores import StoreError
from testing import cost_chart, request_diagram, state_diagram

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PACKAGE = ROOT / "scrapy_rep"
TEXTS = {
    path.relative_to(ROOT).as_posix(): path.read_text("utf-8")
    for path in [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
}
STATS = "docs/reference/stats.md"
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
    known = {name for name, _, _ in setting_reference()}
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


def test_each_stat_that_a_page_names_is_in_the_list() -> None:
    listed = [re.sub("<.*?>", ".+", name) for name in first_cells("stats.md")]
    for page, text in TEXTS.items():
        for name in re.findall(rf"`({PREFIX}[\w/<>-]+[\w>])`", text):
            # A TDM file has the stats of a robots.txt.
            own = name.replace("/tdmrep/", "/")
            assert any(re.fullmatch(pattern, one) for pattern in listed for one in (name, own)), (
                page,
                name,
            )


def test_each_reason_is_in_the_stats() -> None:
    (row,) = re.findall(r"^\| `robotstxt/forbidden/<reason>`.*", TEXTS[STATS], re.MULTILINE)
    allowing = {Reason.NO_RULES, Reason.UNAVAILABLE}
    assert {f"`{reason}`" for reason in set(Reason) - allowing} <= set(re.findall("`[^`]+`", row))


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


def test_the_log_lines_to_watch_exist() -> None:
    table = TEXTS["docs/usage/scaling.md"].partition("| Line in the log |")[2].partition("\n\n")[0]
    lines = re.findall(r"^\| `([^`]+)` \|", table, re.MULTILINE)
    assert len(lines) > 4
    messages = [text for level, text in messages_in_the_code() if level in ("error", "warning")]
    for line in lines:
        pattern = re.escape(line).replace(GAP, ".+")
        assert any(re.match(pattern, message) for message in messages), line


# Signals


def test_signals() -> None:
    sent = [
        keyword.value
        for call, name, _ in calls()
        if name.startswith("send_catch_log")
        for keyword in call.keywords
        if keyword.arg == "signal"
    ]
    names = {ast.unparse(value).rpartition(".")[2].strip("_").lower() for value in sent}
    assert set(first_cells("signals.md")) == names


# Exceptions, exit codes, schemas, names


def test_exceptions() -> None:
    ours = {
        f"scrapy_rep.exceptions.{name}": cls
        for name, cls in vars(exceptions).items()
        if inspect.isclass(cls) and cls.__module__ == exceptions.__name__
    }
    ours["scrapy_rep.RobotsTxtDisallowed"] = ours.pop("scrapy_rep.exceptions.RobotsTxtDisallowed")
    ours["scrapy_rep.stores.StoreError"] = StoreError
    rows = re.findall(
        r"^\| `([\w.]+)` \| `([\w.]+)` \|", TEXTS["docs/reference/exceptions.md"], re.MULTILINE
    )
    assert dict(rows).keys() == ours.keys()
    for name, base in rows:
        (direct,) = ours[name].__bases__
        assert direct.__name__ == base.rpartition(".")[2]


def test_exit_codes() -> None:
    text = TEXTS["docs/reference/exit-codes.md"]
    rows = re.findall(r"^\| (\d+) \| (.*) \|$", text, re.MULTILINE)
    assert rows == [(str(code.value), meaning) for code, meaning in EXIT_CODES.items()]
    assert set(re.findall(r"^\| \[`(\w+)`\]", text, re.MULTILINE)) == set(SUBCOMMANDS)


def test_json_schemas() -> None:
    rows = re.findall(
        r"^\| `(.*\.json)` \| (.*) \|$", TEXTS["docs/reference/json-schemas.md"], re.MULTILINE
    )
    assert rows == [
        (path.relative_to(ROOT).as_posix(), json.loads(path.read_text("utf-8"))["title"])
        for path in sorted(PACKAGE.rglob("*.schema.json"))
    ]


def test_public_names() -> None:
    text = TEXTS["docs/reference/api.md"]
    documented = re.findall(r"^\.\. auto\w+:: (\w+)", text, re.MULTILINE)
    assert sorted(documented) == sorted(scrapy_rep.__all__)


# Design


def test_the_states_of_an_origin() -> None:
    text = TEXTS["docs/about/design.md"]
    assert state_diagram.page(text) == text  # else run python -m testing.state_diagram
    assert state_diagram.IMAGE.read_text("utf-8") == state_diagram.drawing()
    assert set(state_diagram.PLACES) == set(State)


def test_the_way_of_a_request() -> None:
    text = TEXTS["docs/about/design.md"]
    assert request_diagram.page(text) == text  # else run python -m testing.request_diagram
    assert request_diagram.IMAGE.read_text("utf-8") == request_diagram.drawing()
    assert {key for arrow in request_diagram.ARROWS for key in arrow[:2]} == set(
        request_diagram.STEPS
    )


def test_the_functions_on_the_way_of_a_request_call_each_other() -> None:
    calls = request_diagram.calls
    for step in request_diagram.STEPS.values():
        assert callable(request_diagram.function(step.name))
        for caller in step.callers:
            assert step.name.rpartition(".")[2] in calls(caller), (caller, step.name)
    middleware = request_diagram.MIDDLEWARE
    assert "_process_when_ready" in calls(f"{middleware}.process_request")
    assert "_try_start" in calls(f"{middleware}._process_when_ready")
    assert "_disallow" in calls(f"{middleware}.process_request_2")
    order = calls(f"{request_diagram.CACHE}._fetch")
    assert order.index("load") < order.index("fetch") < order.index("apply")


def test_the_chart_of_costs_has_the_figures_of_its_table() -> None:
    rows = cost_chart.costs()
    assert len(rows) > 3
    assert cost_chart.IMAGE.read_text("utf-8") == cost_chart.drawing(rows)  # else run it


def test_the_performance_page_names_benchmarks_that_exist() -> None:
    named = re.findall(r"python -m benchmarks (\w+)", TEXTS["docs/about/performance.md"])
    assert set(named) == {
        path.stem for path in (ROOT / "benchmarks").glob("*.py") if not path.stem.startswith("_")
    }


def test_the_steps_of_a_request_exist() -> None:
    names = re.findall(r"`(scrapy_rep\.[\w.]+)`", TEXTS["docs/about/design.md"])
    assert len(names) > 10
    for name in names:
        module, _, attribute = name.rpartition(".")
        try:
            owner = importlib.import_module(module)
        except ModuleNotFoundError:
            module, _, cls = module.rpartition(".")
            owner = getattr(importlib.import_module(module), cls)
        assert hasattr(owner, attribute), name


# Links


def anchors(text: str) -> set[str]:
    """Return the anchors of the headings of a page, as code hosting sites make them."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.*)", text, re.MULTILINE)
    words = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {heading.replace(" ", "-") for heading in words}


def test_the_index_links_to_every_page() -> None:
    index = TEXTS["docs/index.md"]
    names = [page.removeprefix("docs/") for page in TEXTS if page.startswith("docs/")]
    pages = {name for name in names if name.count("/") == 1 or name.endswith("/index.md")}
    assert set(re.findall(r"^- \[.*?\]\((.*?)\)", index, re.MULTILINE)) == pages
    assert {f"{name}.md" for name in re.findall(r"^[\w/-]+$", index, re.MULTILINE)} == pages


@pytest.mark.parametrize(
    "page",
    [
        *[path.relative_to(ROOT).as_posix() for path in sorted(DOCS.rglob("*.md"))],
        "README.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "example_project/README.md",
    ],
)
def test_links_within_the_repository(page: str) -> None:
    path = ROOT / page
    text = re.sub(r"^```.*?^```", "", path.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = (path.parent / name).resolve() if name else path
        assert file.exists(), target
        assert not anchor or anchor in anchors(file.read_text("utf-8")), target

"""The page of a survey: one HTML file with charts, which loads nothing and has no script.

It is made from the JSON form of a survey. ``elements`` escapes each text.
"""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, Any

from ..protocol.agents import WILDCARD_AGENT
from ..protocol.lint_codes import Code
from .charts import Bar, bars, legend
from .elements import code, h, page, shown
from .quantities import count, octets, percent, seconds
from .survey_names import FEATURES, NUMBERS, QUANTILES, quantile

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from .elements import Child, Html

MAX_BARS = 20
"""The bars of a chart."""

MAX_DIFFERENCES = 50
"""The differences to another survey that are shown."""

_EXTENTS = (("broken", "Everything"), ("dropped", "Something"), ("sent", "Nothing"))
_CODES = {each.code: each for each in Code}


def render(record: Mapping[str, Any]) -> str:
    """Return the page of a survey, from its JSON form."""
    title = f"Survey of {count(record['total']['responses'], 'robots.txt', 'robots.txt')}"
    sections = list(_sections(record))
    body = h(
        "div",
        h("a", "Skip to the answers", href="#answers", class_="skip"),
        h(
            "header",
            h("h1", title),
            h("p", f"Made {shown(record['made_at'], 40)}", class_="note"),
            None
            if record["complete"]
            else h("p", "This survey is not complete: not all of its input was read."),
            h(
                "nav",
                h("ul", (h("li", h("a", text, href=f"#{name}")) for name, text, _ in sections)),
                aria_label="Sections",
            ),
        ),
        h(
            "main",
            (h("section", h("h2", text), content, id=name) for name, text, content in sections),
        ),
        h(
            "footer",
            h("p", "This page is one file. It loads nothing. The JSON form has all numbers."),
        ),
        class_="page",
    )
    description = "The state of the robots.txt files of many sites."
    return page(title, description, body, _asset("page.css"), "")


def _asset(name: str) -> str:
    return files(__package__).joinpath(name).read_text("utf-8").replace("\r\n", "\n")


def _sections(record: Mapping[str, Any]) -> Iterator[tuple[str, str, Child]]:
    """Yield the identifier, the title and the content of each section."""
    total = record["total"]
    yield "answers", "Answers", _answers(total)
    if total["statuses"] or len(total["results"]) > 1:
        yield "statuses", "Statuses", _statuses(total)
    yield "files", "Files", [_features(total), _numbers(total)]
    yield "agents", "Agents", _agents(total)
    yield "ai", "AI and usage", _ai(total)
    yield "findings", "Findings", _findings(total)
    if len(record["strata"]) > 1:
        yield "strata", "Strata", _strata(record)
    if "differences" in record:
        yield "differences", "Differences", _differences(record["differences"])


def _answers(total: Mapping[str, Any]) -> Html:
    features, whole = total["features"], total["files"]
    sizes = total["numbers"]["size"]
    delays = total["numbers"]["crawl-delay"]
    training = total["purposes"].get("ai-training", {})

    def card(question: str, answer: str, text: str) -> Html:
        return h("article", h("h3", question), h("p", answer, class_="answer"), h("p", text))

    return h(
        "div",
        card(
            "How many files are there?",
            f"{whole:,}",
            f"among {count(total['responses'], 'response')}.",
        ),
        card(
            "How large is a file?",
            octets(sizes["median"]),
            f"is the median, {octets(sizes['p99'])} the 99th percentile, and "
            f"{octets(sizes['max'])} the largest. {features.get('too-large', 0):,} have more than "
            "500 KiB.",
        ),
        card(
            "How many disallow the whole site for all crawlers?",
            percent(features.get("disallows-everything-for-all", 0), whole),
            f"or {features.get('disallows-everything-for-all', 0):,}. "
            f"{features.get('names-an-agent', 0):,} name a crawler.",
        ),
        card(
            "How many set a delay?",
            percent(features.get("crawl-delay", 0), whole),
            f"with a median of {seconds(delays['median'] / 1000)}."
            if delays["count"]
            else "No delay is readable.",
        ),
        card(
            "How many name a crawler for AI training?",
            percent(training.get("named", 0), whole),
            f"and {percent(training.get('everything', 0), whole)} disallow the whole site for one.",
        ),
        class_="answers",
    )


def _figure(title: str, *content: Child) -> Html:
    return h("figure", h("figcaption", h("h3", title)), content)


def _statuses(total: Mapping[str, Any]) -> list[Html]:
    whole = total["responses"]
    results = sorted(total["results"].items(), key=lambda item: -item[1])
    statuses = sorted(total["statuses"].items(), key=lambda item: -item[1])
    return [
        _figure("Results", _bars("Results", "Result", results, whole, "robots")),
        _figure("Statuses", _bars("Statuses", "Status", statuses, whole, "robots")),
    ]


def _bars(
    caption: str, column: str, rows: Sequence[tuple[Child, int]], whole: int, kind: str
) -> Html:
    made = [Bar(label, number, kind, percent(number, whole)) for label, number in rows[:MAX_BARS]]
    return bars(caption, (column, "Number"), made)


def _features(total: Mapping[str, Any]) -> Html:
    rows = [
        (text, total["features"][name])
        for name, text in FEATURES.items()
        if name in total["features"]
    ]
    return _figure("What files have", _bars("Features", "Feature", rows, total["files"], "sent"))


def _numbers(total: Mapping[str, Any]) -> Html:
    rows: list[list[Child]] = [
        [text, *(quantile(name, total["numbers"][name][key]) for key in QUANTILES)]
        for name, text in NUMBERS.items()
        if total["numbers"][name]["count"]
    ]
    return _figure(
        "Sizes and numbers",
        _table("Percentiles of sizes and numbers", ("In a file", *QUANTILES.values()), rows),
        h("p", "A percentile is exact, or less than 1 % too small.", class_="note"),
    )


def _table(caption: str, heads: Sequence[str], rows: Sequence[Sequence[Child]]) -> Html:
    """Return a table that a phone shows as a list of rows, each with all its names."""
    return h(
        "table",
        h("caption", caption, class_="unseen"),
        h("thead", h("tr", (h("th", head, scope="col") for head in heads))),
        h("tbody", (_row(heads, row) for row in rows)),
        class_="numbers labeled",
    )


def _row(heads: Sequence[str], row: Sequence[Child]) -> Html:
    first, *others = row
    cells = (h("td", cell, data_value=head) for cell, head in zip(others, heads[1:], strict=True))
    return h("tr", h("th", first, scope="row"), cells)


def _agents(total: Mapping[str, Any]) -> list[Child]:
    whole = total["files"]
    # The group for all others is among the features: it would make all other bars short.
    named = [_extent_row(row) for row in total["agents"] if row["agent"] != WILDCARD_AGENT]
    blocked = [(code(row["agent"], 60), row["files"]) for row in total["blocked_agents"]]
    made: list[Child] = [
        _figure(
            "Agents that files name most",
            _extents("Agents", "Agent", named),
        ),
        _figure(
            "Agents that may fetch nothing",
            _bars("Agents disallowed everything", "Agent", blocked, whole, "broken"),
        ),
    ]
    if total["agents_error"]:
        error = f"Each number of an agent may be up to {total['agents_error']:,} too small."
        made.append(h("p", error, class_="note"))
    return made


def _extent_row(row: Mapping[str, Any]) -> tuple[Child, int, list[int]]:
    extents = [row["everything"], row["something"], row["nothing"]]
    return code(row["agent"], 60), row["files"], extents


def _extents(
    caption: str, column: str, rows: Sequence[tuple[Child, int, list[int]]]
) -> list[Child]:
    """Return a stacked bar for each row: the files that disallow everything, something, nothing."""
    longest = max((sum(extents) for _, _, extents in rows), default=0) or 1
    return [
        h(
            "p",
            "What the groups for an agent disallow, and the number of files with each:",
            class_="note",
        ),
        legend(_EXTENTS),
        h(
            "table",
            h("caption", caption, class_="unseen"),
            h("thead", h("tr", h("th", column, scope="col"), h("th", "Files", scope="col"))),
            h("tbody", (_stack(*row, longest) for row in rows[:MAX_BARS])),
            class_="bars",
        ),
    ]


def _stack(label: Child, number: int, extents: Sequence[int], longest: int) -> Html:
    left = 0.0
    parts = []
    for (kind, _), value in zip(_EXTENTS, extents, strict=True):
        width = 100 * value / longest
        if value:
            parts.append(h("rect", x=f"{left:.2f}", width=f"{width:.2f}", height=1, class_=kind))
        left += width
    chart = h(
        "svg",
        parts,
        viewBox="0 0 100 1",
        preserveAspectRatio="none",
        aria_hidden="true",
        focusable="false",
    )
    text = h("span", h("strong", number), f" {' / '.join(f'{value:,}' for value in extents)}")
    return h("tr", h("th", label, scope="row"), h("td", h("div", chart, text)))


def _ai(total: Mapping[str, Any]) -> list[Child]:
    whole = total["files"]
    purposes = sorted(total["purposes"].items(), key=lambda item: -item[1].get("named", 0))
    rows: list[tuple[Child, int, list[int]]] = [
        (
            shown(purpose, 60),
            row.get("named", 0),
            [row.get(extent, 0) for extent in ("everything", "something", "nothing")],
        )
        for purpose, row in purposes
    ]
    agents = [_extent_row(row) for row in total["ai_agents"]]
    preferences = [(code(row["preference"], 100), row["files"]) for row in total["preferences"]]
    return [
        _figure("Files that name a crawler, by its purpose", _extents("Purposes", "Purpose", rows)),
        _figure("AI agents", _extents("AI agents", "Agent", agents))
        if agents
        else h("p", "No file names an AI agent.", class_="note"),
        _figure(
            "Usage preferences",
            _bars("Usage preferences", "Preference", preferences, whole, "other"),
        )
        if preferences
        else h("p", "No file states a usage preference.", class_="note"),
    ]


def _findings(total: Mapping[str, Any]) -> Html:
    rows: list[tuple[Child, int]] = [
        (
            (h("strong", shown(name, 10)), f" {_CODES[name].summary}" if name in _CODES else ""),
            number,
        )
        for name, number in total["findings"].items()
    ]
    if not rows:
        return h("p", "There are no findings.", class_="note")
    return _figure("Findings of lint", _bars("Findings", "Code", rows, total["files"], "dropped"))


def _strata(record: Mapping[str, Any]) -> list[Child]:
    heads = (
        "Stratum",
        "Files",
        "Median size",
        "Sitemap",
        "Crawl-delay",
        "Disallowed",
        "AI training",
    )
    rows: list[list[Child]] = []
    for name, tally in record["strata"].items():
        whole, features = tally["files"], tally["features"]
        shares = [features.get(key, 0) for key in ("sitemap", "crawl-delay")]
        shares.append(features.get("disallows-everything-for-all", 0))
        shares.append(tally["purposes"].get("ai-training", {}).get("everything", 0))
        rows.append(
            [
                code(name, 60),
                whole,
                octets(tally["numbers"]["size"]["median"]),
                *(percent(share, whole) for share in shares),
            ]
        )
    made: list[Child] = [
        _table("Strata", heads, rows),
        h(
            "p",
            "Disallowed: the group for all crawlers disallows everything. AI training: a group for "
            "a crawler with this purpose disallows everything.",
            class_="note",
        ),
    ]
    if record["strata_left_out"]:
        left = count(record["strata_left_out"], "site")
        made.append(h("p", f"{left} of other strata count only in the total.", class_="note"))
    return made


def _differences(rows: Sequence[Mapping[str, Any]]) -> Html:
    if not rows:
        return h("p", "No share differs from the other survey.", class_="note")
    made: list[list[Child]] = [
        [
            [shown(row["measure"], 30), " ", code(row["name"], 60)],
            f"{100 * row['before']:.1f} %",
            f"{100 * row['after']:.1f} %",
            f"{100 * row['change']:+.1f}",
        ]
        for row in rows[:MAX_DIFFERENCES]
    ]
    return _table("Differences", ("Share of files or sites", "Before", "Now", "Points"), made)

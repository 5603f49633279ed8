"""The details of an origin in the table of a report, as HTML: facts, rules, findings and files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..protocol.lint import lint
from .answers import deciding_text, median
from .elements import code, h, join, shown
from .quantities import ABSENT, count, moment, octets, seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..protocol.lint import Finding
    from .elements import Child, Html
    from .model import AskedPace, Deciding, HostPace, OriginReport, Report, Seen, Usage, Version

MAX_DETAILS_OF_ONE = 60_000
"""Octets of the details of one origin. Beyond it, its robots.txt is left out."""

MAX_RULES = 50
"""The rules and reasons of one origin that are listed."""

MAX_LINES = 80
"""Lines of a robots.txt that are shown. Of a longer file, only those around the deciding lines and
the findings are."""

MAX_LINE_LENGTH = 300
CONTEXT = 2
"""Lines before and after a deciding line."""

MAX_VERSIONS = 10
MAX_FINDINGS = 20

STATES = {
    "rules": "Has rules",
    "unavailable": "No robots.txt",
    "disallowed": "All disallowed",
    "unreachable": "Unreachable",
    "unknown": "Not fetched",
}
"""What each state of an origin is called."""


def state_text(state: str) -> str:
    """Return what a state is called. A later version may have others."""
    return STATES.get(state, state)


_EFFECTS = {
    "rules": "the rules of the last good copy",
    "allow": "everything is allowed",
    "disallow": "everything is disallowed",
}


class Details:
    """Makes the details of origins. Many origins may have the same file."""

    def __init__(self, report: Report, columns: int) -> None:
        self._columns = columns
        self._files = report.files
        self._hosts = {host.host: host for host in report.hosts}
        self._found: dict[str, list[Finding]] = {}
        self._strict = any(run.settings.get("REP_STRICT") == "True" for run in report.runs)

    def findings(self, version: Version | None) -> list[Finding] | None:
        """Return the findings of a robots.txt. None if the report does not have the file."""
        sha256 = version.sha256 if version else None
        text = self._text(sha256)
        if sha256 is None or text is None:
            return None
        if sha256 not in self._found:
            body = text.encode("utf-8", "surrogatepass")
            self._found[sha256] = lint(body, strict=self._strict)
        return self._found[sha256]

    def of(self, origin: OriginReport) -> Html:
        """Return the row with the details of an origin."""
        parts = join(
            self._facts(origin),
            _rules(origin),
            _seen(origin),
            _versions(origin),
            self._findings(origin),
        )
        files = list(self._file_views(origin))
        if len(parts) + sum(map(len, files)) > MAX_DETAILS_OF_ONE:
            files = [h("p", "The robots.txt is too long for this page.", class_="note")]
        summary = h("summary", "Details", h("span", f" of {shown(origin.origin, 300)}"))
        return h(
            "tr",
            h("td", h("details", summary, h("div", parts, files)), colspan=self._columns),
            class_="more",
        )

    def _text(self, sha256: str | None) -> str | None:
        file = self._files.get(sha256) if sha256 is not None else None
        return file.text if file is not None else None

    def _facts(self, origin: OriginReport) -> Html:
        counts = origin.counts
        facts: list[tuple[str, Child]] = []
        if origin.versions:
            facts += _version_facts(origin.versions[-1])
        host = self._hosts.get(origin.host)
        facts += _pace_facts(origin.pace, host)
        if counts.robots_txt:
            facts.append(("Requests for robots.txt", counts.robots_txt))
        for number, text in (
            (counts.sent_disallowed, "Sent although disallowed"),
            (counts.final_url_disallowed, "Responses from disallowed URLs"),
            (counts.sent_exempt, "Sent as exempt (dont_obey_robotstxt)"),
            (counts.sent_unchecked, "Sent without a check"),
        ):
            if number:
                facts.append((text, number))
        for number, time, text in (
            (counts.delayed, counts.delay_seconds, "Waited for the pace of the site"),
            (counts.waited, counts.wait_seconds, "Waited for the robots.txt"),
        ):
            if number:
                facts.append((text, f"{count(number, 'request')}, {seconds(time)} in total"))
        if not facts:
            return h("p", "Its robots.txt was not fetched.", class_="note")
        return h("dl", (h("div", h("dt", name), h("dd", value)) for name, value in facts))

    def _findings(self, origin: OriginReport) -> Html | None:
        findings = self.findings(origin.versions[-1] if origin.versions else None)
        if not findings:
            return None
        more = len(findings) - MAX_FINDINGS
        return join(
            h("h3", "Findings"),
            h(
                "ul",
                (
                    h(
                        "li",
                        f"Line {finding.line}: {finding.severity} {finding.code}: "
                        f"{shown(finding.message)}. "
                        f"Advice: {shown(finding.advice)}.",
                    )
                    for finding in findings[:MAX_FINDINGS]
                ),
                h("li", f"{count(more, 'more finding')} not shown") if more > 0 else None,
                class_="findings",
            ),
        )

    def _file_views(self, origin: OriginReport) -> Iterator[Html]:
        """Yield the files of an origin: the last one, and earlier ones that decided."""
        last = next((each.sha256 for each in reversed(origin.versions) if each.sha256), None)
        deciding = dict.fromkeys(each.sha256 for each in origin.deciding if each.rule is not None)
        for sha256 in dict.fromkeys([last, *deciding]):
            if sha256 is None:
                continue
            name = "robots.txt" if sha256 == last else "An earlier robots.txt"
            yield h("h3", name, h("span", f" SHA-256 {shown(sha256, 80)}"))
            text = self._text(sha256)
            if text is None:
                yield h("p", "The report does not have the text of this file.", class_="note")
            else:
                yield _file(text, _deciding_lines(origin, sha256))


def _version_facts(version: Version) -> Iterator[tuple[str, Child]]:
    if version.url is not None:
        yield "robots.txt", code(version.url)
    if version.redirects:
        yield "Redirected from", [h("div", code(url)) for url in version.redirects]
    yield "Result", _result(version)
    if version.result == "unreachable":
        yield "Applied", _EFFECTS.get(version.effect, shown(version.effect, 60))
    source = {"site": "the site", "store": "the store", "http-cache": "Scrapy's HTTP cache"}
    when = moment(version.last_at)
    yield "Last checked", f"{when} UTC, from {source.get(version.source, shown(version.source))}"
    if version.expires_at is not None:
        yield "Used until", f"{moment(version.expires_at)} UTC"
    if version.octets is not None:
        yield "Size", f"{version.octets:,} octets"


def _result(version: Version) -> str:
    parts = [shown(state_text(version.result), 60)]
    if version.failure is not None:
        parts.append(shown(version.failure, 200))
    if version.status is not None and str(version.status) not in (version.failure or ""):
        parts.insert(1, f"status {version.status}")
    return ", ".join(parts)


def _pace_facts(paces: list[AskedPace], host: HostPace | None) -> Iterator[tuple[str, Child]]:
    if paces:
        asked = paces[-1]
        if asked.records:
            yield "Pace asked for", code(asked.records)
        if asked.local_delay:
            yield "Delay of a local rule", seconds(asked.local_delay)
        yield "Delay applied", seconds(asked.applied) if asked.applied else "none"
    if host is not None:
        gaps = host.paced_gaps if host.paced_gaps.count else host.gaps
        if gaps.smallest is not None:
            text = f"smallest {seconds(gaps.smallest)}, median about {seconds(median(gaps))}"
            if host.paced_gaps.count:
                text += f", {host.too_short:,} of {host.paced_gaps.count:,} too short"
            yield "Gaps between requests to the host", text


def _rules(origin: OriginReport) -> Html | None:
    if not origin.deciding:
        return None
    ordered = sorted(origin.deciding, key=lambda each: -(each.dropped + each.sent))
    heads = ("Rule or reason", "Verdict", "Sent", "Dropped", "Delayed", "Examples")
    more = max(len(ordered) - MAX_RULES, 0)
    left_out = sum(each.sent + each.dropped for each in ordered[MAX_RULES:])
    left_out += origin.deciding_left_out
    return join(
        h("h3", "Rules and reasons"),
        h(
            "table",
            h("thead", h("tr", (h("th", text, scope="col") for text in heads))),
            h("tbody", map(_rule, ordered[:MAX_RULES])),
            class_="rules",
        ),
        h("p", f"{count(left_out, 'request')} by other rules and reasons.", class_="note")
        if more or left_out
        else None,
    )


def _rule(deciding: Deciding) -> Html:
    rule = deciding.rule
    about: list[str] = []
    if rule is not None:
        about.append(f"line {rule.line:,}")
    if deciding.agent is not None:
        about.append("group *" if deciding.agent == "*" else f"group {shown(deciding.agent, 100)}")
    if deciding.detail is not None:
        about.append(shown(deciding.detail))
    verdict = {True: "allowed", False: "disallowed", None: "no verdict"}[deciding.allowed]
    sent: list[Child] = [deciding.sent]
    if deciding.final_url:
        sent.append(f" (+ {deciding.final_url:,} final URLs)")
    kind = "bad" if deciding.allowed is False and (deciding.sent or deciding.final_url) else None
    delayed: Child = deciding.delayed
    if deciding.delayed:
        delayed = f"{deciding.delayed:,} ({seconds(deciding.delay_seconds)})"
    text = deciding_text(deciding)
    return h(
        "tr",
        h(
            "th",
            code(text) if rule is not None else text,
            h("span", " ", ", ".join(about)) if about else None,
            scope="row",
        ),
        h("td", verdict),
        h("td", sent, class_=kind),
        h("td", deciding.dropped),
        h("td", delayed),
        h("td", [h("div", code(url, 500)) for url in deciding.examples]),
    )


def _seen(origin: OriginReport) -> Html | None:
    lines: list[Html] = []
    for title, found in (
        ("Page directive", origin.directives),
        ("Demand", origin.terms),
        ("License", origin.licenses),
    ):
        lines += [
            h("li", f"{title} ", code(name), _seen_text(seen)) for name, seen in found.items()
        ]
    lines += [h("li", "Use ", code(name), _usage_text(use)) for name, use in origin.usage.items()]
    return join(h("h3", "What the pages say"), h("ul", lines)) if lines else None


def _seen_text(seen: Seen) -> Child:
    text = f": {count(seen.responses, 'response')}"
    if seen.dropped:
        text += f", {seen.dropped:,} dropped"
    if seen.details:
        text += f" ({'; '.join(shown(each, 200) for each in seen.details)})"
    return (text, _example(seen.examples))


def _usage_text(use: Usage) -> Child:
    text = f": granted by {use.granted:,}, refused by {count(use.refused, 'response')}"
    if use.dropped:
        text += f", {count(use.dropped, 'item')} dropped"
    return (text, _example(use.examples))


def _example(urls: list[str]) -> Child:
    return (", such as ", code(urls[0], 500)) if urls else None


def _versions(origin: OriginReport) -> Html | None:
    if len(origin.versions) < 2 and not origin.versions_left_out:
        return None
    shown_versions = origin.versions[-MAX_VERSIONS:]
    left_out = len(origin.versions) - len(shown_versions) + origin.versions_left_out
    heads = ("From", "To", "Result", "Fetches", "Size", "SHA-256")
    return join(
        h("h3", "States of the robots.txt"),
        h(
            "table",
            h("thead", h("tr", (h("th", text, scope="col") for text in heads))),
            h("tbody", map(_version, shown_versions)),
            class_="versions",
        ),
        h("p", f"{count(left_out, 'earlier state')} not shown.", class_="note")
        if left_out
        else None,
    )


def _version(version: Version) -> Html:
    return h(
        "tr",
        h("th", moment(version.first_at), scope="row"),
        h("td", moment(version.last_at)),
        h("td", _result(version)),
        h("td", version.fetches),
        h("td", octets(version.octets) if version.octets is not None else ABSENT),
        h("td", code(version.sha256, 80) if version.sha256 is not None else ABSENT),
    )


def _deciding_lines(origin: OriginReport, sha256: str) -> dict[int, str]:
    """Return what each line of a file decided, by its number."""
    numbers: dict[int, list[int]] = {}
    for deciding in origin.deciding:
        if deciding.rule is not None and deciding.sha256 == sha256:
            found = numbers.setdefault(deciding.rule.line, [0, 0])
            found[0] += deciding.sent + deciding.final_url
            found[1] += deciding.dropped
    texts = {}
    for line, (sent, dropped) in numbers.items():
        parts = [f"{sent:,} sent"] * bool(sent) + [f"{dropped:,} dropped"] * bool(dropped)
        texts[line] = ", ".join(parts) or "decided"
    return texts


def _file(text: str, deciding: dict[int, str]) -> Html:
    lines = text.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    if not lines:
        return h("p", "The file is empty.", class_="note")
    if len(lines) <= MAX_LINES:
        chosen = list(range(1, len(lines) + 1))
    else:
        near = {
            number + offset
            for number in sorted(deciding)[:MAX_LINES]
            for offset in range(-CONTEXT, CONTEXT + 1)
        }
        chosen = sorted(near.intersection(range(1, len(lines) + 1))) or list(
            range(1, MAX_LINES + 1)
        )
    items: list[Html] = []
    expected = 1
    for number in chosen:
        mark = deciding.get(number)
        line = shown(lines[number - 1], MAX_LINE_LENGTH)
        items.append(
            h(
                "li",
                line if mark is None else (h("mark", line), h("span", f" {mark}")),
                value=None if number == expected else number,
            )
        )
        expected = number + 1
    left_out = len(lines) - len(chosen)
    return join(
        h("ol", items, class_="file"),
        h("p", f"{count(left_out, 'line')} of {len(lines):,} not shown.", class_="note")
        if left_out
        else None,
    )

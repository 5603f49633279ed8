"""The report of a crawl (REP_REPORT), compared with what the sites received."""

from __future__ import annotations

import json
from collections import Counter
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from jsonschema import Draft202012Validator
from scrapy import Request

from scrapy_rep.reports.gaps import MAX_ERROR
from scrapy_rep.reports.reading import read_report, read_reports
from testing.web import Page, gaps, redirect

if TYPE_CHECKING:
    from pathlib import Path

    from scrapy_rep.reports.model import Deciding, OriginReport, Report
    from testing.web import Site, Web

    from .conftest import Crawl

SCHEMA = json.loads(
    files("scrapy_rep.reports").joinpath("schemas", "report.schema.json").read_text()
)

ROBOTS = "User-agent: *\nDisallow: /private\nAllow: /private/open\nDisallow: /*.pdf$\n"


def the_report(folder: Path) -> Report:
    """The report in `report.json`, whose JSON is what the schema says."""
    path = folder / "report.json"
    Draft202012Validator(SCHEMA).validate(json.loads(path.read_text()))
    return read_report(path)


def origin_of(report: Report, site: Site) -> OriginReport:
    (origin,) = (each for each in report.origins if each.origin == site.root)
    return origin


def rule_of(deciding: Deciding) -> tuple[bool, str, int] | None:
    rule = deciding.rule
    return None if rule is None else (rule.allow, rule.pattern, rule.line)


async def test_the_counts_are_those_of_the_server(web: Web, crawl: Crawl, tmp_path: Path) -> None:
    first, second = web.site(ROBOTS), web.site(None)
    paths = ["/a", "/b", "/private/1", "/private/2", "/private/open", "/c.pdf"]
    exempt = [
        Request(first.url(path), meta={"dont_obey_robotstxt": True})
        for path in ("/private/3", "/x")
    ]
    outcome = await crawl(
        [*first.urls(*paths), *second.urls("/d", "/e.pdf"), *exempt],
        {"REP_REPORT": str(tmp_path / "report.json")},
    )
    report = the_report(tmp_path)
    for site in (first, second):
        counts = origin_of(report, site).counts
        assert counts.sent == len(site.page_paths)
        assert counts.robots_txt == site.robots_fetches
    counts = origin_of(report, first).counts
    assert (counts.sent_allowed, counts.sent_exempt) == (3, 2)
    assert (counts.sent_disallowed, counts.sent_unchecked) == (0, 0)
    assert counts.dropped_for == {"rules": 3}
    assert report.totals.sent == 7
    assert report.totals.dropped == len(outcome.failures)
    (host,) = report.hosts
    assert host.requests == len(first.received) + len(second.received)
    assert host.gaps.count == host.requests - 1

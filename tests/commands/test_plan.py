"""``check`` before and after a crawl: ``--plan`` and ``--only``."""

from __future__ import annotations

import gzip
import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import scrapy

from scrapy_rep.fetch.downloader import Exchange
from testing import harness, simulation
from testing.archives import response, write_archive
from testing.simulation import RULES, Answer, Ask, Network
from testing.web import Page, Site, Web, gaps
from tests.crawl.conftest import Visitor, make_crawler, run_crawler
from tests.reports.test_archive import http, record
from tests.test_simulation import SCENARIO

from .conftest import Cli, Done, Run, write

AT_ONCE = {"REP_RETRY_TIMES": 0, "RETRY_ENABLED": False}


async def planned(cli: Cli, urls: list[str], *options: str) -> Any:
    """What ``--plan`` says of each host, or what it writes without ``--json``."""
    write(urls_txt="\n".join(urls))
    done = await cli("check", "--from", "urls.txt", "--plan", *options, settings=AT_ONCE)
    return {each["host"]: each for each in done.records} if options else done


def paced(web: Web, *delays: float) -> list[Site]:
    """Sites with a delay each, on hosts of their own."""
    return [
        web.site(f"{RULES['private']}Crawl-delay: {delay}", host=f"127.0.4.{number}")
        for number, delay in enumerate(delays, 1)
    ]


async def test_a_crawl_requests_and_drops_what_the_plan_says(web: Web, cli: Cli) -> None:
    sites = paced(web, 0.3, 0.1, 0)
    beside = web.site(f"{RULES['nothing']}Crawl-delay: 0.2", host=sites[1].host)
    down = web.site(b"", host="127.0.4.9")
    down.pages["/robots.txt"] = web.site(None).pages["/robots.txt"]
    paths = [f"/{number}" for number in range(4)] + ["/private/1", "/private/2"]
    urls = [url for site in (*sites, beside, down) for url in site.urls(*paths)]
    plans = await planned(cli, urls, "--json")
    assert {host: (plan["allowed"], plan["dropped"]) for host, plan in plans.items()} == {
        "127.0.4.1": (4, 2), "127.0.4.2": (4, 8), "127.0.4.3": (4, 2), "127.0.4.9": (6, 0),
    }  # fmt: skip
    assert [(plan["pace"], plan["delay"]) for plan in plans.values()] == [
        ("Crawl-delay: 0.3", 0.3), ("Crawl-delay: 0.2", 0.2), ("", 0), ("", 0),
    ]  # fmt: skip
    crawler = make_crawler(Visitor, AT_ONCE)
    await run_crawler(crawler, requests=urls)
    outcome: Any = crawler.spider.outcome  # type: ignore[union-attr]
    assert len(outcome.responses) == sum(plan["allowed"] for plan in plans.values())
    assert outcome.stats["robotstxt/forbidden"] == sum(plan["dropped"] for plan in plans.values())
    for site in sites:
        plan = plans[site.host]
        waits = gaps(site)
        assert len(waits) == plan["allowed"] - 1
        assert sum(waits) >= plan["seconds"] * 0.98  # clocks are coarse
        assert plan["seconds"] == pytest.approx(len(waits) * plan["delay"])


DELAYS = (3.0, 20.0)
PATHS = [f"/{'private/' * (number % 3 == 0)}a" for number in range(40)]
"""Each host has these pages. The first is disallowed, as each third one is."""


def simulated_seconds() -> list[float]:
    """Crawl on a virtual clock. Returns the seconds between the first and last page of a host."""
    networks = []

    def network(*arguments: Any) -> Network:
        networks.append(Network(*arguments))
        return networks[0]

    sites = tuple(
        simulation.Site(number, 8000, (Answer("private", delay=delay),), page_latency=0.1)
        for number, delay in enumerate(DELAYS)
    )
    asks = tuple(Ask(0, number, path) for path in PATHS for number in range(len(DELAYS)))
    with patch.object(simulation, "Network", network):
        problems = simulation.run(replace(SCENARIO, sites=sites, asks=asks))
    assert not problems, problems
    found = []
    for site in sites:
        times = [at for at, request in networks[0].pages if request.url.startswith(site.root)]
        found.append(times[-1] - times[0])
    return found


@pytest.mark.skipif(scrapy.version_info < (2, 15), reason="the simulation needs Scrapy 2.15")
async def test_the_plan_is_within_5_percent_of_a_crawl(web: Web, cli: Cli) -> None:
    """The crawl is one on a virtual clock, so that no machine is too slow."""
    urls = [url for site in paced(web, *DELAYS) for url in site.urls(*PATHS)]
    plans = await planned(cli, urls, "--json")
    seconds = {plan["delay"]: plan["seconds"] for plan in plans.values()}
    crawled = dict(zip(DELAYS, harness.call(simulated_seconds)))
    assert seconds == pytest.approx(crawled, rel=0.05)
    assert sum(seconds.values()) > 500


async def test_the_table(web: Web, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scrapy_rep.commands.check.MAX_HOSTS", 2)
    (site,) = paced(web, 4000)
    odd = web.site(
        "User-agent: *\nVisit-time: 0600-0700\nRequest-rate: 1/\x1b[2J", host="127.0.4.2"
    )
    urls = [*site.urls("/a", "/b", "/c"), *odd.urls("/a", "/b"), "mailto:x", "http://[bad/"]
    done = await planned(cli, urls)
    assert done.code == 3
    lines = done.out.splitlines()
    assert lines[2].split() == ["127.0.4.1", "3", "0", "Crawl-delay:", "4000", "0:10:00"]
    assert lines[3].startswith("127.0.4.2")
    assert "Visit-time: 06:00 to" in done.out
    assert lines[-3:-1] == ["and 1 more host", ""]
    assert lines[-1].split() == ["Total", "6", "1", "0:10:00"]
    assert "note: 7 answers: 6 allowed, 0 disallowed, 1 unknown\n" in done.err
    done = await planned(cli, [site.url("/a")])
    assert [line.split()[-4:] for line in done.out.splitlines()[2::2]] == [
        ["less", "than", "a", "second"]
    ] * 2


async def test_an_unreachable_robots_txt_is_unknown_in_the_summary(web: Web, cli: Cli) -> None:
    (site,), down = paced(web, 0), web.site(Page(b"", 503))
    urls = [*site.urls("/a", "/private/1"), down.url("/a"), "http://[bad/"]
    for options, words in (
        ((), "1 allowed, 1 disallowed, 2 unknown"),
        (("--plan",), "1 allowed, 1 disallowed, 2 unknown"),
        (("--only", "disallowed"), "1 left out, 1 found, 2 unknown"),
    ):
        write(urls_txt="\n".join(urls))
        done = await cli("check", "--from", "urls.txt", *options, settings=AT_ONCE)
        assert (done.code, f"note: 4 answers: {words}\n" in done.err) == (3, True), done.err
        is_listed = f"disallowed {down.url('/a')}  the robots.txt was unreachable" in done.out
        assert is_listed or "--plan" in options


async def test_a_store_knows_since_when(web: Web, cli: Cli, tmp_path: Path) -> None:
    sites = [web.site(RULES["nothing"]), web.site(b""), web.site(RULES["private"])]
    sites[1].pages["/robots.txt"] = Page(b"", 503)
    write(urls_txt="\n".join(site.url("/a") for site in sites))
    arguments = ("check", "--from", "urls.txt", "--only", "disallowed", "--json")
    settings = {**AT_ONCE, "REP_STORE": f"sqlite:///{tmp_path}/a.sqlite"}
    first = await cli(*arguments, settings=settings)
    assert [record["since"] for record in first.records] == [None, None]
    again = await cli(*arguments, settings=settings)
    assert [record["url"] for record in again.records] == [site.url("/a") for site in sites[:2]]
    assert all(record["since"] for record in again.records)
    assert {tuple(site.paths) for site in sites} == {("/robots.txt",)}


# From an archive


SITE = "https://x.example"
URL = f"{SITE}/robots.txt"
OTHER = "https://y.example/robots.txt"
OPEN = b"User-agent: *\nDisallow: /a\n"
CLOSED = b"User-agent: *\nDisallow: /\n"
ARCHIVE = ("--archive", "a.warc.gz")
ITEMS = "\n".join(f'{{"url": "{url}"}}' for url in (
    f"{SITE}/a", f"{SITE}/b", f"{SITE}/c", "https://y.example/a", "https://z.example/",
))  # fmt: skip
REFUSING = b"User-agent: *\nAllow: /\nContent-Signal: /b ai-train=no\nContent-Usage: /c search=n\n"


def only(run: Run, kinds: str, *arguments: str) -> tuple[Done, list[dict[str, Any]]]:
    """The text, and the records."""
    given = ("check", "--only", kinds, "--from", "items.jsonl", "-a", "bot", *arguments, *ARCHIVE)
    done, as_json = run(*given), run(*given, "--json")
    assert done.code == as_json.code
    return done, as_json.records


def disallowed(run: Run, *arguments: str) -> Done:
    return run("check", f"{SITE}/b", "--only", "disallowed", "-a", "bot", *arguments)


def test_the_last_time_of_an_archive(run: Run, tmp_path: Path) -> None:
    archive = write_archive(tmp_path / "a.warc.gz", [response("2025-01-01T06:00", URL, CLOSED)])
    data, last = gzip.decompress(archive.read_bytes()), rb"\g<1>9999-12-31T23:59:59.999999Z"
    write(x_warc=re.sub(rb"(WARC-Date: )\S+", last, data))
    done = disallowed(run, "--archive", "x.warc")
    assert (done.code, "since 9999-12-30" in done.out) == (1, True)  # it is rounded up


def test_items_whose_page_is_now_off_limits(run: Run, tmp_path: Path) -> None:
    """Each with the time since when it has been so, and the line."""
    bodies = [b"", OPEN, b"", OPEN, b"# the same\n" + OPEN, REFUSING]
    times = [f"2025-0{month}-01T06:00" for month in range(1, 7)]
    responses = [response(time, URL, body) for time, body in zip(times, bodies, strict=True)]
    write_archive(tmp_path / "a.warc.gz", [*responses, response("2025-02-01T06:00", OTHER, CLOSED)])
    write(items_jsonl=ITEMS)
    done, records = only(run, "disallowed,refused")
    assert done.code == 3  # of the last one, the archive has nothing
    assert done.out.splitlines() == [
        f"refused    {SITE}/b  train-ai: line 3, Content-Signal: /b ai-train=no; "
        "since 2025-06-01 06:00:00 UTC",
        f"refused    {SITE}/c  search: line 4, Content-Usage: /c search=n; "
        "since 2025-06-01 06:00:00 UTC",
        "disallowed https://y.example/a  line 2, Disallow: /, for *; since 2025-02-01 06:00:00 UTC",
    ]
    assert done.err == "note: 5 answers: 1 left out, 3 found, 1 unknown\n"
    assert [each["since"] for each in records] == [
        "2025-06-01T06:00:00Z", "2025-06-01T06:00:00Z", "2025-02-01T06:00:00Z",
    ]  # fmt: skip
    assert records[0]["refused"] == ["train-ai: line 3, Content-Signal: /b ai-train=no"]
    assert [each["allowed"] for each in records] == [True, True, False]
    done, records = only(run, "refused", "-s", "REP_INTENDED_USES=ai-train")
    assert [(each["url"], each["refused"][0][:9]) for each in records] == [
        (f"{SITE}/b", "ai-train:")
    ]
    # A disallow that ended and began again counts from its last beginning.
    write_archive(tmp_path / "a.warc.gz", responses[:5])
    write(items_jsonl="\n".join(ITEMS.splitlines()[:2]))
    done, (found,) = only(run, "disallowed")
    assert (done.code, found["since"], found["rule"]["line"]) == (1, "2025-04-01T06:00:00Z", 3)
    assert only(run, "refused")[0].code == 0


@pytest.mark.parametrize(
    ("later", "setting", "code"),
    [
        (response("2025-03-02T06:00", URL, status=404), "", 0),
        (response("2025-03-02T06:00", URL, status=403), "REP_DISALLOW_STATUSES=403", 1),
        (response("2025-03-02T06:00", URL, b"<!doctype html>"), "", 0),
        (response("2025-03-02T06:00", URL, b"<!doctype html>"), "REP_NOT_ROBOTS=unreachable", 1),
        (response("2025-03-02T06:00", URL, b""), "", 0),
        # The last good copy.
        (response("2025-03-02T06:00", URL, status=503), "", 1),
        (response("2025-03-02T06:00", URL, status=304, copy=CLOSED), "", 1),
        (response("2025-03-02T06:00", URL, status=301, location=OTHER), "", 1),
        # After a redirect.
        (response("2025-03-02T06:00", OTHER, b"", origin=SITE), "", 0),
    ],
)
def test_what_an_archived_response_means(
    run: Run, tmp_path: Path, later: Exchange, setting: str, code: int
) -> None:
    write_archive(tmp_path / "b.warc.gz", [later])  # the order of the files does not matter
    write_archive(tmp_path / "a.warc.gz", [response("2025-03-01T06:00", URL, CLOSED)])
    files = ("--archive", "b.warc.gz", *ARCHIVE)
    given = ("-s", setting) if setting else ()
    done = disallowed(run, *files, *given)
    assert done.code == code
    assert done.out.count("; since 2025-03-01 06:00:00 UTC") == code


def test_an_archive_without_a_good_copy(run: Run) -> None:
    write(a_warc_gz=gzip.compress(record("response", http(OPEN, "Content-Encoding: xyz"), URL)))
    done = disallowed(run, *ARCHIVE)
    assert done.code == 3
    failure = "a body that is cut off or cannot be decoded"
    assert f"the robots.txt was unreachable: {failure}; since " in done.out


@pytest.mark.parametrize(
    "body", [b"some text", b"\x89PNG\r\n\x1a\n\0", gzip.compress(b"text", mtime=0)]
)
def test_files_that_are_no_archives(run: Run, body: bytes) -> None:
    write(a_warc_gz=body)
    done = disallowed(run, *ARCHIVE)
    assert (done.code, done.out) == (3, "")
    assert "warning: a.warc.gz: no readable record at offset 0: " in done.err
    for name in ("no", "."):
        done = disallowed(run, "--archive", name)
        assert (done.code, done.out) == (2, "")
        assert done.err.splitlines()[-1].startswith(f"scrapy-rep: cannot read {name}: ")


def test_a_damaged_archive(run: Run, tmp_path: Path) -> None:
    responses = [response(f"2025-0{n}-01T06:00", URL, CLOSED) for n in range(1, 9)]
    path = write_archive(tmp_path / "a.warc.gz", responses)
    path.write_bytes(path.read_bytes()[:-20])
    done = disallowed(run, *ARCHIVE)
    assert (done.code, "since 2025-01-01" in done.out) == (3, True)
    assert "warning: a.warc.gz: no readable record at offset " in done.err


SIGNAL = "Content-Signal: ai-train=no"
BOT = "User-agent: bot\nContent-Usage: "
POLICY = "User-agent: __usage_ai-training\nDisallow: /b"


@pytest.mark.parametrize(
    ("robots", "text"),
    [
        (f"User-agent: *\nAllow: /\n{SIGNAL}", f"3, {SIGNAL}"),
        (f"{SIGNAL}\nUser-agent: *\nAllow:", f"1, {SIGNAL}"),
        (f"{BOT}train-ai=n\nContent-Usage: /b train-ai=n", "3, Content-Usage: /b train-ai=n"),
        (f"User-agent: *\nAllow:\n{POLICY}", "4, Disallow: /b, for __usage_ai-training"),
        (f"User-agent: *\n{SIGNAL}, \x1b[2J{'x' * 2000}", f"2, {SIGNAL}, \\x1b[2J{'x' * 945}…"),
        (f"{BOT}train-ai=y\nUser-agent: *\nContent-Usage: train-ai=n", None),
        ("User-agent: *\nContent-Signal: ai-train=yes", None),
        ("User-agent: *\nDisallow:", None),
    ],
)
def test_the_line_that_refuses_a_use(run: Run, robots: str, text: str | None) -> None:
    write(robots_txt=robots)
    done = run("check", "--robots", "robots.txt", "/b", "-a", "bot", "--only", "refused")
    assert done.out == ("" if text is None else f"refused    /b  train-ai: line {text}\n")
    assert done.code == (text is not None)

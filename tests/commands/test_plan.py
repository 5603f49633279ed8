"""``check`` before and after a crawl: ``--plan`` and ``--only``."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
import scrapy

from testing.simulation import RULES
from testing.web import Page, gaps
from tests.crawl.conftest import Visitor, make_crawler, run_crawler

from .conftest import ROOT, validate
from .simulated_crawl import DELAYS, PATHS

if TYPE_CHECKING:
    from pathlib import Path

    from testing.web import Site, Web

    from .conftest import Cli, Done, Run

AT_ONCE = {"REP_RETRY_TIMES": 0, "RETRY_ENABLED": False}


def plans_of(done: Done) -> dict[str, dict[str, Any]]:
    for record in done.records:
        validate(record, "plan")
    return {record["host"]: record for record in done.records}


def paced(web: Web, *delays: float) -> list[Site]:
    """Sites with a delay each, on hosts of their own."""
    return [
        web.site(f"{RULES['private']}Crawl-delay: {delay}", host=f"127.0.4.{number}")
        for number, delay in enumerate(delays, 1)
    ]


async def test_a_crawl_requests_and_drops_what_the_plan_says(
    web: Web, cli: Cli, tmp_path: Path
) -> None:
    sites = paced(web, 0.3, 0.1, 0)
    beside = web.site(f"{RULES['nothing']}Crawl-delay: 0.2", host=sites[1].host)
    down = web.site(b"", host="127.0.4.9")
    down.pages["/robots.txt"] = web.site(None).pages["/robots.txt"]
    paths = [f"/{number}" for number in range(4)] + ["/private/1", "/private/2"]
    urls = [url for site in (*sites, beside, down) for url in site.urls(*paths)]
    (tmp_path / "urls.txt").write_text("\n".join(urls))
    plans = plans_of(await cli("check", "--from", "urls.txt", "--plan", "--json", settings=AT_ONCE))
    assert {host: (plan["allowed"], plan["dropped"]) for host, plan in plans.items()} == {
        "127.0.4.1": (4, 2),
        "127.0.4.2": (4, 8),
        "127.0.4.3": (4, 2),
        "127.0.4.9": (6, 0),
    }
    assert [(plan["pace"], plan["delay"]) for plan in plans.values()] == [
        ("Crawl-delay: 0.3", 0.3),
        ("Crawl-delay: 0.2", 0.2),
        ("", 0),
        ("", 0),
    ]
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


def simulated_crawl() -> dict[float, float]:
    """By delay, the seconds from the first page of a host to the last one."""
    command = [sys.executable, "-m", "tests.commands.simulated_crawl"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return {float(delay): seconds for delay, seconds in json.loads(done.stdout).items()}


@pytest.mark.skipif(scrapy.version_info < (2, 15), reason="the simulation needs Scrapy 2.15")
async def test_the_plan_is_within_5_percent_of_a_crawl(web: Web, cli: Cli, tmp_path: Path) -> None:
    """The crawl is one on a virtual clock, so that no machine is too slow."""
    sites = paced(web, *DELAYS)
    urls = [url for site in sites for url in site.urls(*PATHS)]
    (tmp_path / "urls.txt").write_text("\n".join(urls))
    plans = plans_of(await cli("check", "--from", "urls.txt", "--plan", "--json", settings=AT_ONCE))
    planned = {plan["delay"]: plan["seconds"] for plan in plans.values()}
    assert planned == pytest.approx(simulated_crawl(), rel=0.05)
    assert sum(planned.values()) > 500


async def test_the_table(
    web: Web, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scrapy_rep.commands.check.MAX_HOSTS", 2)
    (site,) = paced(web, 4000)
    odd = web.site(
        "User-agent: *\nVisit-time: 0600-0700\nRequest-rate: 1/\x1b[2J", host="127.0.4.2"
    )
    urls = [*site.urls("/a", "/b", "/c"), *odd.urls("/a", "/b"), "mailto:x", "http://[bad/"]
    (tmp_path / "urls.txt").write_text("\n".join(urls))
    done = await cli("check", "--from", "urls.txt", "--plan", settings=AT_ONCE)
    assert done.code == 3
    lines = done.out.splitlines()
    assert lines[2].split() == ["127.0.4.1", "3", "0", "Crawl-delay:", "4000", "0:10:00"]
    assert lines[3].startswith("127.0.4.2")
    assert "Visit-time: 06:00 to 07:00 UTC" in done.out
    assert "and 1 more hosts" in done.out
    assert "7 answers: " in done.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--plan", "--only", "refused"), "--plan asks the sites"),
        (("--plan", "--robots", "robots.txt"), "--plan asks the sites"),
        (("--plan", "-a", "a", "-a", "b"), "--plan is for one crawler"),
        (("--only", "allowed"), "--only takes disallowed, refused, or disallowed,refused"),
        (("--archive", "a.warc"), "--archive belongs to archive:SITE, or to --only"),
    ],
)
def test_options_that_exclude_each_other(
    run: Run, arguments: tuple[str, ...], message: str
) -> None:
    done = run("check", "https://example.com/", *arguments)
    assert (done.code, done.out) == (2, "")
    assert message in done.err


async def test_a_store_knows_since_when(web: Web, cli: Cli, tmp_path: Path) -> None:
    sites = [web.site(RULES["nothing"]), web.site(b""), web.site(RULES["private"])]
    sites[1].pages["/robots.txt"] = Page(b"", 503)
    (tmp_path / "urls.txt").write_text("\n".join(site.url("/a") for site in sites))
    arguments = ("check", "--from", "urls.txt", "--only", "disallowed", "--json")
    settings = {**AT_ONCE, "REP_STORE": f"sqlite:///{tmp_path}/a.sqlite"}
    first = await cli(*arguments, settings=settings)
    assert [record["since"] for record in first.records] == [None, None]
    again = await cli(*arguments, settings=settings)
    assert [record["url"] for record in again.records] == [site.url("/a") for site in sites[:2]]
    assert all(record["since"] for record in again.records)
    assert {tuple(site.paths) for site in sites} == {("/robots.txt",)}


async def test_the_longest_delay_of_a_host_applies(web: Web, cli: Cli, tmp_path: Path) -> None:
    """Also that of a local rule, beside a site that asks for less."""
    slow = web.site(b"", host="127.0.4.3")
    fast = web.site("User-agent: *\nCrawl-delay: 1", host="127.0.4.3")
    rules = f'[[crawl_delay]]\nsite = "{slow.root}"\nseconds = 20\nreason = "x"\ngiven_by = "x"\n'
    (tmp_path / "rules.toml").write_text(rules)
    (tmp_path / "urls.txt").write_text("\n".join([*slow.urls("/a", "/b"), fast.url("/a")]))
    settings = {**AT_ONCE, "REP_LOCAL_RULES": str(tmp_path / "rules.toml")}
    done = await cli("check", "--from", "urls.txt", "--plan", "--json", settings=settings)
    (plan,) = plans_of(done).values()
    assert (plan["allowed"], plan["delay"], plan["seconds"]) == (3, 20, 40)

"""The policies of sites, from a real crawler on the event loop of the tests."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

import pytest
from scrapy import Request
from scrapy.settings import Settings
from scrapy.utils.asyncio import call_later
from twisted.internet.defer import Deferred, fail, succeed

from scrapy_rep import Addon, RobotsTxtMiddleware
from scrapy_rep.commands import check, show
from scrapy_rep.commands import session as session_module
from scrapy_rep.commands.agent_option import of_user_agent
from scrapy_rep.commands.check_text import explanation
from scrapy_rep.commands.context import Context
from scrapy_rep.commands.exits import CommandError
from scrapy_rep.commands.explain import explain
from scrapy_rep.commands.output import Output
from scrapy_rep.commands.session import (
    OVERRIDDEN,
    Outcome,
    Session,
    SessionSpider,
    session_settings,
)
from scrapy_rep.commands.show_text import listing
from scrapy_rep.commands.targets import target_of
from scrapy_rep.exceptions import SettingError
from testing.web import Page, redirect, text
from tests.crawl.conftest import make_crawler, run_crawler

from .conftest import validate

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable
    from pathlib import Path

    from testing.web import Site, Web

RULES = "User-agent: *\nDisallow: /x\n"


async def session(
    work: Callable[[Session], Awaitable[Any]],
    settings: dict[str, Any] | None = None,
    *,
    keep_bodies: bool = True,
) -> Any:
    """The result of a coroutine that gets a session."""
    outcome = Outcome(work)
    crawler = make_crawler(SessionSpider, {**OVERRIDDEN, **(settings or {})})
    await run_crawler(crawler, outcome=outcome, keep_bodies=keep_bodies)
    return outcome.get()


async def records_of(
    capsys: pytest.CaptureFixture[str],
    command: Any,
    *arguments: str,
    settings: dict[str, Any] | None = None,
) -> tuple[int, list[dict[str, Any]]]:
    """The exit code and the records of a subcommand that needs the network."""
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    parsed = parser.parse_args(arguments)
    parsed.json, parsed.loglevel = True, None
    context = Context(parsed, Settings({"USER_AGENT": "testbot/1.0 (+https://example.com)"}))
    works: list[Any] = []

    def run(work: Any, *, keep_bodies: bool = False) -> Any:
        works.append((work, keep_bodies))
        raise _Started

    context.run = run  # type: ignore[method-assign]
    with pytest.raises(_Started):
        command.run(parsed, context)
    ((work, keep_bodies),) = works
    code = await session(work, settings, keep_bodies=keep_bodies)
    context.output.close()
    return code, [json.loads(line) for line in capsys.readouterr().out.splitlines()]


class _Started(Exception):  # noqa: N818
    pass


async def checked(
    capsys: pytest.CaptureFixture[str], *arguments: str, settings: dict[str, Any] | None = None
) -> tuple[int, list[dict[str, Any]]]:
    """The exit code and the records of ``check``."""
    code, records = await records_of(capsys, check, *arguments, settings=settings)
    for record in records:
        validate(record, "check")
    return code, records


async def test_how_a_robots_txt_was_had(web: Web, capsys: pytest.CaptureFixture[str]) -> None:
    good = web.site(RULES)
    second = web.site(redirect(good.url("/robots.txt")))
    first = web.site(redirect(second.url("/robots.txt"), 302))
    code, records = await checked(capsys, first.url("/x"), "-a", "bot")
    assert code == 1
    access = records[0]["robots_txt"]
    assert access["url"] == first.url("/robots.txt")
    assert access["redirects"] == [first.url("/robots.txt"), second.url("/robots.txt")]
    assert access["final_url"] == good.url("/robots.txt")
    assert (access["status"], access["source"], access["state"]) == (200, "site", "rules")
    assert access["fetched_at"] < access["expires_at"]
    assert records[0]["context"] == [
        {"line": 1, "text": "User-agent: *"},
        {"line": 2, "text": "Disallow: /x"},
    ]
    assert first.paths == second.paths == good.paths == ["/robots.txt"]  # never the page itself


async def test_each_result_of_a_fetch(web: Web, capsys: pytest.CaptureFixture[str]) -> None:
    sites = [web.site(RULES), web.site(), web.site(Page(b"", 403)), web.site(Page(b"", 503))]
    urls = [site.url("/x") for site in sites]
    settings = {"REP_DISALLOW_STATUSES": [403]}
    code, records = await checked(capsys, *urls, *urls, settings=settings)
    assert code == 3
    assert [
        (record["allowed"], record["reason"], record["robots_txt"]["state"])
        for record in records[:4]
    ] == [
        (False, "rules", "rules"),
        (True, "unavailable", "unavailable"),
        (False, "disallowed-status", "disallowed-status"),
        (False, "unreachable", "unreachable"),
    ]
    assert records[3]["robots_txt"]["failure"] == "status 503"
    assert [site.robots_fetches for site in sites] == [1] * 4
    assert {record["agent"] for record in records} == {"testbot/1.0 (+https://example.com)"}


@pytest.mark.parametrize(("answers", "code"), [(["", ""], 0), (["", RULES], 1), ([RULES, None], 3)])
async def test_exit_codes(
    web: Web, capsys: pytest.CaptureFixture[str], answers: list[str | None], code: int
) -> None:
    sites = [web.site(Page(b"", 500) if answer is None else answer) for answer in answers]
    found, _ = await checked(capsys, *(site.url("/x") for site in sites))
    assert found == code


async def test_unreachable_sites_are_named_on_standard_error(
    web: Web, capfd: pytest.CaptureFixture[str]
) -> None:
    site = web.site(Page(b"", 500))
    parser = argparse.ArgumentParser()
    show.add_arguments(parser)
    parsed = parser.parse_args([site.root])
    parsed.json, parsed.loglevel = True, None
    context = Context(parsed, Settings())

    async def work(found: Session) -> Any:
        policies = await found.get_policies([site.root])
        return show.record_of(policies[site.root], None, strict=False)

    record = await session(work)
    validate(record, "show")
    assert record["groups"] == []
    assert context.settings.timeout == 30
    assert "Traceback" not in capfd.readouterr().err


async def test_a_store_is_used_and_named(
    web: Web, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    site = web.site(RULES)
    moved = web.site(redirect(site.url("/robots.txt")))
    settings = {"REP_STORE": f"sqlite:///{tmp_path}/store.sqlite"}
    for source in ("site", "store"):
        _, records = await checked(capsys, moved.url("/x"), settings=settings)
        access = records[0]["robots_txt"]
        assert access["source"] == source
        assert access["store"] == settings["REP_STORE"]
        assert access["final_url"] == site.url("/robots.txt")
        assert bool(access["redirects"]) == (source == "site")
        assert records[0]["context"]
    assert moved.robots_fetches == 1


async def test_the_last_good_copy_of_a_site_that_is_down(
    web: Web, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    site = web.site(text(RULES, Cache_Control="no-store"))
    settings = {"REP_STORE": f"sqlite:///{tmp_path}/store.sqlite", "REP_CACHE_MIN": 0.001}
    await checked(capsys, site.url("/x"), settings=settings)
    site.pages["/robots.txt"] = Page(b"", 503)
    code, records = await checked(capsys, site.url("/x"), settings=settings)
    access = records[0]["robots_txt"]
    assert (code, access["state"], access["failure"]) == (1, "stale-copy", "status 503")
    assert records[0]["context"]


async def test_scrapys_http_cache_is_named(
    web: Web, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    site = web.site(RULES)
    settings = {
        "HTTPCACHE_ENABLED": True,
        "HTTPCACHE_DIR": str(tmp_path),
        "HTTPCACHE_IGNORE_MISSING": False,
    }
    await checked(capsys, site.url("/x"), settings=settings)
    settings["HTTPCACHE_IGNORE_MISSING"] = True
    _, records = await checked(capsys, site.url("/x"), settings=settings)
    assert records[0]["robots_txt"]["source"] == "http-cache"


async def test_local_rules_count(
    web: Web, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    site = web.site(RULES)
    rules = tmp_path / "local.toml"
    rules.write_text(
        f'[[disallow]]\nsite = "{site.root}"\nrules = "Disallow: /y"\nreason = "asked"\n'
        'given_by = "owner"\n'
        f'[[exception]]\nsite = "{site.root}"\nrules = "Allow: /x/1"\nreason = "agreed"\n'
        'given_by = "owner"\nuntil = 2090-01-01\n'
    )
    settings = {"REP_LOCAL_RULES": str(rules)}
    code, records = await checked(
        capsys, *(site.url(path) for path in ("/y", "/x/1", "/x/2")), settings=settings
    )
    assert code == 1
    assert [(record["allowed"], record["reason"]) for record in records] == [
        (False, "local-rule"),
        (True, "local-rule"),
        (False, "rules"),
    ]
    assert [rule["why"] for rule in records[1]["other_rules"]] == ["overruled"]


async def test_many_urls_of_a_few_sites(
    web: Web, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    sites = [web.site(RULES) for _ in range(5)]
    urls = [
        site.url(f"/{'x' if number % 2 else 'y'}{number}")
        for number in range(200)
        for site in sites
    ]
    (tmp_path / "urls.txt").write_text("\n".join(urls))
    code, records = await checked(capsys, "--from", str(tmp_path / "urls.txt"))
    assert code == 1
    assert [record["url"] for record in records] == urls
    assert sum(record["allowed"] for record in records) == 500
    assert [site.robots_fetches for site in sites] == [1] * 5


async def test_show_a_site(web: Web, capsys: pytest.CaptureFixture[str]) -> None:
    site, down = web.site(RULES), web.site(Page(b"", 500))
    code, (record,) = await records_of(capsys, show, site.url("/page"))
    validate(record, "show")
    assert (code, record["origin"]) == (0, site.root)
    assert [rule["line"] for rule in record["groups"][0]["rules"]] == [2]
    code, (record,) = await records_of(capsys, show, down.root)
    validate(record, "show")
    assert (code, record["groups"]) == (3, [])


async def test_the_session_closes_before_there_is_a_policy(
    web: Web, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def closed(*_: Any) -> None:
        return None

    monkeypatch.setattr(Session, "get_policy", closed)
    with pytest.raises(KeyboardInterrupt):
        await records_of(capsys, show, web.site().root)
    with pytest.raises(KeyboardInterrupt):
        await session(_interrupted)


async def _interrupted(_: Session) -> None:
    raise KeyboardInterrupt


async def test_texts_of_sites(web: Web, capsys: pytest.CaptureFixture[str]) -> None:
    robots = text(f"{RULES}User-agent: y\nDisallow: /\nLicense: https://example.com/l\n")
    sites = [web.site(robots), web.site(), web.site(Page(b"", 500))]

    async def work(found: Session) -> Any:
        policies = await found.get_policies(site.root for site in sites)
        return [policies[site.root] for site in sites]

    good, missing, down = await session(work)
    shown = _printed(capsys, listing(show.record_of(good, None, strict=False)))
    assert "Fetched      status 200, from the site, just now\n" in shown
    assert "License  https://example.com/l\n" in shown
    shown = _printed(capsys, listing(show.record_of(missing, None, strict=False)))
    assert "The robots.txt is unavailable: everything is allowed.\n" in shown
    shown = _printed(capsys, listing(show.record_of(down, None, strict=False)))
    assert "The robots.txt is unreachable: everything is disallowed.\nstatus 500\n" in shown
    agent = of_user_agent("x")
    for policy, word in ((good, "disallowed"), (missing, "allowed"), (down, "disallowed")):
        target = target_of(f"{policy.origin}/x")
        verdict = policy.verdict(target.url, agent.tokens)
        record = explain(target, agent, policy, verdict, strict=False)
        validate(record, "check")
        assert _printed(capsys, explanation(record)).startswith(f"{word}  {target.url}\n")


def _printed(capsys: pytest.CaptureFixture[str], renderables: Iterable[Any]) -> str:
    Output(as_json=False).print(*renderables)
    return capsys.readouterr().out


async def test_a_session_that_closes_gives_what_it_has(web: Web) -> None:
    quick = web.site(RULES)
    slow = web.site(Page(b"", delay=30))

    async def work(found: Session) -> Any:
        policies: dict[str, Any] = {}

        def close_after_the_first() -> None:
            found._cache.close()

        policies.update(await found.get_policies([quick.root, slow.root], close_after_the_first))
        assert found.is_closing
        return set(policies)

    assert await session(work) == {quick.root}


async def test_download(web: Web) -> None:
    site: Site = web.site(RULES)

    async def work(found: Session) -> Any:
        response = await found.download(Request(site.url("/page")))
        return response.status, response.body

    status, body = await session(work)
    assert status == 200
    assert b"A page" in body


async def test_an_error_of_the_work_is_raised(web: Web) -> None:
    async def work(found: Session) -> Any:
        async def fail(*_: Any) -> Any:
            raise CommandError("no")

        found.get_policy = fail  # type: ignore[method-assign, assignment]
        await found.get_policies([web.site().root])

    with pytest.raises(CommandError, match="no"):
        await session(work)


async def test_without_the_middleware_it_says_so() -> None:
    async def work(_: Session) -> None:
        raise AssertionError

    with pytest.raises(CommandError, match="RobotsTxtMiddleware is not enabled"):
        await session(work, {"ADDONS": {}})


class _Process:
    """A process whose crawl has ended before it starts."""

    crawl_result: Any = None

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def crawl(self, spider: type, outcome: Outcome[Any], **_: Any) -> Any:
        assert spider is SessionSpider
        return self.crawl_result(outcome)

    def start(self) -> None:
        pass


async def _nothing(_: Session) -> None:
    pass


def _closed(outcome: Outcome[Any]) -> Deferred[None]:
    outcome.close_reason = "enough"
    return succeed(None)


def _finished(outcome: Outcome[Any]) -> Deferred[None]:
    outcome.is_finished, outcome.result = True, "result"
    return succeed(None)


@pytest.mark.parametrize(
    ("crawl", "error"),
    [
        (_finished, None),
        (_closed, "Scrapy ended before the work did"),
        (lambda _: fail(SettingError("REP_TIMEOUT is 0")), "REP_TIMEOUT is 0"),
    ],
)
def test_how_scrapy_ends(monkeypatch: pytest.MonkeyPatch, crawl: Any, error: str | None) -> None:
    monkeypatch.setattr(_Process, "crawl_result", staticmethod(crawl))
    monkeypatch.setattr(session_module, "AsyncCrawlerProcess", _Process)
    if error is None:
        assert session_module.run(Settings(), _nothing) == "result"
        return
    with pytest.raises(CommandError, match=error):
        session_module.run(Settings(), _nothing, log_level="INFO")


def test_a_setting_that_scrapy_refuses_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: Settings) -> None:
        raise SettingError("REP_STORE is 1")

    monkeypatch.setattr(session_module, "CrawlerProcess", refuse)
    with pytest.raises(CommandError, match="REP_STORE is 1"):
        session_module.run(Settings({"FORCE_CRAWLER_PROCESS": True}), _nothing)


async def test_the_error_of_a_task_is_kept() -> None:
    outcome: Outcome[Any] = Outcome(_nothing)

    class Task:
        def __init__(self, error: BaseException | None, *, cancelled: bool = False) -> None:
            self.error = error
            self.is_cancelled = cancelled

        def cancelled(self) -> bool:
            return self.is_cancelled

        def exception(self) -> BaseException | None:
            return self.error

    keep = session_module._keep_error_of_task
    keep(Task(None, cancelled=True), outcome)
    for error in (None, OSError("first"), OSError("second")):
        keep(Task(error), outcome)
    with pytest.raises(CommandError, match="Scrapy does not start with these settings: OSError: f"):
        outcome.get()
    outcome.is_started = True
    with pytest.raises(OSError, match="first"):
        outcome.get()


def test_the_addon_is_added_unless_it_is_there() -> None:
    assert session_settings(Settings())["ADDONS"] == {Addon: 500}
    for key in (Addon, "scrapy_rep.Addon"):
        settings = session_settings(Settings({"ADDONS": {key: 300}}))
        assert settings.getdict("ADDONS") == {key: 300}
    settings = session_settings(Settings({"ITEM_PIPELINES": {"no.such": 1}, "JOBDIR": "x"}))
    assert (settings.getdict("ITEM_PIPELINES"), settings["JOBDIR"]) == ({}, None)
    assert session_settings(Settings({"REP_REPORT": "a.json"}))["REP_REPORT"] is None


def test_an_interrupted_or_unfinished_session() -> None:
    outcome: Outcome[Any] = Outcome(lambda _: None)  # type: ignore[arg-type, return-value]
    for reason in (None, "shutdown"):
        outcome.close_reason = reason
        with pytest.raises(KeyboardInterrupt):
            outcome.get()
    outcome.close_reason = "finished"
    with pytest.raises(CommandError, match="Scrapy ended before"):
        outcome.get()


async def test_a_page_that_does_not_arrive_ends_with_the_session(web: Web) -> None:
    site = web.site(RULES, {"/slow": Page(delay=100)})

    async def work(session: Session) -> None:
        call_later(0.5, session._cache.close)
        await session.download(Request(site.url("/slow")))

    with pytest.raises(KeyboardInterrupt):
        await session(work)
    assert site.page_paths == ["/slow"]


def test_the_middleware_gives_its_policies() -> None:
    assert RobotsTxtMiddleware.policy_cache.__doc__

"""REP_LOCAL_RULES: what an operator adds to a robots.txt, judged by what the servers received."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import wait
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from scrapy import Request

from scrapy_rep import Reason, RobotsTxtDisallowed, Verdict, local_rules_file
from scrapy_rep.exceptions import SettingError
from scrapy_rep.local_rules_file import LocalRulesFile
from scrapy_rep.policies.local_rules import LocalRules
from testing.faults import answer_when
from testing.web import Page, Site, Web, redirect, text

from .conftest import EXEMPT, FOLLOWING, PRIVATE, Caller, Crawl, Visitor, in_turn, numbers, until

Write = Callable[[str], dict[str, Any]]
WHO = 'reason = "as agreed"\ngiven_by = "owner@example.com"\n'
DETAIL = "as agreed (owner@example.com)"


def day(offset: int) -> str:
    return (datetime.now(timezone.utc) + timedelta(days=offset)).date().isoformat()


def table(kind: str, site: str, rules: str, more: str = "") -> str:
    return f'[[{kind}]]\nsite = "{site}"\nrules = """{rules}"""\n{WHO}{more}\n'


def disallow(site: str, *patterns: str, more: str = "") -> str:
    return table("disallow", site, "\n".join(f"Disallow: {each}" for each in patterns), more)


def exception(site: str, *patterns: str, until: str | None = None) -> str:
    rules = "\n".join(f"Allow: {each}" for each in patterns)
    return table("exception", site, rules, f"until = {until or day(1)}")


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a file of local rules, and return the settings that use it."""

    def settings(text: str) -> dict[str, Any]:
        path = tmp_path / "rules.toml"
        path.write_text(text, encoding="utf-8")
        return {"REP_LOCAL_RULES": path}

    return settings


def rules_of(settings: dict[str, Any]) -> LocalRules:
    return LocalRulesFile(str(settings["REP_LOCAL_RULES"]))


# Disallow


@pytest.mark.rule("Your own disallows")
async def test_a_disallow_is_added_to_the_sites_rules(web: Web, crawl: Crawl, write: Write) -> None:
    site, other = web.site("User-agent: *\nAllow: /\nDisallow: /b"), web.site()
    settings = write(disallow(site.root, "/a", "/b"))
    outcome = await crawl([*site.urls("/a/1", "/b", "/c"), other.url("/a/1")], settings)
    assert site.page_paths == ["/c"]
    assert other.page_paths == ["/a/1"]
    error = outcome.failures[site.url("/a/1")]
    assert isinstance(error, RobotsTxtDisallowed)
    assert str(error) == f"Forbidden by a local rule: local-rule: {DETAIL}"
    assert (error.verdict.reason, error.verdict.detail) == (Reason.LOCAL_RULE, DETAIL)
    assert outcome.requests[site.url("/a/1")].meta["robotstxt"] is error.verdict
    assert outcome.stats["robotstxt/local/disallowed"] == 2
    assert outcome.stats["robotstxt/forbidden/local-rule"] == 2
    assert "robotstxt/local/allowed" not in outcome.stats
    line = f"Forbidden by a local rule: <GET {site.url('/a/1')}> (local-rule: {DETAIL})"
    assert line in outcome.log.text


@pytest.mark.rule("Your own disallows")
@pytest.mark.parametrize("site_of_rule", ["127.0.0.1", "0x7f.0.0.1", "[::ffff:7f00:1]", "origin"])
async def test_a_disallowed_site_receives_nothing(
    web: Web, crawl: Crawl, write: Write, site_of_rule: str
) -> None:
    """Its address is the same in every spelling."""
    site = web.site()
    hosts = ["127.0.0.1", "0x7f.1", "0177.0.0.1", "2130706433", "[::ffff:127.0.0.1]"]
    urls = [f"http://{host}:{site.port}/a" for host in hosts]
    rule = disallow(
        site.root.replace("//127", "//0177") if site_of_rule == "origin" else site_of_rule, "/"
    )
    exempt = Request(site.url("/exempt"), meta=dict(EXEMPT))
    outcome = await crawl([*urls, exempt], write(rule))
    assert site.received == []
    assert sorted(outcome.failures) == sorted([*urls, exempt.url])


async def test_rules_apply_to_what_a_handler_sends(web: Web, crawl: Crawl, write: Write) -> None:
    site = web.site("User-agent: *\nDisallow: /b\n")
    rules = disallow(site.root, "/a$") + exception(site.root, "/b$") + exception(site.root, "/b;1")
    await crawl(site.urls("/a;", "/a;x", "/b;", "/b;1"), write(rules))
    assert site.page_paths == ["/b;1"]


@pytest.mark.parametrize("mode", ["annotate", "drop"])
async def test_a_redirect_to_a_disallowed_site_is_not_followed(
    web: Web, crawl: Crawl, write: Write, mode: str
) -> None:
    closed = web.site(host="127.0.0.2")
    site = web.site(pages={"/moved": redirect(closed.url("/a"))})
    settings = {**write(disallow("127.0.0.2", "/")), "REP_CHECK_FINAL_URL": mode}
    await crawl([site.url("/moved")], settings)
    assert closed.received == []
    # A download handler that follows redirects itself has the page: the final URL is checked.
    outcome = await crawl([site.url("/moved")], {**settings, **FOLLOWING})
    assert closed.paths == ["/a"]  # and no robots.txt is fetched
    dropped = list(outcome.failures.values())
    annotated = [response.meta["robotstxt"] for response in outcome.responses.values()]
    verdicts = annotated or [error.verdict for error in dropped]  # type: ignore[attr-defined]
    assert [verdict.reason for verdict in verdicts] == [Reason.LOCAL_RULE]
    assert bool(dropped) == (mode == "drop")


# Exceptions


@pytest.mark.rule("Exceptions that the owner of a site has granted")
async def test_an_exception_allows_what_is_disallowed(web: Web, crawl: Crawl, write: Write) -> None:
    site = web.site(PRIVATE)
    urls = site.urls("/private/open/1", "/private/2", "/public", "/private/open/mail")
    rules = exception("127.0.0.1", "/private/open", "/public")
    outcome = await crawl(urls, write(rules + disallow(site.root, "/private/open/mail")))
    assert site.paths == ["/robots.txt", *sorted(["/private/open/1", "/public"])]
    verdict = outcome.responses[urls[0]].meta["robotstxt"]
    assert (verdict.allowed, verdict.reason, verdict.detail) == (True, Reason.LOCAL_RULE, DETAIL)
    # What the file allows anyway needs no exception.
    assert outcome.responses[urls[2]].meta["robotstxt"].reason is Reason.RULES
    assert outcome.reasons == {urls[1]: Reason.RULES, urls[3]: Reason.LOCAL_RULE}, "it wins"
    assert outcome.stats["robotstxt/local/allowed"] == 1
    assert f"Allowed by a local rule: <GET {urls[0]}> (local-rule: {DETAIL})" in outcome.log.text


@pytest.mark.rule("Exceptions that the owner of a site has granted")
@pytest.mark.parametrize(
    ("status", "settings"), [(503, {}), (403, {"REP_DISALLOW_STATUSES": [403]})]
)
async def test_an_exception_holds_while_everything_else_is_disallowed(
    web: Web, crawl: Crawl, write: Write, status: int, settings: dict[str, Any]
) -> None:
    site = web.site(Page(b"", status))
    rules = write(exception(site.root, "/open"))
    outcome = await crawl(site.urls("/open/1", "/closed"), {**rules, **settings})
    assert site.page_paths == ["/open/1"]
    assert outcome.stats["robotstxt/local/allowed"] == 1


async def test_an_exception_waits_for_no_next_attempt(web: Web, crawl: Crawl, write: Write) -> None:
    """Also if it arrives while that attempt is in progress."""

    class Late(Visitor):
        async def start(self) -> AsyncIterator[Any]:
            async for request in super().start():
                yield request
                await until(lambda: site.robots_fetches >= 2)

    second = answer_when(lambda: site.page_paths, text(""))
    site = web.site(in_turn(Page(b"", 503, {"Retry-After": "1"}), then=second))
    settings = {
        **write(exception(site.root, "/open")),
        "REP_ON_UNREACHABLE": "wait",
        "REP_TIMEOUT": 5,
    }
    outcome = await crawl(site.urls("/closed", "/open/1"), settings, spider=Late)
    assert site.paths == ["/robots.txt", "/robots.txt", "/open/1", "/closed"]
    assert not outcome.failures


async def test_an_exception_keeps_the_visit_time(web: Web, crawl: Crawl, write: Write) -> None:
    hour = datetime.now(timezone.utc).hour
    window = f"{(hour + 12) % 24:02}00-{(hour + 13) % 24:02}00"
    site = web.site(f"{PRIVATE}Visit-time: {window}\n")
    rules = exception(site.root, "/private/1") + disallow(site.root, "/mail")
    outcome = await crawl(site.urls("/private/1", "/private/2", "/mail"), write(rules))
    assert site.page_paths == []
    reasons = [reason for _, reason in sorted(outcome.reasons.items())]
    assert reasons == [Reason.LOCAL_RULE, Reason.VISIT_TIME, Reason.RULES]


# Sites


@pytest.mark.parametrize(
    ("site", "found", "missed"),
    [
        ("https://Example.com:443", ["https://example.com"],
         ["http://example.com", "https://example.com:8443", "https://www.example.com"]),
        ("http://example.com/", ["http://example.com"], ["https://example.com"]),
        ("example.com", ["http://example.com", "https://example.com:8443"],
         ["http://www.example.com", "http://notexample.com"]),
        ("*.example.com", ["http://example.com", "https://a.b.example.com:8443"],
         ["http://notexample.com", "http://com"]),
        ("münchen.example", ["https://xn--mnchen-3ya.example"], ["https://munchen.example"]),
        ("[::1]", ["http://[::1]:8080"], ["http://[::2]"]),
        ("http://[::1]:8080", ["http://[::1]:8080"], ["http://[::1]"]),
    ],
)  # fmt: skip
def test_sites(site: str, found: list[str], missed: list[str], write: Write) -> None:
    rules = rules_of(write(disallow(site, "/a")))
    for key in found:
        assert rules.disallowed(key, "/a", 0) is not None, key
    for key in missed:
        assert rules.find(key) == [], key


def test_all_tables_that_name_a_site_apply_until_their_date(write: Write) -> None:
    text = (
        disallow("example.com", "/a")
        + disallow("*.example.com", "/b")
        + disallow("https://example.com", "/c", more=f"until = {day(0)}")
        + disallow("example.com", "/d", more=f"until = {day(-1)}")
        + exception("example.com", "/e", until=day(0))
        + exception("example.com", "/f", until=day(-1))
    )
    rules, key, now = rules_of(write(text)), "https://example.com", time.time()
    paths = ("/a", "/b", "/c", "/d", "/e", "/f")
    disallowed = [path for path in paths if rules.disallowed(key, path, now) is not None]
    assert disallowed == ["/a", "/b", "/c"]
    assert [path for path in paths if rules.excepts(key, path, now)] == ["/e"]
    later = [path for path in paths if rules.disallowed(key, path, now + 86_400) is not None]
    assert later == ["/a", "/b"]


def test_the_other_lines_of_a_table_only_limit_it(write: Write) -> None:
    text = table("disallow", "a.example", "Disallow: /members/\nAllow: /members/$\n") + table(
        "exception",
        "a.example",
        "# agreed\n\nAllow: /archive/\nDisallow: /*.zip$",
        "until = 2000-01-01",
    )
    rules, key = rules_of(write(text)), "https://a.example"
    verdict = rules.disallowed(key, f"{key}/members/1", 0)
    assert verdict == Verdict(False, Reason.LOCAL_RULE, detail=DETAIL)
    assert str(verdict) == f"local-rule: {DETAIL}"
    for path in ("/members/", "/other", "/robots.txt"):
        assert rules.disallowed(key, path, 0) is None
    paths = ("/archive/1", "/archive/1.zip", "/a.zip", "/other")
    assert [rules.excepts(key, path, 0) for path in paths] == [True, True, False, False]


# A file that cannot be used


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[disallow]\n", "it is not TOML: "),
        ("\x00", "line 1"),
        ("a = " + "[" * 100_000, "it is not TOML"),
        ("# 1\n\n[[disalow]]\n", "unknown table 'disalow': it must be one of [[disallow]]"),
        ("# 1\n[disallow]\n", "write [[disallow]], in two brackets each"),
        (disallow("a.example", "/") + disallow("b.example", "/", more="unti = 2027-01-01"),
         "[[disallow]] number 2: unknown key 'unti': it must be one of 'site', 'rules', "),
        ('[[exception]]\nsite = "a"\nrules = "Allow: /"\n' + WHO, "the key 'until' is missing"),
        (exception("a.example", "/", until='"2027-01-01"'), "'until' is '2027-01-01': it must be"),
        *(
            (table(kind, "a.example", lines, "until = 2030-01-01"), message)
            for kind, lines, message in (
                ("disallow", "Disallow: /a\nfoo", "line 2 of the rules is neither 'Allow: "),
                ("disallow", "User-agent: a", "line 1 of the rules is neither"),
                ("disallow", "Crawl-delay: 5", "line 1 of the rules is neither"),
                ("disallow", "\n# 1\nDisallow:", "line 2 of the rules has no pattern; write '/'"),
                ("disallow", "Disallow: a", "line 1 of the rules: the pattern 'a' never matches; "),
                ("disallow", "Allow: /", "the rules have no disallow line"),
                ("exception", "Disallow: /", "the rules have no allow line"),
                ("exception", "# nothing", "the rules have no allow line"),
                ("exception", "Allow: /\n" + "#" * 512_000, "nothing is read from here on"),
            )
        ),
        ('[[disallow]]\nsite = "a"\nrules = 1\n' + WHO, "'rules' is 1: it must be a text"),
        ('[[disallow]]\nsite = "a"\nrules = "Disallow: /"\nreason = " "\ngiven_by = "b"',
         "'reason' is ' ': it must be a text"),
        ("[[disallow]]\nsite = ['a', 1]\nrules = 'Disallow: /'\n" + WHO, "'site' is 1"),
        *(
            (disallow(site, "/"), f"'site' is {site!r}: it must be 'https://example.com', ")
            for site in (
                "", "*", "*.", "a b", "a.example/path", "https://a.example/path", "https://a.example?q",
                "a.example:80", "*.https://a.example", "https://*.a.example", "https://u@a.example",
                "s3://bucket", "[::1", "https://[::1", "a%2eb",
            )
        ),
    ],
)  # fmt: skip
def test_the_error_names_the_file_and_the_problem(write: Write, text: str, message: str) -> None:
    path = write(text)["REP_LOCAL_RULES"]
    with pytest.raises(SettingError) as error:
        LocalRulesFile(str(path))
    assert str(error.value).startswith(f"REP_LOCAL_RULES is '{path}': ")
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing.toml", "it cannot be read: .*No such file"),
        (".", "it cannot be read: it is not a regular file"),
        ("fifo", "it cannot be read: it is not a regular file"),
        ("/dev/zero", "it cannot be read: it is not a regular file"),
        ("nul\0", "it cannot be read: "),
        ("latin-1.toml", "it is not UTF-8"),
        ("large.toml", "it cannot be read: it has more than 100 characters"),
    ],
)
def test_a_file_that_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, message: str
) -> None:
    monkeypatch.setattr(local_rules_file, "MAX_CHARACTERS", 100)
    (tmp_path / "latin-1.toml").write_bytes(b"# 1\n# \xff\n")
    (tmp_path / "large.toml").write_text("#" * 101)
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(SettingError, match=message):
        LocalRulesFile(str(tmp_path / name))


# A change of the file during a crawl


class Changer(Visitor):
    """Changes the file of local rules once a site has received pages. Notes what was on the wire
    when the change was applied.
    """

    path: Path
    new: str
    site: Site
    pages = 2

    async def start(self) -> AsyncIterator[Any]:
        async for request in super().start():
            yield request
        assert self.crawler.stats is not None
        stats = self.crawler.stats
        await until(lambda: len(self.site.page_paths) >= self.pages)
        self.path.write_text(self.new, "utf-8")
        await until(lambda: stats.get_value("robotstxt/local_rules_reloads"))
        self.received = len(self.site.page_paths)


class CallerAndChanger(Caller, Changer):
    """Changes the file while its calls of ``engine.download_async`` wait."""


@pytest.mark.each_loop
@pytest.mark.parametrize("spider", [Changer, CallerAndChanger])
@pytest.mark.parametrize(
    ("settings", "rules", "meta"),
    [
        pytest.param({"DOWNLOAD_DELAY": 0.2}, "", {}, id="in the download slot"),
        pytest.param({}, "Crawl-delay: 0.2", {}, id="in the queue"),
        pytest.param({"DOWNLOAD_DELAY": 0.2}, "", EXEMPT, id="exempt"),
    ],
)
@pytest.mark.no_cover
async def test_a_new_disallow_holds_for_all_requests_that_wait(
    web: Web,
    crawl: Crawl,
    write: Write,
    spider: type[Changer],
    settings: dict[str, Any],
    rules: str,
    meta: dict[str, Any],
) -> None:
    site = web.site(f"User-agent: *\nDisallow:\n{rules}\n")
    local = write("# none yet\n")
    urls = [Request(url, meta=dict(meta)) for url in site.urls(*numbers(60))]
    outcome = await crawl(
        urls,
        {**settings, **local},
        spider=spider,
        site=site,
        path=local["REP_LOCAL_RULES"],
        new=disallow("127.0.0.1", "/"),
    )
    received: int = outcome.crawler.spider.received  # type: ignore[union-attr]
    assert 2 <= len(site.page_paths) <= received + 1, "at most one was on the wire"
    assert len(outcome.failures) == 60 - len(site.page_paths)
    assert {each.verdict.detail for each in outcome.failures.values()} == {DETAIL}  # type: ignore[attr-defined]
    assert outcome.stats["robotstxt/local_rules_reloads"] == 1
    assert "have changed, and apply now" in outcome.log.text


async def test_a_new_disallow_holds_for_a_robots_txt_that_is_not_fetched_yet(
    web: Web, crawl: Crawl, write: Write, caplog: pytest.LogCaptureFixture
) -> None:
    settings = {**write("# none yet\n"), "REP_CONCURRENT_ROBOTSTXT_REQUESTS": 1}
    late = answer_when(lambda: "and apply now" in caplog.text, text(""))

    async def answer(*connection: Any) -> None:
        """Answer when the new rules apply: only then the other file can be fetched."""
        write(disallow(stopped.root, "/private") + disallow(stopped.root, "/other"))
        await late(*connection)

    first, stopped = web.site(answer), web.site()
    urls = [first.url("/a"), *stopped.urls("/private/1", "/private/2", "/other")]
    outcome = await crawl(urls, settings)
    assert first.page_paths == ["/a"]
    assert stopped.paths == []
    assert len(outcome.failures) == 3


@pytest.mark.parametrize("bad", ["[[disallow]]", "", None], ids=["invalid", "empty", "missing"])
def test_a_file_that_became_unusable_changes_nothing(
    write: Write, caplog: pytest.LogCaptureFixture, bad: str | None
) -> None:
    path: Path = write(disallow("a.example", "/a"))["REP_LOCAL_RULES"]
    rules, key = LocalRulesFile(str(path)), "https://a.example"

    def reload() -> bool:
        assert not rules.reload(None), "a thread reads it"
        if rules.reading is not None:
            wait([rules.reading])
        return rules.reload(None)

    os.utime(path, (1, 1))
    assert not reload(), "it was only touched"
    path.write_text(path.read_text("utf-8") + "# a remark\n", "utf-8")
    assert not reload(), "the rules are the same"
    if bad is None:
        path.unlink()
    else:
        path.write_text(bad, "utf-8")
    assert not reload()
    assert not reload()
    assert rules.disallowed(key, "/a", 0) is not None
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert record.getMessage().startswith(f"REP_LOCAL_RULES is '{path}': ")
    assert record.getMessage().endswith("The rules that were read before still apply.")
    path.write_text(disallow("a.example", "/b"), "utf-8")
    assert reload()
    assert rules.disallowed(key, "/a", 0) is None
    assert rules.disallowed(key, "/b", 0) is not None

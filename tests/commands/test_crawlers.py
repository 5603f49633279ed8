"""The table of well-known crawlers, how -a finds them, and what a robots.txt says to them."""

from __future__ import annotations

import re
from datetime import date
from importlib.resources import files

import pytest
from msgspec import toml

from scrapy_rep import Reason, RobotsTxt
from scrapy_rep.commands import crawlers
from scrapy_rep.commands.crawlers import PURPOSES, Agent, Crawler, crawlers_of, resolve
from scrapy_rep.protocol.agents import parse_user_agent, tokens_of_line
from testing import crawlers_page

from .conftest import Run

CRAWLERS = crawlers.well_known_crawlers()
NAMES = [crawler.name for crawler in CRAWLERS]
KEYS = {*Crawler.__struct_encode_fields__} - {"version", "seen"}
TOKENS = ("", " ", "*", "mybot", "Google", "mybot/1.0 (like Googlebot)", "бот")
"""Values that name no crawler of the table: they are tokens like any other."""
BROWSER = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/126 Safari/537.36"
CLOSED = "User-agent: *\nDisallow: /\n"


def named(name: str) -> Crawler:
    (crawler,) = crawlers_of(name)
    return crawler


def agent_of(name: str) -> Agent:
    """Return what ``-a NAME`` stands for, if it is one well-known crawler."""
    assert crawlers_of(name)
    (agent,) = resolve([name])
    return agent


# The table


def test_every_entry_is_complete() -> None:
    document = toml.decode(files("scrapy_rep").joinpath("crawlers.toml").read_bytes())
    assert document.keys() == {"source", "crawler"}
    assert {key for row in document["crawler"] for key in row} == KEYS
    assert {row["source"] for row in document["crawler"]} == document["source"].keys()
    assert len({name.lower() for name in NAMES}) == len(NAMES) >= 100
    assert len({crawler.tokens[0].lower() for crawler in CRAWLERS}) == len(NAMES)
    for crawler in CRAWLERS:
        assert crawler.operator.strip() == crawler.operator != ""
        assert len({*crawler.purposes}) == len(crawler.purposes) > 0
        assert crawler.source.startswith("https://")
        assert type(crawler.seen) is date
        for token in crawler.tokens:  # a line can match each
            assert parse_user_agent(token) == ((token.lower(),), None)
            assert token.lower().encode() in tokens_of_line(token.encode())
        # A site that copies the name of the table into its robots.txt names the crawler.
        assert crawler.tokens[0].lower().encode() in tokens_of_line(crawler.name.encode())
        assert named(crawler.name.upper()) == named(f" {crawler.name.lower()} ") == crawler


def test_what_operators_say() -> None:
    """The list of Google's crawlers for which "The global user agent (*) is ignored", and others.

    https://developers.google.com/crawling/docs/crawlers-fetchers/google-special-case-crawlers
    """
    exempt = {crawler.name for crawler in CRAWLERS if crawler.ignores_wildcard}
    assert {name for name in exempt if named(name).operator == "Google"} == {
        "APIs-Google", "AdsBot-Google", "AdsBot-Google-Mobile", "AdsBot-Google-Mobile-Apps",
        "Mediapartners-Google",
    }  # fmt: skip
    names = ("ChatGPT-User", "Claude-User", "Google-Safety", "Bytespider")
    assert [named(name).compliance for name in names] == [
        "may-ignore", "follows", "ignores", "unknown",
    ]  # fmt: skip


# The values of -a


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("Googlebot-Image/1.0", "Googlebot-Image"),
        ("AdsBot-Google (+http://www.google.com/adsbot.html)", "AdsBot-Google"),
        ("Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)", "Googlebot"),
        ("Screaming Frog SEO Spider/20.0", "Screaming Frog SEO Spider"),
        ("sogou", "Sogou web spider"),
        *((value, None) for value in TOKENS),
    ],
)
def test_a_header_names_the_crawler(value: str, name: str | None) -> None:
    assert [crawler.name for crawler in crawlers_of(value)] == ([name] if name else [])


def test_a_purpose_stands_for_its_crawlers() -> None:
    for purpose in PURPOSES:
        found = crawlers_of(purpose)
        assert len(found) >= 3
        assert list(found) == [crawler for crawler in CRAWLERS if purpose in crawler.purposes]
    training = {crawler.name for crawler in crawlers_of(" AI-Training ")}
    assert {"GPTBot", "ClaudeBot", "CCBot", "Google-Extended", "Bytespider"} <= training
    assert training.isdisjoint({"Googlebot", "OAI-SearchBot", "ChatGPT-User", "bingbot"})


def test_values() -> None:
    found = resolve(["GPTBot", "AI-Training", "mybot", "gptbot"])
    names = [each.name for each in crawlers_of("ai-training") if each.name != "GPTBot"]
    assert [agent.name for agent in found] == ["GPTBot", *names, "mybot"]
    header = "Mozilla/5.0 (compatible; AdsBot-Google; +http://www.google.com/adsbot.html)"
    assert resolve([header]) == resolve(["adsbot-google"])
    assert crawlers.of_user_agent(b"mybot/1 (+x)")[:2] == ("mybot/1 (+x)", ("mybot",))
    tokens = ("mybot-images", "mybot")
    assert crawlers.of_user_agent(("MyBot-Images", "MyBot"))[:2] == ("MyBot-Images, MyBot", tokens)


def test_the_warnings_of_a_purpose_are_few(run: Run) -> None:
    done = run("check", "--robots", "robots.txt", "/a", "-a", "ai-use", "--json")
    *warnings, last = done.err.splitlines()
    assert len(warnings) == 3
    assert all(" may ignore robots.txt (https://" in warning for warning in warnings)
    assert last.endswith(" more: warnings about crawlers")


@pytest.mark.parametrize(
    ("name", "warning"),
    [
        ("Googlebot", None),
        ("Google-Safety", "Google-Safety ignores robots.txt (https://developers.google.com/"),
        ("ChatGPT-User", "ChatGPT-User may ignore robots.txt (https://"),
        ("mybot", None),
        ("Scrapy/2.19.0 (+https://scrapy.org)", "Scrapy is the default name of every Scrapy"),
        (BROWSER, f"{BROWSER!r} is the User-Agent of a browser, not of a crawler"),
        ("my crawler/1.0", "the product tokens of 'my crawler/1.0' are my: only its first word"),
        ("()", "'()': it holds no product token"),
    ],
)
def test_warnings(name: str, warning: str | None) -> None:
    (agent,) = resolve([name])
    assert agent.warning is None if warning is None else str(agent.warning).startswith(warning)


# What a robots.txt says: the examples of operators

# https://developers.google.com/crawling/docs/robots-txt/robots-txt-spec, "Order of precedence for
# user agents", seen 2026-09-01. Googlebot Images is from an earlier version of the page.
GOOGLE_PRECEDENCE = """
user-agent: googlebot-news
disallow: /news

user-agent: *
disallow: /everyone

user-agent: googlebot
disallow: /googlebot
"""
# https://support.apple.com/en-us/119829, published 2026-09-04: the example, and "If robots
# instructions don't mention Applebot but mention Googlebot, the Apple robot will follow Googlebot
# instructions."
APPLE_EXAMPLE = """\
User-agent: Applebot
Allow: /
Disallow: /private/
Disallow: /not-allowed/
User-agent: *
Disallow: /not-allowed/
"""
# https://kagi.com/bot and https://imagesift.com/about have the same example, seen 2026-11-22.
KAGI_EXAMPLE = """\
User-Agent: *
Disallow: /
User-Agent: Googlebot
Allow: /
Disallow: /private/
"""
# https://yandex.com/support/webmaster/en/robot-workings/user-agent, seen 2026-11-22.
YANDEX_EXAMPLE = """\
User-agent: YandexBot # will be used only by the main indexing bot
Disallow: /*id=

User-agent: Yandex # will be used by all Yandex bots
Disallow: /*sid= # except the main indexing bot

User-agent: * # will not be used by Yandex bots
Disallow: /cgi-bin
"""
ADSBOT = f"User-agent: AdsBot-Google\nDisallow: /a\n{CLOSED}"


def closed_to(*agents: str) -> str:
    return "\n".join(f"User-agent: {agent}\nDisallow: /" for agent in agents)


@pytest.mark.parametrize(
    ("robots_txt", "name", "group", "allowed", "disallowed"),
    [
        (GOOGLE_PRECEDENCE, "Googlebot-News", "googlebot-news", "/everyone", "/news"),
        (GOOGLE_PRECEDENCE, "Googlebot", "googlebot", "/news", "/googlebot"),
        # "no specific googlebot-images group", so the more generic one
        (GOOGLE_PRECEDENCE, "Googlebot-Image", "googlebot", "/everyone", "/googlebot"),
        # "Other Google crawlers follow group 2."
        (GOOGLE_PRECEDENCE, "GoogleOther", "*", "/googlebot", "/everyone"),
        (ADSBOT, "AdsBot-Google-Mobile-Apps", "adsbot-google", "/b", "/a"),
        (CLOSED, "AdsBot-Google-Mobile-Apps", None, "/a", None),
        # Another group is not theirs. Their own is, also together with *.
        (f"{closed_to('Googlebot')}\n{CLOSED}", "AdsBot-Google", None, "/a", None),
        (f"User-agent: AdsBot-Google\n{CLOSED}", "AdsBot-Google", "adsbot-google", None, "/a"),
        (closed_to("Google-Extended"), "Google-Extended", "google-extended", None, "/a"),
        (closed_to("Google-Extended"), "Googlebot", None, "/a", None),
        (closed_to("Googlebot"), "Google-Extended", None, "/a", None),
        (APPLE_EXAMPLE, "Applebot", "applebot", "/", "/private/a"),
        (APPLE_EXAMPLE, "Applebot", "applebot", "/", "/not-allowed/a"),
        (closed_to("Googlebot") + "\nUser-agent: *\nDisallow:", "Applebot", "googlebot", None, "/"),
        (f"User-agent: Googlebot\nDisallow:\n{CLOSED}", "Applebot", "googlebot", "/a", None),
        (closed_to("Googlebot", "Applebot"), "Applebot-Extended", None, "/a", None),
        (closed_to("Applebot-Extended"), "Applebot-Extended", "applebot-extended", None, "/a"),
        (KAGI_EXAMPLE, "Kagibot", "googlebot", "/a", "/private/a"),
        (KAGI_EXAMPLE, "ImagesiftBot", "googlebot", "/a", "/private/a"),
        (YANDEX_EXAMPLE, "YandexBot", "yandexbot", "/cgi-bin", "/?id="),
        (YANDEX_EXAMPLE, "YandexImages", "yandex", "/cgi-bin", "/?sid="),
        # https://www.screamingfrog.co.uk/guides/robots-txt/, 2015-11-27: its own User-Agent, "if
        # not Googlebot and then ALL robots".
        (closed_to("Screaming Frog", "Googlebot", "*"), "Screaming Frog SEO Spider", "screaming",
         None, "/"),
        (closed_to("Googlebot", "*"), "Screaming Frog SEO Spider", "googlebot", None, "/"),
    ],
)  # fmt: skip
def test_examples_of_operators(
    robots_txt: str, name: str, group: str | None, allowed: str | None, disallowed: str | None
) -> None:
    robots, agent = RobotsTxt(robots_txt.encode()), agent_of(name)
    assert agent.group(robots) == group
    assert allowed is None or agent.verdict(robots, allowed).allowed
    assert disallowed is None or not agent.verdict(robots, disallowed).allowed


def test_every_crawler_has_its_answers() -> None:
    closed, unreachable = RobotsTxt(CLOSED.encode()), RobotsTxt.from_response(503)
    for each in CRAWLERS:
        agent = agent_of(each.name)
        own = RobotsTxt(f"User-agent: {each.name}\nDisallow: /a\nUser-agent: *\nAllow: /".encode())
        found = agent.verdict(own, "/a")
        assert (found.allowed, agent.verdict(own, "/b").allowed) == (False, True)
        assert agent.group(own) == found.agent == each.tokens[0].lower()
        found = agent.verdict(closed, "/a")
        assert found.allowed is each.ignores_wildcard
        assert agent.group(closed) == found.agent == (None if each.ignores_wildcard else "*")
        detail = f"{each.name} ignores the group for *" if each.ignores_wildcard else None
        assert found.detail == detail
        assert agent.verdict(unreachable, "/a").reason is Reason.UNREACHABLE
        assert agent.group(unreachable) is None


# The list


def test_all_crawlers(run: Run) -> None:
    found = run("crawlers")
    body = found.out.split("\n\n")[0].splitlines()[2:]
    names = [match[1] for line in body if (match := re.match(r"(\S+(?: \S+)*)", line))]
    assert len(names) == len(body) == len(NAMES)  # a row for each
    assert all(name.startswith(cut.rstrip("…")) for name, cut in zip(NAMES, names, strict=True))
    assert max(map(len, found.out.splitlines())) <= 80
    records = run("crawlers", "--json").records
    assert [record["name"] for record in records] == NAMES
    assert records[0]["tokens"] == ["Googlebot"]
    assert records[0]["seen"] == f"{CRAWLERS[0].seen}"


def test_some_crawlers(run: Run) -> None:
    def names(*words: str) -> list[str]:
        return [record["name"] for record in run("crawlers", *words, "--json").records]

    assert names("duckduckgo") == ["DuckDuckBot", "DuckAssistBot"]
    assert names("GPTBOT", "duckassist") == ["DuckAssistBot", "GPTBot"]
    assert names("archive") == [each.name for each in CRAWLERS if "archive" in str(each).lower()]
    done = run("crawlers", "nobody")
    assert (done.code, done.err) == (2, "scrapy-rep: no well-known crawler has nobody\n")


def test_the_page_has_the_real_table() -> None:
    text = crawlers_page.PAGE.read_text("utf-8")
    assert crawlers_page.page(text) == text  # else run python -m testing.crawlers_page
    assert {*PURPOSES} == crawlers_page.PURPOSES.keys()

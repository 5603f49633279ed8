"""What a robots.txt says to well-known crawlers: the examples of their operators."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from scrapy_rep import Reason, RobotsTxt, Verdict
from scrapy_rep.commands.crawlers import (
    Agent,
    Crawler,
    crawlers_of,
    of_user_agent,
    resolve,
    well_known_crawlers,
)

if TYPE_CHECKING:
    from .conftest import Run

BROWSER = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/126 Safari/537.36"
CLOSED = "User-agent: *\nDisallow: /\n"


def crawler(name: str) -> Agent:
    """Return what ``-a NAME`` stands for, if it is one well-known crawler."""
    assert crawlers_of(name)
    (agent,) = resolve([name])
    return agent


# https://developers.google.com/crawling/docs/robots-txt/robots-txt-spec, "Order of precedence for
# user agents", seen 2026-09-01. Googlebot Images is from an earlier version of the page.
GOOGLE_PRECEDENCE = """\
user-agent: googlebot-news
disallow: /group-1

user-agent: *
disallow: /group-2

user-agent: googlebot
disallow: /group-3
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
SAFETY = f"User-agent: Google-Safety\nDisallow: /\n{CLOSED}"


def closed_to(*agents: str) -> str:
    return "\n".join(f"User-agent: {agent}\nDisallow: /" for agent in agents)


@pytest.mark.parametrize(
    ("robots_txt", "name", "group", "allowed", "disallowed"),
    [
        (GOOGLE_PRECEDENCE, "Googlebot-News", "googlebot-news", "/group-2", "/group-1"),
        (GOOGLE_PRECEDENCE, "Googlebot", "googlebot", "/group-1", "/group-3"),
        (GOOGLE_PRECEDENCE, "Storebot-Google", "*", "/group-1", "/group-2"),
        # "no specific googlebot-images group", so the more generic one
        (GOOGLE_PRECEDENCE, "Googlebot-Image", "googlebot", "/group-2", "/group-3"),
        # "Other Google crawlers follow group 2."
        (GOOGLE_PRECEDENCE, "GoogleOther", "*", "/group-3", "/group-2"),
        (GOOGLE_PRECEDENCE, "bingbot", "*", "/group-3", "/group-2"),
        (ADSBOT, "AdsBot-Google-Mobile-Apps", "adsbot-google", "/b", "/a"),
        (CLOSED, "AdsBot-Google-Mobile-Apps", None, "/a", None),
        (closed_to("Google-Extended"), "Google-Extended", "google-extended", None, "/a"),
        (closed_to("Google-Extended"), "Googlebot", None, "/a", None),
        (closed_to("Googlebot"), "Google-Extended", None, "/a", None),
        (APPLE_EXAMPLE, "Applebot", "applebot", "/", "/private/a"),
        (APPLE_EXAMPLE, "Applebot", "applebot", "/", "/not-allowed/a"),
        (APPLE_EXAMPLE, "bingbot", "*", "/private/a", "/not-allowed/a"),
        (closed_to("Googlebot") + "\nUser-agent: *\nDisallow:", "Applebot", "googlebot", None, "/"),
        (f"User-agent: Googlebot\nDisallow:\n{CLOSED}", "Applebot", "googlebot", "/a", None),
        (closed_to("Googlebot", "Applebot"), "Applebot", "applebot", None, "/a"),
        (CLOSED, "Applebot", "*", None, "/a"),
        (closed_to("Googlebot-Image"), "Applebot", None, "/a", None),
        ("", "Applebot", None, "/a", None),
        (closed_to("Googlebot", "Applebot"), "Applebot-Extended", None, "/a", None),
        (closed_to("Applebot-Extended"), "Applebot-Extended", "applebot-extended", None, "/a"),
        (KAGI_EXAMPLE, "Kagibot", "googlebot", "/a", "/private/a"),
        (KAGI_EXAMPLE, "ImagesiftBot", "googlebot", "/a", "/private/a"),
        (KAGI_EXAMPLE, "bingbot", "*", None, "/a"),
        (YANDEX_EXAMPLE, "YandexBot", "yandexbot", "/cgi-bin", "/?id="),
        (YANDEX_EXAMPLE, "YandexImages", "yandex", "/cgi-bin", "/?sid="),
        (YANDEX_EXAMPLE, "bingbot", "*", "/?id=", "/cgi-bin"),
        # https://www.screamingfrog.co.uk/guides/robots-txt/, 2015-11-27: its own User-Agent, "if
        # not Googlebot and then ALL robots".
        (closed_to("Screaming Frog", "Googlebot", "*"), "Screaming Frog SEO Spider", "screaming",
         None, "/"),
        (closed_to("Googlebot", "*"), "Screaming Frog SEO Spider", "googlebot", None, "/"),
        (CLOSED, "Screaming Frog SEO Spider", "*", None, "/"),
        (closed_to("bingbot"), "Screaming Frog SEO Spider", None, "/", None),
        (SAFETY, "Google-Safety", None, "/a", None),
        (closed_to("ChatGPT-User"), "ChatGPT-User", "chatgpt-user", None, "/a"),
    ],
)  # fmt: skip
def test_examples_of_operators(
    robots_txt: str, name: str, group: str | None, allowed: str | None, disallowed: str | None
) -> None:
    robots, agent = RobotsTxt(robots_txt.encode()), crawler(name)
    assert agent.group(robots) == group
    assert allowed is None or agent.verdict(robots, allowed).allowed
    assert disallowed is None or not agent.verdict(robots, disallowed).allowed


# https://developers.google.com/crawling/docs/crawlers-fetchers/google-special-case-crawlers, seen
# 2026-02-11.
GOOGLE_SPECIAL = ["APIs-Google", "AdsBot-Google", "AdsBot-Google-Mobile", "Mediapartners-Google"]


@pytest.mark.parametrize("name", GOOGLE_SPECIAL)
def test_google_special_case_crawlers_ignore_the_global_user_agent(name: str) -> None:
    agent = crawler(name)
    assert agent.verdict(RobotsTxt(CLOSED.encode()), "/a") == Verdict(
        True, Reason.NO_RULES, detail=f"{name} ignores the group for *"
    )
    # Another group is not theirs. Their own is, also together with *.
    assert agent.verdict(RobotsTxt(f"{closed_to('Googlebot')}\n{CLOSED}".encode()), "/a")
    both = RobotsTxt(f"User-agent: *\nUser-agent: {name}\nDisallow: /".encode())
    assert not agent.verdict(both, "/a")
    assert agent.group(both) == name.lower()


@pytest.mark.parametrize("each", well_known_crawlers(), ids=lambda each: each.name)
def test_every_crawler_has_its_answers(each: Crawler) -> None:
    agent, closed = crawler(each.name), RobotsTxt(CLOSED.encode())
    own = RobotsTxt(f"User-agent: {each.name}\nDisallow: /a\nUser-agent: *\nAllow: /".encode())
    ignores = each.compliance == "ignores"
    found = agent.verdict(own, "/a")
    assert (found.allowed, agent.verdict(own, "/b").allowed) == (ignores, True)
    assert agent.group(own) == found.agent == (None if ignores else each.tokens[0].lower())
    exempt = each.ignores_wildcard or ignores
    found = agent.verdict(closed, "/a")
    assert found.allowed is exempt
    assert agent.group(closed) == found.agent == (None if exempt else "*")
    assert agent.verdict(closed, "/robots.txt").allowed
    assert agent.verdict(RobotsTxt(b""), "/a").allowed


@pytest.mark.parametrize("name", ["Googlebot", "AdsBot-Google"])
def test_the_status_of_the_file_counts_for_all_that_read_it(name: str) -> None:
    unreachable, unavailable = RobotsTxt.from_response(503), RobotsTxt.from_response(404)
    assert crawler(name).verdict(unreachable, "/a").reason is Reason.UNREACHABLE
    assert crawler(name).verdict(unavailable, "/a").reason is Reason.UNAVAILABLE
    assert crawler(name).group(unreachable) is None
    ignored = Verdict(True, Reason.NO_RULES, detail="Google-Safety ignores robots.txt")
    assert crawler("Google-Safety").verdict(unreachable, "/a") == ignored


# The values of -a


def test_values() -> None:
    found = resolve(["GPTBot", "AI-Training", "mybot", "gptbot"])
    names = [each.name for each in crawlers_of("ai-training") if each.name != "GPTBot"]
    assert [agent.name for agent in found] == ["GPTBot", *names, "mybot"]
    header = "Mozilla/5.0 (compatible; AdsBot-Google; +http://www.google.com/adsbot.html)"
    assert resolve([header]) == resolve(["adsbot-google"])
    assert of_user_agent(b"mybot/1 (+x)")[:2] == ("mybot/1 (+x)", ("mybot",))
    tokens = ("mybot-images", "mybot")
    assert of_user_agent(("MyBot-Images", "MyBot"))[:2] == ("MyBot-Images, MyBot", tokens)


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
        ("bnf.fr_bot", None),
        ("Google-Safety", "Google-Safety ignores robots.txt (https://developers.google.com/"),
        ("ChatGPT-User", "ChatGPT-User may ignore robots.txt (https://"),
        ("mybot", None),
        ("Scrapy/2.19.0 (+https://scrapy.org)", "Scrapy is the default name of every Scrapy"),
        ("scrapy", "Scrapy is the default name of every Scrapy crawler, and public block lists"),
        (BROWSER, f"{BROWSER!r} is the User-Agent of a browser, not of a crawler"),
        ("my crawler/1.0", "the product tokens of 'my crawler/1.0' are my: only its first word"),
        ("()", "'()': it holds no product token"),
    ],
)
def test_warnings(name: str, warning: str | None) -> None:
    (agent,) = resolve([name])
    assert agent.warning is None if warning is None else str(agent.warning).startswith(warning)

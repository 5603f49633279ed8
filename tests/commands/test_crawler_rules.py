"""What a robots.txt says to well-known crawlers: the examples of their operators."""

from __future__ import annotations

import pytest

from scrapy_rep import Reason, RobotsTxt, Verdict
from scrapy_rep.commands.agent_option import Agent, resolve
from scrapy_rep.commands.crawlers import (
    Compliance,
    Crawler,
    Purpose,
    crawler_named,
    crawlers_for,
    well_known_crawlers,
)

CLOSED = b"User-agent: *\nDisallow: /\n"


def crawler(name: str) -> Agent:
    """Return what ``-a NAME`` stands for, if it is one well-known crawler."""
    assert crawler_named(name) is not None
    (agent,) = resolve([name])
    return agent


def verdict_for(robots: RobotsTxt, url: str, agent: Agent) -> Verdict:
    return agent.apply(robots.verdict(url, agent.tokens))


def verdict(robots_txt: bytes, url: str, name: str) -> Verdict:
    return verdict_for(RobotsTxt(robots_txt), url, crawler(name))


# https://developers.google.com/crawling/docs/robots-txt/robots-txt-spec, "Order of precedence for
# user agents", seen 2026-09-01. Googlebot Images is from an earlier version of the page.
GOOGLE_PRECEDENCE = RobotsTxt(
    b"""\
user-agent: googlebot-news
disallow: /group-1

user-agent: *
disallow: /group-2

user-agent: googlebot
disallow: /group-3
"""
)


@pytest.mark.parametrize(
    ("name", "group"),
    [
        ("Googlebot-News", 1),
        ("Googlebot", 3),
        ("Storebot-Google", 2),
        ("Googlebot-Image", 3),  # "no specific googlebot-images group", so the more generic one
        ("GoogleOther", 2),  # "Other Google crawlers follow group 2."
        ("bingbot", 2),
    ],
)
def test_google_order_of_precedence(name: str, group: int) -> None:
    token = {1: "googlebot-news", 2: "*", 3: "googlebot"}[group]
    assert crawler(name).group(GOOGLE_PRECEDENCE) == token
    for number in (1, 2, 3):
        found = verdict_for(GOOGLE_PRECEDENCE, f"/group-{number}", crawler(name))
        assert found.allowed is (number != group)
        assert found.agent == token


# The same page, "Grouping of rules".
GOOGLE_GROUPING = RobotsTxt(
    b"""\
user-agent: googlebot-news
disallow: /fish

user-agent: *
disallow: /carrots

user-agent: googlebot-news
disallow: /shrimp
"""
)


def test_google_groups_of_one_crawler_are_merged() -> None:
    news, other = crawler("Googlebot-News"), crawler("Googlebot")
    for path, for_news in [("/fish", False), ("/shrimp", False), ("/carrots", True)]:
        assert verdict_for(GOOGLE_GROUPING, path, news).allowed is for_news
        assert verdict_for(GOOGLE_GROUPING, path, other).allowed is not for_news


# https://developers.google.com/crawling/docs/crawlers-fetchers/google-common-crawlers and
# .../google-special-case-crawlers: the "Example robots.txt group" of a crawler names it, and has
# these two rules. Seen 2026-02-11.
GOOGLE_EXAMPLES = [
    "Googlebot",
    "Googlebot-Image",
    "Googlebot-Video",
    "Googlebot-News",
    "Storebot-Google",
    "Google-InspectionTool",
    "GoogleOther",
    "Google-CloudVertexBot",
    "APIs-Google",
    "AdsBot-Google",
    "AdsBot-Google-Mobile",
    "Mediapartners-Google",
]


@pytest.mark.parametrize("name", GOOGLE_EXAMPLES)
def test_google_example_groups(name: str) -> None:
    robots = RobotsTxt(f"user-agent: {name}\nallow: /archive/1Q84\ndisallow: /archive/\n".encode())
    assert verdict_for(robots, "/archive/1Q84", crawler(name))
    assert not verdict_for(robots, "/archive/konbini", crawler(name))
    assert verdict_for(robots, "/", crawler(name))
    assert crawler(name).group(robots) == name.lower()


@pytest.mark.parametrize(
    "name", ["APIs-Google", "AdsBot-Google", "AdsBot-Google-Mobile", "Mediapartners-Google"]
)
def test_google_special_case_crawlers_ignore_the_global_user_agent(name: str) -> None:
    assert verdict(CLOSED, "/a", name) == Verdict(
        True, Reason.NO_RULES, detail=f"{name} ignores the group for *"
    )
    assert crawler(name).group(RobotsTxt(CLOSED)) is None
    # Another group is not theirs.
    assert verdict(b"User-agent: Googlebot\nDisallow: /\n" + CLOSED, "/a", name)
    # Their own is, also together with *.
    both = f"User-agent: *\nUser-agent: {name}\nDisallow: /".encode()
    assert not verdict(both, "/a", name)
    assert crawler(name).group(RobotsTxt(both)) == name.lower()


def test_google_mobile_apps_obeyed_the_rules_for_adsbot_google() -> None:
    robots_txt = b"User-agent: AdsBot-Google\nDisallow: /a\n" + CLOSED
    found = verdict(robots_txt, "/a", "AdsBot-Google-Mobile-Apps")
    assert (found.allowed, found.agent) == (False, "adsbot-google")
    assert verdict(robots_txt, "/b", "AdsBot-Google-Mobile-Apps")
    assert verdict(CLOSED, "/a", "AdsBot-Google-Mobile-Apps")


def test_google_extended_is_no_part_of_googlebot() -> None:
    robots_txt = b"User-agent: Google-Extended\nDisallow: /\n"
    assert not verdict(robots_txt, "/a", "Google-Extended")
    assert verdict(robots_txt, "/a", "Googlebot")
    assert verdict(b"User-agent: Googlebot\nDisallow: /\n", "/a", "Google-Extended")


# https://support.apple.com/en-us/119829, published 2026-09-04: the example, and "If robots
# instructions don't mention Applebot but mention Googlebot, the Apple robot will follow Googlebot
# instructions."
APPLE_EXAMPLE = b"""\
User-agent: Applebot
Allow: /
Disallow: /private/
Disallow: /not-allowed/
User-agent: *
Disallow: /not-allowed/
"""


@pytest.mark.parametrize(
    ("path", "apple", "other"),
    [("/", True, True), ("/private/a", False, True), ("/not-allowed/a", False, False)],
)
def test_apple_example(path: str, apple: bool, other: bool) -> None:
    assert verdict(APPLE_EXAMPLE, path, "Applebot").allowed is apple
    assert verdict(APPLE_EXAMPLE, path, "bingbot").allowed is other


@pytest.mark.parametrize(
    ("robots_txt", "group", "allowed"),
    [
        (b"User-agent: Googlebot\nDisallow: /\nUser-agent: *\nDisallow:", "googlebot", False),
        (b"User-agent: Googlebot\nDisallow:\nUser-agent: *\nDisallow: /", "googlebot", True),
        (b"User-agent: Googlebot\nDisallow:\nUser-agent: Applebot\nDisallow: /", "applebot", False),
        (b"User-agent: Googlebot\nDisallow: /\nUser-agent: Applebot\nDisallow:", "applebot", True),
        (b"User-agent: *\nDisallow: /", "*", False),
        (b"User-agent: Googlebot-Image\nDisallow: /", None, True),
        (b"", None, True),
    ],
)
def test_applebot_follows_googlebot_instructions(
    robots_txt: bytes, group: str | None, allowed: bool
) -> None:
    robots = RobotsTxt(robots_txt)
    assert crawler("Applebot").group(robots) == group
    assert verdict_for(robots, "/a", crawler("Applebot")).allowed is allowed


def test_applebot_extended_does_not_follow_googlebot_instructions() -> None:
    robots_txt = b"User-agent: Googlebot\nUser-agent: Applebot\nDisallow: /\n"
    assert verdict(robots_txt, "/a", "Applebot-Extended")
    assert not verdict(b"User-agent: Applebot-Extended\nDisallow: /private/", "/private/a",
                       "Applebot-Extended")  # fmt: skip


# https://kagi.com/bot and https://imagesift.com/about have the same example, seen 2026-11-22.
KAGI_EXAMPLE = b"""\
User-Agent: *
Disallow: /
User-Agent: Googlebot
Allow: /
Disallow: /private/
"""


@pytest.mark.parametrize("name", ["Kagibot", "ImagesiftBot"])
def test_others_follow_googlebot_directives(name: str) -> None:
    assert verdict(KAGI_EXAMPLE, "/a", name)
    assert not verdict(KAGI_EXAMPLE, "/private/a", name)
    assert not verdict(KAGI_EXAMPLE, "/a", "bingbot")


# https://yandex.com/support/webmaster/en/robot-workings/user-agent, seen 2026-11-22.
YANDEX_EXAMPLE = b"""\
User-agent: YandexBot # will be used only by the main indexing bot
Disallow: /*id=

User-agent: Yandex # will be used by all Yandex bots
Disallow: /*sid= # except the main indexing bot

User-agent: * # will not be used by Yandex bots
Disallow: /cgi-bin
"""


@pytest.mark.parametrize(
    ("name", "group"), [("YandexBot", "yandexbot"), ("YandexImages", "yandex"), ("bingbot", "*")]
)
def test_yandex_example(name: str, group: str) -> None:
    assert crawler(name).group(RobotsTxt(YANDEX_EXAMPLE)) == group
    assert verdict(YANDEX_EXAMPLE, "/cgi-bin", name).allowed is (name != "bingbot")


# https://www.screamingfrog.co.uk/guides/robots-txt/, 2015-11-27: its own User-Agent, "if not
# Googlebot and then ALL robots".
@pytest.mark.parametrize(
    ("agents", "group"),
    [
        (("Screaming Frog SEO Spider", "Googlebot", "*"), "screaming"),
        (("Googlebot", "*"), "googlebot"),
        (("*",), "*"),
        (("bingbot",), None),
    ],
)
def test_screaming_frog_order(agents: tuple[str, ...], group: str | None) -> None:
    robots = RobotsTxt("\n".join(f"User-agent: {agent}\nDisallow: /" for agent in agents).encode())
    assert crawler("Screaming Frog SEO Spider").group(robots) == group


# All crawlers


@pytest.mark.parametrize("each", well_known_crawlers(), ids=lambda each: each.name)
def test_every_crawler_follows_a_group_of_its_own(each: Crawler) -> None:
    robots = RobotsTxt(f"User-agent: {each.name}\nDisallow: /a\nUser-agent: *\nAllow: /".encode())
    agent = crawler(each.name)
    ignores = each.compliance is Compliance.IGNORES
    found = verdict_for(robots, "/a", agent)
    assert found.allowed is ignores
    assert verdict_for(robots, "/b", agent).allowed
    assert agent.group(robots) == found.agent == (None if ignores else each.tokens[0].lower())


@pytest.mark.parametrize("each", well_known_crawlers(), ids=lambda each: each.name)
def test_every_crawler_has_its_answer_to_a_closed_site(each: Crawler) -> None:
    agent = crawler(each.name)
    exempt = each.ignores_wildcard or each.compliance is Compliance.IGNORES
    found = verdict_for(RobotsTxt(CLOSED), "/a", agent)
    assert found.allowed is exempt
    assert agent.group(RobotsTxt(CLOSED)) == found.agent == (None if exempt else "*")
    assert verdict_for(RobotsTxt(CLOSED), "/robots.txt", agent).allowed
    assert verdict_for(RobotsTxt(b""), "/a", agent).allowed


def test_a_crawler_that_ignores_robots_txt_is_allowed_everything() -> None:
    robots_txt = b"User-agent: Google-Safety\nDisallow: /\n" + CLOSED
    assert verdict(robots_txt, "/a", "Google-Safety") == Verdict(
        True, Reason.NO_RULES, detail="Google-Safety ignores robots.txt"
    )
    assert verdict_for(RobotsTxt.from_response(503), "/a", crawler("Google-Safety"))
    assert crawler("Google-Safety").group(RobotsTxt(robots_txt)) is None


def test_a_fetcher_that_may_ignore_the_file_has_the_verdict_of_the_file() -> None:
    found = verdict(b"User-agent: ChatGPT-User\nDisallow: /", "/a", "ChatGPT-User")
    assert (found.allowed, found.reason) == (False, Reason.RULES)


@pytest.mark.parametrize("name", ["Googlebot", "AdsBot-Google"])
def test_the_status_of_the_file_counts_for_all_that_read_it(name: str) -> None:
    unreachable, unavailable = RobotsTxt.from_response(503), RobotsTxt.from_response(404)
    assert verdict_for(unreachable, "/a", crawler(name)).reason is Reason.UNREACHABLE
    assert verdict_for(unavailable, "/a", crawler(name)).reason is Reason.UNAVAILABLE
    assert crawler(name).group(unreachable) is None


# The values of -a


def test_a_purpose_stands_for_all_of_its_crawlers() -> None:
    found = resolve(["GPTBot", "AI-Training", "mybot", "gptbot"])
    names = [each.name for each in crawlers_for(Purpose.AI_TRAINING) if each.name != "GPTBot"]
    assert [agent.name for agent in found] == ["GPTBot", *names, "mybot"]


def test_the_order_of_the_tokens_is_that_of_the_table() -> None:
    for each in well_known_crawlers():
        assert crawler(each.name).tokens == tuple(token.lower() for token in each.tokens)


def test_a_header_of_a_well_known_crawler_answers_as_the_crawler() -> None:
    header = "Mozilla/5.0 (compatible; AdsBot-Google; +http://www.google.com/adsbot.html)"
    assert resolve([header]) == resolve(["adsbot-google"])


@pytest.mark.parametrize(
    ("name", "warning"),
    [
        ("Googlebot", None),
        ("bnf.fr_bot", None),
        ("Google-Safety", "Google-Safety ignores robots.txt (https://developers.google.com/"),
        ("ChatGPT-User", "ChatGPT-User may ignore robots.txt (https://"),
        ("Gogglebot", "Gogglebot is taken for a product token. Do you mean Googlebot?"),
        ("ai-trainning", "ai-trainning is taken for a product token. Do you mean ai-training?"),
        ("mybot", None),
    ],
)
def test_warnings(name: str, warning: str | None) -> None:
    (agent,) = resolve([name])
    if warning is None:
        assert agent.warning is None
    else:
        assert str(agent.warning).startswith(warning)

"""The crawlers that -a names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from scrapy_rep import RobotsTxt
from scrapy_rep.commands.agent_option import of_user_agent, resolve

if TYPE_CHECKING:
    from .conftest import Run

BROWSER = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/126 Safari/537.36"


def test_a_token_a_header_and_a_known_crawler() -> None:
    token, header, known = resolve(["mybot", "mybot/1.0 (+https://x.example)", "googlebot-image"])
    assert (token.name, token.tokens, token.warning) == ("mybot", ("mybot",), None)
    assert header.tokens == ("mybot",)
    assert (known.name, known.tokens) == ("Googlebot-Image", ("googlebot-image", "googlebot"))


def test_a_purpose_stands_for_all_its_crawlers_and_each_counts_once() -> None:
    names = [agent.name for agent in resolve(["ai-training", "GPTBot", "gptbot"])]
    assert "GPTBot" in names
    assert len(names) == len(set(names)) > 3


@pytest.mark.parametrize(
    ("user_agent", "warning"),
    [
        ("Scrapy/2.19.0 (+https://scrapy.org)", "public block lists have it"),
        ("scrapy", "public block lists have it"),
        (BROWSER, "is the User-Agent of a browser"),
        ("my crawler/1.0", "only its first word"),
        ("()", "it holds no product token"),
        ("Gogglebot", "Do you mean Googlebot?"),
    ],
)
def test_warnings(user_agent: str, warning: str) -> None:
    assert warning in (of_user_agent(user_agent).warning or "")


def test_values_of_settings() -> None:
    assert of_user_agent(b"mybot/1 (+x)").name == "mybot/1 (+x)"
    agent = of_user_agent(("MyBot-Images", "MyBot"))
    assert (agent.name, agent.tokens) == ("MyBot-Images, MyBot", ("mybot-images", "mybot"))


def test_google_the_group_of_a_crawler_that_ignores_the_wildcard() -> None:
    (adsbot,) = resolve(["AdsBot-Google"])
    everyone = RobotsTxt(b"User-agent: *\nDisallow: /")
    named = RobotsTxt(b"User-agent: AdsBot-Google\nDisallow: /")
    assert adsbot.group(everyone) is None
    assert adsbot.apply(everyone.verdict("/", adsbot.tokens)).allowed
    assert adsbot.group(named) == "adsbot-google"
    assert not adsbot.apply(named.verdict("/", adsbot.tokens)).allowed


def test_a_crawler_that_ignores_robots_txt() -> None:
    agent = of_user_agent("x")._replace(ignores_robots_txt=True)
    robots = RobotsTxt(b"User-agent: x\nDisallow: /")
    assert agent.group(robots) is None
    assert str(agent.apply(robots.verdict("/", "x"))) == "no-rules: x ignores robots.txt"


def test_the_warnings_of_a_purpose_are_few(run: Run) -> None:
    done = run("check", "--robots", "robots.txt", "/a", "-a", "ai-use", "--json")
    *warnings, last = done.err.splitlines()
    assert len(warnings) == 3
    assert all(" may ignore robots.txt (https://" in warning for warning in warnings)
    assert last.endswith(" more: warnings about crawlers")

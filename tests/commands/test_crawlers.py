"""The table of well-known crawlers, how they are found by name, and their list."""

from __future__ import annotations

import re
import shlex
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from scrapy_rep.commands.crawlers import (
    PURPOSES,
    Crawler,
    Purpose,
    crawlers_of,
    well_known_crawlers,
)
from scrapy_rep.known_crawlers import read_table
from scrapy_rep.protocol.agents import parse_user_agent, tokens_of_line
from testing import crawlers_page

from .conftest import validate

if TYPE_CHECKING:
    from .conftest import Run

CRAWLERS = well_known_crawlers()
NAMES = [crawler.name for crawler in CRAWLERS]

KEYS = {
    "name",
    "operator",
    "tokens",
    "purposes",
    "robots_txt",
    "ignores_wildcard",
    "user_triggered",
    "source",
    "note",
}


def named(name: str) -> Crawler:
    (crawler,) = crawlers_of(name)
    return crawler


# The table


def test_the_table_has_the_crawlers_of_many_operators() -> None:
    assert len(CRAWLERS) >= 100
    assert len({crawler.operator for crawler in CRAWLERS}) >= 40


def test_names_and_first_tokens_are_unique() -> None:
    assert len({name.lower() for name in NAMES}) == len(NAMES)
    assert len({crawler.tokens[0].lower() for crawler in CRAWLERS}) == len(NAMES)


@pytest.mark.parametrize("crawler", CRAWLERS, ids=NAMES)
def test_every_entry_is_complete(crawler: Crawler) -> None:
    assert crawler.operator.strip() == crawler.operator != ""
    assert crawler.purposes
    assert len(set(crawler.purposes)) == len(crawler.purposes)
    assert crawler.source.url.startswith("https://")
    assert crawler.source.seen >= date(2015, 1, 1)
    assert crawler.note is None or crawler.note.endswith(".")
    for token in crawler.tokens:  # a line can match each
        assert parse_user_agent(token) == ((token.lower(),), None)
        assert token.lower().encode() in tokens_of_line(token.encode())
    # A site that copies the name of the table into its robots.txt names the crawler.
    assert crawler.tokens[0].lower().encode() in tokens_of_line(crawler.name.encode())
    # It is found by its name in any case.
    assert named(crawler.name.upper()) == named(f" {crawler.name.lower()} ") == crawler


def test_the_file_has_no_other_keys_and_no_unused_source() -> None:
    document = read_table()
    assert document.keys() == {"source", "crawler"}
    assert {key for row in document["crawler"] for key in row} == KEYS
    assert {row["source"] for row in document["crawler"]} == document["source"].keys()
    assert list(document["source"]) == sorted(document["source"])
    assert all(type(row["seen"]) is date for row in document["source"].values())


def test_googles_special_case_crawlers_ignore_the_wildcard() -> None:
    """The list of those where "The global user agent (*) is ignored"."""
    exempt = {crawler.name for crawler in CRAWLERS if crawler.ignores_wildcard}
    assert {name for name in exempt if named(name).operator == "Google"} == {
        "APIs-Google",
        "AdsBot-Google",
        "AdsBot-Google-Mobile",
        "AdsBot-Google-Mobile-Apps",
        "Mediapartners-Google",
    }


def test_fetchers_that_may_ignore_the_file_are_marked() -> None:
    for name in ("ChatGPT-User", "Perplexity-User", "meta-externalfetcher", "Amzn-User"):
        assert named(name).user_triggered
        assert named(name).compliance == "may-ignore"
    assert named("Claude-User").compliance == "follows"
    assert named("Google-Safety").compliance == "ignores"
    assert named("Bytespider").compliance == "unknown"


# By name


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("Googlebot-Image/1.0", "Googlebot-Image"),
        ("AdsBot-Google (+http://www.google.com/adsbot.html)", "AdsBot-Google"),
        ("Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)", "Googlebot"),
        ("Screaming Frog SEO Spider/20.0", "Screaming Frog SEO Spider"),
        ("sogou", "Sogou web spider"),
        (
            "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like"
            " Gecko) Version/17.4 Safari/605.1.15 (Applebot/0.1; +http://www.apple.com/go/applebot)",
            "Applebot",
        ),
    ],
)
def test_a_header_names_the_crawler(value: str, name: str) -> None:
    assert named(value).name == name


@pytest.mark.parametrize(
    "value", ["", " ", "*", "mybot", "Google", "Yandex", "mybot/1.0 (like Googlebot)", "бот"]
)
def test_other_agents_are_tokens_like_any_other(value: str) -> None:
    assert crawlers_of(value) == ()


# By purpose


def test_a_purpose_stands_for_its_crawlers() -> None:
    training = {crawler.name for crawler in crawlers_of("ai-training")}
    assert {
        "GPTBot", "ClaudeBot", "CCBot", "Google-Extended", "Applebot-Extended", "Bytespider",
        "meta-externalagent", "Amazonbot",
    } <= training  # fmt: skip
    assert training.isdisjoint({"Googlebot", "OAI-SearchBot", "ChatGPT-User", "bingbot"})
    assert crawlers_of(" AI-Training ") == crawlers_of("ai-training")


@pytest.mark.parametrize("purpose", PURPOSES)
def test_every_purpose_has_crawlers(purpose: Purpose) -> None:
    found = crawlers_of(purpose)
    assert len(found) >= 3
    assert all(purpose in crawler.purposes for crawler in found)
    assert list(found) == [crawler for crawler in CRAWLERS if crawler in found]


ROOT = Path(__file__).parent.parent.parent


def names_of(text: str) -> list[str]:
    """Return the first column of a table. A folded name is two lines of it."""
    body = text.split("\n\n")[0].splitlines()[2:]
    return [match[1] for line in body if (match := re.match(r"(\S+(?: \S+)*)", line))]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("GPTBot", "GPTBot OpenAI ai-training * follows"),
        ("AdsBot-Google", "AdsBot-Google Google ads no other follows Source https://"),
        ("Google-Safety", "no other ignores"),
        ("Mozilla/5.0 (compatible; bingbot/2.0)", "bingbot Microsoft"),
        ("FacebookBot", "Seen 2026-08-22 Note "),
    ],
)
def test_one_crawler_with_its_source(run: Run, name: str, expected: str) -> None:
    assert expected in " ".join(run("crawlers", name).out.split())


def test_all_crawlers(run: Run) -> None:
    names = [each.name for each in well_known_crawlers()]
    found = run("crawlers")
    assert "".join(names_of(found.out)) == "".join(names)
    assert max(map(len, found.out.splitlines())) <= 80
    records = run("crawlers", "--json").records
    assert [record["name"] for record in records] == names
    for record in records:
        validate(record, "crawlers")
    assert records[0] | {"note": None} == {
        "type": "crawler",
        "version": 1,
        "name": "Googlebot",
        "operator": "Google",
        "tokens": ["Googlebot"],
        "purposes": ["search"],
        "robots_txt": "follows",
        "ignores_wildcard": False,
        "user_triggered": False,
        "note": None,
        "source": {
            "url": "https://developers.google.com/crawling/docs/crawlers-fetchers/"
            "google-common-crawlers",
            "seen": "2026-09-22",
            "kind": "operator",
        },
    }


def test_names_and_purposes_select(run: Run) -> None:
    def names(*arguments: str) -> list[str]:
        return [record["name"] for record in run("crawlers", "--json", *arguments).records]

    assert names("bingbot", "GOOGLEBOT", "BingBot") == ["bingbot", "Googlebot"]
    both = names("ai-training", "archive")
    assert len(both) == len(set(both))
    assert set(both) == {each.name for name in ("ai-training", "archive")
                         for each in crawlers_of(name)}  # fmt: skip


EXAMPLES = re.findall(
    r"```console\n\$ scrapy-rep (.*)\n([^`]*)```",
    (ROOT / "docs" / "reference" / "crawlers.md").read_text("utf-8"),
)


@pytest.mark.parametrize(("command", "output"), EXAMPLES, ids=[command for command, _ in EXAMPLES])
def test_the_page_has_the_real_output(run: Run, command: str, output: str) -> None:
    found = run(*shlex.split(command))
    assert [line.rstrip() for line in found.out.splitlines()] == output.splitlines()


def test_the_table_of_the_page_is_that_of_the_package() -> None:
    text = crawlers_page.PAGE.read_text("utf-8")
    assert crawlers_page.page(text) == text  # else run python -m testing.crawlers_page
    assert {*PURPOSES} == crawlers_page.PURPOSES.keys()

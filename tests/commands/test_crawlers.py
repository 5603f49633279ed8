"""The table of well-known crawlers, and how they are found by name."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import FrozenInstanceError
from datetime import date

import pytest

from scrapy_rep.commands.crawlers import (
    Compliance,
    Crawler,
    Purpose,
    Source,
    SourceKind,
    crawler_named,
    crawlers_for,
    crawlers_of,
    read_table,
    similar_name,
    well_known_crawlers,
)
from scrapy_rep.protocol.agents import parse_user_agent, tokens_of_line

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
    crawler = crawler_named(name)
    assert crawler is not None
    return crawler


# The table


def test_the_table_has_the_crawlers_of_many_operators() -> None:
    assert len(CRAWLERS) >= 100
    assert len({crawler.operator for crawler in CRAWLERS}) >= 40


def test_names_and_first_tokens_are_unique() -> None:
    assert len({name.lower() for name in NAMES}) == len(NAMES)
    assert len({crawler.tokens[0].lower() for crawler in CRAWLERS}) == len(NAMES)


def test_no_name_is_a_purpose() -> None:
    purposes = {purpose.value for purpose in Purpose}
    assert purposes.isdisjoint(name.lower() for name in NAMES)


@pytest.mark.parametrize("crawler", CRAWLERS, ids=NAMES)
def test_every_entry_is_complete(crawler: Crawler) -> None:
    assert crawler.operator.strip() == crawler.operator != ""
    assert crawler.purposes
    assert len(set(crawler.purposes)) == len(crawler.purposes)
    assert crawler.source.url.startswith("https://")
    assert crawler.source.seen >= date(2015, 1, 1)
    assert crawler.note is None or crawler.note.endswith(".")


@pytest.mark.parametrize("crawler", CRAWLERS, ids=NAMES)
def test_a_line_can_match_every_token(crawler: Crawler) -> None:
    for token in crawler.tokens:
        assert parse_user_agent(token) == ((token.lower(),), None)
        assert token.lower().encode() in tokens_of_line(token.encode())


@pytest.mark.parametrize("crawler", CRAWLERS, ids=NAMES)
def test_a_line_with_the_name_matches_the_first_token(crawler: Crawler) -> None:
    """A site that copies the name of the table into its robots.txt names the crawler."""
    assert crawler.tokens[0].lower().encode() in tokens_of_line(crawler.name.encode())


def test_a_user_triggered_or_exempt_crawler_is_not_said_to_train_models() -> None:
    for crawler in CRAWLERS:
        if crawler.user_triggered or crawler.compliance is Compliance.IGNORES:
            assert Purpose.AI_TRAINING not in crawler.purposes, crawler.name


def test_the_file_has_no_other_keys_and_no_unused_source() -> None:
    document = read_table()
    assert document.keys() == {"source", "crawler"}
    assert {key for row in document["crawler"] for key in row} == KEYS
    assert {row["source"] for row in document["crawler"]} == document["source"].keys()
    assert list(document["source"]) == sorted(document["source"])
    assert all(type(row["seen"]) is date for row in document["source"].values())


def test_the_crawlers_of_an_operator_that_documents_them_have_its_page() -> None:
    operators = ("Amazon", "Anthropic", "Apple", "Google", "Microsoft", "OpenAI", "Perplexity")
    for crawler in CRAWLERS:
        if crawler.operator in operators:
            assert crawler.source.kind is SourceKind.OPERATOR, crawler.name


@pytest.mark.parametrize(
    ("name", "tokens"),
    [
        ("Googlebot", ("Googlebot",)),
        ("Googlebot-Image", ("Googlebot-Image", "Googlebot")),
        ("Googlebot-News", ("Googlebot-News", "Googlebot")),
        ("Googlebot-Video", ("Googlebot-Video", "Googlebot")),
        ("Storebot-Google", ("Storebot-Google",)),
        ("Google-InspectionTool", ("Google-InspectionTool", "Googlebot")),
        ("GoogleOther-Image", ("GoogleOther-Image", "GoogleOther")),
        ("Applebot", ("Applebot", "Googlebot")),
        ("Applebot-Extended", ("Applebot-Extended",)),
        ("Kagibot", ("Kagibot", "Googlebot")),
        ("ImagesiftBot", ("ImagesiftBot", "Googlebot")),
        ("YandexImages", ("YandexImages", "Yandex")),
        ("Screaming Frog SEO Spider", ("Screaming", "Googlebot")),
        ("MJ12bot", ("MJ12bot",)),
    ],
)
def test_tokens(name: str, tokens: tuple[str, ...]) -> None:
    assert named(name).tokens == tokens


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
        assert named(name).compliance is Compliance.MAY_IGNORE
    assert named("Claude-User").compliance is Compliance.FOLLOWS
    assert named("Google-Safety").compliance is Compliance.IGNORES
    assert named("Bytespider").compliance is Compliance.UNKNOWN


def test_the_records_are_immutable_and_read_once() -> None:
    assert well_known_crawlers() is CRAWLERS
    field = "name"
    with pytest.raises(FrozenInstanceError):
        setattr(CRAWLERS[0], field, "other")
    source = Source("https://example.com", date(2026, 1, 1), SourceKind.LIST)
    assert hash(Crawler("A", "B", ("A",), (Purpose.SEO,), source))


def test_the_enums_are_their_values() -> None:
    assert str(Purpose.AI_TRAINING) == "ai-training"
    assert str(Compliance.MAY_IGNORE) == "may-ignore"
    assert str(SourceKind.LIST) == "list"


def test_a_crawl_does_not_load_the_table() -> None:
    code = "import scrapy_rep, sys; sys.exit('scrapy_rep.commands' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# By name


@pytest.mark.parametrize("name", NAMES)
def test_every_name_is_found_in_any_case(name: str) -> None:
    assert named(name.upper()).name == name
    assert named(f" {name.lower()} ").name == name


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
    assert crawler_named(value) is None
    assert crawlers_of(value) == ()


# By purpose


def test_a_purpose_stands_for_its_crawlers() -> None:
    training = {crawler.name for crawler in crawlers_of("ai-training")}
    assert {
        "GPTBot", "ClaudeBot", "CCBot", "Google-Extended", "Applebot-Extended", "Bytespider",
        "meta-externalagent", "Amazonbot",
    } <= training  # fmt: skip
    assert training.isdisjoint({"Googlebot", "OAI-SearchBot", "ChatGPT-User", "bingbot"})
    assert crawlers_of(" AI-Training ") == crawlers_for(Purpose.AI_TRAINING)


@pytest.mark.parametrize("purpose", Purpose)
def test_every_purpose_has_crawlers(purpose: Purpose) -> None:
    found = crawlers_for(purpose)
    assert len(found) >= 3
    assert all(purpose in crawler.purposes for crawler in found)
    assert list(found) == [crawler for crawler in CRAWLERS if crawler in found]


# Misspelt


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("Gogglebot", "Googlebot"),
        ("googlebot-images", "Googlebot-Image"),
        ("GTPBot", "GPTBot"),
        ("claude-bot", "ClaudeBot"),
        ("ia_archivr", "ia_archiver"),
        ("ai-trainning", "ai-training"),
        ("ai_use", "ai-use"),
        ("Bing-bot", "bingbot"),
    ],
)
def test_a_misspelling_is_recognized(value: str, name: str) -> None:
    assert similar_name(value) == name


@pytest.mark.parametrize("value", ["Googlebot", "seo", "mybot", "Scrapy", "examplebot", "", "x"])
def test_other_names_are_no_misspellings(value: str) -> None:
    assert similar_name(value) is None

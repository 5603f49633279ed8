"""Product tokens of User-Agent headers and of user-agent lines."""

from __future__ import annotations

import pytest

from scrapy_rep.protocol.agents import (
    AgentWarning,
    parse_user_agent,
    product_tokens,
    tokens_of_line,
)

HEADERS = [
    ("Scrapy/2.19.0 (+https://scrapy.org)", "scrapy"),
    ("facebookexternalhit/1.1 (+http://www.facebook.com/e.php)", "facebookexternalhit"),
    ("DuckDuckBot/1.1; (+http://duckduckgo.com/duckduckbot.html)", "duckduckbot"),
    ("FooBot/1.0; like Googlebot", "foobot"),
    ("Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)", "googlebot"),
    ("Mozilla/5.0 (Linux; Android 6.0.1; Nexus 5X Build/MMB29P) AppleWebKit/537.36 (KHTML, like"
     " Gecko) Chrome/126.0.0.0 Mobile Safari/537.36 (compatible; Googlebot/2.1;"
     " +http://www.google.com/bot.html)", "googlebot"),
    ("Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2;"
     " +https://openai.com/gptbot)", "gptbot"),
    ("Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_5) AppleWebKit/605.1.15 (KHTML, like Gecko)"
     " Version/13.1.1 Safari/605.1.15 (Applebot/0.1; +http://www.apple.com/go/applebot)",
     "applebot"),
    ("Mozilla/5.0 (compatible;PetalBot;+https://petalsearch.com/bot)", "petalbot"),
    ("Mozilla/5.0 (compatible; MJ12bot/v1.4.8; http://mj12bot.com/)", "mj12bot"),
    ("Mozilla/5.0 (FooBot; bot@example.com)", "foobot"),
    ("Mozilla/5.0 (compatible; Foo Bot (test); +http://x) Gecko/20100101", "foo"),
    ("Mozilla/5.0 (compatible; MSIE 8.0; FooBot/1.0; +http://x)", "foobot"),
    ("Mozilla/5.0 (X11) AppleWebKit/1 (KHTML, like Gecko) Chrome/1 Safari/537.36 MyBot/1", "mybot"),
    ("Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm", "bingbot"),
]  # fmt: skip


@pytest.mark.parametrize(("header", "token"), HEADERS)
def test_headers(header: str, token: str) -> None:
    assert parse_user_agent(header) == ((token,), None)
    assert product_tokens(header.encode()) == (token,)


@pytest.mark.parametrize(
    "header",
    [
        "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/1 Safari/1",
        "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:126.0) Gecko/20100101 Firefox/126.0",
        "Mozilla/5.0 (Windows NT 6.1; Trident/7.0; rv:11.0) like Gecko",
        "Mozilla/4.0 (compatible; MSIE 8.0; Windows NT 6.1)",
        "Mozilla/5.0 (compatible)",
        "Mozilla/5.0 (compatible; +http://x)",
        "(compatible; ; )",
        "",
        "бот",
        "бот/1.0",
        "http://example.com/",
        "Mozilla/5.0 (compatible) http://example.com:80/",
    ],
)
def test_headers_without_a_token(header: str) -> None:
    assert parse_user_agent(header) == ((), AgentWarning.NO_TOKEN)


@pytest.mark.parametrize(
    ("header", "token", "doubt"),
    [
        ("my crawler/1.0", "my", AgentWarning.FIRST_WORD),
        ("Screaming Frog SEO Spider/20.0", "screaming", AgentWarning.FIRST_WORD),
        ("MyBot (+http://x) more", "mybot", None),
        ("MyBot (+http://x)", "mybot", None),
        ("MyBot/1.0 more", "mybot", None),
    ],
)
def test_first_words(header: str, token: str, doubt: AgentWarning | None) -> None:
    assert parse_user_agent(header) == ((token,), doubt)


@pytest.mark.parametrize(
    ("value", "token"),
    [
        ("Foobot*", "foobot"), ("Foobot:1", "foobot"), ("Foobot;x", "foobot"), ("a,b", "a"),
        ("Foo#bot", "foo"), ("MJ12bot*", "mj12bot"), ("Foobot*/1.0", "foobot"),
        ("Foobot:1/2.0 (+http://x)", "foobot"), ("Foobot#1 (x)", "foobot"),
        ("Mozilla/5.0 Foobot:1/2", "foobot"), ('"Foobot"', None), ("*Foobot", None), (":1", None),
    ],
)  # fmt: skip
def test_a_token_ends_before_a_character_that_no_line_can_match(
    value: str, token: str | None
) -> None:
    expected = ((token,), AgentWarning.CUT) if token else ((), AgentWarning.NO_TOKEN)
    assert parse_user_agent(value) == expected


@pytest.mark.parametrize("value", ["MJ12bot", "foo.bot", "a_b-c", "80legs", "a!$%&'+^`|~"])
def test_a_token_that_a_line_can_match_is_not_cut(value: str) -> None:
    assert parse_user_agent(value) == ((value.lower(),), None)
    assert value.lower().encode() in tokens_of_line(value.encode())


def test_sequences_keep_their_order() -> None:
    images = ["Googlebot-Images", "Googlebot", "googlebot"]
    assert product_tokens(images) == ("googlebot-images", "googlebot")
    assert product_tokens(("Foo/1.0 (x)", "*", "Bar")) == ("foo", "bar")
    assert product_tokens([]) == ()
    assert parse_user_agent("*") == ((), None)
    assert parse_user_agent(["my crawler", ""]).warning is AgentWarning.FIRST_WORD

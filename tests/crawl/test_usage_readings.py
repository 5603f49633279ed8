"""Readings of the use of content that a setting turns on, and the sources of refusals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from testing.web import text

from .test_page_middleware import Reader, html, reader

if TYPE_CHECKING:
    from testing.web import Web

    from .conftest import Crawl

TRAINING = """\
User-agent: *
Disallow: /shut/

User-agent: Google-Extended
User-agent: GPTBot
Disallow: /art/
"""
TOKENS = ["Google-Extended", "Applebot-Extended", "GPTBot", "CCBot", "ClaudeBot"]
NO_TRAINING = (
    "robots.txt disallows it for google-extended",
    "robots.txt disallows it for gptbot",
)


@pytest.mark.parametrize(
    ("tokens", "sources"),
    [
        ([], ()),
        (TOKENS, NO_TRAINING),
        ("gptbot, Google-Extended", NO_TRAINING[::-1]),
        (["CCBot"], ()),
    ],
)
async def test_a_group_for_training_is_a_refusal_if_the_setting_says_so(
    web: Web, crawl: Crawl, tokens: list[str] | str, sources: tuple[str, ...]
) -> None:
    site = web.site(TRAINING, {"/art/picture": text("a picture")})
    settings = {"REP_TRAINING_TOKENS": tokens, "REP_REQUIRE_USAGE": ["ai-train"]}
    outcome = await crawl(site.urls("/", "/art/1", "/art/picture"), settings, spider=Reader)
    # It changes no verdict: all pages were fetched.
    assert site.page_paths == ["/", "/art/1", "/art/picture"]
    metas = {url.removeprefix(site.root): r.meta for url, r in outcome.responses.items()}
    assert metas["/"]["usage"] == metas["/"]["usage_sources"] == {}
    for path in ("/art/1", "/art/picture"):
        assert metas[path]["usage"] == ({"train-ai": False} if sources else {})
        assert metas[path]["usage_sources"] == ({"train-ai": sources} if sources else {})
    dropped = dict(reader(outcome).dropped)
    assert sorted(dropped) == (["/art/1", "/art/picture"] if sources else [])
    for exception in dropped.values():
        assert str(exception) == f"its page refuses ai-train ({', '.join(sources)})"


async def test_the_group_of_everyone_is_no_refusal_of_training(web: Web, crawl: Crawl) -> None:
    site = web.site("User-agent: *\nDisallow: /\nUser-agent: testbot\nAllow: /\n")
    outcome = await crawl(site.urls("/"), {"REP_TRAINING_TOKENS": TOKENS})
    assert outcome.responses[site.url("/")].meta["usage"] == {}


async def test_without_robots_txt_no_group_counts(web: Web, crawl: Crawl) -> None:
    settings = {"REP_TRAINING_TOKENS": TOKENS, "ROBOTSTXT_OBEY": False}
    site = web.site(TRAINING)
    outcome = await crawl(site.urls("/art/1"), settings)
    assert outcome.responses[site.url("/art/1")].meta["usage"] == {}


ALL = """\
User-agent: *
Content-Signal: ai-train=no
Content-Usage: train-ai=n, search=y
Allow: /

User-agent: ccbot
Disallow: /
"""


async def test_a_refusal_anywhere_wins_and_every_source_is_named(web: Web, crawl: Crawl) -> None:
    page = html(
        '<meta name="tdm-reservation" content="1">',
        Content_Signal="ai-train=no, ai-input=no",
        Content_Usage="train-ai=y, ai-use=y, search=y",
    )
    site = web.site(ALL, {"/a": page})
    settings: dict[str, Any] = {
        "REP_TRAINING_TOKENS": ["CCBot"],
        "REP_REQUIRE_USAGE": ["search", "ai-input", "tdm"],
    }
    outcome = await crawl(site.urls("/a"), settings, spider=Reader)
    meta = outcome.responses[site.url("/a")].meta
    assert meta["usage"] == {"train-ai": False, "ai-use": False, "search": True, "tdm": False}
    assert meta["usage_sources"] == {
        "train-ai": (
            "Content-Signal in robots.txt",
            "Content-Usage in robots.txt",
            "robots.txt disallows it for ccbot",
            "Content-Signal header",
        ),
        "ai-use": ("Content-Signal header",),
        "tdm": ("tdm-reservation",),
    }
    [(_, exception)] = reader(outcome).dropped
    assert str(exception) == (
        "its page refuses ai-input (Content-Signal header), tdm (tdm-reservation)"
    )

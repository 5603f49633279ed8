"""The training preference signal of a robots.txt, and refusals in several places."""

from __future__ import annotations

from testing.web import Web, text

from .conftest import Crawl
from .test_page_middleware import Reader, html, reader

TRAINING = """\
User-agent: *
Disallow: /shut/

User-agent: __usage_ai-training
Disallow: /art/
Allow: /art/free/
"""


async def test_the_training_preference_signal_is_a_statement_and_no_verdict(
    web: Web, crawl: Crawl
) -> None:
    site = web.site(TRAINING, {"/art/picture": text("a picture")})
    paths = ("/", "/art/1", "/art/free/1", "/art/picture")
    settings = {"REP_INTENDED_USES": ["ai-train"]}
    outcome = await crawl(site.urls(*paths, "/shut/"), settings, spider=Reader)
    # It changes no verdict: all pages but the one that the group of everyone disallows are fetched.
    assert site.page_paths == sorted(paths)
    metas = {url.removeprefix(site.root): r.meta for url, r in outcome.responses.items()}
    assert {path: metas[path]["robotstxt_usage"] for path in paths} == {
        "/": {},
        "/art/1": {"train-ai": False},
        "/art/free/1": {"train-ai": True},
        "/art/picture": {"train-ai": False},
    }
    dropped = dict(reader(outcome).dropped)
    assert sorted(dropped) == ["/art/1", "/art/picture"]
    for exception in dropped.values():
        assert str(exception) == "its page refuses ai-train"


ALL = """\
User-agent: *
Content-Signal: ai-train=no
Content-Usage: train-ai=n, search=y
Allow: /

User-agent: __usage_ai-training
Disallow: /
"""


async def test_a_refusal_anywhere_wins(web: Web, crawl: Crawl) -> None:
    page = html(
        '<meta name="tdm-reservation" content="1">',
        Content_Signal="ai-train=no, ai-input=no",
        Content_Usage="train-ai=y, ai-use=y, search=y",
    )
    site = web.site(ALL, {"/a": page})
    settings = {"REP_INTENDED_USES": ["search", "ai-input", "tdm"]}
    outcome = await crawl(site.urls("/a"), settings, spider=Reader)
    meta = outcome.responses[site.url("/a")].meta
    usage = {"train-ai": False, "ai-use": False, "search": True, "tdm": False}
    assert meta["robotstxt_usage"] == usage
    [(_, exception)] = reader(outcome).dropped
    assert str(exception) == "its page refuses ai-input, tdm"

"""``view``: a page as a crawler sees it, from a real crawler."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import TYPE_CHECKING, Any

import pytest
from rich.console import Console
from scrapy.exceptions import IgnoreRequest
from scrapy.http import HtmlResponse, Response, TextResponse

from scrapy_rep.commands import page as page_module
from scrapy_rep.commands import view as view_module
from scrapy_rep.commands.agent_option import of_user_agent, resolve
from scrapy_rep.commands.page import content_of
from scrapy_rep.commands.policy import Policy, of_file
from scrapy_rep.commands.view import _View
from scrapy_rep.commands.view_text import listing
from testing.web import Page, redirect, text

from .conftest import Run, tool, validate
from .test_session import session

if TYPE_CHECKING:
    from scrapy import Request

    from scrapy_rep.commands.session import Session
    from testing.web import Site, Web

ROBOTS = """\
User-agent: *
Disallow: /private
Content-Signal: ai-train=yes

User-agent: Googlebot
Disallow: /page
"""
HTML = """\
<!doctype html><html><head>
<title> A
 page </title>
<meta name="robots" content="noindex, index">
<meta name="googlebot" content="nosnippet">
<meta http-equiv="refresh" content="5; url=/elsewhere">
<link rel="canonical" href="/private/c">
<style>hidden</style>
</head><body>
<h1>Heading</h1><p>Some <b>bold</b> text<script>hidden</script> after<!-- hidden --></p>
<ul><li><a href="/a#x">A</a><li><a rel="nofollow ugc" href="OTHER">Other</a></ul>
<a href="/private/x"><img alt="Picture">P</a> <a href="mailto:x">m</a> <a>no href</a>
<a href="http://[">bad</a> <a href="/a">again</a>
</body></html>
"""
HEADERS = {
    "Content-Type": "text/html; charset=utf-8",
    "X-Robots-Tag": "mybot: nofollow",
    "Content-Signal": "ai-train=no",
    "Link": '</terms.xml>; rel="license"',
}
MYBOT = "mybot/1.0 (+https://bot.example)"
AT_ONCE = {"REP_RETRY_TIMES": 0, "RETRY_ENABLED": False, "USER_AGENT": MYBOT}


async def viewed(
    url: str, agent: str = "mybot", settings: dict[str, Any] | None = None
) -> dict[str, Any]:
    """The record of a page. It agrees with the schema and has a text."""
    view = _View(resolve([agent])[0], of_user_agent(MYBOT), strict=False)

    async def work(session: Session) -> dict[str, Any]:
        return await view.record(session, url)

    record: dict[str, Any] = await session(work, {**AT_ONCE, **(settings or {})})
    validate(record, "view")
    assert shown(record)
    return record


def shown(record: dict[str, Any]) -> str:
    """The text of a record."""
    console = Console(width=80, highlight=False, emoji=False, markup=False)
    with console.capture() as capture:
        for renderable in listing(record):
            console.print(renderable)
    return capture.get()


def site_with_page(web: Web, **headers: str) -> Site:
    other = web.site("User-agent: *\nDisallow: /n")
    page = Page(HTML.replace("OTHER", other.url("/n")), headers={**HEADERS, **headers})
    return web.site(ROBOTS, {"/": redirect("/page"), "/page": page})


def codes(record: dict[str, Any]) -> list[str]:
    return [one["code"] for one in record["contradictions"]]


async def test_a_page(web: Web) -> None:
    site = site_with_page(web)
    record = await viewed(site.url("/"))
    assert site.paths == ["/robots.txt", "/", "/page"]
    assert [(hop["url"], hop["status"]) for hop in record["hops"]] == [
        (site.url("/"), 301),
        (site.url("/page"), 200),
    ]
    page = record["page"]
    assert (page["status"], page["title"], page["indexable"], page["nofollow"]) == (
        200,
        "A page",
        False,
        True,
    )
    assert page["text"] == "Heading\nSome bold text after\nA\nOther\nP m no href bad again"
    assert [
        (one["rule"], one["argument"], one["place"], one["agent"]) for one in page["directives"]
    ] == [
        ("nofollow", "", "x-robots-tag", "mybot"),
        ("license", "/terms.xml", "link", "*"),
        ("noindex", "", "meta", "*"),
        ("index", "", "meta", "*"),
    ]
    assert page["usage"] == {
        "evaluated": {"train-ai": False},
        "robots_txt": {"train-ai": True},
        "page": {"train-ai": False},
        "tdm_file": {},
    }
    assert page["licenses"] == [site.url("/terms.xml")]
    assert (page["canonical"]["url"], page["canonical"]["allowed"]) == (
        site.url("/private/c"),
        False,
    )
    assert page["refresh"] == "/elsewhere"
    own, other, private = page["links"]
    assert (own["url"], own["text"], own["allowed"], own["nofollow"]) == (
        site.url("/a"),
        "A",
        True,
        True,
    )
    assert (other["allowed"], other["rel"], other["rule"]["line"]) == (
        False,
        ["nofollow", "ugc"],
        2,
    )
    assert (private["text"], private["allowed"]) == ("Picture P", False)
    assert page["other_links"] == 2
    assert codes(record) == [
        "index-and-noindex",
        "canonical-disallowed",
        "noindex-with-canonical",
        "usage-differs",
    ]
    out = shown(record)
    assert max(map(len, out.splitlines())) <= 80
    assert "nofollow  in the header X-Robots-Tag, for mybot" in out
    assert "train-ai: refused (by the page)" in out


async def test_another_crawler_does_not_see_the_directives(web: Web) -> None:
    site = site_with_page(web)
    record = await viewed(site.url("/"), "Googlebot")
    assert record["allowed"] is False
    assert codes(record)[:2] == ["redirect-to-disallowed", "directives-behind-disallow"]
    assert "noindex, nosnippet" in record["contradictions"][1]["text"]
    assert site.paths == ["/robots.txt", "/", "/page"]


async def test_a_disallowed_page_is_not_requested(web: Web) -> None:
    site = site_with_page(web)
    record = await viewed(site.url("/private/x"))
    assert (record["allowed"], record["page"]) == (False, None)
    assert record["refusal"]["rule"]["line"] == 2
    assert record["check"]["context"]
    assert site.paths == ["/robots.txt"]
    assert "not requested: robots.txt disallows it" in " ".join(shown(record).split())


async def test_a_redirect_to_a_disallowed_page_is_not_followed(web: Web) -> None:
    site = web.site(ROBOTS, {"/": redirect("/private/x")})
    record = await viewed(site.url("/"))
    assert site.paths == ["/robots.txt", "/"]
    assert (record["allowed"], codes(record)) == (False, ["redirect-to-disallowed"])


async def test_redirects_have_a_limit(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view_module, "MAX_REDIRECTS", 2)
    site = web.site(None, {"/": redirect("/")})
    record = await viewed(site.url("/"))
    assert record["failure"] == "more than 2 redirects"
    assert len(record["hops"]) == 3
    assert view_module._code(record) == 3


@pytest.mark.parametrize("location", ["mailto:x", "http://[", "ftp://x.example/", ""])
async def test_redirects_that_lead_nowhere(web: Web, location: str) -> None:
    site = web.site(None, {"/": redirect(location)})
    record = await viewed(site.url("/"))
    assert record["page"]["status"] == 301
    assert record["hops"][0]["location"] is None


async def test_pages_that_fail(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view_module, "MAX_PAGE", 100)
    monkeypatch.setitem(view_module._META, "download_maxsize", 100)

    async def reset(received: Any, reader: Any, writer: Any) -> None:
        writer.transport.abort()

    site = web.site(None, {"/reset": reset, "/big": Page(b"x" * 5000), "/404": Page(b"", 404)})
    for path in ("/reset", "/big"):
        record = await viewed(site.url(path))
        assert record["failure"]
        assert record["page"] is None
        assert view_module._code(record) == 3
    record = await viewed(site.url("/404"))
    assert (record["page"]["status"], record["page"]["text"]) == (404, "")
    down = web.site(Page(b"", 503))
    record = await viewed(down.url("/"))
    assert (record["allowed"], view_module._code(record)) == (False, 3)
    assert down.page_paths == []


async def test_what_a_site_requires_before_it_sends_a_page(web: Web) -> None:
    offers = [{"scheme": "exact", "network": "eip155:8453", "amount": str(n)} for n in range(1, 6)]
    required = b64encode(json.dumps({"accepts": offers, "error": "pay \x1b[2J"}).encode()).decode()
    priced = Page(b"", 402, {"crawler-price": "USD 0.01", "PAYMENT-REQUIRED": required})
    uri = "https://license.example/"
    challenge = f'License authorization_uri="{uri}", error="no_token"'
    licensed = Page(b"", 401, {"WWW-Authenticate": challenge, "Link": '</t.xml>; rel="license"'})
    site = web.site(None, {"/402": priced, "/401": licensed, "/200": Page("<p>x")})
    record = await viewed(site.url("/402"))
    terms = record["page"]["access_terms"]
    assert (terms["payment_required"], terms["price"], len(terms["offers"])) == (
        True,
        "USD 0.01",
        5,
    )
    out = " ".join(shown(record).split())
    assert "Requires a payment Price USD 0.01 Offers 1 eip155:8453, exact 2 eip155:8453" in out
    assert "and 2 more" in out
    assert "\x1b" not in out
    record = await viewed(site.url("/401"))
    assert record["page"]["access_terms"]["license_required"]
    assert record["page"]["licenses"] == [site.url("/t.xml")]
    out = " ".join(shown(record).split())
    assert f"Requires a license License from {uri} Error no_token" in out
    assert (await viewed(site.url("/200")))["page"]["access_terms"] is None
    assert site.page_paths == ["/200", "/401", "/402"]  # each once


async def test_the_tdm_file_is_read_with_its_setting(web: Web) -> None:
    rules = [{"location": "/", "tdm-reservation": 1, "tdm-policy": "/policy.json"}]
    file = {"/.well-known/tdmrep.json": text(json.dumps(rules))}
    other = web.site(None, file)
    link = Page(f'<a href="{other.url("/n")}">n</a>')
    own = Page("<p>x", headers={"tdm-reservation": "0"})
    site = web.site("User-agent: *\nDisallow: /no", {**file, "/a": link, "/own": own})
    on = {"REP_TDMREP": True}
    page = (await viewed(site.url("/a"), settings=on))["page"]
    assert [(one["rule"], one["place"]) for one in page["directives"]] == [
        ("tdm-reservation", "tdmrep.json"),
        ("tdm-policy", "tdmrep.json"),
    ]
    assert (page["usage"]["page"], page["usage"]["tdm_file"]) == ({}, {"tdm": False})
    record = await viewed(site.url("/own"), settings=on)
    usage = record["page"]["usage"]
    assert (usage["evaluated"], usage["page"], usage["tdm_file"]) == (
        {"tdm": True},
        {"tdm": True},
        {},
    )
    assert "tdm-policy: /policy.json  in the file tdmrep.json" in shown(record)
    assert other.paths == ["/robots.txt"]  # no file of a site that is only linked
    before = len(site.paths)
    await viewed(site.url("/no"), settings=on)
    assert (await viewed(site.url("/a")))["page"]["usage"] is None
    assert site.paths[before:] == ["/robots.txt", "/robots.txt", "/a"]


async def test_a_middleware_that_drops_the_request(web: Web) -> None:
    site = web.site()
    settings = {"DOWNLOADER_MIDDLEWARES": {Dropping: 50}}
    assert (await viewed(site.url("/"), settings=settings))["failure"] == "dropped here"


class Dropping:
    def process_request(self, request: Any) -> None:
        if not request.url.endswith("/robots.txt"):
            raise IgnoreRequest("dropped here")


async def test_ctrl_c() -> None:
    view = _View(of_user_agent("mybot"), of_user_agent(MYBOT), strict=False)

    class Closing:
        is_closing = True

        def __init__(self, error: Exception | None) -> None:
            self.error = error

        async def get_policy(self, origin: str, page_url: str) -> Policy | None:
            return None if self.error is None else of_file("x", b"")

        async def download(self, request: Request) -> Response:
            assert self.error is not None
            raise self.error

    for error in (None, IgnoreRequest(), OSError("closed")):
        closing: Any = Closing(error)
        with pytest.raises(KeyboardInterrupt):
            await view.record(closing, "https://example.com/")


async def test_few_other_sites_are_asked(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view_module, "MAX_ORIGINS", 1)
    first, second = web.site(), web.site()
    links = f'<a href="{first.url("/x")}">1</a><a href="{second.url("/x")}">2</a>'
    site = web.site(None, {"/": Page(f"<html>{links}")})
    record = await viewed(site.url("/"))
    assert [link["allowed"] for link in record["page"]["links"]] == [True, None]
    assert (first.robots_fetches, second.robots_fetches) == (1, 0)
    assert "robots.txt not fetched" in " ".join(shown(record).split())


async def test_hostile_pages(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_module, "MAX_LINKS", 50)
    lines = "\x1b[2J\u202e" + "<p>line" * 40
    links = lines + "".join(
        f'<a href="/{n}\x1b[2J" rel="{"x " * 50}">\x1b[31m{n}</a>' for n in range(60)
    )
    deep = "<div>" * 5000 + "x"
    metas = '<meta name="robots" content="unavailable_after: \x1b[31m">' * 3
    body = f"<html><head><title>{'x' * 10_000}</title>{metas}</head>{links}{'w ' * 90_000}{deep}"
    site = web.site(None, {"/": Page(body, headers={"Content-Type": "text/html; \x07"})})
    record = await viewed(site.url("/"))
    page = record["page"]
    assert (len(page["title"]), len(page["text"]), page["text_cut"]) == (500, 20_000, True)
    assert (len(page["links"]), page["links_left_out"]) == (50, 10)
    out = shown(record)
    assert not {"\x1b", "\x07", "\u202e"} & set(out)
    assert "and 30 more links" in out
    assert "more lines" in out


async def test_what_is_no_html(web: Web) -> None:
    site = web.site(
        None,
        {
            "/": text("plain\ntext"),
            "/x": Page(
                b"\0\1",
                headers={"Content-Type": "application/octet-stream", "X-Robots-Tag": "noindex"},
            ),
        },
    )
    record = await viewed(site.url("/"))
    assert (record["page"]["text"], record["page"]["links"]) == ("plain\ntext", [])
    record = await viewed(site.url("/x"))
    assert (record["page"]["text"], record["page"]["indexable"]) == ("", False)


async def test_what_a_crawler_that_ignores_the_wildcard_is_told(web: Web) -> None:
    site = web.site(ROBOTS, {"/a": Page("<html>")})
    record = await viewed(site.url("/a"), "AdsBot-Google")
    assert (record["allowed"], record["page"]["usage"]) == (True, None)


def test_canonical_urls() -> None:
    url = "https://example.com/a"
    header = {"Link": '</h>; rel="canonical"'}
    html = b'<html><head><link rel="canonical" href="%s"></head>'
    assert content_of(Response(url, headers=header)).canonical == "https://example.com/h"
    assert content_of(HtmlResponse(url, body=html % b"/p")).canonical == "https://example.com/p"
    assert content_of(HtmlResponse(url, body=html % b"mailto:x")).canonical is None
    assert content_of(HtmlResponse(url, body=html % b"")).canonical is None
    assert content_of(HtmlResponse(url, body=b"<html><meta name=x>")).canonical is None


def test_odd_pages() -> None:
    url = "https://example.com/a"
    assert content_of(HtmlResponse(url, body=b"")).links == ()
    assert content_of(HtmlResponse(url, body=b"<title></title>")).title is None
    assert content_of(HtmlResponse(url, body=b"<p>no title")).title is None
    refresh = b"<meta http-equiv=refresh content='%s'>"
    assert content_of(HtmlResponse(url, body=refresh % b"5")).refresh == "5"
    assert content_of(HtmlResponse(url, body=b"<meta http-equiv=x>")).refresh is None
    assert content_of(TextResponse(url, body=b"x" * 100_000)).is_text_cut
    repeated = b'<a href=/x rel="nofollow ugc">1</a><a href=/x rel=ugc>2</a>'
    (link,) = content_of(HtmlResponse(url, body=repeated)).links
    assert (link.text, link.rel) == ("1", ("ugc",))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("mailto:x",), "no URL with a robots.txt: mailto:x"),
        (("/path",), "no URL with a robots.txt: /path"),
        (("https://[",), "no URL with a robots.txt: https://["),
        (("https://x.example/" + "a" * 9000,), "no URL with a robots.txt"),
        (("x.example", "-a", "ai-training"), "name one"),
        ((), "the following arguments are required: URL"),
    ],
)
def test_bad_input(run: Run, arguments: tuple[str, ...], message: str) -> None:
    done = run("view", *arguments)
    assert done.code == 2
    assert message in done.err


def test_as_a_process(web: Web) -> None:
    site = site_with_page(web)
    done = tool("view", site.url("/"), "--json", "-s", f"USER_AGENT={MYBOT}")
    validate(done.record, "view")
    assert (done.code, done.err) == (1, "")
    assert done.record["requested_as"] == MYBOT
    plain = tool("view", "127.0.0.1:1/a", "-a", "mybot", "-s", "REP_RETRY_TIMES=0")
    assert "taken for https://" in plain.err
    assert plain.code == 3
    assert "Traceback" not in plain.err
    fine = tool("view", site.url("/a"), "-a", "mybot")
    assert (fine.code, fine.err) == (0, "")
    assert "A page" in fine.out

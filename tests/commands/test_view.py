"""``view``: a page as a crawler sees it, from a real crawler."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec import convert
from rich.console import Console
from scrapy.exceptions import IgnoreRequest
from scrapy.http import HtmlResponse, Response, TextResponse

from scrapy_rep.commands import view as view_module
from scrapy_rep.commands.view import Page as PageRecord
from scrapy_rep.commands.view import View, listing, read_content
from testing.web import Page, Site, Web, redirect, text

from .conftest import Cli

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
<meta http-equiv="refresh" content="5; url=/private/later">
<meta name="robots" value="noarchive">
<link rel="stylesheet" href="/private/css"><link rel="alternate" href="/feed">
<style>hidden</style>
</head><body>
<noscript>Without <a href="/noscript">scripts</a></noscript>
<h1>Heading</h1><p>Some <b>bold</b> text<script>hidden</script> after<!-- hidden --></p>
<ul><li><a href="/a#x">A</a><li><a rel="nofollow ugc" href="OTHER">Other</a></ul>
<a href="/private/x"><img alt="Picture">P</a> <a href="mailto:x">m</a> <a>no href</a>
<a href="http://[">bad</a> <a href="/a">again</a>
<a href="javascript:go('/only')">js</a><p onclick="location.href='js.html'; open('/a')">
<form action="/private/find" method="post"></form><iframe src="/frame">old</iframe>
<img src="/logo.png"><img src="data:x">
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
    cli: Cli, url: str, agent: str = "mybot", settings: dict[str, Any] | None = None, code: int = -1
) -> dict[str, Any]:
    """The record of a page. It agrees with the schema and has a text."""
    done = await cli("view", url, "-a", agent, "--json", settings={**AT_ONCE, **(settings or {})})
    assert shown(done.record)
    assert code in (-1, done.code)
    record: dict[str, Any] = done.record
    return record


def shown(record: dict[str, Any]) -> str:
    """The text of a record."""
    console = Console(width=80, highlight=False, emoji=False, markup=False)
    with console.capture() as capture:
        for renderable in listing(convert(record, View)):
            console.print(renderable)
    return capture.get()


def site_with_page(web: Web, **headers: str) -> tuple[Site, Site]:
    other = web.site("User-agent: *\nDisallow: /n")
    page = Page(HTML.replace("OTHER", other.url("/n")), headers={**HEADERS, **headers})
    return web.site(ROBOTS, {"/": redirect("/page"), "/page": page}), other


def codes(record: dict[str, Any]) -> list[str]:
    return [one["code"] for one in record["contradictions"]]


async def test_a_page(web: Web, cli: Cli) -> None:
    site, other = site_with_page(web)
    record = await viewed(cli, site.url("/page"), code=1)
    assert (site.paths, other.paths) == (["/robots.txt", "/page"], [])
    page = record["page"]
    assert (page["status"], page["title"]) == (200, "A page")
    assert (page["indexable"], page["nofollow"]) == (False, True)
    assert page["text"] == (
        "Without scripts\nHeading\nSome bold text after\nA\nOther\nPicture P m no href bad again js"
    )
    assert page["unread"] == [
        '<meta name="robots" value="noarchive"> is not understood: write <meta name="robots" '
        'content="noarchive">'
    ]
    assert [tuple(one.values()) for one in page["directives"]] == [
        ("nofollow", "", "x-robots-tag", "mybot"),
        ("license", "/terms.xml", "link", "*"),
        ("noindex", "", "meta", "*"),
        ("index", "", "meta", "*"),
    ]
    assert page["usage"] == {"train-ai": False}
    assert page["licenses"] == [site.url("/terms.xml")]
    assert [
        (link["kind"], link["url"], link["allowed"], link["nofollow"]) for link in page["links"]
    ] == [
        ("refresh", site.url("/private/later"), False, False),
        ("resource", site.url("/private/css"), False, False),
        ("link", site.url("/noscript"), True, True),
        ("link", site.url("/a"), True, True),
        ("link", other.url("/n"), None, True),  # nothing is requested from another site
        ("link", site.url("/private/x"), False, True),
        ("form", site.url("/private/find"), False, False),
        ("frame", site.url("/frame"), True, False),
        ("resource", site.url("/logo.png"), True, False),
        ("script", site.url("/only"), True, False),
        ("script", site.url("/js.html"), True, False),
    ]
    assert codes(record) == ["refresh-to-disallowed", "not-understood"]
    out = shown(record)
    assert max(map(len, out.splitlines())) <= 80
    for line in (
        "nofollow  in the header X-Robots-Tag, for mybot",
        "train-ai: refused",
        "robots.txt not fetched; nofollow",
        "Resources   2 URLs, of which 1 disallowed",
        "only in a script; no ",
        "form; line 2, ",
        "resource; line 2, ",
    ):
        assert line in " ".join(out.split()) or line in out


async def test_another_crawler_does_not_see_the_directives(web: Web, cli: Cli) -> None:
    site, _ = site_with_page(web)
    record = await viewed(cli, site.url("/page"), "Googlebot", code=1)
    assert record["check"]["allowed"] is False
    assert codes(record) == ["not-understood", "directives-behind-disallow"]
    assert "noindex, nosnippet" in record["contradictions"][1]["text"]
    assert site.paths == ["/robots.txt", "/page"]
    assert site.received[1].headers["user-agent"] == MYBOT


async def test_a_disallowed_page_is_not_requested(web: Web, cli: Cli) -> None:
    site, _ = site_with_page(web)
    record = await viewed(cli, site.url("/private/x"), code=1)
    assert (record["check"]["allowed"], record["page"]) == (False, None)
    assert site.paths == ["/robots.txt"]
    assert "not fetched: Forbidden by robots.txt: line 2, " in " ".join(shown(record).split())


@pytest.mark.parametrize(
    ("location", "allowed", "code"),
    [
        ("/page", [True], 0), ("/private/x", [False], 1), ("https://other.example/", [None], 0),
        ("mailto:x", [], 0), ("http://[", [], 0), ("ftp://x.example/", [], 0), ("", [], 0),
    ],
)  # fmt: skip
async def test_a_redirect_is_shown_and_not_followed(
    web: Web, cli: Cli, location: str, allowed: list[bool | None], code: int
) -> None:
    site = web.site(ROBOTS, {"/": redirect(location)})
    record = await viewed(cli, site.url("/"), code=code)
    links = record["page"]["links"]
    assert [link["allowed"] for link in links] == allowed
    assert all(link["url"].endswith(location) and link["kind"] == "redirect" for link in links)
    assert codes(record) == ["redirect-to-disallowed"] * code
    assert (record["page"]["status"], site.paths) == (301, ["/robots.txt", "/"])


async def test_pages_that_fail(web: Web, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view_module, "MAX_PAGE", 100)

    async def reset(received: Any, reader: Any, writer: Any) -> None:
        writer.transport.abort()

    site = web.site(None, {"/reset": reset, "/big": Page(b"x" * 5000), "/404": Page(b"", 404)})
    for path in ("/reset", "/big"):
        record = await viewed(cli, site.url(path), code=3)
        assert record["failure"]
        assert "Failure" not in record["failure"]  # of Twisted
        assert record["page"] is None
    record = await viewed(cli, site.url("/404"))
    assert (record["page"]["status"], record["page"]["text"]) == (404, "")
    down = web.site(Page(b"", 503))
    record = await viewed(cli, down.url("/"), code=3)
    assert not record["check"]["allowed"]
    assert down.page_paths == []
    settings = {"DOWNLOADER_MIDDLEWARES": {Dropping: 50}}
    assert (await viewed(cli, site.url("/"), settings=settings))["failure"] == "dropped here"


class Dropping:
    def process_request(self, request: Any) -> None:
        if not request.url.endswith("/robots.txt"):
            raise IgnoreRequest("dropped here")


async def test_the_tdm_file_is_read_with_its_setting(web: Web, cli: Cli) -> None:
    rules = [{"location": "/", "tdm-reservation": 1, "tdm-policy": "/policy.json"}]
    own = Page("<p>x", headers={"tdm-reservation": "0"})
    site = web.site(
        "User-agent: *\nDisallow: /no",
        {"/.well-known/tdmrep.json": text(json.dumps(rules)), "/a": Page("<p>a"), "/own": own},
    )
    on = {"REP_TDMREP": True}
    record = await viewed(cli, site.url("/a"), settings=on)
    assert [(one["rule"], one["place"]) for one in record["page"]["directives"]] == [
        ("tdm-reservation", "tdmrep.json"),
        ("tdm-policy", "tdmrep.json"),
    ]
    assert record["page"]["usage"] == {"tdm": False}
    assert "tdm-policy: /policy.json  in the file tdmrep.json" in shown(record)
    page = (await viewed(cli, site.url("/own"), settings=on))["page"]
    assert page["usage"] == {"tdm": True}  # what the page states wins
    before = len(site.paths)
    await viewed(cli, site.url("/no"), settings=on)
    assert (await viewed(cli, site.url("/a")))["page"]["usage"] == {}
    assert site.paths[before:] == ["/robots.txt", "/robots.txt", "/a"]


async def test_hostile_pages(web: Web, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view_module, "MAX_LINKS", 50)
    lines = "\x1b[2J\u202e" + "<p>line\n" * 40
    lines += f"<form action=/\x1b[2J method='\x1b[2J{'x' * 9000}'>"
    lines += "".join(f"<p onclick=\"go('/{n}\x1b[2J')\">" for n in range(3000))
    links = lines + "".join(
        f'<a href="/{n}\x1b[2J" rel="{"x " * 50}">\x1b[31m{n}</a>' for n in range(60)
    )
    deep = "<div>" * 5000 + "x"
    metas = '<meta name="robots" content="unavailable_after: \x1b[31m">' * 3
    body = f"<html><head><title>{'x' * 10_000}</title>{metas}</head>{links}{'w ' * 90_000}{deep}"
    site = web.site(None, {"/": Page(body, headers={"Content-Type": "text/html; \x07"})})
    record = await viewed(cli, site.url("/"))
    page = record["page"]
    assert (len(page["title"]), len(page["text"])) == (500, 20_000)
    assert (len(page["links"]), page["left_out"]) == (50, 61)
    out = shown(record)
    assert not {"\x1b", "\x07", "\u202e"} & {*out}
    assert "and 81 more links" in out
    assert "more lines" in out


async def test_what_is_no_html(web: Web, cli: Cli) -> None:
    binary = {"Content-Type": "application/octet-stream", "X-Robots-Tag": "noindex"}
    site = web.site(ROBOTS, {"/": text("plain\ntext"), "/x": Page(b"\0\1", headers=binary)})
    page = (await viewed(cli, site.url("/")))["page"]
    assert (page["text"], page["links"]) == ("plain\ntext", [])
    page = (await viewed(cli, site.url("/x")))["page"]
    assert (page["text"], page["indexable"]) == ("", False)
    record = await viewed(cli, site.url("/"), "AdsBot-Google")  # which ignores the group for *
    assert (record["check"]["allowed"], record["page"]["usage"]) == (True, {})


URL = "https://example.com/a"
REFRESH = b"<meta http-equiv=refresh content='%s'>"


def content_of(response: Response) -> Any:
    values: Any = {"url": URL, "status": 200, "content_type": None, "size": 0, "directives": []}
    page = PageRecord(**values, indexable=True, nofollow=False, usage={}, licenses=())
    read_content(response, page)
    return page


@pytest.mark.parametrize(
    ("response", "field", "value"),
    [
        (HtmlResponse(URL, body=b""), "links", []),
        (HtmlResponse(URL, body=b"<title></title>"), "title", None),
        (HtmlResponse(URL, body=b"<p>no title"), "title", None),
        (HtmlResponse(URL, body=REFRESH % b"5"), "links", []),
        (HtmlResponse(URL, body=REFRESH % b"0;/x y"), "links", ["/x%20y"]),
        (HtmlResponse(URL, body=REFRESH % b'5 ; URL = "/x"'), "links", ["/x"]),
        (HtmlResponse(URL, body=REFRESH % b"0; url=javascript:x"), "links", []),
        (HtmlResponse(URL, body=b"<meta http-equiv=x content=5;/x>"), "links", []),
        (HtmlResponse(URL, body=b"<meta name=robots value>"), "unread", []),
        (HtmlResponse(URL, body=b"<p>a</html>b<p>c</html><i>d"), "text", "a\nb\nc\nd"),
        (HtmlResponse(URL, body=b"<p>a</html><title>b</title>"), "title", "b"),
        (HtmlResponse(URL, body=b"<title>a</title></html><title>b</title>"), "title", "a"),
        (HtmlResponse(URL, body=b"<a href=/x></html><!-- a --><img src=/y>" + REFRESH % b"5;/z"),
         "links", ["/x", "/y", "/z"]),
        (TextResponse(URL, body=b"x" * 100_000), "text", "x" * 20_000),
    ],
)  # fmt: skip
def test_odd_pages(response: Response, field: str, value: object) -> None:
    found = getattr(content_of(response), field)
    if field == "links":
        found = [link.url.removeprefix("https://example.com") for link in found]
    assert found == value


@pytest.mark.parametrize(
    ("markup", "written"),
    [
        ("<meta name=robot content=noindex>", '<meta name="robot" content="noindex">'),
        ("<meta name=robots value=noindex>", '<meta name="robots" value="noindex">'),
        ("<meta robots=noindex>", '<meta robots="noindex">'),
        ("<meta property=robots content=noindex>", '<meta property="robots" content="noindex">'),
        ("<meta http-equiv=X-Robots-Tag content=noindex>", '<meta http-equiv="X-Robots-Tag" cont'),
        ("<p></html><meta name=robot content=noindex>", '<meta name="robot" content="noindex">'),
        ("<meta name=' ROBOTS' content=noindex>", ""),
        ("<meta name=viewport content=noindex>", ""),
        ("<meta name=robots content><meta name=robot>", ""),
    ],
)
def test_meta_elements_that_no_crawler_reads(markup: str, written: str) -> None:
    found = content_of(HtmlResponse(URL, body=markup.encode() * 60)).unread
    wanted = 'is not understood: write <meta name="robots" content="noindex">'
    assert len(found) == (50 if written else 0)
    assert all(each.startswith(written) and each.endswith(wanted) for each in found)


@pytest.mark.parametrize(
    ("name", "value", "found"),
    [
        ("X-Robots-Tag", "noindex nofollow",
         ["'noindex nofollow' is not understood: write noindex,"]),
        ("X-Robots-Tag", "mybot: noindex;nofollow",
         ["'noindex;nofollow' is not understood: write"]),
        ("X-Robots-Tag", "no-index, No_Follow",
         ["'no-index' is", "'No_Follow' is not understood: wr"]),
        ("X-Robots-Tag", "max-snippet: fifty",
         ["'max-snippet: fifty' is not understood: write max-s"]),
        ("X-Robots-Tag", "unavailable_after: 25/06/2010",
         ["'unavailable_after: 25/06/2010' is not"]),
        ("X-Robots-Tag", "unavailable_after: Fri, 25 Jun 2010 15:00:00 PST", []),
        ("X-Robots-Tag", "max-image-preview: big", ["'max-image-preview: big' is not understood"]),
        ("X-Robots-Tag", "all, noydir, otherbot: noindex, max-snippet: -1", []),
        ("X-Robots-Tags", "noindex",
         ["'the header X-Robots-Tags' is not understood: write X-Robots"]),
        ("X-Robot-Tag", "noindex", ["'the header X-Robot-Tag' is"]),
        ("Robots-Tag", "*;noindex", []),
        ("X-Request-Id", "noindex", []),
    ],
)  # fmt: skip
async def test_what_is_not_understood(
    web: Web, cli: Cli, name: str, value: str, found: list[str]
) -> None:
    site = web.site(ROBOTS, {"/page": Page("<p>a", headers={name: value})})
    record = await viewed(cli, site.url("/page"), code=1 if found else 0)
    unread = record["page"]["unread"]
    assert [text[: len(start)] for text, start in zip(unread, found, strict=True)] == found
    assert codes(record) == ["not-understood"] * len(found)
    assert ("Not understood" in shown(record)) == bool(found)
    if name == "X-Robots-Tag":  # the same words in the page
        content = value.removeprefix("mybot: ")
        site.pages["/page"] = Page(f'<meta name="robots" content="{content}">')
        record = await viewed(cli, site.url("/page"))
        assert [text for text in record["page"]["unread"] if "otherbot" not in text] == unread


async def test_what_is_behind_the_page(web: Web, cli: Cli) -> None:
    behind = "<html><p>a</html>\n<!-- cached -->\n<meta name=robots content=noindex>"
    site = web.site(ROBOTS, {"/page": Page(behind)})
    record = await viewed(cli, site.url("/page"), code=0)
    assert record["page"]["behind_html"] == "<meta name=robots content=noindex>"
    assert "content=noindex> behind </html>" in " ".join(shown(record).split())
    long = f"<p>{'a' * (2 << 20)}<meta name=robots content=noindex></html><!-- a -->"
    site.pages["/page"] = Page(long)
    record = await viewed(cli, site.url("/page"), code=1)
    page = record["page"]
    assert (page["beyond"], page["behind_html"], page["indexable"]) == (54, "", True)
    assert page["unread"] == [
        "A robots meta element is behind the first 2 MiB: move it to the head"
    ]
    assert "54 bytes are behind the first 2 MiB" in " ".join(shown(record).split())


@pytest.mark.no_cover
def test_links_within_each_other_and_links_that_are_repeated() -> None:
    nested = "".join(f"<a href=/{number}><div>" for number in range(500))
    page = content_of(HtmlResponse(URL, body=(nested + "<b></b>" * 200_000 + "x").encode()))
    assert (len(page.links), page.text) == (500, "x")
    repeated = b'<a href=/x rel="nofollow ugc">1</a><a href=/x rel=ugc>2</a>'
    (link,) = content_of(HtmlResponse(URL, body=repeated)).links
    assert not link.nofollow

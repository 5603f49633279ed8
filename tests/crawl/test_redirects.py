"""No site on the web makes the crawler use an answer from the network that it runs in.

The web of these tests is on loopback. A download handler connects to it for every host name, and
reports public addresses for its sites.
"""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit

import pytest
from scrapy import Request
from scrapy.http import Response

from testing.faults import DISALLOWED, PATHS, RULES, RULES_HOLD, outcome_of, raw
from testing.web import Site, Web, redirect, text

from .conftest import Crawl, Outcome, ScrapysHandler

pytestmark = pytest.mark.rule("A redirect to an address that is not public")
PUBLIC = "93.184.215.14"


class PublicWeb(ScrapysHandler):
    """Connects to the site of a host name. Other hosts are reached as usual."""

    sites: dict[str, tuple[Site, str | None]]
    """By host name: the site, and the address that the handler reports."""

    async def download_request(self, request: Request) -> Response:
        parts = urlsplit(request.url)
        if request.meta.get("proxy") or parts.hostname not in self.sites:
            return await super().download_request(request)
        site, address = self.sites[parts.hostname]
        response = await super().download_request(request.replace(url=site.url(parts.path)))
        found = None if address is None else ip_address(address)
        return response.replace(url=request.url, ip_address=found)


async def visit(crawl: Crawl, site: Site, address: str | None = PUBLIC, **sites: Site) -> Outcome:
    """Crawl a site of the web. There are others, one of them in a private network."""
    PublicWeb.sites = {
        "public.example": (site, address),
        **{f"{name}.example": (each, PUBLIC) for name, each in sites.items()},
    }
    if "private" in sites:
        PublicWeb.sites["private.example"] = sites["private"], "127.0.0.1"
    handled = {"DOWNLOAD_HANDLERS": {"http": PublicWeb}}
    return await crawl([f"http://public.example{path}" for path in PATHS], handled)


HOSTS = {"0x7f.1": "127.0.0.1", "a.localhost": "this machine", "[::1]": "::1", "me@10.0.0.7": "10."}
"""``tests/fetch/test_redirects.py`` has more."""


@pytest.mark.parametrize("host", HOSTS)
async def test_no_redirect_leads_into_a_private_network(web: Web, crawl: Crawl, host: str) -> None:
    internal = web.site(RULES)
    site = web.site(redirect(f"http://{host}:{internal.port}/secret"))
    outcome = await visit(crawl, site)
    assert internal.received == []
    assert outcome_of(site) == DISALLOWED
    failure = outcome.failure_of("http://public.example")
    assert failure.startswith("redirect to http")
    assert HOSTS[host] in failure
    assert "not a public address" in failure
    assert not any(key.startswith("robotstxt/exception_count") for key in outcome.stats)


@pytest.mark.parametrize(
    ("expected", "target", "address"),
    [
        pytest.param(RULES_HOLD, "http://second.example/r", PUBLIC, id="to the web"),
        pytest.param(DISALLOWED, "http://second.example/on", PUBLIC, id="through the web"),
        pytest.param(RULES_HOLD, "{internal}/r", "10.0.0.1", id="from a private network"),
        pytest.param(DISALLOWED, "{internal}/r", None, id="from an unknown address"),
        pytest.param(DISALLOWED, "http://private.example/r", PUBLIC, id="to a private name"),
        pytest.param(DISALLOWED, "http://private.example/on", PUBLIC, id="through it"),
    ],
)
async def test_a_redirect_is_followed_unless_it_leads_from_the_web_into_a_private_network(
    web: Web, crawl: Crawl, expected: str, target: str, address: str | None
) -> None:
    internal = web.site(pages={"/r": text(RULES)})
    further = {"/r": text(RULES), "/on": redirect(internal.url("/r"))}
    site = web.site(redirect(target.format(internal=internal.root)))
    others = {"second": web.site(pages=further), "private": web.site(pages=further)}
    outcome = await visit(crawl, site, address, **others)
    assert outcome_of(site) == expected
    is_followed = expected == RULES_HOLD and target.startswith("{")
    assert internal.paths == ["/r"] * is_followed
    if "private" in target:
        assert "127.0.0.1 is not a public address" in outcome.failure_of("http://public.example")


# With a proxy, which resolves the names


async def test_literal_addresses_are_refused_through_a_proxy(web: Web, crawl: Crawl) -> None:
    pages = {
        "http://public.example/robots.txt": redirect("http://0x7f.1/secret"),
        "http://named.example/robots.txt": redirect("http://second.example/r"),
        "http://second.example/r": text(RULES),
    }
    proxy = web.site(pages=pages)
    meta = {"proxy": f"http://127.0.0.1:{proxy.port}"}
    for host, fetched in (("public", []), ("named", ["http://named.example/public"])):
        requests = [Request(f"http://{host}.example{path}", meta=meta) for path in PATHS]
        await crawl(requests)
        assert [path for path in proxy.page_paths if "/r" not in path] == fetched
    assert "http://0x7f.1/secret" not in proxy.paths


# The text of a Location


async def test_a_location_is_escaped_and_cut(web: Web, crawl: Crawl) -> None:
    location = b"file:///\x1b]0;owned\x07\xe2\x80\xae" + b"x" * 5000
    head = b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: " + location
    site = web.site(raw(head + b"\r\n\r\n"))
    outcome = await crawl(site.urls("/a"))
    (line,) = [line for line in outcome.log.messages if "is unreachable" in line]
    assert line.isprintable()
    assert len(line) < 700
    assert "\u202e" not in outcome.failure_of(site)


async def test_a_location_that_is_too_long_is_refused(web: Web, crawl: Crawl) -> None:
    long, longest = "/r?" + "x" * 7000, "/r?" + "x" * 9000
    expected = {long: RULES_HOLD, longest: DISALLOWED}
    sites = {path: web.site(redirect(path), {path: text(RULES)}) for path in expected}
    await crawl([url for site in sites.values() for url in site.urls(*PATHS)])
    assert {path: outcome_of(site) for path, site in sites.items()} == expected

"""The archive of a crawl (REP_ARCHIVE), read back with warcio and compared with the traffic."""

from __future__ import annotations

import gzip
import io
import random
import sys
import time
from contextlib import redirect_stdout
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import signals
from scrapy.exceptions import StopDownload
from scrapy.utils.reactor import is_reactor_installed
from warcio.checker import Checker

from scrapy_rep.exceptions import SettingError
from scrapy_rep.protocol.lines import SIZE_LIMIT
from scrapy_rep.reports.archive import ArchivedRobotsTxt, read
from testing.archives import Record, fields_of, records_of
from testing.clock import FakeClock
from testing.faults import RULES, raw
from testing.web import Page, Web, redirect, text
from tests.stores.worker import workers

from .conftest import Crawl, Outcome, Visitor, make_crawler, run_crawler

ADDRESS = "127.0.0.1"


def of_kind(path: Path, *kinds: str) -> list[Record]:
    """Return the records of these kinds, or all."""
    found = records_of(path.read_bytes())
    return [record for record in found if not kinds or record.kind in kinds]


def check(path: Path) -> None:
    """Do what ``warcio check`` does, which compares all digests."""
    output = io.StringIO()
    with redirect_stdout(output):
        status = Checker(SimpleNamespace(inputs=[str(path)], verbose=True)).process_all()
    assert not status, output.getvalue()
    assert "digest pass" in output.getvalue()


def archived_in(path: Path) -> list[ArchivedRobotsTxt]:
    """Return what the reader finds, in a file without problems."""
    problems: list[str] = []
    found = list(read(path, problems.append))
    assert problems == []
    return found


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "archive" / "visitor.warc.gz"


@pytest.fixture
def archiving(crawl: Crawl, path: Path) -> Crawl:
    """Crawl with an archive."""

    async def run(
        requests: Any, settings: dict[str, Any] | None = None, **arguments: Any
    ) -> Outcome:
        archive = {"REP_ARCHIVE": str(path.parent / "%(name)s.warc.gz")}
        return await crawl(requests, {**archive, **(settings or {})}, **arguments)

    return run


async def test_an_exchange_is_archived_unchanged(web: Web, archiving: Crawl, path: Path) -> None:
    robots = text(RULES, ETag='"1"', Set_Cookie="a=b", X_Other="1, 2")
    site = web.site(robots)
    before = time.time()
    outcome = await archiving(site.urls("/page", "/private"))
    assert outcome.stats["robotstxt/archive/exchange_count"] == 1
    info, response, request = of_kind(path)
    check(path)
    sent = robots.octets()
    assert response.block.split(b"\r\n", 1)[0] == b"HTTP/1.1 200 OK"
    assert response.fields == fields_of(sent)
    assert response.body == RULES
    received = site.received[0].head
    assert request.block.split(b"\r\n", 1)[0] == b"GET /robots.txt HTTP/1.1"
    assert request.fields <= fields_of(received)
    assert {"user-agent", "host", "accept-encoding"} <= {name for name, _ in request.fields}
    if is_reactor_installed():
        assert request.block == received
    assert (info.kind, response.kind, request.kind) == ("warcinfo", "response", "request")
    for record in (response, request):
        headers = record.headers
        assert headers["WARC-Target-URI"] == site.url("/robots.txt")
        assert headers["X-Robots-Txt-Origin"] == site.root
        assert headers["WARC-Date"] == response.headers["WARC-Date"]
        assert headers.get("WARC-IP-Address", ADDRESS) == ADDRESS
        assert not is_reactor_installed() or "WARC-IP-Address" in headers
    assert request.headers["WARC-Concurrent-To"] == response.headers["WARC-Record-ID"]
    digest = f"sha256:{sha256(RULES).hexdigest()}"
    assert response.headers["X-Robots-Txt-Digest"] == digest
    assert "WARC-Truncated" not in response.headers
    [archived] = archived_in(path)
    assert (archived.body, archived.status) == (RULES, 200)
    assert f"sha256:{archived.sha256}" == digest
    assert before - 1 < archived.time < time.time() + 1
    origin = outcome.middleware.origins[site.root]
    assert origin.copy is not None
    assert origin.copy.sha256 == archived.sha256


async def test_every_hop_of_a_redirect_is_archived(web: Web, archiving: Crawl, path: Path) -> None:
    last = web.site(pages={"/rules": text(RULES)}, host="127.0.0.2")
    second = web.site(pages={"/next?a=1": redirect(f"{last.url('/rules')}#top", 307)})
    first = web.site(redirect(second.url("/next?a=1")))
    await archiving(first.urls("/page"))
    check(path)
    requests = of_kind(path, "request")
    assert [record.block.split(b"\r\n")[0] for record in requests] == [
        b"GET /robots.txt HTTP/1.1",
        b"GET /next?a=1 HTTP/1.1",
        b"GET /rules HTTP/1.1",
    ]
    for request, site in zip(requests, (first, second, last)):
        assert request.fields <= fields_of(site.received[0].head)
    found = archived_in(path)
    assert [(each.status, each.url, each.origin) for each in found] == [
        (301, first.url("/robots.txt"), first.root),
        (307, second.url("/next?a=1"), first.root),
        (200, last.url("/rules"), first.root),
    ]
    assert found[-1].body == RULES


LONG = RULES + random.Random(1).randbytes(600 * 1024)
PACKED = gzip.compress(RULES)
NO_GZIP = text(b"no gzip" * 9, Content_Encoding="gzip")
CUT_OFF = raw(b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n" + RULES)
ENDLESS = raw(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n", b"no gzip", b"more" * 9000)


@pytest.mark.parametrize(
    ("robots", "body", "file", "truncated"),
    [
        (Page(LONG), LONG[: SIZE_LIMIT + 1], LONG[: SIZE_LIMIT + 1], "length"),
        (text(PACKED, Content_Encoding="gzip"), PACKED, RULES, None),
        (CUT_OFF, RULES, None, "disconnect"),
        (NO_GZIP, b"no gzip" * 9, None, None),
        (ENDLESS, b"no gzip", None, "unspecified"),
        (Page(b"gone", 404), b"gone", None, None),
    ],
    ids=["long", "gzip", "cut off", "no gzip", "no gzip, without a length", "404"],
)
async def test_a_body_is_archived_as_it_was_received(
    web: Web,
    archiving: Crawl,
    path: Path,
    robots: Any,
    body: bytes,
    file: bytes | None,
    truncated: str | None,
) -> None:
    site = web.site(robots)
    outcome = await archiving(site.urls("/page"))
    check(path)
    [response] = of_kind(path, "response")
    assert response.headers.get("WARC-Truncated") == truncated
    assert response.body == body or (truncated == "unspecified" and response.body.startswith(body))
    [archived] = archived_in(path)
    if file is None:
        assert archived.sha256 is None
    else:
        copy = outcome.middleware.origins[site.root].copy
        assert copy is not None
        assert (archived.body, archived.sha256) == (file, copy.sha256)
        assert archived.sha256 == sha256(file).hexdigest()


@pytest.mark.parametrize("fail", [False, True])
@pytest.mark.parametrize(
    ("signal", "file", "truncated"),
    [(signals.headers_received, None, "unspecified"), (signals.bytes_received, RULES, None)],
    ids=["after the headers", "after all bytes"],
)
async def test_a_download_that_a_spider_stops_is_archived(
    web: Web,
    archiving: Crawl,
    path: Path,
    signal: object,
    file: bytes | None,
    truncated: str | None,
    fail: bool,
) -> None:
    def stop() -> None:
        raise StopDownload(fail=fail)

    site = web.site(text(PACKED, Content_Encoding="gzip"))
    await archiving(site.urls("/page"), on={signal: stop})
    check(path)
    [response] = of_kind(path, "response")
    assert response.headers.get("WARC-Truncated") == truncated
    [archived] = archived_in(path)
    assert archived.sha256 == (file and sha256(file).hexdigest())


async def test_a_304_in_a_second_crawl(
    web: Web, archiving: Crawl, path: Path, tmp_path: Path, clock: FakeClock
) -> None:
    robots = text(RULES, ETag='"1"', Cache_Control="max-age=300")
    site = web.site(robots)
    store = {"REP_STORE": f"sqlite:///{tmp_path}/robots.db"}
    await archiving(site.urls("/page"), store)
    clock.now += 1000
    site.pages["/robots.txt"] = Page(b"", 304, {"ETag": '"1"', "Content-Length": "31"})
    outcome = await archiving(site.urls("/other", "/private"), store)
    assert outcome.stats["robotstxt/forbidden"] == 1
    later = path.with_name("visitor-2.warc.gz")
    check(later)
    [response] = of_kind(later, "response")
    assert response.block.startswith(b"HTTP/1.1 304 Not Modified\r\n")
    assert ("etag", '"1"') in response.fields
    [first, second] = [*archived_in(path), *archived_in(later)]
    assert (second.status, second.body) == (304, None)
    assert first.sha256 == second.sha256 == sha256(RULES).hexdigest()
    [conditional] = of_kind(later, "request")
    assert ("if-none-match", '"1"') in conditional.fields


async def test_a_response_from_a_cache_is_not_archived(
    web: Web, archiving: Crawl, path: Path, tmp_path: Path
) -> None:
    site = web.site(RULES)
    cache = {"HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": str(tmp_path / "cache")}
    for _ in range(2):
        await archiving(site.urls("/page"), cache)
    assert (site.robots_fetches, len(archived_in(path))) == (1, 1)


async def test_without_warcio_a_crawl_with_an_archive_does_not_start(
    path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [*sys.modules]:
        if name.startswith("scrapy_rep.reports") or name.partition(".")[0] == "warcio":
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "warcio", None)
    with pytest.raises(SettingError, match="needs the package warcio: pip install warcio") as error:
        await run_crawler(make_crawler(Visitor, {"REP_ARCHIVE": str(path)}), requests=[])
    assert f"{error.value}. The crawl does not start." in caplog.messages


def test_a_killed_crawl_leaves_whole_records(web: Web, path: Path) -> None:
    body = RULES + random.Random(1).randbytes(300_000)
    urls = [web.site(body).url("/") for _ in range(30)]
    with workers(["", f"REP_ARCHIVE={path}", *urls]) as (process,):
        while process.poll() is None and (not path.exists() or path.stat().st_size < 1_000_000):
            time.sleep(0.001)
    problems: list[str] = []
    found = list(read(path, problems.append))
    assert all(archived.body == body for archived in found)
    assert len(found) >= 3
    assert len(problems) <= 1

"""Which robots.txt speaks for a request: scheme, host and port, in all their spellings."""

from __future__ import annotations

import logging
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from scrapy import Request
from scrapy.utils.reactor import is_reactor_installed

from scrapy_rep import Reason
from scrapy_rep.protocol.lines import SIZE_LIMIT
from testing.faults import DISALLOWED, MIB, PATHS, RULES, outcome_of
from testing.web import Web, redirect, text

from .conftest import Crawl

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # asyncore, on Python 3.11 and earlier
    from pyftpdlib.authorizers import DummyAuthorizer  # type: ignore[import-untyped]
    from pyftpdlib.handlers import FTPHandler  # type: ignore[import-untyped]
    from pyftpdlib.ioloop import IOLoop  # type: ignore[import-untyped]
    from pyftpdlib.servers import FTPServer  # type: ignore[import-untyped]


@pytest.mark.rule("Spellings of a host")
async def test_an_ipv6_origin(web: Web, crawl: Crawl) -> None:
    site = web.site(RULES, host="::1")
    outcome = await crawl([site.url("/public"), f"http://[0:0:0:0:0:0:0:1]:{site.port}/private"])
    assert site.paths == ["/robots.txt", "/public"]
    assert set(outcome.middleware.origins) == {site.root}


@pytest.mark.rule("Spellings of a host")
@pytest.mark.parametrize(
    ("host", "asked"),
    [
        ("name.example.", "name.example"),
        ("n%61me.example", "name.example"),
        ("Name.Example:80", "name.example"),
        ("user:secret@name.example", "name.example"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("XN--bcher-kva.EXAMPLE", "xn--bcher-kva.example"),
    ],
)
async def test_names_by_way_of_a_proxy(web: Web, crawl: Crawl, host: str, asked: str) -> None:
    robots = f"http://{asked}/robots.txt"
    proxy = web.site(pages={robots: text(RULES)})
    meta = {"proxy": f"http://127.0.0.1:{proxy.port}"}
    requests = [Request(f"http://{host}{path}", meta=dict(meta)) for path in PATHS]
    outcome = await crawl(requests)
    assert proxy.paths[0] == robots
    assert len(proxy.paths) == 2
    assert proxy.received[0].headers["host"] == asked
    assert "secret" not in str(proxy.received[0])
    assert len(outcome.failures) == 1


async def test_a_websocket_page_obeys_the_file_of_http(web: Web, crawl: Crawl) -> None:
    site = web.site(RULES)
    url = site.url("/private").replace("http://", "ws://")
    outcome = await crawl([url])
    assert site.paths == ["/robots.txt"]
    assert "robots.txt" in str(outcome.failures[url])


# FTP


class FtpSite:
    """A server on loopback, in a thread of its own. ``me`` and anonymous users may read a folder.

    Without ``anonymous`` every login fails. ``greeting`` is sent to each client that connects.
    """

    def __init__(self, folder: Path, *, anonymous: bool = True, greeting: str = "Hello.") -> None:
        received: list[tuple[str, str, str]] = []
        self.cut_off: list[str] = []
        """The names of the files whose transfer the client ended early."""
        cut_off, self._received = self.cut_off, received
        logging.getLogger("pyftpdlib").setLevel(logging.CRITICAL)
        authorizer = DummyAuthorizer()
        if anonymous:
            authorizer.add_anonymous(str(folder))
            authorizer.add_user("me", "secret", str(folder))

        class Handler(FTPHandler):  # type: ignore[misc]
            auth_failed_timeout = 0
            banner = greeting

            def on_file_sent(self, file: str) -> None:
                received.append((self.username, self.password, Path(file).name))

            def on_incomplete_file_sent(self, file: str) -> None:
                cut_off.append(Path(file).name)

        Handler.authorizer = authorizer
        self._loop = IOLoop()
        self._server = FTPServer(("127.0.0.1", 0), Handler, ioloop=self._loop)
        self.root = f"ftp://127.0.0.1:{self._server.address[1]}"
        self._running, self._turns = True, 0
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def urls(self, *paths: str) -> list[str]:
        return [self.root + path for path in paths]

    @property
    def received(self) -> list[tuple[str, str, str]]:
        """The user, the password and the name of each file that was sent, when all are recorded."""
        turn = self._turns
        while self._turns < turn + 2:
            time.sleep(0.005)
        return self._received

    @property
    def paths(self) -> list[str]:
        """The paths of the files that were sent, in order."""
        return ["/" + name for _, _, name in self.received]

    def close(self) -> None:
        """Close every connection."""
        self._running = False
        self._thread.join()

    def _serve(self) -> None:
        while self._running:
            self._loop.loop(timeout=0.02, blocking=False)
            self._turns += 1
        self._server.close_all()


Ftp = Callable[..., FtpSite]


@pytest.fixture
def ftp(tmp_path: Path) -> Iterator[Ftp]:
    """Starts a server with files."""
    sites = []

    def start(robots: bytes | None = RULES, **options: Any) -> FtpSite:
        files = {"robots.txt": robots, "public": b"a page", "private": b"a page"}
        for name, body in files.items():
            if body is not None:
                (tmp_path / name).write_bytes(body)
        sites.append(FtpSite(tmp_path, **options))
        return sites[-1]

    yield start
    for site in sites:
        site.close()


@pytest.mark.rule("FTP")
async def test_ftp_uses_an_anonymous_login(crawl: Crawl, ftp: Ftp) -> None:
    site = ftp()
    outcome = await crawl(site.urls(*PATHS), {"FTP_USER": "me", "FTP_PASSWORD": "secret"})
    if not is_reactor_installed():  # Scrapy has no FTP there
        assert (site.paths, [*outcome.reasons.values()]) == ([], [Reason.UNREACHABLE] * 2)
        return
    assert site.received == [("anonymous", "anonymous@", "robots.txt"), ("me", "secret", "public")]
    assert [*outcome.reasons.values()] == [Reason.RULES]


@pytest.mark.parametrize("path", ["/ツ é", "/%E3%83%84%20%C3%A9"])
async def test_a_name_beyond_latin_1_over_ftp(
    crawl: Crawl, ftp: Ftp, tmp_path: Path, path: str
) -> None:
    site = ftp()
    (tmp_path / "ツ é").write_bytes(b"a page")
    asked = Request(site.root + path, meta={"verbatim_url": True})
    outcome = await crawl([asked])
    if not is_reactor_installed():
        assert site.paths == []
        return
    assert site.paths == ["/robots.txt", "/ツ é"]
    (response,) = outcome.responses.values()
    assert (response.url, response.body) == (asked.url, b"a page")


@pytest.mark.rule("FTP")
async def test_ftp_without_a_file_allows_everything(crawl: Crawl, ftp: Ftp) -> None:
    site = ftp(None)
    outcome = await crawl(site.urls(*PATHS))
    if not is_reactor_installed():
        assert [*outcome.reasons.values()] == [Reason.UNREACHABLE] * 2
        return
    assert sorted(site.paths) == list(PATHS)
    known = outcome.middleware.origins[site.root]
    assert (str(known.state), known.status) == ("unavailable", 404)


@pytest.mark.rule("FTP", "500 KiB of a body")
@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"anonymous": False}, id="refuses the login"),
        pytest.param({"greeting": "\r\n220-".join(["Hello. " * 20] * 1000)}, id="endless reply"),
    ],
)
async def test_ftp_that_fails_is_unreachable(crawl: Crawl, ftp: Ftp, options: Any) -> None:
    site = ftp(**options)
    outcome = await crawl(site.urls(*PATHS), {"REP_TIMEOUT": 3})
    assert site.paths == []
    assert [*outcome.reasons.values()] == [Reason.UNREACHABLE] * 2
    if "greeting" in options:
        is_read = is_reactor_installed()
        reason = "the connection was closed" if is_read else "NotSupported"
        assert outcome.failure_of(site.root).startswith(reason)


async def test_ftp_that_does_not_answer_times_out(web: Web, crawl: Crawl) -> None:
    silent = web.site()  # waits for a request of HTTP
    url = f"ftp://127.0.0.1:{silent.port}/public"
    outcome = await crawl([url], {"REP_TIMEOUT": 0.4})
    assert [*outcome.reasons.values()] == [Reason.UNREACHABLE]
    expected = "it took longer than REP_TIMEOUT" if is_reactor_installed() else "NotSupported"
    assert outcome.failure_of(f"ftp://127.0.0.1:{silent.port}").startswith(expected)


@pytest.mark.rule("500 KiB of a body")
async def test_the_first_500_kib_over_ftp_count(crawl: Crawl, ftp: Ftp, tmp_path: Path) -> None:
    site = ftp()
    with (tmp_path / "robots.txt").open("r+b") as file:
        file.seek(SIZE_LIMIT)
        file.write(b"\nAllow: /private")
        file.truncate(300 * MIB)
    outcome = await crawl(site.urls(*PATHS))
    if not is_reactor_installed():
        assert [*outcome.reasons.values()] == [Reason.UNREACHABLE] * 2
        return
    assert site.paths == ["/public"]
    assert site.cut_off == ["robots.txt"]
    assert [*outcome.reasons.values()] == [Reason.RULES]


@pytest.mark.rule("A redirect to another scheme, or without a valid URL")
async def test_http_does_not_lead_to_ftp(web: Web, crawl: Crawl, ftp: Ftp) -> None:
    target = ftp()
    site = web.site(redirect(target.root + "/robots.txt"))
    await crawl(site.urls(*PATHS))
    assert outcome_of(site) == DISALLOWED
    assert target.received == []

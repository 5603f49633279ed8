"""A small web on this machine: one server for each site, and a list of the received requests.

`python -m example.web` runs it until standard input ends (Ctrl-D).
"""

import contextlib
import sys
import time
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from itertools import dropwhile, pairwise
from socketserver import ThreadingTCPServer
from threading import Thread

from example.sites import ROBOTS_TXT, Site, sites_at

PORTS = range(18080, 19080, 10)
TOLERANCE = 0.1  # seconds: not all requests take equally long to arrive


class Web:
    """Runs the servers of `sites` on the first free `port`, in threads of this process."""

    def __init__(self) -> None:
        self.received: list[tuple[str, float]] = []  # URL, and time on the monotonic clock
        for port in PORTS:
            self.port, self.sites = port, sites_at(port)
            with contextlib.suppress(OSError), contextlib.ExitStack() as opened:
                servers = [opened.enter_context(_Server(site, self)) for site in self.sites]
                opened.pop_all()  # do not close them: the port is free on all addresses
                for server in servers:
                    Thread(target=server.serve_forever, daemon=True).start()
                return
        raise RuntimeError("no port is free on 127.0.0.11 to 127.0.0.22 (needs Linux)")

    def hits(self) -> Counter[str]:
        """Return the number of requests for each URL."""
        return Counter(url for url, _ in self.received)

    def shortest_gap(self, site: Site) -> float:
        """Return the shortest time between two requests to a site, in seconds.

        The first page need not wait after the robots.txt.
        """
        requests = [each for each in self.received if each[0].startswith(f"{site.origin}/")]
        times = [at for _, at in dropwhile(lambda each: each[0].endswith(ROBOTS_TXT), requests)]
        return min((later - earlier for earlier, later in pairwise(times)), default=0.0)

    def errors(self) -> Iterator[str]:
        """Compare the requests with those of a correct crawl, and yield the differences."""
        hits = self.hits()
        for site in self.sites:
            once = dict.fromkeys(site.urls(site.allowed), 1)
            never = site.urls(site.disallowed, site.redirected_to, site.not_followed)
            for url, expected in (once | dict.fromkeys(never, 0)).items():
                if hits[url] != expected:
                    yield f"{url}: requests received: {hits[url]}, expected: {expected}"
            if hits[site.origin + ROBOTS_TXT] > 1:
                yield f"the robots.txt of {site.origin} was fetched more than once"
            if self.shortest_gap(site) < site.crawl_delay - TOLERANCE:
                yield f"the Crawl-delay of {site.origin} was not kept"


class _Server(ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, site: Site, web: Web) -> None:
        self.site, self.web = site, web
        super().__init__((site.address, site.port), _Handler)


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        site, web = self.server.site, self.server.web
        web.received.append((site.origin + self.path, time.monotonic()))
        answer = site.answer(self.path)
        time.sleep(answer.delay)
        with contextlib.suppress(ConnectionError):  # the crawler may have given up
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value.replace("{port}", str(web.port)))
            self.end_headers()
            self.wfile.write(answer.body.encode())

    def log_message(self, *_: object) -> None:
        """Do not log requests."""


if __name__ == "__main__":
    for each in Web().sites:
        print(each.origin, each.name, flush=True)
    sys.stdin.read()

"""Serves a folder of robots.txt files, crawls pages of each and counts what the files say.

    scrapy crawl census -a robots=DIR

Every file DIR/*.txt becomes an origin on this machine. Nothing leaves it.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from scrapy import Request

from example.report import table
from example.reporting import ReportingSpider
from example.web.folder import addresses
from example.web.process import WebProcess
from example.web.sites import ROBOTS_TXT
from scrapy_rep import RobotsTxt

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from scrapy.http import Response

USAGE = "scrapy crawl census -a robots=DIR"
# URLs of each origin: so many allowed, and so many disallowed ones.
PAGES = 3
# Rules of a file that are made into URLs until there are enough; no more than this of any.
RULES = 60
LONGEST_PATH = 1000
# Enough of a file to count it and to make URLs of it; what it means is for RobotsTxt to say.
RECORD = re.compile(
    rb"(?:^|[\r\n])[ \t]*(allow|disallow|crawl-delay|sitemap)[ \t]*:[ \t]*([^\s#]+)", re.IGNORECASE
)


class CensusSpider(ReportingSpider):
    name = "census"
    custom_settings = {  # noqa: RUF012 (as Scrapy declares it)
        # The census measures decisions, not patience: some files ask for minutes between pages.
        "REP_OBEY_CRAWL_DELAY": False,
        "RETRY_ENABLED": False,
    }

    def __init__(self, robots: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.robots = robots
        self.web: WebProcess | None = None
        self.began = time.monotonic()
        self.files: Counter[str] = Counter()
        self.expected: dict[str, bool] = {}

    async def start(self) -> AsyncIterator[Request]:
        for request in self.begin():
            yield request

    def begin(self) -> Iterator[Request]:
        """Start the web and make the requests of all its origins."""
        folder = Path(self.robots).expanduser().resolve()
        if not self.robots or not any(folder.glob("*.txt")):
            self.fault(f"robots has to be a folder of *.txt files, not {self.robots!r}: {USAGE}")
            return
        try:
            self.web = WebProcess("folder", str(folder))
        except RuntimeError as error:
            self.fault(str(error))
            return
        agent = self.settings["ROBOTSTXT_USER_AGENT"] or self.settings["USER_AGENT"]
        for address, file in addresses(folder):
            origin = f"http://{address}:{self.web.port}"
            yield from self.requests(origin, file.read_bytes(), agent)

    def requests(self, origin: str, body: bytes, agent: str) -> Iterator[Request]:
        """Pages of an origin whose robots.txt is `body`, some allowed and some disallowed."""
        robots = RobotsTxt.parse(body)
        self.count(body, robots, agent)
        left = {True: PAGES, False: PAGES}
        for path in paths(body):
            request = Request(
                origin + path, callback=self.parse, errback=self.dropped, dont_filter=True
            )
            allowed = robots.allowed(request.url, agent)
            if left[allowed] and request.url not in self.expected:
                left[allowed] -= 1
                self.expected[request.url] = allowed
                yield request

    def count(self, body: bytes, robots: RobotsTxt, agent: str) -> None:
        """Note what a file says."""
        lines = Counter(field for field, _ in records(body))
        rules = lines["allow"] + lines["disallow"]
        group = robots.verdict("/", agent).agent
        name = "none" if group is None else "everyone" if group == "*" else "us"
        self.files["all"] += 1
        self.files[f"group: {name}"] += 1
        self.files["front page disallowed"] += not robots.allowed("/", agent)
        self.files["rules"] += rules
        self.files["most rules"] = max(rules, self.files["most rules"])
        for field in ("crawl-delay", "sitemap"):
            self.files[field] += field in lines

    def parse(self, response: Response, **kwargs: Any) -> None:
        """The pages hold nothing of interest."""

    def closed(self, reason: str) -> None:
        if self.web is None:
            return
        # Of the paths that end so, only the front one is a robots.txt.
        received = [url for url in self.web.stop() if urlsplit(url).path != ROBOTS_TXT]
        seconds = time.monotonic() - self.began
        entries = [self.asked[url] for url in self.expected if url in self.asked]
        reasons = Counter(str(entry.verdict.reason) for entry in entries if entry.verdict)
        broken = [url for url in received if not self.expected.get(url, False)]
        other = [each.url for each in entries if each.allowed is not self.expected[each.url]]
        print(table("What the files say", ("", "files"), self.said()))
        print(
            table(
                "What was decided",
                (),
                [
                    *((f"URLs decided by {why}", str(number)) for why, number in reasons.items()),
                    ("pages received by the server", str(len(received))),
                    ("time", f"{seconds:.1f} s"),
                    ("peak memory of the crawl", peak_memory()),
                ],
            )
        )
        self.print_sum(entries, broken)
        self.fault_if(broken, "the server received disallowed pages")
        self.fault_if(other, "decided otherwise than the file says")
        self.fault_if(
            self.expected.keys() - self.asked.keys(), f"undecided when the crawl ended ({reason})"
        )

    def said(self) -> Iterator[tuple[str, str]]:
        """What the files say, and how many of them."""
        files = self.files
        yield "robots.txt files", str(files["all"])
        outcomes = Counter(f"{each.state}, {each.summary()}" for each in self.origins().values())
        for outcome, number in outcomes.most_common():
            yield f"  {outcome}", str(number)
        yield "a group for us", str(files["group: us"])
        yield "only the group for everyone", str(files["group: everyone"])
        yield "neither", str(files["group: none"])
        yield "front page disallowed", str(files["front page disallowed"])
        yield "a crawl-delay, for whomever", str(files["crawl-delay"])
        yield "sitemaps listed", str(files["sitemap"])
        yield "rule lines", f"{files['rules']} in all, at most {files['most rules']} in a file"


def peak_memory() -> str:
    """Of this process alone (`ru_maxrss` of a new process begins with that of its parent)."""
    status = Path("/proc/self/status").read_text()
    peak = re.search(r"^VmHWM:\s+(\d+) kB", status, re.MULTILINE)
    return f"{int(peak[1]) // 1024} MiB" if peak else "unknown"


def records(body: bytes) -> Iterator[tuple[str, str]]:
    """The fields of a file that the census is about, in lower case, with their values."""
    for field, value in RECORD.findall(body):
        yield field.decode().lower(), value.decode("utf-8", "replace")


def paths(body: bytes) -> Iterator[str]:
    """Paths that the rules of a file are about, spread over the file, and the front page."""
    yield "/"
    patterns = [value for field, value in records(body) if field in {"allow", "disallow"}]
    for pattern in patterns[:: len(patterns) // RULES + 1]:
        path = pattern.rstrip("$").replace("*", "any")
        if len(path) <= LONGEST_PATH and path != ROBOTS_TXT:
            yield path if path.startswith("/") else f"/{path}"

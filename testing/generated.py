"""Generated robots.txt files with the proportions of real ones, and questions about them.

The numbers in MEASURED were taken with ``python -m testing.proportions`` from 2,111 files that
servers sent as their robots.txt, 8.9 MB, of sites of all sizes between 1997 and 2026. All words,
paths and comments are invented. The same seed and number give the same file.
"""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING
from urllib.parse import quote

from .proportions import BOM, PERCENTILES, Proportions

if TYPE_CHECKING:
    from collections.abc import Iterator

SEED = 9309

MEASURED = Proportions(
    size=(0, 67, 170, 569, 1726, 3931, 7501, 55300, 594291, 1372557),
    html=0.0384,
    empty=0.0099,
    repeated=0.0753,
    byte_order_mark=0.0174,
    crlf=0.325,
    cr_only=0.0015,
    mixed_line_ends=0.0264,
    no_last_line_end=0.3843,
    non_ascii=0.01,
    not_utf8=0.002,
    wildcard_group=0.9726,
    crawl_delay=0.1787,
    noindex=0.0468,
    host=0.0174,
    sitemaps=(0, 0, 0, 1, 1, 3, 6, 31, 101, 1293),
    groups=(0, 1, 1, 1, 2, 5, 9, 109, 504, 528),
    largest_group=(0, 1, 3, 11, 34, 69, 99, 273, 1182, 31843),
    agents=(1, 1, 1, 1, 1, 1, 1, 2, 20, 1100),
    other_groups=(0, 1, 1, 1, 1, 1, 5, 56, 138, 255),
    blank=0.072,
    comments=0.0439,
    trailing_comments=0.0105,
    indented=0.0019,
    no_space_after_colon=0.0113,
    unreadable=0.0001,
    odd_agents=0.3018,
    allow=0.0683,
    no_pattern=0.0043,
    root=0.0605,
    no_slash=0.0115,
    leading_star=0.0229,
    star=0.1641,
    end=0.0151,
    query=0.0557,
    escape=0.0072,
    non_ascii_pattern=0.0006,
    pattern=(2, 7, 12, 16, 19, 32, 42, 73, 132, 488),
)

_WORDS = """
    about account admin ajax api app archive article assets author basket blog cart category cgi-bin
    checkout comment compare contact content css data date detail directory docs download edit en
    error event export feed file filter forum gallery game group help history home image img include
    index item job js lang legal library list login mail map media member message mobile modules
    music news node old order page partner photo plugin policy print private product profile public
    query rating register report review rss sale search service session share shop sort static
    status store style survey tag temp test theme thread topic tracking travel upload user version
    video view web widget wiki wp-admin wp-content wp-includes xml
""".split()  # noqa: SIM905 - as many lines as words otherwise
_ENDINGS = (".html", ".php", ".pdf", ".asp", ".jpg", ".xml", ".js", ".aspx")
_KEYS = ("id", "q", "sort", "page", "ref", "lang", "sid", "utm_source", "filter", "view")
_NON_ASCII = ("café", "ñandú", "поиск", "検索", "straße")
_AGENTS = (
    "Googlebot", "Googlebot-Image", "Mediapartners-Google", "AdsBot-Google", "bingbot", "Slurp",
    "Twitterbot", "GPTBot", "CCBot", "ClaudeBot", "Yandex", "Baiduspider", "ia_archiver", "msnbot",
)  # fmt: skip
_COMMENTS = ("all crawlers", "the shop", "no results of searches", "keep out", "---", "for tests")

CRAWLERS = ("examplebot", *_AGENTS[:10])
"""User agents of the questions. Half of the questions use the first one, which few files name."""

_PATHS = (
    "/", "/a", "/index.html", "/index.htm", "/about/", "/2026/11/article.html", "/search?q=1",
    "/p.php?id=3&x=y", "/en-us/", "/feed/", "/img/1.png", "/x.pdf", "/a%2Fb", "/%E3%83%84",
    "/~user", "/page/2/", "/?utm=1", "/WP-admin/",
)  # fmt: skip


def files(count: int, seed: int = SEED) -> dict[str, bytes]:
    """Return ``count`` files by name."""
    made: list[bytes] = []
    for number in range(count):
        chance = random.Random(f"{seed} {number}")
        # Small files may also be equal by chance.
        if made and chance.random() < MEASURED.repeated / 2:
            made.append(chance.choice(made))
        else:
            made.append(_File(chance).body())
    return {f"{number:06}.example.txt": body for number, body in enumerate(made)}


def questions(name: str, body: bytes, count: int) -> Iterator[tuple[str, str]]:
    """Return user agents and URLs for a file. Half of the paths are made from its patterns."""
    chance = random.Random(name)
    patterns = _patterns(body)
    for _ in range(count):
        path = chance.choice(_PATHS)
        if patterns and chance.random() < 0.5:
            path = _matching(chance.choice(patterns), chance)
        agent = CRAWLERS[0] if chance.random() < 0.5 else chance.choice(CRAWLERS)
        yield agent, f"https://example.com{path}"


def _patterns(body: bytes) -> list[str]:
    """The patterns of all groups of a file."""
    text = body.decode("utf-8", "ignore")
    values = (line.partition(":")[2].partition("#")[0].strip() for line in text.splitlines())
    return [value for value in values if value.startswith(("/", "*"))]


def _matching(pattern: str, chance: random.Random) -> str:
    """A path that a pattern matches, or almost matches."""
    path = pattern.removesuffix("$")
    while "*" in path:
        path = path.replace("*", chance.choice(("", "x", "a/b", "2026")), 1)
    if chance.random() < 0.3:
        path += chance.choice(("x", "/", "?a=b", ".html", "/en-us/"))
    return "/" + quote(path.removeprefix("/"), safe="/?&=%:@!$'()+,;~-._")


class _File:
    """A random file."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._foreign = self._happens(MEASURED.non_ascii)
        self._lines: list[str] = []

    def body(self) -> bytes:
        kind = self._chance.random()
        if kind < MEASURED.html:
            return self._html()
        if kind < MEASURED.html + MEASURED.empty:
            return b"\n" if self._happens(0.3) else b""
        self._groups()
        if not self._lines:
            self._lines.append("# nothing is forbidden")
        return self._encoded()

    def _happens(self, share: float) -> bool:
        return self._chance.random() < share

    def _number(self, quantiles: tuple[float, ...]) -> int:
        """A random number with these quantiles. Between two of them, small ones prevail."""
        percentile = self._chance.random() * 100
        place = next(
            place for place in range(1, len(PERCENTILES)) if percentile <= PERCENTILES[place]
        )
        low, high = quantiles[place - 1] + 1, quantiles[place] + 1
        span = PERCENTILES[place] - PERCENTILES[place - 1]
        part: float = (percentile - PERCENTILES[place - 1]) / span
        return round(low * math.exp(part * math.log(high / low))) - 1

    def _groups(self) -> None:
        count = self._number(MEASURED.groups)
        everyone = -1
        if count and self._happens(MEASURED.wildcard_group):
            everyone = self._chance.randrange(count)
        largest = everyone
        if count and (everyone < 0 or self._happens(0.3)):
            largest = self._chance.randrange(count)
        delayed = -1
        if count and self._happens(MEASURED.crawl_delay):
            delayed = self._chance.randrange(count)
        most = self._number(MEASURED.largest_group)
        for number in range(count):
            self._agents(everyone=number == everyone)
            rules = min(most, self._number(MEASURED.other_groups))
            for _ in range(most if number == largest else rules):
                self._rule()
            if number == delayed:
                self._record("Crawl-delay", self._chance.choice(("1", "5", "10", "30", "0.5")))
            if self._happens(0.5):
                self._lines.append("")
        if self._happens(MEASURED.noindex):
            for _ in range(self._chance.randint(1, 20)):
                self._record("Noindex", self._pattern())
        if self._happens(MEASURED.host):
            self._record("Host", "www.example.com")
        for number in range(self._number(MEASURED.sitemaps)):
            self._record("Sitemap", f"https://www.example.com/sitemap-{number}.xml")

    def _agents(self, *, everyone: bool) -> None:
        for number in range(max(1, self._number(MEASURED.agents))):
            name = self._chance.choice(_AGENTS)
            if self._happens(0.5):
                name = f"{self._chance.choice(_WORDS).replace('-', '').title()}bot"
            if self._happens(MEASURED.odd_agents):
                name += self._chance.choice(
                    ("/1.0", " 2", "2", ".com", "*", " (+http://x.example)")
                )
            self._record("User-agent", "*" if everyone and not number else name)

    def _rule(self) -> None:
        field = "Allow" if self._happens(MEASURED.allow) else "Disallow"
        kind = self._chance.random()
        if kind < MEASURED.no_pattern:
            self._record(field, "")
        elif kind < MEASURED.no_pattern + MEASURED.root:
            self._record(field, "/")
        else:
            self._record(field, self._pattern())

    def _pattern(self) -> str:
        octets = max(2, self._number(MEASURED.pattern))
        pattern = "" if self._happens(MEASURED.no_slash) else "/"
        if self._happens(MEASURED.leading_star):
            pattern = "*"
        query = octets > 4 and self._happens(MEASURED.query)
        extra = self._chance.choice(_KEYS) + "=" if query else ""
        star = self._happens(MEASURED.star - MEASURED.leading_star)
        while len(pattern) + len(extra) < octets:
            word = self._chance.choice(_WORDS)
            if self._happens(0.1):
                word = str(self._chance.randrange(100_000))
            if self._happens(MEASURED.escape / 2):
                word += self._chance.choice(("%20", "%2F", "%3D", "%c3%a9"))
            if self._foreign and self._happens(MEASURED.non_ascii_pattern / MEASURED.non_ascii):
                word = self._chance.choice(_NON_ASCII)
            pattern += word + self._chance.choice("/" * 6 + "-_.")
        pattern = pattern[: max(2, octets - len(extra))]
        if star:
            place = self._chance.randint(min(1, len(pattern)), len(pattern))
            pattern = f"{pattern[:place]}*{pattern[place:]}"
        if query:
            pattern += f"?{extra}"
        elif self._happens(MEASURED.end):
            pattern += self._chance.choice(_ENDINGS) + "$"
        return pattern

    def _record(self, field: str, value: str) -> None:
        if self._happens(0.02):
            field = field.lower()
        line = f"{field}:{'' if self._happens(MEASURED.no_space_after_colon) else ' '}{value}"
        if self._happens(MEASURED.indented):
            line = "  " + line
        if self._happens(MEASURED.trailing_comments):
            line += f" # {self._chance.choice(_COMMENTS)}"
        self._lines.append(line)
        # A blank line ends no group.
        if self._happens(MEASURED.blank / 2):
            self._lines.append("")
        if self._happens(MEASURED.comments):
            self._lines.append(f"# {self._chance.choice(_COMMENTS)}")
        if self._happens(MEASURED.unreadable):
            self._lines.append(self._chance.choice(("Disallow /temp", "nothing to see here")))

    def _encoded(self) -> bytes:
        if self._foreign:
            self._lines.append(f"# {self._chance.choice(_NON_ASCII)}")
        end = "\n"
        kind = self._chance.random()
        if kind < MEASURED.crlf:
            end = "\r\n"
        elif kind < MEASURED.crlf + MEASURED.cr_only:
            end = "\r"
        text = end.join(self._lines) + end
        if end == "\r\n" and self._happens(MEASURED.mixed_line_ends / MEASURED.crlf):
            text = text.replace(end, "\n", 1)
        if self._happens(MEASURED.no_last_line_end):
            text = text.rstrip()
        body = text.encode()
        if self._happens(MEASURED.not_utf8):
            body = b"# caf\xe9" + end.encode() + body
        return BOM + body if self._happens(MEASURED.byte_order_mark) else body

    def _html(self) -> bytes:
        paragraphs = "".join(
            f'<p><a href="/{self._chance.choice(_WORDS)}/{number}.html">A page: this one</a></p>\n'
            for number in range(self._chance.randint(2, 300))
        )
        page = f"<!DOCTYPE html>\n<html><head><title>Not found</title></head><body>{paragraphs}"
        return f"{page}</body></html>\n".encode()

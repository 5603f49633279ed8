"""Generated robots.txt files with the proportions of real ones, and questions about them.

The shares and quantiles were measured on 2,111 files that servers sent as their robots.txt, 8.9 MB,
of sites of all sizes between 1997 and 2026. All words, paths and comments are invented. The same
seed and number give the same file.
"""

from __future__ import annotations

import math
import random
from bisect import bisect_left
from collections.abc import Iterator
from urllib.parse import quote

SEED = 9309

PERCENTILES = (0.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.9, 100.0)
# The values at these percentiles: of files,
GROUPS = (0, 1, 1, 1, 2, 5, 9, 109, 504, 528)
LARGEST_GROUP = (0, 1, 3, 11, 34, 69, 99, 273, 1182, 31843)
"""Rules of the group that has most."""
SITEMAPS = (0, 0, 0, 1, 1, 3, 6, 31, 101, 1293)
# of groups,
AGENTS = (1, 1, 1, 1, 1, 1, 1, 2, 20, 1100)
OTHER_GROUPS = (0, 1, 1, 1, 1, 1, 5, 56, 138, 255)
"""Rules of each group but the largest of its file."""
# and octets of patterns.
PATTERN = (2, 7, 12, 16, 19, 32, 42, 73, 132, 488)

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
        if made and chance.random() < 0.04:  # small files may also be equal by chance
            made.append(chance.choice(made))
        else:
            made.append(_file(chance))
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
    if chance.random() < 0.1:
        path = chance.choice(("/.", "/a/..", "/%2e")) + path + chance.choice(("", ";", ";a", "?"))
    return "/" + quote(path.removeprefix("/"), safe="/?&=%:@!$'()+,;~-._")


def _file(chance: random.Random) -> bytes:
    kind = chance.random()
    if kind < 0.04:
        paragraph = '<p><a href="/a/1.html">A page: this one</a></p>\n'
        return f"<!DOCTYPE html>\n<html><body>{paragraph * chance.randint(2, 300)}".encode()
    if kind < 0.05:
        return b""
    end = "\r\n" if chance.random() < 0.33 else "\n"
    text = end.join(_lines(chance)) + end
    if chance.random() < 0.38:
        text = text.rstrip()
    body = text.encode()
    if chance.random() < 0.01:
        body = b"# caf\xe9" + end.encode() + body  # no UTF-8
    return b"\xef\xbb\xbf" + body if chance.random() < 0.02 else body


def _lines(chance: random.Random) -> list[str]:
    lines = [f"# {chance.choice(_COMMENTS)}"]
    count = _number(chance, GROUPS)
    # Almost all files have a group for everyone. In most of them it is the largest.
    everyone = chance.randrange(count) if count and chance.random() < 0.97 else -1
    largest = everyone if everyone >= 0 and chance.random() < 0.7 else chance.randrange(count or 1)
    most = _number(chance, LARGEST_GROUP)
    for number in range(count):
        for place in range(max(1, _number(chance, AGENTS))):
            is_everyone = number == everyone and not place
            lines.append(f"User-agent: {'*' if is_everyone else _agent(chance)}")
        rules = most if number == largest else min(most, _number(chance, OTHER_GROUPS))
        for _ in range(rules):
            lines.append(_rule(chance))
            if chance.random() < 0.04:
                lines.append(f"# {chance.choice(_COMMENTS)}")
        if chance.random() < 0.06:
            lines.append(f"Crawl-delay: {chance.choice(('1', '5', '10', '30', '0.5'))}")
        if chance.random() < 0.5:
            lines.append("")
    lines += [
        f"Sitemap: https://www.example.com/sitemap-{number}.xml"
        for number in range(_number(chance, SITEMAPS))
    ]
    return lines


def _number(chance: random.Random, quantiles: tuple[float, ...]) -> int:
    """A random number with these quantiles. Between two of them, small ones prevail."""
    percentile = chance.random() * 100
    place = max(bisect_left(PERCENTILES, percentile), 1)
    low, high = quantiles[place - 1] + 1, quantiles[place] + 1
    span = PERCENTILES[place] - PERCENTILES[place - 1]
    part: float = (percentile - PERCENTILES[place - 1]) / span
    return round(low * math.exp(part * math.log(high / low))) - 1


def _agent(chance: random.Random) -> str:
    name = chance.choice(_AGENTS)
    if chance.random() < 0.5:
        name = f"{chance.choice(_WORDS).replace('-', '').title()}bot"
    odd = ("/1.0", " 2", "2", ".com", "*", " (+http://x.example)")
    return name + (chance.choice(odd) if chance.random() < 0.3 else "")


def _rule(chance: random.Random) -> str:
    kind = chance.random()
    value = "" if kind < 0.005 else "/" if kind < 0.065 else _pattern(chance)
    return f"{'Allow' if chance.random() < 0.07 else 'Disallow'}: {value}"


def _pattern(chance: random.Random) -> str:
    octets = max(2, _number(chance, PATTERN))
    kind = chance.random()
    pattern = "" if kind < 0.01 else "*" if kind < 0.035 else "/"
    extra = f"?{chance.choice(_KEYS)}=" if octets > 4 and chance.random() < 0.06 else ""
    while len(pattern) + len(extra) < octets:
        word = str(chance.randrange(100_000)) if chance.random() < 0.1 else chance.choice(_WORDS)
        if chance.random() < 0.004:
            word += chance.choice(("%20", "%2F", "%3D", "%c3%a9", *_NON_ASCII))
        pattern += word + chance.choice("/" * 6 + "-_.")
    pattern = pattern[: max(2, octets - len(extra))]
    if chance.random() < 0.14:
        place = chance.randint(min(1, len(pattern)), len(pattern))
        pattern = f"{pattern[:place]}*{pattern[place:]}"
    if not extra and chance.random() < 0.015:
        pattern += chance.choice(_ENDINGS) + "$"
    return pattern + extra

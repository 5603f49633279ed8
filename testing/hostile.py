"""Files, URLs and headers that attack a parser: by their cost, or by their form.

``python -m benchmarks hostile`` measures how long each of them takes.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

Value = TypeVar("Value")

LIMIT = 500 * 1024

ALL = b"User-agent: *\n"
LONG_URL = "https://example.com/" + "a/b?c=" * 330
AS = "https://example.com/" + "a" * 2000
DIGITS = "https://example.com/" + "0123456789" * 200


def rules(template: str, number: int) -> bytes:
    return ALL + "".join(template.format(i) for i in range(number)).encode()


class Made(Mapping[str, Value]):
    """Values by name. Each is made when it is read: to make all of them takes half a second."""

    def __init__(self, makers: dict[str, Callable[[], Value]]) -> None:
        self._makers = makers

    def __getitem__(self, name: str) -> Value:
        return self._makers[name]()

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)


HOSTILE = Made[tuple[bytes, str]]({
    "stars": lambda: (ALL + b"Disallow: /" + b"*a" * (LIMIT // 2 - 20), AS),
    "stars ended": lambda: (
        ALL + b"Disallow: /" + b"*a" * (LIMIT // 2 - 20) + b"$",
        AS,
    ),
    "many stars": lambda: (ALL + b"Disallow: /*a*a*a*a*a*a*a*a*a*b\n" * 14_000, LONG_URL),
    "distinct stars": lambda: (rules("Disallow: /*a{}*a*b\n", 20_000), LONG_URL),
    "wildcards": lambda: (rules("Disallow: /*a{}*b$\n", 20_000), LONG_URL),
    "wildcards of digits": lambda: (rules("Disallow: /*{}*/\n", 20_000), DIGITS),
    "wildcards with one word": lambda: (rules("Disallow: /*{}*b?c=\n", 20_000), LONG_URL),
    "one word before a number": lambda: (rules("Disallow: /*aaaa*{}\n", 26_000), AS),
    "a piece longer than the path": lambda: (
        ALL + b"Allow: /*" + b"x" * 16_000 + b"\nDisallow: /a\n",
        f"{AS}{'x' * 8_000}",
    ),
    "pieces that almost match": lambda: (
        rules(f"Allow: /*{'a' * 500}b{{}}\n", 90) + b"Disallow: /a\n",
        f"{AS}{'a' * 8_000}",
    ),
    "numbers between letters": lambda: (rules("Disallow: /é{}*ü\n", 24_000), DIGITS),
    "numbers before a star": lambda: (rules("Disallow: /{}*a\n", 26_000), DIGITS),
    "ended": lambda: (rules("Disallow: /{}$\n", 20_000), LONG_URL),
    "literals": lambda: (rules("Disallow: /{}/\n", 20_000), DIGITS),
    "reserved queries": lambda: (rules("Disallow: /?u={}/\n", 20_000), LONG_URL),
    "agents": lambda: (
        "".join(f"User-agent: a-{i:x}\nDisallow: /a\n" for i in range(12_000)).encode()
        + b"Allow: /b\n" * 6_000,
        LONG_URL,
    ),
    "agents in one run": lambda: (
        b"".join(b"User-agent: a%s\n" % str(i).encode() for i in range(12_000))
        + b"".join(b"Disallow: /%s\n" % str(i).encode() for i in range(18_000)),
        LONG_URL,
    ),
    "one agent again and again": lambda: (b"User-agent: *\n" * 15_000 + b"Disallow: /a", LONG_URL),
    "one group again and again": lambda: (b"User-agent: *\nDisallow: /a\n" * 15_000, LONG_URL),
    "nested prefixes": lambda: (
        ALL + b"".join(b"Disallow: /%s\n" % (b"a" * i) for i in range(980)),
        "https://example.com/" + "a" * 490 + "b",
    ),
    "one line": lambda: (ALL + b"Disallow: /" + b"a" * 1_000_000, LONG_URL),
    "one field": lambda: (b"D" * 1_000_000, LONG_URL),
    "spaces": lambda: (ALL + b" " * 500_000 + b"Disallow: /a", LONG_URL),
    "spaces before a colon": lambda: (ALL + b"Disallow" + b" " * 500_000 + b": /a", LONG_URL),
    "tabs": lambda: (b"\t" * LIMIT, LONG_URL),
    "tabs in lines": lambda: (b"Disallow\t\t\t\t\t\t\t\t\t\t\t\t\n" * 25_000, LONG_URL),
    "NULs": lambda: (b"\0" * LIMIT, LONG_URL),
    "NULs in rules": lambda: (ALL + b"Disallow: /\0\0\n" * 30_000, LONG_URL),
    "escapes": lambda: (
        ALL + b"Disallow: /" + b"%2" * 250_000,
        "https://example.com/" + "%2" * 1000,
    ),
    "escapes to decode": lambda: (ALL + b"Disallow: /" + b"%%36%31" * 20_000, LONG_URL),
    "UTF-16": lambda: (("User-agent: *\n" + "Disallow: /a\n" * 15_000).encode("utf-16"), LONG_URL),
    "UTF-16 without BOM": lambda: (("Disallow: /a\n" * 18_000).encode("utf-16-le"), LONG_URL),
    "random octets": lambda: (random.Random(9309).randbytes(LIMIT), LONG_URL),
    "line ends": lambda: (b"\r\n\r" * 170_000, LONG_URL),
    "comments": lambda: (b"#" * LIMIT, LONG_URL),
    "colons": lambda: (b":" * LIMIT, LONG_URL),
    "stars in agents": lambda: (b"User-agent: " + b"*" * 500_000, LONG_URL),
    "index pages": lambda: (ALL + b"Allow: /" + b"/index.htm" * 50_000, LONG_URL),
    "index pages in lines": lambda: (ALL + b"Allow: /a/index.html\n" * 24_000, LONG_URL),
    "long URL": lambda: (rules("Disallow: /*a{}\n", 100), "https://example.com/" + "a" * 100_000),
})  # fmt: skip
"""Files, each with a URL that it is asked about."""

RECORDS = Made[bytes](
    {
        "Clean-params": lambda: rules("Clean-param: a{} /b\n", 20_000),
        "one Clean-param": lambda: ALL + b"Clean-param: " + b"a&" * 250_000,
        "Noindex": lambda: rules("Noindex: /{}\n", 20_000),
        "Sitemaps": lambda: rules("Sitemap: /{}\n", 20_000),
        "Hosts": lambda: ALL + b"Host: a\n" * 50_000,
        "Content-Usage": lambda: rules("Content-Usage: train-ai=n, a{}=y\n", 14_000),
        "Content-Usage again and again": lambda: ALL + b"Content-Usage: /*a*a*b ai=n\n" * 18_000,
        "one Content-Usage": lambda: ALL + b"Content-Usage: " + b"a=y," * 125_000,
        "one Content-Signal": lambda: ALL + b"Content-Signal: " + b"a=yes," * 80_000,
        "Content-Signals": lambda: rules("Content-Signal: /*a*{}b ai-train=no\n", 14_000),
        "Content-Signals of one path": lambda: (
            ALL + b"Content-Signal: /*a*a*b ai-train=no\n" * 12_000
        ),
        "Licenses": lambda: rules("License: /{}\n", 20_000),
        "Request-rates": lambda: rules("Request-rate: 1/{}m 0600-0845\n", 15_000),
        "spaces in a Request-rate": lambda: (
            ALL + b"Request-rate: 1/1" + b" " * 250_000 + b"s" + b" " * 250_000
        ),
        "spaces in a Visit-time": lambda: (
            ALL + b"Visit-time: 0600" + b" " * 250_000 + b"-" + b" " * 250_000
        ),
        "digits": lambda: ALL + b"Crawl-delay: " + b"9" * 500_000,
        "Request-rates of a day": lambda: (
            ALL
            + b"".join(
                b"Request-rate: 1/%d %02d%02d-%02d%02d\n"
                % (number, *divmod(number, 60), 23, number % 60)
                for number in range(1, 1300)
                for _ in range(8)
            )
        ),
        "delays": lambda: ALL + b"Crawl-delay: 1\n" * 33_000,
        "runs with a delay each": lambda: (
            b"User-agent: *\nUser-agent: b\nCrawl-delay: 1\n" * 11_000
        ),
        "agents before delays": lambda: (
            b"".join(b"User-agent: a%d\n" % i for i in range(12_000))
            + ALL
            + b"Crawl-delay: 1\n" * 15_000
        ),
    }
)
"""Files with many records other than rules."""


@dataclass(frozen=True)
class Attack:
    """A file whose patterns differ only near the end of a path."""

    pattern: Callable[[random.Random], str]
    unit: str
    start: str = ""
    """The start of the path. ``unit`` is repeated after it."""
    field: str = "Disallow:"

    @cached_property
    def body(self) -> bytes:
        """As many patterns as fit into a file. Few tests use it, and it takes long to make."""
        source = random.Random(9309)
        lines, size = [ALL], len(ALL)
        while size < LIMIT:
            lines.append(f"{self.field}{self.pattern(source)}\n".encode())
            size += len(lines[-1])
        return b"".join(lines[:-1])

    def url(self, length: int) -> str:
        path = "/" + self.start + self.unit * (length // len(self.unit) + 1)
        return "https://example.com" + path[:length]


def sequence(
    head: str, pieces: Sequence[str], number: int, end: str
) -> Callable[[random.Random], str]:
    return lambda source: "*".join([head, *source.choices(pieces, k=number), end])


A_TO_E = "abcde"
PAIRS = [first + second for first in "abcdefgh" for second in A_TO_E]
RUNS = ["a" * length for length in range(1, 12)]
LETTERS = "".join(random.Random(1).choices("abcdefghijklmnop", k=20_000))

ATTACKS = {
    "pieces of a query": Attack(sequence("/", ["?", ":", "/::/", "/", "::"], 6, "cc"), "?:/::/"),
    "permutations": Attack(sequence("/", A_TO_E, 6, "zq"), A_TO_E, "zq"),
    "long permutations": Attack(sequence("/", A_TO_E, 24, "z"), A_TO_E, "z"),
    "permutations of pairs": Attack(sequence("/", PAIRS, 6, "zq"), "".join(PAIRS), "zq"),
    "permutations that allow": Attack(sequence("/", A_TO_E, 6, "zq"), A_TO_E, "zq", "Allow:"),
    "permutations that end": Attack(sequence("/", A_TO_E, 6, "ab$"), A_TO_E),
    "empty pieces": Attack(sequence("/", ["", "a", "b", "", ""], 12, "zq"), A_TO_E, "zq"),
    "dollars": Attack(sequence("/", ["$", "%24", "a"], 6, "zq$"), "a$%24", "zq"),
    "runs": Attack(sequence("/", RUNS, 4, "ab"), "a", "ab"),
    "near misses": Attack(
        lambda source: f"/*{'a' * source.randint(5, 60)}b{'a' * source.randint(5, 60)}*aaaa", "a"
    ),
    "long near misses": Attack(
        lambda source: f"/*{'a' * source.randint(400, 600)}b{'a' * 500}*aaaa", "a"
    ),
    "both forms": Attack(sequence("/*?", ["/", ":", "?", "@", "%2F"], 6, "zq"), "?/:@%2Fa", "zq"),
    "both forms without stars": Attack(
        lambda source: "/?" + "".join(source.choices(["/", ":", "?", "@", "%2F", "a"], k=9)),
        "?/:@%2Fa",
    ),
    "numbers": Attack(
        lambda source: f"/*{source.randint(0, 999)}*{source.randint(0, 999)}*zq",
        "".join(map(str, range(9999))),
        "zq",
    ),
    "keys at the end": Attack(
        lambda source: f"/*{source.randint(0, 9999):04}*x",
        "".join(f"{number:04}" for number in range(10_000)),
        "x",
    ),
    "three letters": Attack(
        lambda source: "*" + "".join(source.choices("abcdefghijklmnop", k=3)) + "*z",
        LETTERS,
        "z",
        "Allow:",
    ),
    "heads": Attack(
        lambda source: "/" + "a" * source.randint(1, 30) + sequence("*", A_TO_E, 6, "z")(source),
        A_TO_E,
        "z" + "a" * 30,
    ),
}
"""A longer path. Every pattern seems to match until its end."""

HEADERS = [
    "a" * 10_000,
    "(" * 10_000,
    ";" * 10_000,
    "(;" * 5_000,
    "a " * 5_000,
    "a/" * 5_000,
    "@." * 5_000,
]

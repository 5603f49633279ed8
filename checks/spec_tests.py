"""The examples and the tests of Google's specification.

The examples are from the tables in "How Google interprets the robots.txt specification". With
``--folder``, a folder that contains google/robotstxt-spec-test, the check also runs the
``*.textproto`` files of these tests. docs/about/conformance.md gives the reason for each of KNOWN.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from scrapy_rep.protocol.robotstxt import RobotsTxt
from testing.harness import Duration, Options, Result, Row

DURATION = Duration(2, 2)

# A pattern, and paths that it matches and does not match.
PATHS = (
    ("/", ("/", "/anything"), ()),
    ("/*", ("/", "/anything"), ()),
    ("/$", ("/",), ("/anything",)),
    (
        "/fish",
        ("/fish", "/fish.html", "/fish/salmon.html", "/fishheads/yummy.html", "/fish.php?id=any"),
        ("/Fish.asp", "/catfish", "/?id=fish", "/desert/fish"),
    ),
    (
        "/fish*",
        ("/fish", "/fish.html", "/fish/salmon.html", "/fishheads", "/fish.php?id=anything"),
        ("/Fish.asp", "/catfish", "/?id=fish", "/desert/fish"),
    ),
    (
        "/fish/",
        ("/fish/", "/fish/?id=anything", "/fish/salmon.htm"),
        ("/fish", "/fish.html", "/animals/fish/", "/Fish/Salmon.asp"),
    ),
    (
        "/*.php",
        (
            "/index.php",
            "/folder/filename.php?parameters",
            "/folder/any.php.file.html",
            "/file.php/",
        ),
        ("/", "/windows.PHP"),
    ),
    (
        "/*.php$",
        ("/filename.php", "/folder/filename.php"),
        ("/filename.php?parameters", "/filename.php/", "/filename.php5", "/windows.PHP"),
    ),
    (
        "/fish*.php",
        ("/fish.php", "/fishheads/catfish.php?parameters"),
        ("/Fish.PHP",),
    ),
)

# Two rules, a path, and whether it is allowed.
PRECEDENCE = (
    ("Allow: /p", "Disallow: /", "/page", True),
    ("Allow: /folder", "Disallow: /folder", "/folder/page", True),
    ("Allow: /page", "Disallow: /*.htm", "/page.htm", False),
    ("Allow: /page", "Disallow: /*.ph", "/page.php5", True),
    ("Allow: /$", "Disallow: /", "/", True),
    ("Allow: /$", "Disallow: /", "/page.htm", False),
)

# Which group a crawler follows: it is the only one that disallows.
GROUPS = ("googlebot-news", "*", "googlebot")
FOLLOWED = (
    (("Googlebot-News",), "googlebot-news"),
    (("Googlebot",), "googlebot"),
    (("Googlebot-Images", "Googlebot"), "googlebot"),
    (("Otherbot",), "*"),
)

KNOWN = {
    ("non-ascii-paths", "FooBot", "http://foo.bar/foo/bar/ツ"),
    ("non-ascii-paths", "FooBot", "http://foo.bar/foo/bar/baz"),
    ("user-agent-name", "Foo Bar", "http://foo.bar/x/y"),
    ("327748", "asdfbot", "http://m.example.com/robots.txt"),
    ("369883", "BarBot", "http://example.com/robots.txt"),
    ("369883", "AB", "http://example.com/robots.txt"),
    ("369883", "AB42bot", "http://example.com/foo/bar"),
    ("369883", "AB42bot", "http://example.com/"),
    ("860237", "XYZ", "http://example.com/robots.txt"),
}

_TOKEN = re.compile(r'#[^\n]*|"((?:[^"\\]|\\.)*)"|([A-Za-z_]+)|([\[\]{}:,])')
_ESCAPE = re.compile(r"\\(x[0-9A-Fa-f]{1,2}|[0-7]{1,3}|.)", re.DOTALL)
_LETTERS = {"n": 10, "r": 13, "t": 9, "v": 11, "f": 12, "a": 7, "b": 8}


class Expectation(NamedTuple):
    """One question and the answer that is expected."""

    file: str
    body: bytes
    url: str
    agent: str | tuple[str, ...]
    allowed: bool


def expectations(path: Path) -> Iterator[Expectation]:
    """Yield the expectations of a file. Only its fields are read, not its messages."""
    field = ""
    values: dict[str, bytes] = {}
    for match in _TOKEN.finditer(path.read_text("utf-8")):
        text, name, _ = match.groups()
        if text is not None:
            values[field] = values.get(field, b"") + unescaped(text)
        elif name in ("ALLOWED", "DISALLOWED"):
            url, agent = values["testurl"].decode(), values["useragent"].decode()
            body = values.get("robotstxt", b"")
            yield Expectation(path.stem, body, url, agent, name == "ALLOWED")
        elif name:
            field = name
            values[field] = b""


def unescaped(text: str) -> bytes:
    """Return the octets of a string literal."""

    def octet(match: re.Match[str]) -> bytes:
        escape = match[1]
        if escape[0] == "x":
            return bytes([int(escape[1:], 16)])
        if escape.isdecimal():
            return bytes([int(escape, 8)])
        return bytes([_LETTERS.get(escape, ord(escape))])

    pieces = []
    end = 0
    for match in _ESCAPE.finditer(text):
        pieces += [text[end : match.start()].encode(), octet(match)]
        end = match.end()
    return b"".join([*pieces, text[end:].encode()])


def examples() -> Iterator[Expectation]:
    """Yield the examples of the specification."""
    for pattern, matching, others in PATHS:
        body = f"User-agent: *\nDisallow: {pattern}\n"
        for path in (*matching, *others):
            yield Expectation("paths", body.encode(), path, "examplebot", path in others)
    for first, second, path, allowed in PRECEDENCE:
        body = f"User-agent: *\n{first}\n{second}\n"
        yield Expectation("precedence", body.encode(), path, "examplebot", allowed)
    for agents, followed in FOLLOWED:
        for group in GROUPS:
            body = "".join(
                f"User-agent: {name}\nDisallow: {'/' if name == group else ''}\n" for name in GROUPS
            )
            yield Expectation("groups", body.encode(), "/", agents, group != followed)


def run(options: Options) -> Result:
    """Count the expectations that are not met."""
    folder = options.folder
    published = [
        expected
        for path in (sorted(folder.rglob("*.textproto")) if folder else ())
        for expected in expectations(path)
    ]
    rows = []
    details = []
    for name, expected in (("examples", list(examples())), ("published tests", published)):
        differing = list(filter(None, map(_difference, expected)))
        unknown = [said for said, known in differing if not known]
        if expected:
            rows.append(Row(f"{name} of the specification", len(expected), "questions"))
            rows.append(Row("not met, and known", len(differing) - len(unknown), "questions"))
            rows.append(Row("not met", len(unknown), "questions", 0))
        details += unknown
    return Result(rows, details)


def _difference(expected: Expectation) -> tuple[str, bool] | None:
    """Return a wrong answer, and whether it is known."""
    # Four of the published tests have an empty URL. It is not a URL, and is read as "/".
    verdict = RobotsTxt.parse(expected.body).verdict(expected.url or "/", expected.agent)
    if verdict.allowed == expected.allowed:
        return None
    agent = expected.agent if isinstance(expected.agent, str) else expected.agent[0]
    said = f"{expected.file} {agent} {expected.url} -> {verdict} {expected.body!r}"
    return said, (expected.file, agent, expected.url) in KNOWN

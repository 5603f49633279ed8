"""Run Google's published tests of its specification (google/robotstxt-spec-test).

    python -m benchmarks.spec_tests FOLDER

FOLDER is that repository, or its folder CTC, with the ``*.textproto`` files. What differs is
printed; docs/conformance.md says of each why.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from scrapy_rep.protocol.robotstxt import RobotsTxt

if TYPE_CHECKING:
    from collections.abc import Iterator

_TOKEN = re.compile(r'#[^\n]*|"((?:[^"\\]|\\.)*)"|([A-Za-z_]+)|([\[\]{}:,])')
_ESCAPE = re.compile(r"\\(x[0-9A-Fa-f]{1,2}|[0-7]{1,3}|.)", re.DOTALL)
_LETTERS = {"n": 10, "r": 13, "t": 9, "v": 11, "f": 12, "a": 7, "b": 8}


class Expectation(NamedTuple):
    """One question and the answer that is expected."""

    file: str
    body: bytes
    url: str
    agent: str
    allowed: bool


def expectations(path: Path) -> Iterator[Expectation]:
    """What a file of the tests expects: fields are read, messages are not told apart."""
    field = ""
    values: dict[str, bytes] = {}
    for match in _TOKEN.finditer(path.read_text("utf-8")):
        text, name, _ = match.groups()
        if text is not None:
            values[field] = values.get(field, b"") + unescaped(text)
        elif name in ("ALLOWED", "DISALLOWED"):
            url, agent = values["testurl"].decode(), values["useragent"].decode()
            body = values.get("robotstxt", b"")
            yield Expectation(path.name, body, url, agent, name == "ALLOWED")
        elif name:
            field = name
            values[field] = b""


def unescaped(text: str) -> bytes:
    """A string literal's octets."""

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


def main() -> int:
    """Print what differs; 1 if anything does."""
    arguments = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    arguments.add_argument("folder", type=Path)
    folder = arguments.parse_args().folder
    count = 0
    differing = []
    for path in sorted(folder.rglob("*.textproto")):
        for expected in expectations(path):
            count += 1
            verdict = RobotsTxt.parse(expected.body).verdict(expected.url, expected.agent)
            if verdict.allowed != expected.allowed:
                differing.append((expected, verdict))
    print(f"{len(differing)} of {count} expectations differ")
    for expected, verdict in differing:
        print(f"  {expected.file}: {expected.agent} {expected.url}")
        print(f"    expected {'allow' if expected.allowed else 'disallow'}, got {verdict}")
        print(f"    {expected.body!r}")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())

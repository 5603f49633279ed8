"""Measures the shapes of robots.txt files: of files, groups, rules and lines.

    python -m testing.proportions FOLDER

prints the numbers of a folder of real files in the form of :mod:`testing.generated`.
:mod:`testing.corpus` describes the folder. The numbers contain no text of the files.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

_T = TypeVar("_T")

PERCENTILES = (0.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.9, 100.0)

BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Proportions:
    """Shares are between 0 and 1; a tuple has the values at PERCENTILES.

    Files: everything that servers sent as robots.txt, which may be a page of HTML. All but
    ``html``, ``empty``, ``size`` and ``repeated`` is of files that are neither.
    """

    # Of all files
    size: tuple[float, ...]
    """Octets."""
    html: float
    empty: float
    repeated: float
    """Files with the same content as another."""
    # Of files
    byte_order_mark: float
    crlf: float
    cr_only: float
    mixed_line_ends: float
    no_last_line_end: float
    non_ascii: float
    not_utf8: float
    wildcard_group: float
    """Files with a group for ``*``."""
    crawl_delay: float
    noindex: float
    host: float
    sitemaps: tuple[float, ...]
    """Lines of a file."""
    groups: tuple[float, ...]
    """Runs of user-agent lines of a file."""
    largest_group: tuple[float, ...]
    """Rules of the group that has most."""
    # Of groups
    agents: tuple[float, ...]
    """User-agent lines of a group."""
    other_groups: tuple[float, ...]
    """Rules of each group but the largest of its file."""
    # Of lines
    blank: float
    comments: float
    trailing_comments: float
    indented: float
    no_space_after_colon: float
    unreadable: float
    """Lines without a colon that are neither blank nor a comment."""
    # Of user-agent lines for others than everyone
    odd_agents: float
    """With other characters than the letters, ``_`` and ``-`` of RFC 9309."""
    # Of rules
    allow: float
    no_pattern: float
    root: float
    """The whole site: ``/``."""
    no_slash: float
    """Patterns that begin with neither ``/`` nor ``*``."""
    leading_star: float
    star: float
    end: float
    """Patterns that end with ``$``."""
    query: float
    escape: float
    non_ascii_pattern: float
    pattern: tuple[float, ...]
    """Octets of a pattern that is neither nothing nor ``/``."""


def measure(files: Iterable[bytes]) -> Proportions:
    """Return the proportions of these files."""
    bodies = list(files)
    real = [body for body in bodies if body.strip() and not is_html(body)]
    shapes = [_Shape(body) for body in real]
    rules = [rule for shape in shapes for rule in shape.rules]
    lines = sum((shape.lines for shape in shapes), Counter[str]())
    patterns = [value for _, value in rules]
    groups = [shape.groups for shape in shapes]
    counts = [sorted(rules for _, rules in each) for each in groups]

    def line(kind: str, of: str = "line") -> float:
        return round(lines[kind] / max(1, lines[of]), 4)

    return Proportions(
        size=_quantiles(map(len, bodies)),
        html=_share(bodies, is_html),
        empty=_share(bodies, lambda body: not body.strip()),
        repeated=round(1 - len(set(bodies)) / len(bodies), 4),
        byte_order_mark=_share(real, lambda body: body.startswith(BOM)),
        crlf=_share(real, lambda body: body.count(b"\r\n") * 2 > body.count(b"\n")),
        cr_only=_share(real, lambda body: b"\r" in body and b"\n" not in body),
        mixed_line_ends=_share(real, lambda body: 0 < body.count(b"\r\n") < body.count(b"\n")),
        no_last_line_end=_share(real, lambda body: not body.endswith((b"\r", b"\n"))),
        non_ascii=_share(real, lambda body: not body.removeprefix(BOM).isascii()),
        not_utf8=_share(real, lambda body: not _is_utf8(body)),
        wildcard_group=_share(shapes, lambda shape: shape.records["everyone"] > 0),
        crawl_delay=_share(shapes, lambda shape: shape.records["crawl-delay"] > 0),
        noindex=_share(shapes, lambda shape: shape.records["noindex"] > 0),
        host=_share(shapes, lambda shape: shape.records["host"] > 0),
        sitemaps=_quantiles(shape.records["sitemap"] for shape in shapes),
        groups=_quantiles(map(len, groups)),
        largest_group=_quantiles(each[-1] for each in counts if each),
        agents=_quantiles(agents for each in groups for agents, _ in each),
        other_groups=_quantiles(rules for each in counts for rules in each[:-1]),
        blank=line("blank"),
        comments=line("comment"),
        trailing_comments=line("trailing comment"),
        indented=line("indented"),
        no_space_after_colon=line("no space after colon"),
        unreadable=line("unreadable"),
        odd_agents=line("odd agent", "named agent"),
        allow=_share(rules, lambda rule: rule[0]),
        no_pattern=_share(patterns, lambda value: not value),
        root=_share(patterns, lambda value: value == b"/"),
        no_slash=_share(patterns, lambda value: value[:1] not in (b"", b"/", b"*")),
        leading_star=_share(patterns, lambda value: value.startswith(b"*")),
        star=_share(patterns, lambda value: b"*" in value),
        end=_share(patterns, lambda value: value.endswith(b"$")),
        query=_share(patterns, lambda value: b"?" in value),
        escape=_share(patterns, lambda value: b"%" in value),
        non_ascii_pattern=_share(patterns, lambda value: not value.isascii()),
        pattern=_quantiles(len(value) for value in patterns if len(value) > 1),
    )


def is_html(body: bytes) -> bool:
    """Whether a server sent an HTML page as robots.txt."""
    return body.removeprefix(BOM).lstrip().startswith(b"<")


def _is_utf8(body: bytes) -> bool:
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True


def _share(things: Sequence[_T], holds: Callable[[_T], bool]) -> float:
    return round(sum(map(holds, things)) / max(1, len(things)), 4)


def _quantiles(values: Iterable[float]) -> tuple[float, ...]:
    ordered = sorted(values) or [0]
    last = len(ordered) - 1
    return tuple(ordered[round(last * percentile / 100)] for percentile in PERCENTILES)


class _Shape:
    """One file, read in a simple way: only its form matters."""

    def __init__(self, body: bytes) -> None:
        self.groups: list[tuple[int, int]] = []
        """User-agent lines and rules of each."""
        self.rules: list[tuple[bool, bytes]] = []
        self.records: Counter[str] = Counter()
        self.lines: Counter[str] = Counter()
        self._naming = False
        for line in re.split(rb"\r\n|\r|\n", body.removeprefix(BOM)):
            self._read(line)

    def _read(self, line: bytes) -> None:
        self.lines["line"] += 1
        content, _, comment = line.partition(b"#")
        if not line.strip():
            self.lines["blank"] += 1
        elif not content.strip():
            self.lines["comment"] += 1
        elif b":" not in content:
            self.lines["unreadable"] += 1
        else:
            self.lines["trailing comment"] += bool(comment)
            self.lines["indented"] += line[:1] in (b" ", b"\t")
            self.lines["no space after colon"] += bool(re.match(rb"[^:]*:\S", content))
            field, value = content.split(b":", 1)
            self._record(field.strip().lower().decode("latin-1"), value.strip())

    def _record(self, field: str, value: bytes) -> None:
        self.records[field] += 1
        if field == "user-agent":
            if not self._naming:
                self.groups.append((0, 0))
            self._naming = True
            agents, rules = self.groups[-1]
            self.groups[-1] = (agents + 1, rules)
            if value == b"*":
                self.records["everyone"] += 1
            else:
                self.lines["named agent"] += 1
                self.lines["odd agent"] += not re.fullmatch(rb"[A-Za-z_-]+", value)
        elif field in ("allow", "disallow"):
            self._naming = False
            self.rules.append((field == "allow", value))
            if self.groups:
                agents, rules = self.groups[-1]
                self.groups[-1] = (agents, rules + 1)


if __name__ == "__main__":
    from .corpus import read_files

    measured = measure(read_files(Path(sys.argv[1])).values())
    for each in fields(measured):
        number = getattr(measured, each.name)
        sys.stdout.write(f"{each.name}={number},\n")

"""The lines of a part file: what a crawl writes while it runs.

    part   = head *record
    head   = {"type": "part", "version": 1, "run": Run, "limits": Limits}
    record = {"type": "origin", …OriginReport}
           / {"type": "host", …HostPace}
           / {"type": "file", "sha256": …, …RobotsFile}
           / {"type": "crawl", …Report without origins, hosts and files}

Each is one line of JSON, without the fields that have their default. A later record replaces an
earlier one about the same origin, host, file or crawl. A process that is killed may leave a last
line that is cut: the lines before it are used.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .codec import RecordError, from_json, to_text
from .model import VERSION, HostPace, Limits, OriginReport, Report, RobotsFile, Run

if TYPE_CHECKING:
    from collections.abc import Iterator

PART = "part"
"""The value of ``type`` in the first line of a part file."""


def head(run: Run, limits: Limits) -> str:
    """Return the first record of a part file."""
    text = f'{{"version":{VERSION},"run":{to_text(run)},"limits":{to_text(limits)}}}'
    return _record(PART, text)


def origin_record(origin: OriginReport) -> str:
    """Return the record of an origin."""
    return _record("origin", to_text(origin))


def host_record(host: HostPace) -> str:
    """Return the record of a host."""
    return _record("host", to_text(host))


def file_record(sha256: str, file: RobotsFile) -> str:
    """Return the record of a robots.txt file."""
    return _record("file", f'{{"sha256":{json.dumps(sha256)},{to_text(file)[1:]}')


def crawl_record(crawl: Report) -> str:
    """Return the record of the crawl: a report without origins, hosts and files."""
    return _record("crawl", to_text(crawl))


def _record(kind: str, text: str) -> str:
    """Return a line: an object that has members, with its type before them."""
    return f'{{"type":"{kind}",{text[1:]}\n'


def parse_part(first: dict[str, Any], rest: bytes) -> Report:
    """Return the report that a part file has.

    ``first`` is its head, and ``rest`` the octets after the line of the head. Raises
    :class:`~.codec.RecordError` for an unusable head. Unusable lines are skipped, and
    :attr:`~.model.Run.damage` names them.
    """
    run = from_json(Run, first.get("run"))
    part = _Part(Report(from_json(Limits, first.get("limits")), [run]))
    for number, line in _lines(rest):
        try:
            part.add(json.loads(line))
        except (ValueError, RecursionError):
            part.damaged.append(number)
    return part.report()


def _lines(rest: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the number of each line, and the line. The last one has no LF if it is cut."""
    for number, line in enumerate(rest.split(b"\n"), start=2):
        if line:
            yield number, line


@dataclass(slots=True)
class _Part:
    """What the lines have said so far."""

    crawl: Report
    origins: dict[str, OriginReport] = field(default_factory=dict)
    hosts: dict[str, HostPace] = field(default_factory=dict)
    files: dict[str, RobotsFile] = field(default_factory=dict)
    damaged: list[int] = field(default_factory=list)

    def add(self, record: object) -> None:
        """Add a record. One of an unknown type is ignored. Raises RecordError."""
        if not isinstance(record, dict):
            raise RecordError("it is no JSON object")
        match record.get("type"):
            case "origin":
                origin = from_json(OriginReport, record)
                self.origins[origin.origin] = origin
            case "host":
                host = from_json(HostPace, record)
                self.hosts[host.host] = host
            case "file":
                self.files[str(record.get("sha256"))] = from_json(RobotsFile, record)
            case "crawl":
                crawl = from_json(Report, record)
                if len(crawl.runs) != 1:
                    raise RecordError("a part is of one run")
                self.crawl = crawl

    def report(self) -> Report:
        crawl = self.crawl
        crawl.origins, crawl.hosts = list(self.origins.values()), list(self.hosts.values())
        crawl.files = self.files
        if self.damaged:
            more = f" and {len(self.damaged) - 1} more" if len(self.damaged) > 1 else ""
            crawl.runs[0].damage = f"line {self.damaged[0]}{more} cannot be read"
        return crawl

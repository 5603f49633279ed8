from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from scrapy_rep.protocol.verdict import Reason, Rule, Verdict
from scrapy_rep.reports.model import Report
from scrapy_rep.reports.reading import ReportError, document, read_report, read_reports

from .samples import NOW, fetched, part, recorder, sent

if TYPE_CHECKING:
    from scrapy_rep.reports.recorder import CrawlRecorder

ALLOWED = Verdict(True, Reason.RULES, None, "*")
DENIED = Verdict(False, Reason.RULES, Rule(False, "/a", 2), "*")


def crawled(run_id: str = "run", now: float = NOW, pages: int = 3) -> CrawlRecorder:
    made = recorder(run_id, now)
    for host in ("http://a.example", "http://b.example"):
        fetched(made, host)
        for number in range(pages):
            sent(made, f"{host}/{run_id}/{number}", ALLOWED)
        made.dropped(f"{host}/a", DENIED)
    return made


def write(folder: Path, name: str, octets: bytes) -> Path:
    path = folder / name
    path.write_bytes(octets)
    return path


def as_json(made: CrawlRecorder) -> bytes:
    return json.dumps(document(made.report())).encode()


@pytest.mark.parametrize("octets_of", [part, as_json])
def test_a_part_and_a_json_report_have_the_same_report(tmp_path: Path, octets_of: object) -> None:
    made = crawled()
    assert callable(octets_of)
    assert read_report(write(tmp_path, "one", octets_of(made))) == made.report()


def test_later_lines_of_a_part_replace_earlier_ones(tmp_path: Path) -> None:
    made = crawled()
    octets = part(made)
    sent(made, "http://a.example/later", ALLOWED)
    later = b"".join(json.dumps(each).encode() + b"\n" for each in made.changes())
    assert read_report(write(tmp_path, "one.part", octets + later)) == made.report()


def test_a_part_that_is_cut_anywhere_gives_what_is_whole(tmp_path: Path) -> None:
    made = crawled()
    octets = part(made)
    whole_head = octets.index(b"\n")
    for end in range(whole_head, len(octets), 7):
        notes: list[str] = []
        report = read_reports([write(tmp_path, "one.part", octets[:end])], notes.append)
        lines = octets[:end].count(b"\n")
        is_cut = octets[:end].rpartition(b"\n")[2] not in (b"", octets[:whole_head])
        is_whole_line = octets[end : end + 1] == b"\n"
        assert len(report.origins) <= 2
        if is_cut and not is_whole_line:
            assert report.runs[0].damage == f"line {lines + 1} cannot be read"
            assert "is damaged" in notes[0]
        else:
            assert notes == []


def test_a_broken_line_does_not_hide_the_others(tmp_path: Path) -> None:
    lines = part(crawled()).split(b"\n")
    lines[1:1] = [
        b"\xff\x00",
        b"[]",
        b'{"type":"origin"}',
        b'{"type":"later form"}',
        b"[" * 100_000,
    ]
    report = read_report(write(tmp_path, "one.part", b"\n".join(lines)))
    assert report.runs[0].damage == "line 2 and 3 more cannot be read"
    assert report.totals.sent == 6
    assert len(report.origins) == 2


def test_two_runs_add_up(tmp_path: Path) -> None:
    first = write(tmp_path, "1", part(crawled("one", NOW, pages=2)))
    second = write(tmp_path, "2", as_json(crawled("two", NOW + 100, pages=7)))
    for paths in ([first, second], [second, first]):
        report = read_reports(paths)
        assert [run.id for run in report.runs] == ["one", "two"]
        assert report.totals.sent_allowed == 2 * 2 + 2 * 7
        assert report.totals.dropped_for == {"rules": 4}
        assert sum(origin.counts.sent for origin in report.origins) == 18
        origin = report.origins[0]
        assert [version.fetches for version in origin.versions] == [2]  # the same file
        allowed, denied = origin.deciding
        assert (allowed.sent, len(allowed.examples)) == (9, 5)
        assert (denied.dropped, denied.examples) == (2, ["http://a.example/a"])
        (host, _) = report.hosts
        assert host.requests == 9
        assert host.gaps.count == 1 + 6  # none between the runs
        assert len(report.files) == 1


def test_the_file_of_a_merged_report_can_be_merged_again(tmp_path: Path) -> None:
    paths = [
        write(tmp_path, name, part(crawled(name, NOW + number)))
        for number, name in enumerate(("one", "two", "three"))
    ]
    first = read_reports(paths[:2])
    merged = write(tmp_path, "merged", json.dumps(document(first)).encode())
    notes: list[str] = []
    assert read_reports([*paths[:2], merged], notes.append) == read_reports(paths[:2])
    assert [Path(note.split(" ")[0]).name for note in sorted(notes)] == ["one", "two"]
    assert read_reports([merged, paths[2]]) == read_reports(paths)


def test_the_latest_file_of_a_run_counts(tmp_path: Path) -> None:
    made = crawled()
    early = write(tmp_path, "early", part(made))
    made.clock.now += 10  # type: ignore[attr-defined]
    sent(made, "http://a.example/later", ALLOWED)
    late = write(tmp_path, "late", part(made))
    notes: list[str] = []
    for paths in ([early, late], [late, early]):
        assert read_reports(paths, notes.append).totals.sent == 7
    assert notes == [f"{early} is not used: another file has the same run"] * 2


def test_runs_that_overlap_in_part_cannot_be_added(tmp_path: Path) -> None:
    paths = [write(tmp_path, name, part(crawled(name))) for name in ("one", "two", "three")]
    for name, pair in (("x", paths[:2]), ("y", paths[1:])):
        write(tmp_path, name, json.dumps(document(read_reports(pair))).encode())
    with pytest.raises(ReportError, match="some, but not all runs of another file"):
        read_reports([tmp_path / "x", tmp_path / "y"])


@pytest.mark.parametrize(
    ("octets", "problem"),
    [
        (b"", "neither a JSON report nor a part file"),
        (b"\xff\xfe\x00", "neither a JSON report nor a part file"),
        (b"[" * 200_000, "neither a JSON report nor a part file"),
        (b"{}", "neither a JSON report nor a part file"),
        (b'{"type":"report","version":2}', "its version is 2"),
        (b'{"type":"part"}\n', "its version is None"),
        (b'{"type":"part","version":1}\n', "it must be of the type dict"),
        (b'{"type":"report","version":1}', "limits is missing"),
    ],
)
def test_another_file_is_refused_by_name(tmp_path: Path, octets: bytes, problem: str) -> None:
    path = write(tmp_path, "other", octets)
    with pytest.raises(ReportError, match=f"other is no report of a crawl: .*{problem}"):
        read_report(path)


def test_a_report_without_a_run_is_refused(tmp_path: Path) -> None:
    empty = document(Report(crawled().report().limits))
    with pytest.raises(ReportError, match="it has no run"):
        read_report(write(tmp_path, "empty", json.dumps(empty).encode()))


def test_a_file_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(ReportError, match=r"cannot read .*missing: No such file"):
        read_report(tmp_path / "missing")
    with pytest.raises(ReportError, match=r"cannot read .*null"):
        read_report("a\0b")
    with pytest.raises(ReportError, match="no file to read"):
        read_reports([])

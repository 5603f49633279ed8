"""Event logs and JSON reports, whole and damaged."""

from __future__ import annotations

import gzip
import json
import random
import sqlite3
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock

import msgspec
import pytest

from scrapy_rep.pages.access_terms import AccessTerms
from scrapy_rep.pages.directives import PageDirectives
from scrapy_rep.protocol.verdict import Reason, Rule, Verdict
from scrapy_rep.reports.event_log import BUFFER_SIZE
from scrapy_rep.reports.pages import report_page
from scrapy_rep.reports.queries import Database
from scrapy_rep.reports.reading import MAX_LINE, ReportError, read_reports
from scrapy_rep.reports.records import Limits, Report, json_text, utc
from testing.hostile_texts import ATTACKS

from .samples import NOW, SampleLog, fetched, log, sent

if TYPE_CHECKING:
    from pathlib import Path

ALLOWED = Verdict(True, Reason.RULES, None, "*")
DENIED = Verdict(False, Reason.RULES, Rule(False, "/a", 2), "*")


def crawled(run_id: str = "run", now: float = NOW, pages: int = 3) -> SampleLog:
    made = log(run_id, now)
    for host in ("http://a.example", "http://b.example"):
        fetched(made, host)
        made.flush()
        for number in range(pages):
            made.clock.now += 1
            sent(made, f"{host}/{run_id}/{number}", ALLOWED)
        made.dropped(f"{host}/a", DENIED)
    made.end({"request_count": 1}, "finished")
    return made


def read(*paths: Path) -> tuple[Report, list[str]]:
    notes: list[str] = []
    report = read_reports(paths, notes.append)
    return msgspec.structs.replace(report, generated_at=utc(NOW)), notes


def test_a_log_without_requests_has_a_report_that_can_be_read(tmp_path: Path) -> None:
    report, _ = read(log().write(tmp_path / "one.events.gz"))
    (tmp_path / "one.json").write_text(json_text(report))
    assert read(tmp_path / "one.json") == (report, [])
    assert report.limits == Limits()


def test_a_log_and_a_json_report_have_the_same_report(tmp_path: Path) -> None:
    events = crawled().write(tmp_path / "one.events.gz")
    report, notes = read(events)
    (tmp_path / "one.json").write_text(json_text(report))
    assert read(tmp_path / "one.json") == (report, notes) == (report, [])
    assert (report.runs[0].finish_reason, report.runs[0].ended_at) == ("finished", utc(NOW + 6))


def test_a_log_that_is_cut_anywhere_gives_what_is_whole(tmp_path: Path) -> None:
    made = crawled()
    octets = made.octets()
    whole = {sum(map(len, made.file.parts[: number + 1])) for number in range(len(made.file.parts))}
    first = len(made.file.parts[0])
    path = tmp_path / "one.events.gz"
    sums = []
    for end in sorted({*range(first, len(octets), 5), *whole}):
        path.write_bytes(octets[:end])
        report, notes = read(path)
        sums.append(report.totals.sent)
        if end in whole:
            assert notes == []
        else:
            assert report.runs[0].damage is not None
            assert "is damaged: the end after line" in notes[0]
    assert sums == sorted(sums)
    assert {0, 3} <= set(sums)


def test_a_broken_line_does_not_hide_the_others(tmp_path: Path) -> None:
    made = crawled()
    lines = gzip.decompress(made.octets()).split(b"\n")
    lines[1:1] = [
        b"\xff\x00",
        b"[]",
        b'["request","sent",-1,"a","b",0]',
        b'["later event",1]',
        b"[" * 100_000,
        b'["request","sent",1,"' + b"x" * 400 + b'","b",0]',
        b'["request","dropped",1,"a","b",0,"no known reason"]',
    ]
    path = tmp_path / "one.events.gz"
    path.write_bytes(gzip.compress(b"\n".join(lines)))
    report, _ = read(path)
    assert report.runs[0].damage == "line 2 and 6 more cannot be read"
    assert report.totals.sent == 6
    assert len(report.origins) == 2


def test_a_log_that_was_changed_anywhere_is_read_or_refused(tmp_path: Path) -> None:
    chance = random.Random(1)
    made = crawled()
    made.page("http://a.example/", PageDirectives(noindex=True, max_snippet=5), {"search": False})
    made.terms("http://a.example/", AccessTerms(payment_required=True))
    octets = gzip.decompress(made.octets())
    path = tmp_path / "one.events.gz"
    for _ in range(300):
        changed = bytearray(octets)
        for _ in range(3):
            changed[chance.randrange(len(changed))] = chance.choice(b'09eE-+.",[]{}:nt\x00\xff')
        path.write_bytes(gzip.compress(changed))
        try:
            report, _ = read(path)
        except ReportError:
            continue
        json_text(report)


def any_event(chance: random.Random) -> list[Any]:
    """An event of another program: whatever the types of its fields allow."""
    text, other = (chance.choice([*ATTACKS, "a\0b", "null", "", "1.5", "http://a"]) for _ in "12")
    at = chance.choice([0, 5.5, 1_795_336_200.123, 253_402_200_000.0])
    number, seconds = chance.choice([None, 0, 304, 1 << 53]), chance.choice([0, 0.5, 1e12])
    flag, origin = chance.choice([None, True, False]), chance.choice([text, "http://a"])
    kind = chance.choice(["sent", "robots.txt", "dropped", "final-url", "waited"])
    reason = chance.choice(["", "rules", "local-rule", "unchecked"])
    verdict = [reason, flag, text, flag, chance.choice([None, other]), number, other]
    said = chance.choice(["directive", "usage", "terms", "license"])
    fetched = [text, other, text, number, other, [text, other], text, other, number, at]
    return chance.choice(
        [
            ["request", kind, at, origin, other, seconds, *verdict, seconds, seconds],
            ["fetch", at, origin, at, *fetched],
            ["file", text, 1 << 53, other],
            ["pace", at, origin, other, seconds, seconds],
            ["page", said, at, origin, other, text, other, bool(flag), bool(number)],
        ]
    )


def test_a_log_of_another_program_has_a_report(tmp_path: Path) -> None:
    chance = random.Random(1)
    path = tmp_path / "one.events.gz"
    start = gzip.decompress(log().octets())
    for _ in range(200):
        lines = [json.dumps(any_event(chance)).encode() + b"\n" for _ in range(20)]
        path.write_bytes(gzip.compress(start + b"".join(lines)))
        report, _ = read(path)
        text = json_text(report)
        assert text.isascii()
        assert msgspec.json.decode(text, type=Report) == report
        report_page(report)


def test_a_line_without_an_end_is_not_kept(tmp_path: Path) -> None:
    made = crawled()
    path = tmp_path / "one.events.gz"
    path.write_bytes(made.octets() + gzip.compress(b"x" * 5 * MAX_LINE))
    report, notes = read(path)
    assert report.totals.sent == 6
    assert "cannot be read" in notes[0]


def test_two_runs_add_up(tmp_path: Path) -> None:
    first = crawled("one", NOW, pages=2).write(tmp_path / "1")
    second = crawled("two", NOW + 100, pages=7).write(tmp_path / "2")
    for paths in ([first, second], [second, first]):
        report, _ = read(*paths)
        assert [run.id for run in report.runs] == ["one", "two"]
        assert report.totals.sent_allowed == 2 * 2 + 2 * 7
        assert report.totals.dropped_for == {"rules": 4}
        assert sum(origin.counts.sent for origin in report.origins) == 18
        origin = report.origins[0]
        assert [version.fetches for version in origin.versions] == [2]  # the same file
        assert origin.versions[0].first_at < origin.versions[0].last_at
        allowed, denied = origin.deciding
        assert (allowed.sent, len(allowed.examples)) == (9, 5)
        assert (denied.dropped, denied.examples) == (2, ["http://a.example/a"])
        (host, _) = report.hosts
        assert host.requests == 9
        assert host.gaps.count == 1 + 6  # none between the runs
        assert len(report.files) == 1


def test_a_rule_belongs_to_the_file_of_its_run(tmp_path: Path) -> None:
    paths = []
    for number in (1, 2):
        made = log(str(number), NOW)  # at the same time
        fetched(made, "http://a.example", b"User-agent: *\nDisallow: /a\n# %d" % number)
        made.dropped("http://a.example/a", DENIED)
        paths.append(made.write(tmp_path / str(number)))
    report, _ = read(*paths)
    rows = report.origins[0].deciding
    assert [row.dropped for row in rows] == [1, 1]
    assert len({row.sha256 for row in rows}) == 2


def test_the_same_run_counts_once(tmp_path: Path) -> None:
    made = crawled()
    paths = [made.write(tmp_path / name) for name in "ab"]
    report, notes = read(*paths)
    assert report.totals.sent == 6
    assert notes == [f"{paths[1]} is not used: another file has the same run"]


def test_what_a_full_disk_did_not_take_is_stated(tmp_path: Path) -> None:
    made = crawled()
    made.file.is_full = True
    sent(made, "http://a.example/lost", ALLOWED)
    made.flush()
    made.file.is_full = False
    sent(made, "http://a.example/later", ALLOWED)
    report, notes = read(made.write(tmp_path / "one"))
    assert report.totals.sent == 7
    assert report.runs[0].damage == "the disk did not take 1 events"
    assert len(notes) == 1


def test_a_loss_is_stated_by_a_run_that_is_longer_than_the_buffer(tmp_path: Path) -> None:
    made = log()
    path = tmp_path / "one"
    made.flush()
    made.run.user_agent = "x" * BUFFER_SIZE
    made.file.is_full = True
    sent(made, "http://a.example/lost", ALLOWED)
    made.flush()
    made.file.is_full = False
    report, _ = read(made.write(path))
    assert report.runs[0].damage == "the disk did not take 1 events"


@pytest.mark.parametrize("error", [msgspec.DecodeError("not JSON"), sqlite3.Error("not JSON")])
def test_events_without_a_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setattr(Database, "report", Mock(side_effect=error))
    with pytest.raises(ReportError, match="the events make no report: not JSON"):
        read(log().write(tmp_path / "one"))


@pytest.mark.parametrize(
    "octets",
    [
        b"",
        b"\xff\xfe\x00",
        b"[" * 200_000,
        b"{}",
        b'{"type":"report","version":2}',
        b'{"type":"a"}',
    ],
)
def test_another_file_is_refused_by_name(tmp_path: Path, octets: bytes) -> None:
    path = tmp_path / "other"
    path.write_bytes(octets)
    with pytest.raises(ReportError, match="other is no report of a crawl"):
        read_reports([path])
    path.write_bytes(gzip.compress(octets))
    with pytest.raises(ReportError, match=r"other is no report of a crawl|cannot read .*other"):
        read_reports([path])


def test_json_reports_are_not_merged(tmp_path: Path) -> None:
    made = crawled()
    path = tmp_path / "one.json"
    path.write_text(json_text(made.report()))
    with pytest.raises(ReportError, match=r"one\.json is not an event log: .*\.events\.gz"):
        read_reports([made.write(tmp_path / "one.events.gz"), path])


def test_a_file_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(ReportError, match=r"cannot read .*missing: No such file"):
        read_reports([tmp_path / "missing"])
    with pytest.raises(ReportError, match=r"cannot read .*null"):
        read_reports(["a\0b"])
    with pytest.raises(ReportError, match="no file to read"):
        read_reports([])

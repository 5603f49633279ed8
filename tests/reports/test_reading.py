"""Event logs and JSON reports, whole and damaged; the report of the events of a crawl."""

from __future__ import annotations

import gzip
import random
import sqlite3
from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import msgspec
import pytest
from scrapy import Request

from scrapy_rep.origin import Origin
from scrapy_rep.pages.directives import PageDirectives
from scrapy_rep.protocol.access import AccessResult, NotModified, Unavailable, Unreachable
from scrapy_rep.protocol.verdict import Reason, Rule, Verdict
from scrapy_rep.reports.event_log import BUFFER_SIZE
from scrapy_rep.reports.pages import report_page
from scrapy_rep.reports.reading import MAX_LINE, Database, read_reports
from scrapy_rep.reports.records import MAX_NAMES, AskedPace, FileError, Report, json_text, utc
from testing.report_samples import START as NOW
from testing.report_samples import SampleLog, fetched, log, sent

A = "http://a.example"
BODIES = [b"User-agent: *\nDisallow: /a\n", b"User-agent: *\nDisallow: /b\n"]
ALLOWED = Verdict(True, Reason.RULES, None, "*")


def denied(line: int = 2) -> Verdict:
    return Verdict(False, Reason.RULES, Rule(False, "/a", line), "*")


def crawled(run_id: str = "run", now: float = NOW, pages: int = 3) -> SampleLog:
    made = log(run_id, now)
    for host in ("http://a.example", "http://b.example"):
        fetched(made, host)
        made.flush()
        for number in range(pages):
            made.clock.now += 1
            sent(made, f"{host}/{run_id}/{number}", ALLOWED)
        made.disallowed(f"{host}/a", denied())
    made.end({"request_count": 1}, "finished")
    return made


def read(*paths: Path) -> tuple[Report, list[str]]:
    notes: list[str] = []
    report = read_reports(paths, notes.append)
    return msgspec.structs.replace(report, generated_at=utc(NOW)), notes


def test_a_log_that_is_cut_anywhere_gives_what_is_whole(tmp_path: Path) -> None:
    made = crawled()
    data = made.octets()
    whole = {sum(map(len, made.file.parts[: number + 1])) for number in range(len(made.file.parts))}
    first = len(made.file.parts[0])
    path = tmp_path / "one.events.gz"
    sums = []
    for end in sorted({*range(first, len(data), 11), *whole}):
        path.write_bytes(data[:end])
        report, notes = read(path)
        sums.append(report.totals.sent)
        if end in whole:
            assert notes == []
        else:
            assert report.runs[0].damage is not None
            assert "is damaged: the end after line" in notes[0]
    assert sums == sorted(sums)
    assert {0, 3} <= set(sums)


@pytest.mark.parametrize(
    "line",
    [b"\xff\x00", b"[]", b'["request","sent","now","a","b",0]', b'["later event",1]',
     b"[" * 100_000, b"x" * 5 * MAX_LINE],
    ids=["bytes", "no event", "types", "later", "nested", "long"],
)  # fmt: skip
def test_the_lines_before_a_broken_one_are_used(tmp_path: Path, line: bytes) -> None:
    data = crawled().octets()
    path = tmp_path / "one.events.gz"
    path.write_bytes(data + gzip.compress(line) + data)
    report, notes = read(path)
    number = len(gzip.decompress(data).splitlines())
    assert report.runs[0].damage == f"the end after line {number} cannot be read"
    assert report.totals.sent == 6
    assert "is damaged: the end after line" in notes[0]


@pytest.mark.parametrize("field", ["started_at", "written_at", "ended_at"])
@pytest.mark.parametrize("time", ["9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00"])
def test_a_time_beyond_the_calendar_is_damage(tmp_path: Path, field: str, time: str) -> None:
    *lines, last = gzip.decompress(crawled().octets()).splitlines()
    event = msgspec.json.decode(last)
    event[1][field] = time
    data = b"\n".join([*lines, msgspec.json.encode(event)])
    (tmp_path / "one").write_bytes(gzip.compress(data))
    report, _ = read(tmp_path / "one")
    assert report.runs[0].damage == f"the end after line {len(lines)} cannot be read"
    report_page(report)


@pytest.mark.no_cover
def test_a_log_that_was_changed_anywhere_is_read_or_refused(tmp_path: Path) -> None:
    chance = random.Random(1)
    made = crawled()
    made.page("http://a.example/", PageDirectives(noindex=True, max_snippet=5), {"search": False})
    data = gzip.decompress(made.octets())
    path = tmp_path / "one.events.gz"
    for _ in range(100):
        changed = bytearray(data)
        for _ in range(3):
            changed[chance.randrange(len(changed))] = chance.choice(b'09eE-+.",[]{}:nt\x00\xff')
        path.write_bytes(gzip.compress(changed))
        try:
            report, _ = read(path)
        except FileError:
            continue
        json_text(report)
        report_page(report)


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
        assert (host.requests, host.gaps) == (9, 1 + 6)  # none between the runs
        assert len(report.files) == 1


def test_a_rule_belongs_to_the_file_of_its_run(tmp_path: Path) -> None:
    paths = []
    for number in (1, 2):
        made = log(str(number), NOW)  # at the same time
        fetched(made, "http://a.example", b"User-agent: *\nDisallow: /a\n# %d" % number)
        made.disallowed("http://a.example/a", denied())
        made.disallowed("http://a.example/a", Verdict(False, Reason.LOCAL_RULE, None, None, "mine"))
        paths.append(made.write(tmp_path / str(number)))
    report, _ = read(*paths)
    local, first, second = report.origins[0].deciding
    assert (local.dropped, first.dropped, second.dropped) == (2, 1, 1)
    assert local.sha256 is None
    assert first.sha256 != second.sha256


@pytest.mark.parametrize("agent", ["mybot", "x" * BUFFER_SIZE])
def test_what_a_full_disk_did_not_take_is_stated(tmp_path: Path, agent: str) -> None:
    made = crawled()
    made.flush()
    made.run.user_agent = agent  # it is in the line about the loss, too
    made.file.is_full = True
    sent(made, f"{A}/lost", ALLOWED)
    made.flush()
    made.file.is_full = False
    sent(made, f"{A}/later", ALLOWED)
    report, notes = read(made.write(tmp_path / "one"))
    assert report.totals.sent == 7
    assert report.runs[0].damage == "the disk did not take 1 events"
    assert len(notes) == 1


@pytest.mark.parametrize("error", [msgspec.DecodeError("not JSON"), sqlite3.Error("not JSON")])
def test_events_without_a_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setattr(Database, "report", Mock(side_effect=error))
    with pytest.raises(FileError, match="the events make no report: not JSON"):
        read(log().write(tmp_path / "one"))


@pytest.mark.parametrize(
    "data", [b"", b"\xff\xfe\x00", b"[" * 200_000, b'{"type":"report","version":1}']
)
def test_another_file_is_refused_by_name(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "other"
    for content in (data, gzip.compress(data)):
        path.write_bytes(content)
        with pytest.raises(FileError, match=r"cannot read .*other: it is not an event log"):
            read_reports([path])
    with pytest.raises(FileError, match=r"cannot read .*missing: No such file"):
        read_reports([tmp_path / "missing"])
    with pytest.raises(FileError, match="cannot read a\0b"):
        read_reports(["a\0b"])


# The report of events, and its limits


def test_the_counts_stay_complete_beyond_the_most_origins() -> None:
    made = log()
    for number in range(5):
        fetched(made, f"http://{number}.example")
        sent(made, f"http://{number}.example/", ALLOWED)
        made.disallowed(f"http://{number}.example/a", denied(1))
        made.page(f"http://{number}.example/", PageDirectives(noindex=True), {"search": False})
        made.page_dropped(f"http://{number}.example/", ["noindex"])
        made.page_dropped(f"http://{number}.example/", ["search"], is_usage=True)
    made.disallowed("http:///", Verdict(False, Reason.INVALID_HOST))
    report = made.report(origins=2)
    assert (len(report.origins), len(report.hosts)) == (2, 2)
    assert (report.totals.sent, report.totals.dropped) == (5, 6)
    assert (report.left_out.origins, report.left_out.hosts) == (6, 3)
    assert report.left_out.deciding == 0


def test_the_origins_with_problems_come_first() -> None:
    made = log()
    for number, verdict in enumerate([ALLOWED, ALLOWED, ALLOWED, denied(1)]):
        for _ in range(5 - number):
            sent(made, f"http://{number}.example/", verdict)
    fetched(made, "http://1.example", event=Unreachable("reset"))
    names = [origin.host[0] for origin in made.report().origins]
    assert names == ["3", "1", "0", "2"]


def test_the_most_rules() -> None:
    made = log()
    for line in range(1, 6):
        made.disallowed(f"{A}/a", denied(line))
    report = made.report(deciding=3)
    (origin,) = report.origins
    assert [row.rule.line for row in origin.deciding if row.rule] == [1, 2, 3]
    assert origin.deciding_left_out == report.left_out.deciding == 2
    assert origin.counts.dropped_for == {"rules": 5}


def test_a_report_has_no_passwords() -> None:
    made = log()
    sent(made, "http://me:secret@a.example/", ALLOWED)
    made.disallowed("http://me:secret@a.example:x/", Verdict(False, Reason.INVALID_HOST))
    assert "secret" not in json_text(made.report())


def test_the_text_of_files_has_a_limit() -> None:
    made = log()
    bodies = [*BODIES, BODIES[0], b"#" * 20_001]
    for number, body in enumerate(bodies):
        fetched(made, f"http://{number}.example", body)
    report = made.report(files_text=40)
    assert [file.text for file in report.files.values()] == [None, BODIES[1].decode(), None]
    assert [file.size for file in report.files.values()] == [27, 27, 20_001]
    assert report.left_out.files == 2


def test_of_many_states_the_last_ones_are_kept() -> None:
    """The report has the files of these, and those of rules that decided."""
    made = log()
    origin: Origin | None = None
    for number in range(9):
        origin = fetched(made, A, b"# %d" % number, origin=origin)
        if number == 4:
            made.disallowed(f"{A}/a", denied(1))
        made.clock.now += 7200
    report = made.report(versions=3)
    found = report.origins[0].versions
    assert [(version.first_at - utc(NOW)).seconds // 7200 for version in found] == [6, 7, 8]
    assert [version.size for version in found] == [3, 3, 3]
    assert report.origins[0].versions_left_out == 6
    assert [file.text for file in report.files.values()] == ["# 4", "# 6", "# 7", "# 8"]


def test_a_state_lasts_until_another_one_is_fetched() -> None:
    made = log()
    clock = made.clock
    origin = fetched(made, A, BODIES[0])
    down = Unreachable("status 503", 503, f"{A}/robots.txt")
    events: list[Any] = [None, NotModified(NOW + 1e5), down, Unreachable("refused"), None]
    for event in events:
        clock.now += 3700
        fetched(made, A, BODIES[0], event, origin)
    clock.now = NOW + 2e5
    fetched(made, A, BODIES[0], Unavailable(f"{A}/robots.txt", clock.now + 9, 404), origin)
    clock.now += 10
    fetched(made, A, BODIES[1], None, origin)
    found = made.report().origins[0].versions
    assert [(each.result, each.effect, each.status, each.fetches) for each in found] == [
        ("rules", "rules", 200, 3),
        ("unreachable", "rules", 503, 1),
        ("unreachable", "rules", None, 1),
        ("rules", "rules", 200, 1),
        ("unavailable", "allow", 404, 1),
        ("rules", "rules", 200, 1),
    ]
    assert found[0].sha256 == found[1].sha256 == found[3].sha256 != found[5].sha256
    assert found[4].sha256 is None
    assert (found[0].first_at, found[0].last_at) == (utc(NOW), utc(NOW + 7400))


@pytest.mark.parametrize(
    ("event", "settings", "effect", "result"),
    [
        (Unreachable("reset"), {}, "disallow", "unreachable"),
        (Unreachable("reset"), {"REP_ON_UNREACHABLE": "allow"}, "allow", "unreachable"),
        (Unavailable(A, NOW + 9, 403, AccessResult.DISALLOWED), {}, "disallow", "disallowed"),
        (Unavailable(A, NOW + 9, None), {}, "allow", "redirect-loop"),
    ],
)
def test_what_a_fetch_without_a_file_means(
    event: Any, settings: dict[str, Any], effect: str, result: str
) -> None:
    made = log(**settings)
    fetched(made, A, event=event)
    (version,) = made.report().origins[0].versions
    assert (version.effect, version.result, version.sha256) == (effect, result, None)


def test_gaps_are_those_of_a_host() -> None:
    made = log()
    clock = made.clock
    delays = {"a.example": 0.0}
    made.delay_of = delays.__getitem__
    sent(made, f"{A}/robots.txt", is_robotstxt_request=True, dont_obey_robotstxt=True)
    clock.now += 0.25
    delays["a.example"] = 2.0
    sent(made, "https://a.example:8080/", dont_obey_robotstxt=True)  # it left before the delay
    for gap in (2.0, 3.0, 1.5):
        clock.now += gap
        sent(made, f"{A}/", ALLOWED)
    (host,) = made.report().hosts
    assert (host.requests, host.gaps, host.below_applied) == (5, 3, 1)
    assert (host.smallest_gap, host.median_gap) == (1.5, 2.0)
    assert (host.asked, host.applied, host.below_asked) == (None, 2.0, 0)
    assert made.report().totals.robots_txt == 1


def test_requests_without_a_verdict_and_in_spite_of_one_are_counted() -> None:
    made = log()
    sent(made, f"{A}/1")
    sent(made, f"{A}/2", denied(1))
    made.sent(Request(f"{A}/3", meta={"robotstxt": "of another package"}), 0)
    made.sent(Request("data:,"), 0)
    totals = made.report().totals
    assert (totals.sent_unchecked, totals.sent_disallowed, totals.sent) == (2, 1, 3)
    ((unchecked, disallowed),) = (each.deciding for each in made.report().origins)
    assert (unchecked.reason, unchecked.sent) == ("unchecked", 2)
    assert (disallowed.allowed, disallowed.sent) == (False, 1)


def test_urls_without_a_host_are_counted() -> None:
    made = log()
    for number in range(7):
        made.disallowed(f"http:///{number}", Verdict(False, Reason.INVALID_HOST))
    made.disallowed("http:///", Verdict(False, Reason.INVALID_HOST), was_sent=True)
    made.page("data:,", PageDirectives(noindex=True), {})
    report = made.report()
    assert report.totals.dropped_for == {"invalid-host": 7}
    assert report.totals.final_url_disallowed == 1
    assert report.origins == []


def test_waits_are_counted() -> None:
    made = log()
    for kind, seconds in (("robots_txt", 0.5), ("pace", 2), ("pace", 3), ("backoff", 7)):
        made.waited(A, kind, seconds)
    report = made.report()
    totals = report.totals
    assert (totals.waited, totals.wait_seconds) == (1, 0.5)
    assert (totals.delayed, totals.delay_seconds) == (2, 5)
    assert (totals.backoffs, totals.backoff_seconds) == (1, 7)
    assert [each.deciding for each in report.origins] == [[]]


def test_directives_and_uses() -> None:
    made = log()
    directives = PageDirectives(
        noindex=True,
        max_snippet=0,
        unavailable_after=datetime(2026, 1, 2, tzinfo=timezone.utc),
        tdm_reservation=True,
    )
    made.page(f"{A}/1", directives, {"train-ai": False, "search": True})
    made.page(f"{A}/2", PageDirectives(tdm_reservation=False), {})
    made.page_dropped(f"{A}/1", ["train-ai"], is_usage=True)
    made.page_dropped(f"{A}/1", ["rel_nofollow"])
    (origin,) = made.report().origins
    found = {each.name: each for each in origin.statements}
    assert found["noindex"].examples == [f"{A}/1"]
    assert found["max_snippet"].details == ["0"]
    assert found["tdm_reservation"].details == ["1", "0"]
    assert found["unavailable_after"].details == ["2026-01-02T00:00:00+00:00"]
    assert (found["rel_nofollow"].responses, found["rel_nofollow"].dropped) == (0, 1)
    use = found["train-ai"]
    assert (use.kind, use.responses, use.refused, use.dropped) == ("usage", 1, 1, 1)
    assert use.examples == [f"{A}/1"]
    assert found["search"].responses == 1
    for number in range(2 * MAX_NAMES):  # a site may name any number of uses
        made.page("http://b.example/", PageDirectives(), {f"use-{number}-{'x' * 1000}": False})
    names = [each.name for each in made.report().origins[1].statements]
    assert len(names) == MAX_NAMES
    assert max(map(len, names)) <= 300


def test_the_last_pace_is_stated() -> None:
    made = log()
    for records, delay in [("Crawl-delay: 1", 1.0), ("Crawl-delay: 2", 5.0)]:
        origin = fetched(made, A, f"User-agent: *\n{records}\n".encode())
        made.paced(origin, records, delay)
    (report,) = made.report().origins
    assert report.pace == AskedPace("Crawl-delay: 2", 2, 5)

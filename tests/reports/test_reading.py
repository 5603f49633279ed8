from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from scrapy_rep.protocol.access import Unreachable
from scrapy_rep.protocol.access_terms import AccessTerms
from scrapy_rep.protocol.pages import PageDirectives
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
    later = "".join(made.changes()).encode()
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


def test_everything_of_an_origin_is_merged(tmp_path: Path) -> None:
    paths = []
    for number, name in enumerate(("one", "two")):
        made = crawled(name, NOW + 1000 * number)
        origin = fetched(made, "http://a.example", b"User-agent: *\nCrawl-delay: %d" % (number + 1))
        made.delay_of = [lambda _: 1.0, lambda _: 2.0][number]
        made.paced(origin, ("mybot",), 0)
        for url in (f"http://a.example/{name}/x", "http://a.example/both"):
            directives = PageDirectives(noindex=True, licenses=("https://l.example/",))
            made.page(url, directives, {"train-ai": False, name: True})
            made.terms(url, AccessTerms(payment_required=True, price=name))
            sent(made, url, ALLOWED)
            made.clock.now += 5  # type: ignore[attr-defined]
        made.dropped("http:///", Verdict(False, Reason.INVALID_HOST))
        paths.append(write(tmp_path, name, part(made)))
    report = read_reports(paths)
    origin_report = report.origins[0]
    assert [pace.records for pace in origin_report.pace] == ["Crawl-delay: 1", "Crawl-delay: 2"]
    assert [len(version.sha256 or "") for version in origin_report.versions] == [64] * 4
    assert origin_report.directives["noindex"].responses == 4
    assert len(origin_report.directives["noindex"].examples) == 3
    assert origin_report.licenses["https://l.example/"].responses == 4
    assert set(origin_report.usage) == {"train-ai", "one", "two"}
    assert origin_report.usage["train-ai"].refused == 4
    assert origin_report.terms["payment"].details == ["a payment (one)", "a payment (two)"]
    assert report.invalid_hosts == ["http:///"]
    host = report.hosts[0]
    assert (host.shortest_delay, host.longest_delay) == (1, 2)
    assert (host.first_at, host.last_at) == (NOW, NOW + 1005)


def test_origins_and_files_of_one_run_only(tmp_path: Path) -> None:
    made = recorder("other", NOW + 1, REP_UNREACHABLE="allow")
    fetched(made, "http://c.example", event=Unreachable("reset"))
    sent(made, "http://c.example/", ALLOWED)
    made._limits.max_file_text = 5
    fetched(made, "http://d.example", b"# long")
    paths = [write(tmp_path, "1", part(crawled())), write(tmp_path, "2", part(made))]
    report = read_reports(paths)
    assert [origin.host[0] for origin in report.origins] == ["a", "b", "c", "d"]
    assert [host.host[0] for host in report.hosts] == ["a", "b", "c"]
    assert report.limits.files_left_out == 1
    assert len(report.files) == 2


def test_a_text_that_one_run_left_out_comes_from_the_other(tmp_path: Path) -> None:
    brief = recorder("brief", NOW - 1)
    brief._limits.max_file_text = 0
    fetched(brief, "http://a.example")
    paths = [write(tmp_path, "1", part(brief)), write(tmp_path, "2", part(crawled()))]
    (file,) = read_reports(paths).files.values()
    assert file.text == "User-agent: *\nDisallow: /a\n"


@pytest.mark.parametrize("outage", [1, 2])
def test_runs_at_the_same_time_share_a_state(tmp_path: Path, outage: int) -> None:
    paths = []
    for number in (1, 2):
        made = recorder(f"run-{number}", NOW + number)
        origin = fetched(made, "http://a.example")
        made.clock.now += 7200  # type: ignore[attr-defined]
        if number == outage:
            event = Unreachable("reset", 503)
            fetched(made, "http://a.example", event=event, origin=origin)
            made.clock.now += 7200  # type: ignore[attr-defined]
        fetched(made, "http://a.example", origin=origin)
        paths.append(write(tmp_path, str(number), part(made)))
    versions = read_reports(paths).origins[0].versions
    assert [version.result for version in versions] == ["rules", "unreachable", "rules"]
    assert [version.fetches for version in versions] == [3, 1, 1]

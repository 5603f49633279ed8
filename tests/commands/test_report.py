"""``report``: what it shows, and its exit codes."""

from __future__ import annotations

import itertools
import re
import shutil
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from scrapy_rep.pages.directives import PageDirectives
from scrapy_rep.protocol.access import Unreachable
from scrapy_rep.protocol.verdict import Reason, Rule, Verdict
from scrapy_rep.reports.records import RunEvent, csv_text
from testing import report_samples
from testing.report_samples import START as NOW
from testing.report_samples import SampleLog, fetched, log, sent

from .conftest import Done, Run, write

ALLOWED = Verdict(True, Reason.RULES, None, "*")
DENIED = Verdict(False, Reason.RULES, Rule(False, "/private", 3), "*")
A, B = "https://a.example", "https://b.example"


def crawled(run_id: str = "run", now: float = NOW) -> SampleLog:
    made = log(run_id, now)
    made.delay_of = lambda host: 2.0 if host == "a.example" else 0.0
    fetched(made, A)
    fetched(made, B, event=Unreachable("status 503", 503, f"{B}/robots.txt"))
    for number in range(3):
        sent(made, f"{A}/{number}", ALLOWED)
        made.clock.now += 2
    made.disallowed(f"{A}/private/x", DENIED)
    made.disallowed(f"{B}/", Verdict(False, Reason.UNREACHABLE, None, None, "status 503"))
    sent(made, f"{A}/exempt", dont_obey_robotstxt=True)
    made.end({}, "finished")
    return made


def report(run: Run, made: SampleLog, *options: str) -> Done:
    return run("report", str(made.write(Path("one.events.gz"))), *options)


def test_the_summary(run: Run) -> None:
    done = report(run, crawled())
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[:8] == [
        "Who         sample",
        "            What for: not stated (REP_INTENDED_USES).",
        "            mybot; no contact",
        "            scrapy-rep",
        "When        6 s",
        "            1 run of sample, 2026-11-22 08:30:00 UTC to 2026-11-22 08:30:06 UTC",
        "            Sent: 4 requests for pages, 3 allowed, 1 exempt; and 0 requests for",
        "            robots.txt files.",
    ]
    for text in (
        "2 origins: 1 rules, 1 unreachable",
        "https://b.example: status 503",
        "Disallow: /private, line 3, group *",
        "the robots.txt was unreachable, status 503",
    ):
        assert text in done.out
    (row,) = (line.split() for line in lines if line.startswith("a.example"))
    assert row == ["a.example", *["none", "2", "s", "2", "s", "2", "s", "3", "0", "0"]]

    made = crawled()
    record = report(run, made, "--json").record
    assert record["totals"] == msgspec.to_builtins(made.report().totals)


def test_several_files_are_merged(run: Run) -> None:
    paths = [
        str(crawled(name, NOW + number).write(Path(f"{name}.events.gz")))
        for number, name in enumerate(("one", "two"))
    ]
    done = run("report", *paths)
    assert "2 runs of sample" in done.out
    assert "6 allowed, 2 exempt" in done.out
    again = run("report", *paths, paths[0])
    assert again.out == done.out
    assert "one.events.gz is not used: another file has the same run" in again.err


@pytest.mark.parametrize(
    ("change", "code", "text"),
    [
        (lambda made: sent(made, f"{A}/x", DENIED), 1, "1 request went to disallowed URLs"),
        (lambda made: made.disallowed(f"{A}/x", DENIED, was_sent=True), 1,
         "1 response came from disallowed URLs"),
        (lambda made: sent(made, f"{A}/x"), 3, "1 request was sent without a check"),
        (lambda made: made._add(RunEvent(replace(made.run, ended_at=None))), 0,
         "1 run did not end"),
    ],
    ids=["disallowed", "final URL", "unchecked", "killed"],
)  # fmt: skip
def test_what_is_wrong_is_said(run: Run, change: object, code: int, text: str) -> None:
    made = crawled()
    assert callable(change)
    change(made)
    done = report(run, made)
    assert (done.code, text in done.out) == (code, True)


def test_a_damaged_log_is_used_and_named(run: Run) -> None:
    write(one_events_gz=crawled().octets() + b"\x1f\x8b")
    done = run("report", "one.events.gz")
    assert done.code == 3
    assert "one.events.gz is damaged: the end after line" in done.err
    assert "The file of run run is damaged" in " ".join(done.out.split())
    assert A in done.out


def test_more_than_a_page(run: Run) -> None:
    made = log()
    for number in range(30):
        key = f"http://{number}.example"
        made.delay_of = lambda _: 1.0
        fetched(made, key, event=Unreachable("reset"))
        made.disallowed(f"{key}/", DENIED)
        sent(made, f"{key}/", ALLOWED)
    done = report(run, made)
    assert done.out.count("and 20 more") == 2
    assert "and 27 other sites" in done.out
    assert len(done.out.splitlines()) < 80


HOSTILE = "\x1b[2J\u202e[bold]<b>\n" + "x" * 5000


def test_hostile_texts_are_escaped_and_cut(run: Run) -> None:
    made = log()
    key = "http://a.example"
    made._add(RunEvent(replace(made.run, spider=HOSTILE)))
    fetched(made, key, event=Unreachable(HOSTILE))
    made.disallowed(
        f"{key}/{HOSTILE}", DENIED._replace(rule=Rule(False, HOSTILE, 1), agent=HOSTILE)
    )
    made.disallowed(f"{key}/", Verdict(False, Reason.LOCAL_RULE, None, None, HOSTILE))
    made.page(f"{key}/", PageDirectives(noindex=True), {HOSTILE: False})
    sent(made, f"{key}/{HOSTILE}")
    done = report(run, made)
    assert done.code == 3
    assert not {"\x1b", "\u202e"} & {*done.out}
    assert "[bold]" in done.out  # as text
    assert max(map(len, done.out.splitlines())) <= 80
    assert len(done.out) < 5000
    assert "\x1b" not in report(run, made, "--json").out


def test_the_page_is_written_beside_the_summary(run: Run) -> None:
    made = report_samples.usual(3)
    done = report(run, made, "--html", "page.html")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("Who ")
    page = Path("page.html").read_text("utf-8")
    assert page.startswith("<!DOCTYPE html>\n")
    assert "<title>Crawl report: catalog, 2026-11-22</title>" in page
    assert report(run, made, "--html", "again.html", "--json").record["type"] == "report"
    again, at = Path("again.html").read_text("utf-8"), re.compile("Made [^<]*")
    assert at.sub("", again) == at.sub("", page)
    assert report(run, made, "--csv", "table.csv").code == 0
    assert Path("table.csv").read_text("utf-8") == csv_text(made.report())
    for option, path in itertools.product(("--html", "--csv"), ("no/page", ".")):
        done = report(run, made, option, path)
        assert (done.code, "cannot write " in done.err) == (2, True)


def test_the_files_of_a_page_are_compared_with_its_hashes(run: Run) -> None:
    write(a_warc="archive")
    archive = {"archive": "archives/a.warc", "archive_sha256": sha256(b"archive").hexdigest()}
    events = Path("one.events.gz")
    Path("reports").mkdir()

    def verify(made: SampleLog, **changes: Any) -> Done:
        made._add(RunEvent(replace(made.run, **changes)))
        assert report(run, made, "--html", "reports/page.html").code == 0
        for path in (events, Path("a.warc")):
            shutil.copy(path, "reports")
        return run("report", "--verify", "reports/page.html")

    done = verify(crawled(), **archive)
    digest = sha256(events.read_bytes()).hexdigest()
    assert (done.code, done.out.splitlines()[0]) == (
        0, f"one.events.gz is the same: SHA-256 {digest}, page {digest}"
    )  # fmt: skip
    done = verify(crawled(), **archive | {"archive_sha256": None})
    assert (done.code, "archives/a.warc cannot be compared: SHA-256 " in done.out) == (3, True)
    Path("reports/one.events.gz").write_bytes(b"")
    done = run("report", "--verify", "reports/page.html")
    assert (done.code, "one.events.gz differs: SHA-256 e3b0c442" in done.out) == (1, True)
    Path("reports/one.events.gz").unlink()  # that of the working directory is used
    assert "one.events.gz is the same" in run("report", "--verify", "reports/page.html").out
    events.unlink()
    done = run("report", "--verify", "reports/page.html")
    assert (done.code, "one.events.gz cannot be compared: SHA-256 unknown" in done.out) == (3, True)


def test_two_files_of_one_name_are_not_taken_for_each_other(run: Run) -> None:
    logs = []
    for folder in ("a", "b"):
        Path(folder).mkdir()
        logs.append(str(crawled(folder).write(Path(folder, "one.events.gz"))))
    assert run("report", *logs, "--html", "a/page.html").code == 0
    assert run("report", "--verify", "a/page.html").code == 0
    shutil.move("a/page.html", "page.html")
    shutil.copy(logs[0], logs[1])
    assert run("report", "--verify", "page.html").code == 1


ROW = "<table class=files><tbody><tr><th><code>{}</code><td><td><code>{}"


@pytest.mark.parametrize(
    ("arguments", "code", "problem"),
    [
        (["--verify", "none.html"], 2, "cannot read none.html: No such file"),
        (["--verify", "a.html"], 3, "a.html has no table of files"),
        (["--verify", "a.json"], 3, "a.json has no table of files"),
        (["--verify", "edited.html"], 3, r"cannot be compared: SHA-256 unknown, page \x1b[2J"),
        (["--verify", "a.html", "one.events.gz"], 2, "--verify takes a page, and nothing else"),
        ([], 2, "report needs an event log (.events.gz)"),
    ],
)
def test_a_page_that_cannot_be_verified(
    run: Run, arguments: list[str], code: int, problem: str
) -> None:
    write(a_html="<p>", a_json="{}", edited_html=ROW.format("n" * 5000, "\x1b[2J"))
    done = run("report", *arguments)
    assert (done.code, problem in done.err + done.out) == (code, True)


@pytest.mark.parametrize("width", [40, 60, 80])
def test_tables_fit_a_narrow_terminal(
    run: Run, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    lines = report(run, report_samples.usual(3)).out.splitlines()
    assert max(map(len, lines)) <= width
    table = lines[lines.index("Origins") :]
    letters = "".join("".join(table).split())
    for text in ("Origin", "Rules", "23", "22"):
        assert text in letters
    heads = re.split(" {2,}", table[1])
    assert width < 60 or heads == ["Origin", "robots.txt", "Sent", "Not sent", "Delayed"]


def test_the_report_itself_is_not_its_log(run: Run) -> None:
    write(demo_json='{"type": "report"}', demo_html="<html>")
    done = run("report", "demo.json")
    assert (done.code, "it is not an event log of a crawl (.events.gz)" in done.err) == (2, True)
    path = crawled().write(Path("demo.17.events.gz"))
    for name in ("demo.json", "demo.html"):
        done = run("report", name)
        assert (done.code, done.out) == (2, "")
        assert done.err == f"scrapy-rep: {name} is the report itself: write {path}\n"
    assert run("report", str(path)).code == 0

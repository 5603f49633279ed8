"""``report``: what it shows, and its exit codes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from scrapy_rep.pages.directives import PageDirectives
from scrapy_rep.protocol.access import Unreachable
from scrapy_rep.protocol.verdict import Reason, Rule, Verdict
from scrapy_rep.reports.records import (
    RunEvent,
)
from testing import report_samples
from testing.report_samples import START as NOW
from testing.report_samples import SampleLog, fetched, log, sent

from .conftest import Run, validate

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


def written(folder: Path, made: SampleLog, name: str = "one.events.gz") -> str:
    return str(made.write(folder / name))


def test_the_summary(run: Run, tmp_path: Path) -> None:
    done = run("report", written(tmp_path, crawled()))
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[:6] == [
        "Runs         1 of sample, 2026-11-22 08:30:00 UTC to 2026-11-22 08:30:06 UTC",
        "Disallowed   None that was checked",
        "             By the record of the crawl itself.",
        "Sent         4",
        "             3 allowed, 1 exempt; to 2 origins, with 0 requests for robots.txt",
        "             files.",
    ]
    for text in (
        "robots.txt   2 origins: 1 rules, 1 unreachable",
        "https://b.example: status 503",
        "Disallow: /private, line 3, group *",
        "the robots.txt was unreachable, status 503",
    ):
        assert text in done.out
    (row,) = (line.split() for line in lines if line.startswith("a.example"))
    assert row == ["a.example", "2", "s", "2", "s", "2", "s", "0"]


def test_json_is_that_of_the_schema(run: Run, tmp_path: Path) -> None:
    made = crawled()
    done = run("report", written(tmp_path, made), "--json")
    record = done.record
    validate(record, "report")
    assert record["totals"] == msgspec.to_builtins(made.report().totals)


def test_several_files_are_merged(run: Run, tmp_path: Path) -> None:
    paths = [
        written(tmp_path, crawled(name, NOW + number), f"{name}.events.gz")
        for number, name in enumerate(("one", "two"))
    ]
    done = run("report", *paths)
    assert "Runs         2 of sample" in done.out
    assert "6 allowed, 2 exempt" in done.out
    again = run("report", *paths, paths[0])
    assert again.out == done.out
    assert "one.events.gz is not used: another file has the same run" in again.err


@pytest.mark.parametrize(
    ("change", "code", "text"),
    [
        (lambda made: sent(made, f"{A}/x", DENIED), 1, "1 request went to disallowed URLs"),
        (
            lambda made: made.disallowed(f"{A}/x", DENIED, was_sent=True),
            1,
            "1 response came from disallowed URLs",
        ),
        (lambda made: sent(made, f"{A}/x"), 3, "1 request was sent without a check"),
        (
            lambda made: made._add(RunEvent(replace(made.run, ended_at=None))),
            0,
            "1 run did not end",
        ),
    ],
    ids=["disallowed", "final URL", "unchecked", "killed"],
)
def test_what_is_wrong_is_said(
    run: Run, tmp_path: Path, change: object, code: int, text: str
) -> None:
    made = crawled()
    assert callable(change)
    change(made)
    done = run("report", written(tmp_path, made))
    assert done.code == code
    assert text in done.out


def test_a_damaged_log_is_used_and_named(run: Run, tmp_path: Path) -> None:
    made = crawled()
    path = tmp_path / "one.events.gz"
    path.write_bytes(made.octets() + b"\x1f\x8b")
    done = run("report", str(path))
    assert done.code == 3
    assert "one.events.gz is damaged: the end after line" in done.err
    assert "The file of run run is damaged" in " ".join(done.out.split())
    assert A in done.out


def test_more_than_a_page(run: Run, tmp_path: Path) -> None:
    made = log()
    for number in range(30):
        key = f"http://{number}.example"
        made.delay_of = lambda _: 1.0
        fetched(made, key, event=Unreachable("reset"))
        made.disallowed(f"{key}/", DENIED)
        sent(made, f"{key}/", ALLOWED)
    done = run("report", written(tmp_path, made))
    assert done.out.count("and 20 more") == 2
    assert "and 22 other sites" in done.out
    assert len(done.out.splitlines()) < 80


HOSTILE = "\x1b[2J\u202e[bold]<b>\n" + "x" * 5000


def test_hostile_texts_are_escaped_and_cut(run: Run, tmp_path: Path) -> None:
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
    done = run("report", written(tmp_path, made))
    assert done.code == 3
    assert "\x1b" not in done.out
    assert "\u202e" not in done.out
    assert "[bold]" in done.out  # as text
    assert max(map(len, done.out.splitlines())) <= 80
    assert len(done.out) < 5000
    assert "\x1b" not in json.dumps(run("report", written(tmp_path, made), "--json").record)


def sample(folder: Path) -> str:
    return written(folder, report_samples.usual(3))


def test_the_page_is_written_beside_the_summary(run: Run, tmp_path: Path) -> None:
    done = run("report", sample(tmp_path), "--html", str(tmp_path / "page.html"))
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("Runs ")
    page = (tmp_path / "page.html").read_text("utf-8")
    assert page.startswith("<!DOCTYPE html>\n")
    assert "<title>Crawl report: catalog, 2026-11-22</title>" in page
    done = run("report", sample(tmp_path), "--html", str(tmp_path / "again.html"), "--json")
    assert json.loads(done.out)["type"] == "report"
    again = (tmp_path / "again.html").read_text("utf-8")
    made = re.compile("Made [^<]*")
    assert made.sub("", again) == made.sub("", page)


@pytest.mark.parametrize(
    ("width", "heads", "left_out"),
    [
        (40, ["Origin", "robots.txt"], "Sent, Not sent, Delayed"),
        (60, ["Origin", "robots.txt", "Sent", "Not sent"], "Delayed"),
        (80, ["Origin", "robots.txt", "Sent", "Not sent", "Delayed"], None),
    ],
)
def test_a_narrow_terminal_keeps_the_first_columns(
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    width: int,
    heads: list[str],
    left_out: str | None,
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    lines = run("report", sample(tmp_path)).out.splitlines()
    assert max(map(len, lines)) <= width
    table = lines[lines.index("Origins") :]
    assert re.split(" {2,}", table[1]) == heads
    assert [line.split()[0] for line in table[3:6]] == [
        f"https://{name}.example" for name in ("forum", "news", "shop")
    ]
    text = " ".join(" ".join(table[6:]).split())
    said = "" if left_out is None else f"left out, because the terminal is narrow: {left_out}"
    assert text == said


def test_a_page_that_cannot_be_written(run: Run, tmp_path: Path) -> None:
    for path in (str(tmp_path / "no" / "page.html"), str(tmp_path)):
        done = run("report", sample(tmp_path), "--html", path)
        assert done.code == 2
        assert "cannot write " in done.err


def test_without_jinja2(tmp_path: Path) -> None:
    """In a process of its own: other tests here may have loaded the package."""
    code = (
        "import sys; sys.modules['jinja2'] = None; from scrapy_rep.commands.main import main; "
        "sys.exit(main(sys.argv[1:]))"
    )
    asked = [sys.executable, "-c", code, "report", sample(tmp_path)]
    assert subprocess.run([*asked, "--json"], capture_output=True, check=False).returncode == 0
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "report needs the package jinja2: pip install scrapy-rep[report]" in done.stderr

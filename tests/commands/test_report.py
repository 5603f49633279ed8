"""``report``: what it shows, and its exit codes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from jsonschema import Draft202012Validator

from scrapy_rep.protocol.access import Unreachable
from scrapy_rep.protocol.access_terms import AccessTerms
from scrapy_rep.protocol.pages import PageDirectives
from scrapy_rep.protocol.verdict import Reason, Rule, Verdict
from scrapy_rep.reports.model import Time
from scrapy_rep.reports.reading import document, read_report
from tests.reports.samples import NOW, fetched, part, recorder, sent

from .conftest import closed_schema

if TYPE_CHECKING:
    from pathlib import Path

    from scrapy_rep.reports.recorder import CrawlRecorder

    from .conftest import Run

ALLOWED = Verdict(True, Reason.RULES, None, "*")
DENIED = Verdict(False, Reason.RULES, Rule(False, "/private", 3), "*")
A, B = "https://a.example", "https://b.example"


def crawled(run_id: str = "run", now: float = NOW) -> CrawlRecorder:
    made = recorder(run_id, now)
    made.delay_of = lambda host: 2.0 if host == "a.example" else 0.0
    fetched(made, A)
    fetched(made, B, event=Unreachable("status 503", 503, f"{B}/robots.txt"))
    for number in range(3):
        sent(made, f"{A}/{number}", ALLOWED)
        made.clock.now += 2  # type: ignore[attr-defined]
    made.dropped(f"{A}/private/x", DENIED)
    made.dropped(f"{B}/", Verdict(False, Reason.UNREACHABLE, None, None, "status 503"))
    sent(made, f"{A}/exempt", dont_obey_robotstxt=True)
    made.run.ended_at, made.run.finish_reason = Time(now + 9), "finished"
    return made


def written(folder: Path, made: CrawlRecorder, name: str = "one.part") -> str:
    path = folder / name
    path.write_bytes(part(made))
    return str(path)


def test_the_summary(run: Run, tmp_path: Path) -> None:
    done = run("report", written(tmp_path, crawled()))
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[:5] == [
        "Runs        1 of sample, 2023-11-14 22:13:20 to 2023-11-14 22:13:26 UTC",
        "Sent        4 requests for pages: 3 allowed, 1 exempt",
        "Not sent    2 requests: 1 rules, 1 unreachable",
        "Disallowed  no disallowed page was requested",
        "Exempt      1 request with dont_obey_robotstxt, such as https://a.example/exempt",
    ]
    for text in (
        "robots.txt  0 requests, 2 origins: 1 rules, 1 unreachable",
        "line 3, Disallow: /private",
        "https://b.example  status 503",
        "unreachable: status 503",
    ):
        assert text in done.out
    (row,) = (line.split() for line in lines if line.startswith(" a.example"))
    assert row == ["a.example", "2", "2.00", "2.00", "0"]


def test_json_is_that_of_the_schema(run: Run, tmp_path: Path) -> None:
    made = crawled()
    done = run("report", written(tmp_path, made), "--json")
    record = done.record
    Draft202012Validator(closed_schema("report", "scrapy_rep.reports")).validate(record)
    expected = document(made.report())
    assert record == {**expected, "generated_at": record["generated_at"]}
    (tmp_path / "again.json").write_text(done.out)
    assert read_report(tmp_path / "again.json") == made.report()


def test_several_files_are_merged(run: Run, tmp_path: Path) -> None:
    paths = [
        written(tmp_path, crawled(name, NOW + number), f"{name}.part")
        for number, name in enumerate(("one", "two"))
    ]
    done = run("report", *paths)
    assert "Runs        2 of sample" in done.out
    assert "8 requests for pages" in done.out
    again = run("report", *paths, paths[0])
    assert again.out == done.out
    assert "one.part is not used: another file has the same run" in again.err


@pytest.mark.parametrize(
    ("change", "code", "text"),
    [
        (lambda made: sent(made, f"{A}/x", DENIED), 1, "1 disallowed page requested"),
        (
            lambda made: made.final_url_disallowed(f"{A}/x", DENIED, dropped=True),
            1,
            "1 response came from a disallowed URL",
        ),
        (lambda made: sent(made, f"{A}/x"), 3, "1 request without a check of robots.txt"),
        (
            lambda made: setattr(made.run, "sent_is_known", False),
            3,
            "the downloader does not show what it sends",
        ),
        (lambda made: setattr(made.run, "ended_at", None), 0, "1 run did not end"),
    ],
    ids=["disallowed", "final URL", "unchecked", "unknown", "killed"],
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


def test_a_damaged_part_is_used_and_named(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "one.part"
    octets = part(crawled())
    path.write_bytes(octets[: octets.rindex(b'"totals"')])
    done = run("report", str(path))
    assert done.code == 3
    assert "one.part is damaged: line" in done.err
    assert "the file of 1 run is damaged" in " ".join(done.out.split())
    assert A in done.out


@pytest.mark.parametrize("content", [b"", b"no report", b'{"type": "report", "version": 99}'])
def test_another_file_is_refused(run: Run, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "other"
    path.write_bytes(content)
    done = run("report", str(path))
    assert done.code == 2
    assert f"{path} is no report of a crawl" in done.err
    assert run("report", str(tmp_path / "missing")).code == 2


def test_more_than_a_page(run: Run, tmp_path: Path) -> None:
    made = recorder()
    for number in range(30):
        key = f"http://{number}.example"
        made.delay_of = lambda _: 1.0
        fetched(made, key, event=Unreachable("reset"))
        made.dropped(f"{key}/", DENIED)
        sent(made, f"{key}/", ALLOWED)
    done = run("report", written(tmp_path, made))
    assert done.out.count("and 20 more") == 4
    assert len(done.out.splitlines()) < 80


HOSTILE = "\x1b[2J\u202e[bold]<b>\n" + "x" * 5000


def test_hostile_texts_are_escaped_and_cut(run: Run, tmp_path: Path) -> None:
    made = recorder()
    key = "http://a.example"
    made.run.spider = HOSTILE
    fetched(made, key, event=Unreachable(HOSTILE))
    made.dropped(f"{key}/{HOSTILE}", DENIED._replace(rule=Rule(False, HOSTILE, 1), agent=HOSTILE))
    made.dropped(f"{key}/", Verdict(False, Reason.LOCAL_RULE, None, None, HOSTILE))
    made.page(f"{key}/", PageDirectives(noindex=True, licenses=(HOSTILE,)), {HOSTILE: False})
    made.terms(f"{key}/", AccessTerms(payment_required=True, price=HOSTILE))
    sent(made, f"{key}/{HOSTILE}")
    done = run("report", written(tmp_path, made))
    assert done.code == 3
    assert "\x1b" not in done.out
    assert "\u202e" not in done.out
    assert "[bold]" in done.out  # as text
    assert max(map(len, done.out.splitlines())) <= 80
    assert len(done.out) < 5000
    assert "\x1b" not in json.dumps(run("report", written(tmp_path, made), "--json").record)


def test_what_is_left_out_is_said(run: Run, tmp_path: Path) -> None:
    made = recorder()
    made._limits.max_origins = made._limits.max_deciding = 1
    for number in range(3):
        sent(made, f"http://{number}.example/", ALLOWED)
    sent(made, "http://0.example/", dont_obey_robotstxt=True)
    out = " ".join(run("report", written(tmp_path, made)).out.split())
    assert "Left out 2 requests to further origins, 1 request under further rules" in out

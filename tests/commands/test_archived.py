"""What the tools say of a site at a time, from an archive of a crawl."""

from __future__ import annotations

import gzip
import sys
from typing import TYPE_CHECKING, Any

import pytest

from scrapy_rep.commands.output import CommandError
from scrapy_rep.commands.sources import moment_of, until_of
from testing.archives import response, write_archive
from tests.reports.test_archive import http, record

from .conftest import Run, validate

if TYPE_CHECKING:
    from pathlib import Path

    from scrapy_rep.fetch.downloader import Exchange

SITE = "https://x.example"
URL = f"{SITE}/robots.txt"
OTHER = "https://y.example/robots.txt"
OPEN = b"User-agent: *\nDisallow: /a\nSitemap: /map.xml\n"
CLOSED = b"User-agent: *\nDisallow: /\n"
ARCHIVE = ("--archive", "a.warc.gz")


@pytest.fixture
def archive(run: Run, tmp_path: Path) -> Path:
    """An archive with two files of a site, and one of another site."""
    return write_archive(
        tmp_path / "a.warc.gz",
        [
            response("2025-03-01T06:00", URL, OPEN),
            response("2025-04-01T06:00", OTHER, b""),
            response("2025-06-01T06:00:00.500", URL, CLOSED),
        ],
    )


def access_at(run: Run, tmp_path: Path, responses: list[Exchange], *arguments: str) -> Any:
    """The access that ``show`` has of the site in an archive."""
    write_archive(tmp_path / "a.warc.gz", responses)
    done = run("show", f"archive:{SITE}", *ARCHIVE, "--json", *arguments)
    validate(done.record, "show")
    assert done.err == ""
    return done.record["robots_txt"]


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("2025-03-01", "2025-03-01T23:59:59Z"),
        ("2025-03-01T06:00", "2025-03-01 06:00:00Z"),
        ("2025-03-01T06:00:10.250Z", "2025-03-01T07:00:10+01:00"),
    ],
)
def test_a_time_stands_for_its_end(text: str, same: str) -> None:
    assert until_of(text) == until_of(same)


@pytest.mark.parametrize(
    "given",
    ["archive:x.example@", "archive:x.example@soon", "archive:u@x.example", "archive:",
     "archive:x.example@2025-13-01", "archive:x.example@9999-12-31", "archive:mailto:x"],
)  # fmt: skip
def test_what_names_no_site_at_a_time(given: str) -> None:
    with pytest.raises(CommandError):
        moment_of(given)


@pytest.mark.usefixtures("archive")
def test_an_origin_at_two_times(run: Run) -> None:
    done = run("diff", f"archive:{SITE}@2025-05-31", f"archive:{SITE}", "--json", *ARCHIVE)
    record = done.record
    validate(record, "diff")
    assert (done.code, done.err) == (1, "")
    old, new = record["old"], record["new"]
    assert (old["source"], old["archive"], old["status"]) == ("archive", "a.warc.gz", 200)
    assert (old["fetched_at"], old["expires_at"]) == ("2025-03-01T06:00:00Z", None)
    assert (new["url"], new["final_url"]) == (URL, URL)
    change = {"change": "removed", "record": "Sitemap", "value": f"{SITE}/map.xml", "line": None}
    assert record["differences"][-1]["changes"] == [change]
    text = run("diff", f"archive:{SITE}@2025-05-31", f"archive:{SITE}", *ARCHIVE).out
    assert f"Old      {URL}" in text
    same = run("diff", f"archive:{SITE}@2025-03-01", f"archive:{SITE}@2025-05-01", *ARCHIVE)
    assert same.code == 0


@pytest.mark.usefixtures("archive")
@pytest.mark.parametrize(
    ("time", "code"),
    [
        ("", 1),
        ("@2025-06-01", 1),
        ("@2025-06-01T06:00:00", 1),  # the whole second
        ("@2025-06-01T05:59", 0),
        ("@2025-03-01T06:00", 0),
    ],
)
def test_the_last_response_up_to_a_time_counts(run: Run, time: str, code: int) -> None:
    robots = f"archive:{SITE}{time}"
    done = run("check", "--robots", robots, "/b", "-a", "bot", "--json", *ARCHIVE)
    validate(done.record, "check")
    assert done.code == code


@pytest.mark.usefixtures("archive")
def test_the_other_subcommands(run: Run, tmp_path: Path) -> None:
    at = f"archive:{SITE}@2025-03-01"
    done = run("check", "--robots", at, f"{SITE}/a", "-a", "bot", *ARCHIVE)
    assert "from the archive a.warc.gz, requested at 2025-03-01 06:00:00 UTC" in " ".join(
        done.out.split()
    )
    assert run("lint", at, *ARCHIVE).out.startswith(f"{at}:3:10: error R502 relative-url")
    fixing = run("lint", at, "--fix", *ARCHIVE)
    assert (fixing.code, f"and {at} is not a file" in fixing.err) == (2, True)
    (tmp_path / "e.txt").write_text("disallow bot /a\nallow bot /b\n")
    assert run("test", "e.txt", "--robots", at, *ARCHIVE).code == 0
    assert run("test", "e.txt", "--robots", f"archive:{SITE}", *ARCHIVE).code == 1


def test_several_files(run: Run, tmp_path: Path) -> None:
    write_archive(tmp_path / "b.warc.gz", [response("2025-06-01T06:00", URL, CLOSED)])
    write_archive(tmp_path / "c.warc.gz", [response("2025-03-01T06:00", URL, OPEN)])
    files = ("--archive", "b.warc.gz", "--archive", "c.warc.gz")
    for time, name in (("", "b"), ("@2025-04-01", "c")):
        done = run("show", f"archive:{SITE}{time}", "--json", *files)
        assert done.record["robots_txt"]["archive"] == f"{name}.warc.gz"


@pytest.mark.parametrize(
    ("status", "setting", "state"),
    [
        (404, "REP_TIMEOUT=1", "unavailable"),
        (403, "REP_DISALLOW_STATUSES=403", "disallowed-status"),
        (403, "REP_UNREACHABLE_STATUSES=403", "unreachable"),
        (503, "REP_TIMEOUT=1", "unreachable"),
        (503, "REP_5XX_AS_404=x.example", "unavailable"),
        (301, "REP_TIMEOUT=1", "unreachable"),
        (304, "REP_TIMEOUT=1", "unreachable"),  # the request was not conditional
    ],
)
def test_what_a_status_means(
    run: Run, tmp_path: Path, status: int, setting: str, state: str
) -> None:
    one = response("2025-03-01T06:00", URL, b"User-agent: *\nDisallow: /", status=status)
    access = access_at(run, tmp_path, [one], "-s", setting)
    assert (access["state"], access["status"]) == (state, status)
    robots = ("check", "--robots", f"archive:{SITE}", "-a", "bot", "/b")
    done = run(*robots, *ARCHIVE, "-s", setting, "--json")
    assert done.record["allowed"] == (state == "unavailable")


def test_a_failure_after_a_good_copy(run: Run, tmp_path: Path) -> None:
    good = response("2025-03-01T06:00", URL, OPEN)
    down = response("2025-03-02T06:00", URL, status=503)
    access = access_at(run, tmp_path, [good, down])
    assert (access["state"], access["failure"]) == ("stale-copy", "status 503")
    assert access["fetched_at"] == "2025-03-02T06:00:00Z"
    gone = response("2025-03-01T07:00", URL, status=404)
    assert access_at(run, tmp_path, [good, gone, down])["state"] == "unreachable"


def test_a_304(run: Run, tmp_path: Path) -> None:
    good = response("2025-03-01T06:00", URL, OPEN)
    same = response("2025-03-02T06:00", URL, status=304, copy=OPEN)
    access = access_at(run, tmp_path, [good, same])
    assert (access["state"], access["status"]) == ("rules", 304)
    # A crawl that has another copy.
    other = response("2025-03-01T07:00", URL, CLOSED)
    for found, state in (([other, same], "stale-copy"), ([same], "unreachable")):
        access = access_at(run, tmp_path, found)
        assert access["state"] == state
        assert access["failure"] == "a 304 for a file that is not in the archive"


def test_redirects(run: Run, tmp_path: Path) -> None:
    first = response("2025-03-01T06:00:00", URL, status=301, location=OTHER)
    second = response("2025-03-01T06:00:01", OTHER, OPEN, origin=SITE)
    access = access_at(run, tmp_path, [first, second])
    assert (access["final_url"], access["state"]) == (OTHER, "rules")
    hops = [
        response(f"2025-03-01T06:00:0{n + 1}", f"{OTHER}?{n}", status=302, origin=SITE)
        for n in range(5)
    ]
    assert access_at(run, tmp_path, [first, *hops])["state"] == "unavailable"
    access = access_at(run, tmp_path, [first, *hops[:3]])
    assert access["failure"] == "status 302, a redirect that was not followed"
    # A retry begins with the first URL.
    assert access_at(run, tmp_path, [first, *hops[:3]] * 2)["state"] == "unreachable"


def test_a_file_over_ftp_and_one_that_cannot_be_read(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "a.warc.gz"
    path.write_bytes(gzip.compress(record("resource", OPEN, "ftp://x.example/robots.txt")))
    done = run("show", "archive:ftp://x.example", *ARCHIVE, "--json")
    assert done.record["robots_txt"]["state"] == "rules"
    path.write_bytes(gzip.compress(record("response", http(OPEN, "Content-Encoding: xyz"), URL)))
    access = run("show", f"archive:{SITE}", *ARCHIVE, "--json").record["robots_txt"]
    assert (access["state"], access["status"]) == ("unreachable", 200)
    assert access["failure"].startswith("a body that is cut off, cannot be decoded")


@pytest.mark.usefixtures("archive")
@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ((f"archive:{SITE}",), 2, "archive: needs a WARC file: name it with --archive"),
        ((f"archive:{SITE}", "--archive", "no"), 2, "cannot read no: No such file"),
        ((f"archive:{SITE}", "--archive", "."), 2, "cannot read .: Is a directory"),
        ((f"archive:{SITE}", "--archive", "robots.txt"), 2,
         "cannot read robots.txt as a WARC file: Invalid WARC record"),
        ((f"archive:{SITE}", "--archive", "text.gz"), 2, "cannot read text.gz as a WARC file: "),
        ((f"archive:{SITE}", "--archive", "image.png"), 2, "cannot read image.png as a WARC file"),
        (("archive:z.example", *ARCHIVE), 3,
         "the archive has no robots.txt of https://z.example"),
        ((f"archive:{SITE}@2025-02-28", *ARCHIVE), 3,
         "the archive has no robots.txt of https://x.example at 2025-02-28"),
        ((f"archive:{SITE}@today", *ARCHIVE), 2, "'today' is not a time: write 2026-11-22 or"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line(
    run: Run, tmp_path: Path, arguments: tuple[str, ...], code: int, message: str
) -> None:
    (tmp_path / "text.gz").write_bytes(gzip.compress(b"some text"))
    (tmp_path / "image.png").write_bytes(b"\x89PNG\r\n\x1a\n\0")
    done = run("show", *arguments)
    assert (done.code, done.out, done.err.count("\n")) == (code, "", 1)
    assert message in done.err


def test_a_damaged_archive(run: Run, archive: Path) -> None:
    octets = archive.read_bytes()
    archive.write_bytes(octets[:-20])
    done = run("diff", f"archive:{SITE}@2025-03-01", f"archive:{SITE}", *ARCHIVE)
    assert done.code == 3
    assert "+ line 2, Disallow: /" in done.out  # its last response is before the damage
    assert done.err.startswith("warning: A part of a.warc.gz cannot be read, at offset ")
    assert done.err.count("\n") == 1
    middle = len(octets) // 2
    archive.write_bytes(octets[:middle] + b"\0" * 8 + octets[middle + 8 :])
    done = run("show", f"archive:{SITE}", *ARCHIVE)
    assert (done.code, done.err.count("\n")) == (3, 1)


def test_without_warcio(run: Run, archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(sys.modules):
        if name.startswith("scrapy_rep.reports.archive_") or name.partition(".")[0] == "warcio":
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "warcio", None)
    done = run("show", f"archive:{SITE}", *ARCHIVE)
    assert (done.code, done.out) == (2, "")
    assert done.err == ("scrapy-rep: archives need the package warcio: pip install warcio\n")


ITEMS = "\n".join(f'{{"url": "{url}"}}' for url in (
    f"{SITE}/a", f"{SITE}/b", f"{SITE}/c", "https://y.example/a", "https://z.example/",
))  # fmt: skip
REFUSING = b"User-agent: *\nAllow: /\nContent-Signal: /b ai-train=no\nContent-Usage: /c search=n\n"


def only(run: Run, kinds: str, *arguments: str) -> Any:
    arguments = ("--only", kinds, "--from", "items.jsonl", "-a", "bot", *arguments)
    done = run("check", *arguments, *ARCHIVE)
    as_json = run("check", *arguments, *ARCHIVE, "--json")
    for each in as_json.records:
        validate(each, "check")
    assert done.code == as_json.code
    return done, as_json.records


def test_items_whose_page_is_now_off_limits(run: Run, tmp_path: Path) -> None:
    """Each with the time since when it has been so, and the line."""
    bodies = [b"", OPEN, b"", OPEN, b"# the same\n" + OPEN, REFUSING]
    times = [f"2025-0{month}-01T06:00" for month in range(1, 7)]
    responses = [response(time, URL, body) for time, body in zip(times, bodies, strict=True)]
    write_archive(tmp_path / "a.warc.gz", [*responses, response("2025-02-01T06:00", OTHER, CLOSED)])
    (tmp_path / "items.jsonl").write_text(ITEMS)
    done, records = only(run, "disallowed,refused")
    assert done.code == 3  # of the last one, the archive has nothing
    assert done.out.splitlines() == [
        f"refused    {SITE}/b  train-ai: line 3, Content-Signal: /b ai-train=no; "
        "since 2025-06-01 06:00:00 UTC",
        f"refused    {SITE}/c  search: line 4, Content-Usage: /c search=n; "
        "since 2025-06-01 06:00:00 UTC",
        "disallowed https://y.example/a  line 2, Disallow: /, for *; since 2025-02-01 06:00:00 UTC",
    ]
    assert done.err == "note: 5 answers: 1 left out, 3 found, 1 unknown\n"
    assert [each["since"] for each in records] == [
        "2025-06-01T06:00:00Z", "2025-06-01T06:00:00Z", "2025-02-01T06:00:00Z",
    ]  # fmt: skip
    assert records[0]["refused"] == [
        {"use": "train-ai", "line": 3, "text": "line 3, Content-Signal: /b ai-train=no"}
    ]
    assert [each["allowed"] for each in records] == [True, True, False]
    done, records = only(run, "refused", "-s", "REP_INTENDED_USES=ai-train")
    assert [(each["url"], each["refused"][0]["use"]) for each in records] == [
        (f"{SITE}/b", "ai-train")
    ]
    # A disallow that ended and began again counts from its last beginning.
    write_archive(tmp_path / "a.warc.gz", responses[:5])
    (tmp_path / "items.jsonl").write_text("\n".join(ITEMS.splitlines()[:2]))
    done, (found,) = only(run, "disallowed")
    assert (done.code, found["since"], found["rule"]["line"]) == (1, "2025-04-01T06:00:00Z", 3)
    assert only(run, "refused")[0].code == 0


@pytest.mark.parametrize(
    ("robots", "text"),
    [
        ("User-agent: *\nAllow: /\nContent-Signal: ai-train=no", "3, Content-Signal: ai-train=no"),
        ("Content-Signal: ai-train=no\nUser-agent: *\nAllow:", "1, Content-Signal: ai-train=no"),
        (
            "User-agent: bot\nContent-Usage: train-ai=n\nContent-Usage: /b train-ai=n",
            "3, Content-Usage: /b train-ai=n",
        ),
        (
            "User-agent: *\nAllow:\nUser-agent: __usage_ai-training\nDisallow: /b",
            "4, Disallow: /b, for __usage_ai-training",
        ),
        (
            f"User-agent: *\nContent-Signal: ai-train=no, \x1b[2J{'x' * 2000}",
            f"2, Content-Signal: ai-train=no, \\x1b[2J{'x' * 955}…",
        ),
        (
            "User-agent: bot\nContent-Usage: train-ai=y\nUser-agent: *\nContent-Usage: train-ai=n",
            None,
        ),
        ("User-agent: *\nContent-Signal: ai-train=yes", None),
        ("User-agent: *\nDisallow:", None),
    ],
)
def test_the_line_that_refuses_a_use(
    run: Run, tmp_path: Path, robots: str, text: str | None
) -> None:
    (tmp_path / "robots.txt").write_text(robots)
    done = run("check", "--robots", "robots.txt", "/b", "-a", "bot", "--only", "refused")
    assert done.out == ("" if text is None else f"refused    /b  train-ai: line {text}\n")
    assert done.code == (text is not None)

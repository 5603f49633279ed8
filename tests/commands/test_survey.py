"""The subcommand ``survey``: many robots.txt files in, numbers out."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import tarfile
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import msgspec
import pytest

from scrapy_rep.commands import context
from scrapy_rep.commands import survey as survey_module
from scrapy_rep.protocol.access import AccessResult
from scrapy_rep.reports.records import FileError
from scrapy_rep.reports.survey import MAX_LISTED, Rows, Survey
from scrapy_rep.stores.entry import Entry
from testing import generated
from testing.archives import response, write_archive
from testing.redis_server import wait_until
from testing.web import Page, Web, redirect
from testing.web import text as plain

from .conftest import TIMEOUT, Cli, Done, Run, fill, started, write

FILES = {
    "shops/a.txt": b"User-agent: *\nDisallow: /cart\nCrawl-delay: 5\nSitemap: https://a.example/s",
    "shops/b.txt": b"User-agent: GPTBot\nDisallow: /\n\nUser-agent: *\nDisallow: /*?q=\n",
    "news/c.txt": b"User-agent: *\nDisallow: /\n",
    "news/d.txt": b"Content-Signal: ai-train=no\nUser-agent: CCBot\nUser-agent: GPTBot\n"
    b"Disallow: /\nAllow: /press\nDisallow: /x$\n",
    "e.txt": b"<p>a: b</p>",
}


@pytest.fixture
def folder(run: Run, tmp_path: Path) -> Path:
    for name, body in FILES.items():
        path = tmp_path / "sites" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)
    (tmp_path / "sites" / "loop").symlink_to(tmp_path / "sites")  # links are not followed
    (tmp_path / "sites" / "link.txt").symlink_to(path)
    return tmp_path / "sites"


def tar_of(files: dict[str, bytes], mode: str = "w", **more: tarfile.TarInfo) -> bytes:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode=mode) as tar:  # type: ignore[call-overload]
        for name, body in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(body)
            tar.addfile(member, io.BytesIO(body))
        for special in more.values():
            tar.addfile(special)
    return target.getvalue()


def record_of(done: Done, *, code: int = 0) -> Survey:
    """Return the record that a survey has written."""
    assert done.code == code, done.err
    return msgspec.convert(done.record, Survey)


def numbers(record: Survey, figure: str) -> dict[Any, Any]:
    return {row["name"]: row["number"] for row in record.figures[figure]}


def rows(record: Survey, figure: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in record.figures[figure]]


@pytest.mark.usefixtures("folder")
def test_a_folder(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(context, "INTERVAL", 0)
    done = run("survey", "sites", "--json")
    assert "note: 5 of 6 sites, " in done.err  # a link is not followed, and not known to be one
    record = record_of(done)
    assert record.complete
    assert (record.sites, record.files, numbers(record, "results")) == (5, 5, {"rules": 5})
    assert numbers(record, "features") == {
        "allow": 1, "content-signal": 1, "crawl-delay": 1, "disallow": 4,
        "everything disallowed for *": 1, "findings of lint": 2, "group for a named agent": 2,
        "no group": 1, "pattern that ends in $": 1, "pattern with *": 1, "sitemap": 1,
        "something disallowed for *": 2,
    }  # fmt: skip
    assert ("gptbot", 2, 0.4, 1, 1, 0) in rows(record, "agents")
    assert [name for name, *_ in rows(record, "ai_agents")] == ["gptbot", "ccbot"]
    assert rows(record, "purposes") == [
        ("ai-training", 2, 0.4, 1, 1, 0),
        ("archive", 1, 0.2, 0, 1, 0),
    ]
    assert rows(record, "preferences") == [("Content-Signal: ai-train=no", 1, 0.2)]
    found = {row["name"]: row for row in record.figures["numbers"]}
    delay, size = found["crawl_delay"], found["size"]
    assert (delay["p10"], delay["median"], delay["largest"]) == (5, 5, 5)
    assert size["median"] == sorted(map(len, FILES.values()))[2]
    assert (found["agents"]["p10"], found["agents"]["largest"]) == (0, 2)
    assert record.left_out == {}


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("mode", ["w", "w:xz"])
def test_a_tar_file(run: Run, mode: str) -> None:
    write(sites_tar=tar_of(FILES, mode))
    records = [record_of(run("survey", name, "--json")) for name in ("sites", "sites.tar")]
    for record in records:
        assert record.first_date == record.last_date
        record.made_at, record.sources = records[0].made_at, []
        record.first_date = record.last_date = None
    assert records[0] == records[1]


def test_hostile_members_are_data(run: Run, tmp_path: Path) -> None:
    link, device, folder = (tarfile.TarInfo(name) for name in ("link", "device", "folder"))
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    device.type, folder.type = tarfile.CHRTYPE, tarfile.DIRTYPE
    hard = tarfile.TarInfo("hard")
    hard.type, hard.linkname = tarfile.LNKTYPE, "../../etc/passwd"
    names = ["/etc/cron.d/x", "../../x/y", "\x1b[31m/\u202e/x", "a" * 90 + "/" + "b" * 3000]
    archive = tar_of(
        dict.fromkeys(names, b"User-agent: *\nDisallow:"), a=link, b=device, c=folder, d=hard
    )
    write(x_tar=archive)
    before = sorted(tmp_path.rglob("*"))
    done = run("survey", "x.tar")
    assert done.code == 0
    assert "4 sites" in done.out
    assert not {"\x1b", "\u202e"} & {*done.out}
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("mode", ["w", "w:gz"])
def test_a_damaged_tar_file(run: Run, mode: str) -> None:
    files = {f"{number}": os.urandom(20_000) for number in range(20)}
    write(x_tar=tar_of(files, mode)[:150_000])
    record = record_of(run("survey", "x.tar", "--json"), code=3)
    assert not record.complete
    assert 0 < record.files < 20


def test_a_store(run: Run) -> None:
    rules, page = (
        Entry(AccessResult.SUCCESSFUL, 1, 2, 2, body, status=200)
        for body in (FILES["news/c.txt"], b"[]")
    )
    down = Entry(AccessResult.UNREACHABLE, 1, 2, status=503)
    tdm = "https://a.example/.well-known/tdmrep.json"
    fill("a.sqlite", {"https://a.example": rules, "https://b.example": down, tdm: page})
    record = record_of(run("survey", "sqlite:///a.sqlite", "--json"))
    assert (record.sites, record.files) == (2, 1)
    assert numbers(record, "statuses") == {"200": 1, "503": 1}
    assert numbers(record, "results") == {"rules": 1, "unreachable": 1}
    assert "503" in run("survey", "sqlite:///a.sqlite").out


def test_an_archive(run: Run, tmp_path: Path) -> None:
    bodies = {200: FILES["news/c.txt"], 301: b"", 304: b"", 404: b"a: b", 503: b""}
    responses = [
        response("2026-11-22T09:00", f"https://{status}.example/robots.txt", body, status=status)
        for status, body in bodies.items()
    ]
    write_archive(tmp_path / "a.warc.gz", responses)
    record = record_of(run("survey", "a.warc.gz", "--json"))
    assert numbers(record, "results") == dict.fromkeys(
        ("not-modified", "redirect", "rules", "unavailable", "unreachable"), 1
    )
    assert numbers(record, "statuses") == dict.fromkeys(map(str, bodies), 1)
    assert record.files == numbers(record, "features")["everything disallowed for *"] == 1
    page = run("survey", "a.warc.gz", "--html", "x.html")
    assert "Unreachable" in page.out
    assert "<h2>Statuses</h2>" in Path("x.html").read_text("utf-8")


def test_one_row_for_each_site(run: Run) -> None:
    """The last answer of a site counts, whatever comes after it: a redirect, a 304, an outage."""
    sites = {"a": ["503", "404", "200"], "b": ["200", "304", "503"], "c": ["301", "503"]}
    answers = {"200": "rules", "301": "redirect", "304": "not-modified", "404": "unavailable"}
    lines = [
        {"site": f"https://{name}.example", "result": answers.get(status, "unreachable")}
        for name, statuses in sites.items()
        for status in statuses
    ] + [{"site": "robots.txt", "result": "rules"}] * 2
    write(x_jsonl="\n".join(map(json.dumps, lines)))
    record = record_of(run("survey", "x.jsonl", "--rows", "y.jsonl", "--json"))
    assert numbers(record, "results") == {"rules": 4, "unreachable": 1}
    assert Path("y.jsonl").read_text().count("\n") == record.sites == 5


async def test_a_robots_txt_is_not_a_list_of_sites(cli: Cli) -> None:
    for arguments in (("survey",), ("check", "--from")):
        done = await cli(*arguments, "robots.txt")
        assert (done.code, done.out) == (2, "")
        assert "this is a robots.txt: use lint or show, or check --robots\n" in done.err
    write(none_txt="# nothing", good_db=b"SQLite format 3\0")
    for name, message in (
        ("none.txt", "there is no site in none.txt: name a list of domains, a folder"),
        ("good.db", "it is a database: write sqlite:///good.db\n"),
    ):
        done = await cli("survey", name)
        assert (done.code, done.out, message in done.err) == (2, "", True)


async def test_a_list_of_sites(web: Web, cli: Cli, tmp_path: Path) -> None:
    moved = web.site("User-agent: gptbot\nDisallow: /")
    sites = [
        web.site(FILES["news/c.txt"]), web.site(redirect(moved.url("/robots.txt"))), web.site(None),
        web.site(plain("<!doctype html>")), web.site(Page(b"", 403)), web.site(Page(b"", 503)),
        web.site(plain(b"User-agent: *" * 100_000, Cache_Control="no-store")),
    ]  # fmt: skip
    names = [site.url("/page?a=1,2") for site in sites] * 2
    write(sites_txt="\n".join(["# sites", "", *names, "mailto:x", "1,[::1"]))
    arguments = ("survey", "sites.txt", "--rows", "rows.jsonl", "--json")
    settings = {"REP_STORE": f"sqlite:///{tmp_path}/a.sqlite", "REP_RETRY_TIMES": 0}
    done = await cli(*arguments, settings=settings)
    record = record_of(done, code=3)
    for number, line in ((17, "mailto:x"), (18, "1,[::1")):
        assert f"warning: sites.txt, line {number}: {line} is not a site\n" in done.err
    assert not record.complete
    assert numbers(record, "results") == {
        "rules": 3, "not-robots-txt": 1, "refused": 1, "unavailable": 1, "unreachable": 1,
    }  # fmt: skip
    assert {row["name"]: row["everything"] for row in record.figures["agents"]} == {
        "*": 1, "gptbot": 1,
    }  # fmt: skip
    lines = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert {line["site"] for line in lines} == {site.root for site in sites}
    assert max(line["size"] or 0 for line in lines) > 512_000
    assert {path for site in (*sites, moved) for path in site.paths} == {"/robots.txt"}
    # The second survey goes on where the first one was: what it has fetched is in the store.
    new = web.site(FILES["news/c.txt"])
    write(sites_txt="\n".join([*names, new.root, "mailto:x"]))
    before = [site.robots_fetches for site in sites]
    again = record_of(await cli(*arguments, settings=settings), code=3)
    assert (again.sites, numbers(again, "results")["rules"]) == (8, 4)
    assert [site.robots_fetches for site in (*sites, new)] == [*before, 1]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "name", ["rows.jsonl", "rows.jsonl.gz", "it's rows.parquet", "[1].jsonl", "~/size=x/a*.parquet"]
)  # some names mean more to DuckDB
@pytest.mark.no_cover
def test_rows_of_many_machines(run: Run, name: str) -> None:
    write(x_tar=tar_of({"x/y": b"User-agent: x"}))
    for other in (Path(f"first {name}"), Path(name.replace("[1]", "1"))):
        other.parent.mkdir(parents=True, exist_ok=True)
        other.write_bytes(b"not a row")
    assert run("survey", "x.tar", "--rows", f"first {name}", "--json").code == 0
    written = record_of(run("survey", "sites", f"first {name}", "--rows", name, "--json"))
    read = record_of(run("survey", name, "--json"))
    assert (read.sites, read.files) == (6, 6)
    assert numbers(read, "features") == numbers(written, "features")


@pytest.mark.parametrize(
    "line",
    [
        "[]",
        "{}",
        '{"site": "a", "result": "rules", "size": "x"}',
        '{"site": "a", "result": "rules", "features": {"a": 1}}',
        "\xff\n",
    ],
)
def test_lines_that_are_no_rows(run: Run, line: str) -> None:
    write(x_jsonl=line.encode("latin-1"))
    done = run("survey", "x.jsonl")
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        "scrapy-rep: cannot read x.jsonl as rows of a survey: only 'survey --rows' writes them\n"
    )


def test_two_surveys(run: Run, folder: Path) -> None:
    assert run("survey", "sites", "--json", "--rows", "old.parquet").code == 0
    compared = ("survey", "sites", "--compare", "old.parquet")
    assert "No share differs" in run(*compared).out
    (folder / "new.txt").write_bytes(b"User-agent: *\nCrawl-delay: 3\n")
    record = record_of(run(*compared, "--json"))
    found = {row["name"]: row for row in record.figures["differences"]}
    assert tuple(found["feature crawl-delay"].values())[1:] == (0.2, 0.333333, 0.133333)
    assert found["purpose ai-training: everything"]["change"] == -0.033333
    assert "agent *" in found
    assert "result rules" not in found
    changes = [abs(change) for *_, change in rows(record, "differences")]
    assert changes == sorted(changes, reverse=True)
    done = run(*compared, "--html", "x.html")
    assert "feature crawl-delay" in done.out
    assert "the page is x.html" in done.err
    page = Path("x.html").read_text("utf-8")
    assert "default-src &#39;none&#39;" in page or "default-src 'none'" in page
    for text in ("How large is a file?", "AI agents", "Differences", "gptbot"):
        assert text in page


def test_sigterm_leaves_nothing(web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    site = web.site(Page(delay=2 * TIMEOUT))
    (tmp_path / "sites.txt").write_text(site.root)
    with started("survey", str(tmp_path / "sites.txt")) as process:
        wait_until(lambda: site.received, "the request")
        process.terminate()
        out, errors = process.communicate(timeout=TIMEOUT)
    assert (process.returncode, out, errors) == (143, b"", b"")
    assert [path.name for path in tmp_path.iterdir()] == ["sites.txt"]


def test_lists_say_what_is_left_out(run: Run) -> None:
    usage = b"\n".join(b"Content-Usage: x%d=n" % number for number in range(MAX_LISTED + 5))
    write(x_tar=tar_of({"robots.txt": b"User-agent: *\n" + usage}))
    record = record_of(run("survey", "x.tar", "--json"))
    assert len(record.figures["preferences"]) == MAX_LISTED
    assert record.left_out == {"preferences": 5}


@pytest.mark.no_cover
def test_text_fits_80_columns(run: Run) -> None:
    Path("x.tar.gz").write_bytes(gzip.compress(tar_of(generated.files(100))))
    done = run("survey", "x.tar.gz")
    assert done.code == 0
    assert max(map(len, done.out.splitlines())) <= 80
    for title in ("Files with", "Agents named most", "Findings of lint"):
        assert title in done.out


@pytest.mark.usefixtures("folder")
def test_files_that_cannot_be_read(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def refusing(method: Any) -> Any:
        def call(path: Any, *more: Any, **options: Any) -> Any:
            if str(path).endswith(("news", "e.txt")):
                raise PermissionError(13, "Permission denied", str(path))
            return method(path, *more, **options)

        return call

    monkeypatch.setattr(os, "scandir", refusing(os.scandir))
    monkeypatch.setattr(Path, "open", refusing(Path.open))
    done = run("survey", "sites", "--json")
    assert record_of(done, code=3).files == 2
    assert "e.txt: Permission denied" in done.err


def test_a_header_of_any_size_is_no_name(run: Run) -> None:
    large = tarfile.TarInfo("x")
    large.type, large.size = tarfile.GNUTYPE_LONGNAME, 1 << 40
    whole = tar_of({"a": b"User-agent: *"})
    write(x_tar=whole[:1024] + large.tobuf(tarfile.GNU_FORMAT) + bytes(4096))
    done = run("survey", "x.tar")
    assert done.code == 3
    assert "damaged after 1 files: a header has 1,099,511,627,776 bytes" in done.err
    assert "This survey is not complete." in done.out


@pytest.mark.parametrize("mode", ["w:gz", "w:xz"])
@pytest.mark.no_cover
def test_no_bomb_is_read_to_its_end(run: Run, monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    monkeypatch.setattr(survey_module, "INFLATED_FREE", 1 << 20)
    files = {"a": b"User-agent: *", "b": bytes(30 << 20), "c": b"User-agent: *"}
    write(x_tar=tar_of(files, mode))
    done = run("survey", "x.tar", "--json")
    record = record_of(done, code=3)
    assert "files: it has more than 250 times the bytes of the file" in done.err
    assert (record.complete, record.files) == (False, 1)


def test_a_folder_for_temporary_files_is_needed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    write(a_txt="")
    fail = Mock(side_effect=FileNotFoundError(2, "No usable temporary directory found"))
    monkeypatch.setattr(survey_module, "TemporaryDirectory", fail)
    done = run("survey", ".")
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        "scrapy-rep: cannot write temporary files (set TMPDIR to a folder that can be written): "
        "No usable temporary directory found\n"
    )


def test_the_database_has_no_words_of_its_own(tmp_path: Path) -> None:
    rows = Rows(tmp_path, {"a": ["b"]})
    rows.close()
    for use in (
        rows.merge,
        lambda: rows.survey([], complete=True, compared=False),
        lambda: rows.read(tmp_path / "x.parquet"),
        lambda: rows.write(tmp_path / "x.parquet"),
    ):
        with pytest.raises(FileError) as error:
            use()
        assert re.match("cannot (read|write) |there is not enough memory", str(error.value))

"""The subcommand ``survey``: many robots.txt files in, numbers out."""

from __future__ import annotations

import gzip
import io
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import tarfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from scrapy_rep.commands import process_pool, survey_inputs, survey_workers
from scrapy_rep.commands.exits import ExitCode
from scrapy_rep.commands.survey_comparison import differences
from scrapy_rep.protocol.access import AccessResult
from scrapy_rep.reports import archive_reader, survey
from scrapy_rep.reports.survey import MAX_STRATA, Sample, Survey
from scrapy_rep.stores.entry import Entry
from scrapy_rep.stores.sqlite import SQLiteStore
from testing import generated

from .conftest import FakeProcess, started, tool, validate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .conftest import Run

FILES = {
    "shops/a.txt": b"User-agent: *\nDisallow: /cart\nCrawl-delay: 5\nSitemap: https://a.example/s",
    "shops/b.txt": b"User-agent: GPTBot\nDisallow: /\n\nUser-agent: *\nDisallow: /*?q=\n",
    "news/c.txt": b"User-agent: *\nDisallow: /\n",
    "news/d.txt": b"Content-Signal: ai-train=no\nUser-agent: CCBot\nUser-agent: GPTBot\n"
    b"Disallow: /\nAllow: /press\nDisallow: /x$\n",
    "e.txt": b"<html><p>a: b</p></html>",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, body in FILES.items():
        path = tmp_path / "sites" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)
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


def test_a_folder(run: Run, folder: Path) -> None:
    done = run("survey", str(folder), "--json")
    assert done.code == 0, done.err
    record = done.record
    validate(record, "survey")
    total = record["total"]
    assert record["complete"]
    assert (total["responses"], total["files"]) == (5, 5)
    features = total["features"]
    assert features["crawl-delay"] == features["sitemap"] == features["html"] == 1
    assert features["disallows-everything-for-all"] == features["content-signal"] == 1
    assert features["wildcard-group"] == 3
    assert features["star"] == 1
    assert features["end-anchor"] == 1
    agents = {row["agent"]: row for row in total["agents"]}
    assert agents["gptbot"]["purposes"] == ["ai-training"]
    assert [agents["gptbot"][key] for key in ("files", "everything", "something")] == [2, 1, 1]
    assert {row["agent"] for row in total["ai_agents"]} == {"gptbot", "ccbot"}
    assert total["purposes"]["ai-training"] == {"named": 2, "everything": 1, "something": 1}
    assert total["preferences"] == [{"preference": "Content-Signal: ai-train=no", "files": 1}]
    assert total["numbers"]["crawl-delay"]["median"] == 5000
    assert {name: each["files"] for name, each in record["strata"].items()} == {
        "shops": 2,
        "news": 2,
    }


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz", "w:bz2"])
def test_a_tar_file(run: Run, tmp_path: Path, folder: Path, mode: str) -> None:
    (tmp_path / "sites.tar").write_bytes(tar_of(FILES, mode))
    first, second = run("survey", str(folder), "--json"), run("survey", "sites.tar", "--json")
    assert second.code == 0
    assert first.record["total"] == second.record["total"]
    assert first.record["strata"] == second.record["strata"]


def test_a_tar_file_from_standard_input() -> None:
    done = tool("survey", "-", "--json", "--depth", "0", stdin=tar_of(FILES))
    assert done.record["total"]["files"] == 5
    assert done.record["strata"] == {}


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
    (tmp_path / "x.tar").write_bytes(archive)
    before = sorted(tmp_path.rglob("*"))
    done = run("survey", "x.tar")
    assert done.code == 0
    assert "4 sites" in done.out
    assert "\x1b" not in done.out
    assert "\u202e" not in done.out
    assert sorted(tmp_path.rglob("*")) == before


def test_a_header_of_any_size_is_no_name(run: Run, tmp_path: Path) -> None:
    large = tarfile.TarInfo("x")
    large.type, large.size = tarfile.GNUTYPE_LONGNAME, 1 << 40
    whole = tar_of({"a": b"User-agent: *"})
    (tmp_path / "x.tar").write_bytes(whole[:1024] + large.tobuf(tarfile.GNU_FORMAT) + bytes(4096))
    done = run("survey", "x.tar")
    assert done.code == 3
    assert "damaged after 1 files: a header has 1,099,511,627,776 octets" in done.err
    assert "This survey is not complete." in done.out


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz"])
def test_a_damaged_tar_file(run: Run, tmp_path: Path, mode: str) -> None:
    files = {f"{number}": os.urandom(20_000) for number in range(20)}
    (tmp_path / "x.tar").write_bytes(tar_of(files, mode)[:150_000])
    done = run("survey", "x.tar", "--json")
    assert done.code == 3
    assert not done.record["complete"]
    assert done.record["problems"] == 1
    assert 0 < done.record["total"]["files"] < 20


def test_a_store(run: Run, tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "a.sqlite", ttl=1e6)
    store.add(
        "https://a.example",
        Entry(AccessResult.RULES, 1, 2, 2, FILES["news/c.txt"], status=200),
        replace=True,
    )
    store.add("https://b.example", Entry(AccessResult.UNREACHABLE, 1, 2, status=503), replace=True)
    store.add(
        "https://a.example/.well-known/tdmrep.json",
        Entry(AccessResult.RULES, 1, 2, 2, b"[]", status=200),
        replace=True,
    )
    store.disconnect()
    done = run("survey", "sqlite:///a.sqlite", "--json")
    assert done.code == 0
    total = done.record["total"]
    assert (total["responses"], total["files"]) == (2, 1)
    assert total["statuses"] == {"200": 1, "503": 1}
    assert total["results"] == {"rules": 1, "unreachable": 1}
    assert "503" in run("survey", "sqlite:///a.sqlite").out


def warc_of(*responses: tuple[str, bytes]) -> bytes:
    """A WARC file with a gzip member for each response."""
    members = []
    for number, (status, body) in enumerate(responses):
        http = f"HTTP/1.1 {status}\r\nContent-Type: text/plain\r\n\r\n".encode() + body
        head = (
            "WARC/1.1\r\nWARC-Type: response\r\nWARC-Date: 2026-11-22T09:00:00Z\r\n"
            f"WARC-Record-ID: <urn:uuid:00000000-0000-0000-0000-{number:012}>\r\n"
            f"WARC-Target-URI: https://{number}.example/robots.txt\r\n"
            "Content-Type: application/http;msgtype=response\r\n"
            f"Content-Length: {len(http)}\r\n\r\n"
        )
        members.append(gzip.compress(head.encode() + http + b"\r\n\r\n"))
    return b"".join(members)


def test_an_archive(run: Run, tmp_path: Path) -> None:
    whole = warc_of(
        ("200 OK", FILES["news/c.txt"]),
        ("301 Moved", b""),
        ("304 Not Modified", b""),
        ("404 Not Found", b"a: b"),
        ("503 Busy", b""),
    )
    (tmp_path / "a.warc.gz").write_bytes(whole)
    done = run("survey", "a.warc.gz", "--json")
    assert done.code == 0
    total = done.record["total"]
    assert total["results"] == dict.fromkeys(
        ("not-modified", "redirect", "rules", "unavailable", "unreachable"), 1
    )
    assert total["statuses"] == dict.fromkeys(("200", "301", "304", "404", "503"), 1)
    assert total["files"] == total["features"]["disallows-everything-for-all"] == 1
    page = run("survey", "a.warc.gz", "--html", "x.html")
    assert "unreachable" in page.out
    assert "<h2>Statuses</h2>" in (tmp_path / "x.html").read_text("utf-8")


def test_an_archive_that_cannot_be_read_to_its_end(
    run: Run, tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(*_: object) -> Iterator[object]:
        yield from ()
        raise OSError(5, "Input/output error")

    (tmp_path / "a.warc").touch()
    monkeypatch.setattr(archive_reader, "read", read)
    done = run("survey", "a.warc", str(folder), "--json")
    assert done.code == ExitCode.UNKNOWN
    assert "cannot read a.warc: Input/output error" in done.err
    record = done.record
    assert (record["complete"], record["problems"], record["total"]["files"]) == (False, 1, 5)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_named_pipe_is_opened_once(tmp_path: Path) -> None:
    path = tmp_path / "sites"
    os.mkfifo(path)  # type: ignore[attr-defined, unused-ignore]
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(path.write_bytes, tar_of(FILES))
        done = tool("survey", str(path), "--json", "--processes", "1")
        assert done.record["total"]["files"] == 5
        assert writing.result() > 0


def test_a_damaged_archive(run: Run, tmp_path: Path) -> None:
    whole = warc_of(("200 OK", b"User-agent: *"), ("200 OK", os.urandom(5000)))
    (tmp_path / "a.warc.gz").write_bytes(whole[:-1000])
    done = run("survey", "a.warc.gz", "--json")
    assert done.code == 3
    assert "a.warc.gz: no readable record" in done.err
    assert done.record["total"]["files"] == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none"], "cannot read none: No such file or directory"),
        (["robots.txt"], "cannot read robots.txt as a tar file"),
        (["https://example.com"], "https://example.com is not the URL of a store"),
        (["sqlite:///none.sqlite"], "there is no file none.sqlite"),
        (["memory://a"], "it ends with the process that has it"),
        (["sqlite:///robots.txt"], "file is not a database"),
        ([".", "--compare", "none"], "cannot read none"),
        ([".", "--compare", "robots.txt"], "robots.txt is not the JSON of a survey"),
        ([".", "--html", "none/x.html"], "cannot write none/x.html"),
        ([".", "--depth", "-1"], "--depth"),
        ([".", "--processes", "0"], "it must be a number from 1 to 1,000"),
    ],
)
def test_wrong_arguments(run: Run, arguments: list[str], message: str) -> None:
    done = run("survey", *arguments)
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert done.err.count("\n") == 1


@pytest.mark.parametrize(
    "text", ["[]", "[" * 100_000, '{"type": "survey", "version": 2}', '{"type": "x"}', "\xff"]
)
def test_a_comparison_with_something_else(run: Run, tmp_path: Path, text: str) -> None:
    (tmp_path / "x.json").write_text(text, "latin-1")
    done = run("survey", "robots.txt", "--compare", "x.json")
    assert done.code == 2
    assert "x.json" in done.err


def test_two_surveys(run: Run, tmp_path: Path, folder: Path) -> None:
    (tmp_path / "old.json").write_text(run("survey", str(folder), "--json").out)
    assert "No share differs" in run("survey", str(folder), "--compare", "old.json").out
    (folder / "new.txt").write_bytes(b"User-agent: *\nCrawl-delay: 3\n")
    record = run("survey", str(folder), "--compare", "old.json", "--json").record
    validate(record, "survey")
    rows = {(row["measure"], row["name"]): row for row in record["differences"]}
    delay = rows["feature", "crawl-delay"]
    assert delay["before"] == 0.2
    assert delay["after"] == 0.333333
    assert delay["change"] == 0.133333
    assert "crawl-delay" in run("survey", str(folder), "--compare", "old.json").out


def test_a_damaged_survey_counts_as_zero() -> None:
    odd: dict[str, Any] = {
        "files": "x",
        "features": [1],
        "agents": [1, {"agent": []}],
        "purposes": {"a": 1},
        "statuses": {"200": 10**400, "404": True},
        "findings": {"R1": -1},
    }
    assert differences({"files": 1, "features": {"a": 1}}, odd)[0]["change"] == 1
    assert differences(odd, odd) == []


def test_processes_count_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(survey_workers, "BATCH_FILES", 10)
    bodies = generated.files(60).values()
    samples = [Sample(body, stratum=str(number % 3)) for number, body in enumerate(bodies)]
    one, is_complete = survey_workers.survey_of(samples, 1)
    two, _ = survey_workers.survey_of(samples, 2)
    assert is_complete
    assert one.as_json() == two.as_json()
    assert one.total.files == 60
    assert one.total.named.error == 0


def test_a_process_that_ends_is_one_line(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(_: object) -> Any:
        connection, other = multiprocessing.Pipe()
        other.close()
        return connection, FakeProcess()

    monkeypatch.setattr(survey_workers, "BATCH_FILES", 1)
    monkeypatch.setattr(process_pool, "_start", start)
    done = run("survey", str(folder), "--processes", "2")
    assert (done.code, done.out) == (3, "")
    assert done.err == ("scrapy-rep: a process that counts has ended, perhaps for lack of memory\n")


def test_ctrl_c_gives_what_it_has(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def samples(self: object) -> Iterator[Sample]:
        yield from [Sample(b"User-agent: *")] * 3
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(survey_workers, "BATCH_FILES", 1)
    monkeypatch.setattr(survey_inputs.Inputs, "samples", samples)
    done = run("survey", str(folder), "--json", "--processes", "1")
    assert done.code == 130
    assert not done.record["complete"]
    assert done.record["total"]["files"] == 3
    assert "interrupted" in done.err


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch, threads: None) -> None:
    monkeypatch.setattr(survey_workers, "BATCH_FILES", 1)


@pytest.mark.usefixtures("pool")
def test_ctrl_c_keeps_what_the_processes_count() -> None:
    def samples() -> Iterator[Sample]:
        yield from [Sample(b"User-agent: *")] * 6
        raise KeyboardInterrupt

    found, is_complete = survey_workers.survey_of(samples(), 2)
    assert not is_complete
    assert found.total.files == 6


@pytest.mark.usefixtures("pool")
def test_a_survey_in_a_thread() -> None:
    with ThreadPoolExecutor(1) as threads:
        done = threads.submit(survey_workers.survey_of, [Sample(b"")] * 9, 2)
        found, is_complete = done.result()
    assert is_complete
    assert found.total.files == 9


def test_the_number_of_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {1, 5, 7}, raising=False)
    assert survey_workers.default_processes() == 3
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert survey_workers.default_processes() == 1


def test_a_large_batch_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(survey_workers, "BATCH_OCTETS", 10)
    done: list[int] = []
    survey_workers.survey_of([Sample(b"a: b\n")] * 5, 1, done.append)
    assert done == [2, 4, 5]


def test_errors_of_counts_are_said(
    run: Run, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(survey, "CAPACITY", 1)
    done = run("survey", str(folder), "--html", "x.html")
    text = "Each number of an agent may be up to 2 too small."
    assert text in done.out
    assert text in (tmp_path / "x.html").read_text("utf-8")


def test_a_page_says_what_is_left_out(run: Run, tmp_path: Path) -> None:
    files = {f"site{number}/robots.txt": b"a: b" for number in range(MAX_STRATA + 5)}
    (tmp_path / "x.tar").write_bytes(tar_of(files))
    (tmp_path / "old.json").write_text(run("survey", "x.tar", "--json").out)
    run("survey", "x.tar", "--html", "x.html", "--compare", "old.json")
    page = (tmp_path / "x.html").read_text("utf-8")
    assert "5 sites of other strata count only in the total." in page
    assert "No share differs from the other survey." in page


def test_a_page_that_cannot_be_written(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", fail)
    done = run("survey", str(folder), "--html", "x.html")
    assert done.code == 2
    assert "cannot write x.html: No space left on device" in done.err
    assert "5 sites" in done.out


def test_an_entry_of_a_store_that_cannot_be_read(run: Run, tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "a.sqlite", ttl=1e6)
    store.add("https://a.example", Entry(AccessResult.UNAVAILABLE, 1, 2, 2), replace=True)
    store._connect().execute("UPDATE entries SET entry = x'00'")
    store.disconnect()
    done = run("survey", "sqlite:///a.sqlite", "--json")
    assert done.code == 3
    assert "the entry of https://a.example cannot be read" in done.err


@pytest.mark.skipif(sys.platform == "win32", reason="there are no process groups")
def test_ctrl_c_while_processes_count() -> None:
    files = {f"{number}": b"User-agent: *\nDisallow: /x" for number in range(4_000)}
    arguments = ("survey", "-", "--json", "--processes", "2")
    with started(*arguments, stdin=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdin is not None
        # All is written once the tool has read all but a part: it waits for more.
        process.stdin.write(tar_of(files)[: 3_900 * 1024])
        process.stdin.flush()
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        out, err = process.communicate()
    assert process.returncode == 130, err
    assert err == b"note: interrupted: this is what was counted until then\n"
    record = json.loads(out)
    assert not record["complete"]
    assert 500 <= record["total"]["files"] < 4_000


def test_many_strata(run: Run, tmp_path: Path) -> None:
    files = {f"site{number}/robots.txt": b"a: b" for number in range(MAX_STRATA + 5)}
    (tmp_path / "x.tar").write_bytes(tar_of(files))
    record = run("survey", "x.tar", "--json").record
    assert len(record["strata"]) == MAX_STRATA
    assert record["strata_left_out"] == 5
    assert record["total"]["files"] == MAX_STRATA + 5
    text = run("survey", "x.tar").out
    assert "5 sites are in other strata." in text
    assert "more strata" in text
    assert run("survey", "x.tar", "--json", "--depth", "0").record["strata"] == {}


def test_strata_beyond_the_limit_are_merged() -> None:
    one, two = Survey({}), Survey({})
    for number in range(MAX_STRATA):
        one.add(Sample(b"", stratum=str(number)))
    two.add(Sample(b"", stratum="0"))
    two.add(Sample(b"", stratum="x"))
    one.merge(two)
    assert one.strata["0"].files == 2
    assert one.strata_left_out == 1
    assert one.total.files == 52


def test_text_fits_80_columns(run: Run, tmp_path: Path) -> None:
    files = {f"{number % 3}/{name}": body for number, (name, body) in enumerate(_generated())}
    (tmp_path / "x.tar.gz").write_bytes(gzip.compress(tar_of(files)))
    done = run("survey", "x.tar.gz")
    assert done.code == 0
    assert max(map(len, done.out.splitlines())) <= 80
    for title in ("Files with", "Agents named most", "Findings of lint", "Stratum"):
        assert title in done.out


def _generated() -> Iterator[tuple[str, bytes]]:
    yield from generated.files(300).items()


def test_files_that_cannot_be_read(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Any, *_: Any) -> Any:
        if str(path).endswith(("news", "e.txt")):
            raise PermissionError(13, "Permission denied")
        return scandir(path) if Path(path).is_dir() else open(path, "rb")

    scandir = os.scandir
    monkeypatch.setattr(os, "scandir", refuse)
    monkeypatch.setattr(survey_inputs, "open", refuse, raising=False)
    done = run("survey", str(folder), "--json")
    assert done.code == 3
    assert done.record["problems"] == 2
    assert done.record["total"]["files"] == 2
    assert "e.txt: Permission denied" in done.err


def test_links_are_not_followed(run: Run, folder: Path) -> None:
    (folder / "loop").symlink_to(folder)
    (folder / "link.txt").symlink_to(folder / "e.txt")
    assert run("survey", str(folder), "--json").record["total"]["files"] == 5


def test_a_page(run: Run, folder: Path, tmp_path: Path) -> None:
    (folder / "odd.txt").write_bytes(b"User-agent: <script>alert(1)</script>\n<img src=x>: 1\n")
    (folder / "<img src=x onerror=alert(1)>").mkdir()
    (folder / "<img src=x onerror=alert(1)>" / "a").write_bytes(
        b'User-agent: *\nContent-Signal: <b>"\'&=no, "><script>=yes'
    )
    (tmp_path / "old.json").write_text(run("survey", str(folder), "--json").out)
    (folder / "f.txt").write_bytes(FILES["news/d.txt"])
    done = run("survey", str(folder), "--html", "x.html", "--compare", "old.json")
    assert done.code == 0
    assert "the page is x.html" in done.err
    page = (tmp_path / "x.html").read_text("utf-8")
    assert "Content-Security-Policy" in page
    assert "default-src" in page
    assert "<img" not in page
    assert page.count("<script>") == 1
    assert "<script></script>" in page
    assert "&lt;img src=x onerror=alert(1)&gt;" in page
    for text in ("How large is a file?", "AI agents", "Strata", "Differences", "gptbot"):
        assert text in page
    assert json.loads((tmp_path / "old.json").read_text())["total"]["files"] == 7


def test_a_page_of_nothing(run: Run, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = run("survey", "empty", "--html", "x.html")
    assert done.code == 0
    assert "0 sites" in done.out
    assert "There are no findings." in (tmp_path / "x.html").read_text("utf-8")


def test_an_archive_without_the_package(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.warc").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "warcio.archiveiterator", None)
    monkeypatch.delitem(sys.modules, "scrapy_rep.reports.archive_reader", raising=False)
    monkeypatch.delattr("scrapy_rep.reports.archive_reader", raising=False)
    done = run("survey", "a.warc")
    assert done.code == 2
    assert "pip install warcio" in done.err

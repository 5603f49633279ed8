"""The subcommand ``lint``, run as its users do."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from scrapy_rep.commands.context import Context, run_without_network
from scrapy_rep.commands.main import main
from scrapy_rep.commands.policy import Access, Policy
from scrapy_rep.protocol.lint_codes import Code
from scrapy_rep.protocol.robotstxt import RobotsTxt

from .conftest import ROOT, schema, validate

if TYPE_CHECKING:
    from collections.abc import Iterator

BODY = "User-agent: *\r\nDissallow private # ツ\r\nfoo: a\r\nSitemap: /a.xml\r\n".encode()
FIXED = "User-agent: *\r\nDisallow: /private # ツ\r\nfoo: a\r\nSitemap: /a.xml\r\n".encode()


@pytest.fixture
def robots_txt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "robots.txt"
    path.write_bytes(BODY)
    return path


@pytest.fixture
def site() -> Iterator[str]:
    """A site on loopback: /robots.txt by the port, and nothing else."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(BODY)

        def log_message(self, *args: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def run(*arguments: str, **options: Any) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "scrapy_rep.commands", "lint", *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"},
        capture_output=True,
        timeout=120,
        **options,
    )


def give_input(monkeypatch: pytest.MonkeyPatch, body: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(body), encoding="utf-8"))


def lines_of(name: str) -> list[str]:
    return [
        f"{name}:2:1: warning R202 missing-colon: the colon is missing; write 'disallow:'",
        f"{name}:2:1: warning R203 misspelled-field: 'dissallow' is misspelled; write 'disallow:'",
        f"{name}:2:11: error R401 missing-slash: the pattern 'private' never matches; "
        "write '/private', as every path begins with a slash",
        f"{name}:3:1: info R206 unknown-field: unknown field 'foo', the line is skipped; "
        "remove it if it is a mistake",
        f"{name}:4:10: error R502 relative-url: the sitemap '/a.xml' is no absolute URL; "
        "write its whole URL, such as https://example.com/sitemap.xml",
    ]


@pytest.mark.usefixtures("robots_txt")
def test_a_file_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", "robots.txt"]) == 1
    written = capsys.readouterr()
    assert written.out.splitlines() == lines_of("robots.txt")
    assert written.err == "note: 5 findings; --fix corrects 3\n"


@pytest.mark.usefixtures("robots_txt")
@pytest.mark.parametrize(
    ("arguments", "code", "found"),
    [
        (["--select", "R2"], 1, ["R202", "R203", "R206"]),
        (["--select", "R206"], 0, ["R206"]),
        (["--select", "missing-slash,R5"], 1, ["R401", "R502"]),
        (["--select", "R4", "--select", "R5", "--ignore", "relative-url"], 1, ["R401"]),
        (["--ignore", "R2,R4", "--ignore", "R5"], 0, []),
    ],
)
def test_codes(
    arguments: list[str], code: int, found: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lint", "robots.txt", "--json", *arguments]) == code
    assert [json.loads(line)["code"] for line in capsys.readouterr().out.splitlines()] == found


@pytest.mark.usefixtures("robots_txt")
def test_a_strict_reading(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["--strict"], ["-s", "REP_STRICT=True"]):
        main(["lint", "robots.txt", "--select", "R202", *arguments])
        assert "error R202" in capsys.readouterr().out


@pytest.mark.usefixtures("robots_txt")
def test_json_is_what_its_schema_says(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", "robots.txt", "--format", "json"]) == 1
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(records) == 5
    for record in records:
        validate(record, "lint")
        assert [*record] == schema("lint")["required"]


@pytest.mark.usefixtures("robots_txt")
def test_formats_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", "robots.txt", "--format", "github", "--select", "R401"]) == 1
    written = capsys.readouterr()
    assert written.out.startswith("::error file=robots.txt,line=2,endLine=2,col=11,endColumn=18,")
    assert written.err == ""
    assert main(["lint", "robots.txt", "--format", "sarif"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["version"] == "2.1.0"
    assert len(document["runs"][0]["results"]) == 5


def test_fix(robots_txt: Path, capsys: pytest.CaptureFixture[str]) -> None:
    robots_txt.chmod(0o640)
    assert main(["lint", "robots.txt", "--fix"]) == 1
    assert robots_txt.read_bytes() == FIXED
    assert robots_txt.stat().st_mode & 0o777 == 0o640
    written = capsys.readouterr()
    assert "note: robots.txt is corrected\n" in written.err
    assert [line.split()[2] for line in written.out.splitlines()] == ["R206", "R502"]
    assert main(["lint", "robots.txt", "--fix"]) == 1
    assert "corrected" not in capsys.readouterr().err


def test_fix_only_some(robots_txt: Path) -> None:
    assert main(["lint", "robots.txt", "--fix", "--select", "R202"]) == 0
    assert robots_txt.read_bytes() == BODY.replace(b"low p", b"low: p")
    assert main(["lint", "robots.txt", "--fix", "--ignore", "R4"]) == 1
    assert robots_txt.read_bytes() == BODY.replace(b"Dissallow p", b"Disallow: p")


def test_a_file_that_cannot_be_written(
    robots_txt: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(file: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", refuse)
    assert main(["lint", "robots.txt", "--fix"]) == 2
    assert (
        capsys.readouterr().err == "scrapy-rep: cannot write robots.txt: No space left on device\n"
    )
    assert [path.name for path in robots_txt.parent.iterdir()] == ["robots.txt"]
    assert robots_txt.read_bytes() == BODY


def test_standard_input(
    monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    give_input(monkeypatch, BODY)
    assert main(["lint", "-"]) == 1
    assert capsysbinary.readouterr().out.decode().splitlines() == lines_of("-")
    give_input(monkeypatch, BODY)
    assert main(["lint", "-", "--fix"]) == 1
    assert capsysbinary.readouterr().out == FIXED


@pytest.mark.usefixtures("robots_txt")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.txt"], "cannot read missing.txt: No such file or directory"),
        (["./missing"], "cannot read ./missing: No such file or directory"),
        (["folder"], "cannot read folder: Is a directory"),
        (["mailto:a"], "mailto:a is neither a file nor a site"),
        (["https://h/", "--fix"], "--fix corrects files, and https://h/ is none"),
        (["robots.txt", "--select", "R999"], "'R999' is no code of a finding"),
        (["robots.txt", "--ignore", "R1,"], "'' is no code of a finding"),
        (["robots.txt", "--format", "xml"], "invalid choice: 'xml'"),
        (["robots.txt", "a.txt", "--pages", "p"], "--pages takes one FILE or URL"),
        (["robots.txt", "--pages", "missing"], "cannot read missing: No such file"),
        ([], "the following arguments are required: FILE|URL"),
    ],
)
def test_wrong_arguments(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("folder").mkdir()
    assert main(["lint", *arguments]) == 2
    written = capsys.readouterr()
    assert message in written.err
    assert written.err.count("\n") == 1


@pytest.mark.parametrize("body", [b"\0\xff\xfe" * 1000, b"User-agent: *\nDisallow: /\x1b[2J\n"])
def test_binary_files(tmp_path: Path, body: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "robots.txt"
    path.write_bytes(body)
    assert main(["lint", str(path), "--fix"]) in {0, 1}
    assert "\x1b" not in capsys.readouterr().out


PAGES = {
    "csv": "url,robots\nhttps://h/private/a,noindex\nhttps://h/b,noindex\nh/private/c,none\n",
    "frog": 'Address;Status;"Meta Robots 1";"X-Robots-Tag 1"\nhttps://h/private/a;200;;noindex\n'
    "https://h/private/b;200;noindex;\n/c;200;noindex;\n",
    "jsonl": '{"url": "/private/a", "robots": "noindex"}\n\n'
    '{"url": "/private/b", "x_robots_tag": "noindex"}\n{"url": "/private/c", "robots": null}\n',
}


@pytest.mark.parametrize("form", PAGES)
def test_pages(form: str, robots_txt: Path, capsys: pytest.CaptureFixture[str]) -> None:
    robots_txt.write_text("User-agent: *\nDisallow: /private\n", encoding="utf-8")
    Path("pages").write_text(PAGES[form], encoding="utf-8")
    assert main(["lint", "robots.txt", "--pages", "pages"]) == 1
    written = capsys.readouterr().out
    assert written.startswith(
        f"robots.txt:2:1: warning {Code.HIDDEN_NOINDEX} hidden-noindex: disallow '/private' hides "
        "the noindex of 2 pages, such as '"
    )
    assert written.count("\n") == 1
    assert main(["lint", "robots.txt", "--pages", "pages", "--ignore", "R7"]) == 0
    assert main(["lint", "robots.txt", "--pages", "pages", "-a", "mybot"]) == 1
    robots_txt.write_text("User-agent: mybot\nDisallow: /private\n", encoding="utf-8")
    assert main(["lint", "robots.txt", "--pages", "pages"]) == 0
    assert main(["lint", "robots.txt", "--pages", "pages", "-a", "mybot/1.0"]) == 1


@pytest.mark.parametrize(
    ("pages", "message"),
    [
        ("a,b\n1,2\n", "a row has none of the fields url, address, loc"),
        ('{"url": 1}\n', "a row has none of the fields"),
        ('{"url": "/a"}\n[]\n', "a line is no JSON object"),
        ('{"url": "/a"\n', "cannot read pages as CSV or JSON Lines"),
        ('{"url": ' + "[" * 100_000, "the JSON is nested too deeply"),
    ],
)
@pytest.mark.usefixtures("robots_txt")
def test_pages_that_cannot_be_read(
    pages: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("pages").write_bytes(pages.encode("utf-8", "surrogateescape"))
    assert main(["lint", "robots.txt", "--pages", "pages"]) == 2
    assert message in capsys.readouterr().err


def test_pages_without_a_url_are_noted(
    robots_txt: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    robots_txt.write_text("User-agent: *\nDisallow: /private\n", encoding="utf-8")
    give_input(monkeypatch, b"url,robots\nhttp://,noindex\n/private,noindex\n")
    assert main(["lint", "robots.txt", "--pages", "-"]) == 1
    written = capsys.readouterr()
    assert "note: http:// is no URL" in written.err
    assert written.out.count("R701") == 1


def test_colors_on_a_terminal(
    robots_txt: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    robots_txt.write_bytes(b"User-agent: *\nDisallow: a\n")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("COLUMNS", "300")
    assert main(["lint", "robots.txt"]) == 1
    assert "\x1b[31merror\x1b[0m R401 missing-slash" in capsys.readouterr().out
    monkeypatch.setenv("NO_COLOR", "1")
    assert main(["lint", "robots.txt"]) == 1
    assert "[31m" not in capsys.readouterr().out


def test_a_site(site: str, tmp_path: Path) -> None:
    done = run(f"{site}/shop", cwd=tmp_path)
    assert done.stderr.decode() == "note: 5 findings; --fix corrects 3\n"
    assert done.stdout.decode().splitlines() == lines_of(f"{site}/robots.txt")
    assert done.returncode == 1


class Answers:
    """A session with the policies of some sites."""

    def __init__(self, policies: dict[str, Policy | None]) -> None:
        self._policies = policies

    async def get_policy(self, origin: str) -> Policy | None:
        return self._policies[origin]


def policy(origin: str, body: bytes | None, *, state: str = "rules", keep: bool = True) -> Policy:
    robots = None if body is None else RobotsTxt(body)
    access = Access(
        f"{origin}/robots.txt", "site", state, status=404, failure="timeout" if keep else None
    )
    return Policy(origin, robots, RobotsTxt(b"").verdict, access, body if keep else None)


@pytest.fixture
def sites(monkeypatch: pytest.MonkeyPatch) -> None:
    policies = {
        "https://rules.example": policy("https://rules.example", BODY),
        "http://stored.example": policy("http://stored.example", BODY, keep=False),
        "https://none.example": policy("https://none.example", None, state="unavailable"),
        "https://down.example": policy("https://down.example", None, state="unreachable"),
        "https://closing.example": None,
    }

    def run(self: Context, work: Any, *, keep_bodies: bool = False) -> Any:
        assert keep_bodies
        return run_without_network(work(Answers(policies)))

    monkeypatch.setattr(Context, "run", run)


@pytest.mark.usefixtures("sites", "robots_txt")
def test_sites_and_files(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", "rules.example", "robots.txt", "http://stored.example/a"]) == 1
    written = capsys.readouterr()
    assert written.out.splitlines() == [
        *lines_of("https://rules.example/robots.txt"),
        *lines_of("robots.txt"),
        *lines_of("http://stored.example/robots.txt"),
    ]
    assert written.err.startswith(
        "note: rules.example is no file: it is taken for https://rules.example\n"
    )


@pytest.mark.usefixtures("sites")
@pytest.mark.parametrize(
    ("site", "code", "remark"),
    [
        ("none", 0, "note: https://none.example/robots.txt does not exist: status 404\n"),
        ("down", 3, "warning: https://down.example/robots.txt is unreachable: timeout\n"),
        ("closing", 130, ""),
    ],
)
def test_sites_without_rules(
    site: str, code: int, remark: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lint", f"https://{site}.example/"]) == code
    written = capsys.readouterr()
    assert (written.out, written.err) == ("", remark)


def test_a_site_that_does_not_answer(tmp_path: Path) -> None:
    path = tmp_path / "robots.txt"
    path.write_bytes(BODY)
    done = run(
        "http://127.0.0.1:1/", str(path), "-s", "REP_RETRY_TIMES=0", "--format", "json",
        cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 3
    assert b"warning: http://127.0.0.1:1/robots.txt is unreachable" in done.stderr
    assert b"Traceback" not in done.stderr
    assert len(done.stdout.splitlines()) == 5


def test_several_crawlers_are_refused(robots_txt: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("pages").write_text("url,robots\n", encoding="utf-8")
    assert main(["lint", str(robots_txt), "--pages", "pages", "-a", "ai-training"]) == 2
    assert "-a takes one crawler, and ai-training stands for" in capsys.readouterr().err


def test_the_hook_runs_the_command() -> None:
    hook = (ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8")
    assert "- id: scrapy-rep-lint\n" in hook
    assert "  entry: scrapy-rep lint\n" in hook
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert 'scrapy-rep = "scrapy_rep.commands.main:console"' in project
    assert 'cli = ["rich>=13"]' in project
    assert '"rich>=13"' in hook

"""The installed commands, as processes of their own: in a project, outside of one, interrupted.

Each process takes about a second, so what one process can show is in one test.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from testing.web import Page, Web

from .conftest import ROBOTS, TIMEOUT, environment_of, started, tool

RULES = "User-agent: *\nDisallow: /x\n"
AT_ONCE = ("-s", "REP_RETRY_TIMES=0")
SCRAPY = ("scrapy", "robots")

FULL = "cannot write the output: No space left on device"

PROJECT = """\
import pathlib

BOT_NAME = "project"
USER_AGENT = "projectbot/1.0 (+https://example.com)"
ROBOTSTXT_OBEY = False
SPIDER_LOADER_CLASS = "no_such_module.SpiderLoader"
SPIDER_MODULES = ["no_such_module"]
ITEM_PIPELINES = {"no_such_module.Pipeline": 1}
EXTENSIONS = {"no_such_module.Extension": 1}
SCHEDULER = "no_such_module.Scheduler"
JOBDIR = "job"
LOG_FILE = "log.txt"
FEEDS = {"out.json": {"format": "json"}}
CLOSESPIDER_PAGECOUNT = 1
REP_TDMREP = True
REP_ARCHIVE = "archive/%(name)s.warc.gz"
REP_STORE = f"sqlite:///{pathlib.Path(__file__).parent}/store.sqlite"
DEFAULT_REQUEST_HEADERS = {"X-Project": "yes"}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A Scrapy project with settings that would disturb a tool."""
    (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = projectsettings\n")
    (tmp_path / "projectsettings.py").write_text(PROJECT)
    return tmp_path


def test_in_a_project_its_settings_count(web: Web, project: Path) -> None:
    site, other = web.site(RULES), web.site(RULES)
    before = {path.name for path in project.iterdir()}
    first = tool("check", site.url("/x"), other.url("/y"), "--json", cwd=project, command=SCRAPY)
    assert first.code == 1
    assert first.err.startswith("warning: the settings turn ROBOTSTXT_OBEY off: ")
    assert first.err.count("\n") == 1
    assert {record["agent"] for record in first.records} == {
        "projectbot/1.0 (+https://example.com)"
    }
    assert site.paths == ["/robots.txt"]
    (received,) = site.received
    assert (received.path, received.headers["x-project"]) == ("/robots.txt", "yes")
    assert received.headers["user-agent"] == "projectbot/1.0 (+https://example.com)"
    second = tool("check", site.url("/x"), "--json", cwd=project)
    assert second.record["robots_txt"]["source"] == "store"
    assert site.robots_fetches == 1
    written = {path.name.partition(".")[0] for path in project.iterdir()} - {
        name.partition(".")[0] for name in before
    }
    assert written <= {"store", "__pycache__"}


def test_scrapy_robots_refuses_unknown_options() -> None:
    done = tool("check", "--nothing", "/", command=SCRAPY)
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert done.err.startswith("scrapy robots: No such option '--nothing'")


def output_of(code: str) -> str:
    """Return the standard output of Python code that runs in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", code],
        env=environment_of(),
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=True,
    ).stdout


def test_scrapy_version_loads_only_the_command_itself() -> None:
    code = (
        "import sys\nfrom scrapy.cmdline import execute\n"
        "try:\n    execute(['scrapy', 'version'])\nexcept SystemExit:\n    pass\n"
        "print(sorted(name for name in sys.modules"
        " if name.startswith(('scrapy_rep', 'rich', 'click', 'msgspec', 'warcio'))))\n"
        "print('twisted.internet.reactor' in sys.modules)"
    )
    assert output_of(code).splitlines()[-2:] == [
        "['scrapy_rep', 'scrapy_rep.scrapy_command']",
        "False",
    ]


def test_a_crawl_loads_no_command(web: Web) -> None:
    site = web.site(RULES)
    code = (
        "import sys\nimport scrapy\nfrom scrapy.crawler import AsyncCrawlerProcess\n"
        "class Spider(scrapy.Spider):\n    name = 'x'\n"
        f"    start_urls = [{site.url('/y')!r}]\n    def parse(self, response): pass\n"
        "process = AsyncCrawlerProcess({'ADDONS': {'scrapy_rep.Addon': 500},"
        " 'LOG_ENABLED': False, 'TELNETCONSOLE_ENABLED': False})\n"
        "process.crawl(Spider)\nprocess.start()\n"
        "print([name for name in sys.modules"
        " if name.startswith(('scrapy_rep.commands', 'rich', 'click', 'msgspec'))])"
    )
    assert output_of(code) == "[]\n"
    assert site.paths == ["/robots.txt", "/y"]


def test_a_project_without_a_reactor_and_the_log(web: Web) -> None:
    site, down = web.site(RULES), web.site(Page(b"", 503))
    options = ("-s", "TWISTED_REACTOR_ENABLED=False", "-s", "LOG_LEVEL=INFO", *AT_ONCE)
    done = tool("check", site.url("/x"), down.url("/"), "--json", "-a", "x", *options)
    assert [record["reason"] for record in done.records] == ["rules", "unreachable"]
    assert done.code == 3
    assert f"note: {down.url('/robots.txt')} is unreachable: status 503\n" in done.err
    assert "Spider opened" in done.err


def test_a_broken_pipe_is_silent(tmp_path: Path) -> None:
    (tmp_path / "robots.txt").write_text(ROBOTS)
    (tmp_path / "urls.txt").write_text("".join(f"/private/{n}\n" for n in range(200_000)))
    arguments = ("check", "--robots", "robots.txt", "--from", "urls.txt", "-a", "x")
    with started(*arguments, cwd=tmp_path) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        errors = process.stderr.read().decode()
        assert process.wait(TIMEOUT) == 141
    assert "Traceback" not in errors
    assert "Exception" not in errors


@pytest.mark.parametrize("name", ["check", "view"])
def test_ctrl_c_while_a_site_does_not_answer(web: Web, name: str) -> None:
    slow = Page(delay=2 * TIMEOUT)
    site = web.site(RULES, {"/slow": slow}) if name == "view" else web.site(slow)
    with started(name, site.url("/slow"), "-a", "x", text=True) as process:
        _wait_until(lambda: "/slow" in site.paths or (name == "check" and site.received))
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate()
    assert (process.returncode, out, errors) == (130, "", "")


def test_ctrl_c_while_modules_are_imported(tmp_path: Path) -> None:
    """The console script presses Ctrl-C when Scrapy is imported, which takes most of the start."""
    done = subprocess.run(
        [sys.executable, "-c", IMPORTING, "check", "https://example.com/"],
        cwd=tmp_path,
        env=environment_of(),
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


IMPORTING = """\
import os, signal, sys

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "scrapy":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Finder())
from scrapy_rep.commands.main import console
console()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["INT", "TERM"])
def test_signals_while_a_tool_waits_for_input(number: int) -> None:
    with started("lint", "-", stdin=subprocess.PIPE) as process:
        waiting = Path(f"/proc/{process.pid}/wchan")
        until = time.monotonic() + 20
        while "pipe" not in waiting.read_text() and time.monotonic() < until:
            time.sleep(0.05)
        process.send_signal(number)
        out, errors = process.communicate()
    code = 130 if number == signal.SIGINT else -number
    assert (process.returncode, out, errors) == (code, b"", b"")


def test_completion_in_the_shell() -> None:
    environment = {"_SCRAPY_REP_COMPLETE": "bash_complete", "COMP_CWORD": "2"}
    code = "import sys; sys.argv[0] = 'scrapy-rep'; from scrapy_rep.commands.main import console"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}; console()"],
        env=environment_of(COMP_WORDS="scrapy-rep check --fr", **environment),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.splitlines() == ["plain,--from", "plain,--from-format"]


@pytest.mark.parametrize(
    ("line", "code", "out", "err"),
    [
        ("check --robots robots.txt /private -a x >&-", 1, "", ""),
        ("check --robots missing.txt / 2>/dev/full", 2, "", ""),
        ("check --robots robots.txt / >&- 2>&- <&-", 0, "", ""),
        ("show robots.txt >/dev/full", 2, "", f"scrapy-rep: {FULL}\n"),
    ],
)
def test_streams_that_are_closed_or_full(
    tmp_path: Path, line: str, code: int, out: str, err: str
) -> None:
    (tmp_path / "robots.txt").write_text(ROBOTS)
    done = subprocess.run(
        ["/bin/sh", "-c", f'"$0" -m scrapy_rep.commands.main {line}', sys.executable],
        cwd=tmp_path,
        env=environment_of(),
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    assert (done.returncode, done.stdout.partition("\n")[0], done.stderr) == (code, out, err)


def _wait_until(condition: object) -> None:
    assert callable(condition)
    until = time.monotonic() + TIMEOUT
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.05)


def test_unencodable_characters_are_escaped(tmp_path: Path) -> None:
    (tmp_path / "robots.txt").write_text("User-agent: *\nDisallow: /ü✓\n", encoding="utf-8")
    done = tool(
        *("check", "--robots", "robots.txt", "/ü✓", "-a", "x"),
        cwd=tmp_path,
        PYTHONIOENCODING="ascii",
    )
    assert done.code == 1
    assert "\\xfc\\u2713" in done.out
    assert os.linesep.join(["", ""]) in done.out

"""The installed commands, as processes of their own: in a project, interrupted, in a terminal.

Each process takes about a second, so what one process can show is in one test.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

from testing.redis_server import wait_until
from testing.web import Page, Web

from .conftest import TIMEOUT, content, environment_of, started, tool, write

pytestmark = pytest.mark.usefixtures("run")

RULES = "User-agent: *\nDisallow: /x\n"
AT_ONCE = ("-s", "REP_RETRY_TIMES=0")
SCRAPY = ("-m", "scrapy", "robots")

CHECK = ("check", "--robots", "robots.txt", "-a", "x")

FULL = "cannot write the output: No space left on device"

# Settings that would disturb a tool.
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


def test_in_a_project_its_settings_count(web: Web) -> None:
    write(scrapy_cfg="[settings]\ndefault = projectsettings\n", projectsettings_py=PROJECT)
    site, other = web.site(RULES), web.site(RULES)
    before = {path.name for path in Path().iterdir()}
    first = tool("check", site.url("/x"), other.url("/y"), "--json", python=SCRAPY)
    assert first.code == 1
    assert first.err.startswith("warning: the settings turn ROBOTSTXT_OBEY off: ")
    assert first.err.count("\n") == 1
    user_agent = "projectbot/1.0 (+https://example.com)"
    assert {record["agent"] for record in first.records} == {user_agent}
    (received,) = site.received
    assert (received.path, received.headers["x-project"]) == ("/robots.txt", "yes")
    assert received.headers["user-agent"] == user_agent
    second = tool("check", site.url("/x"), "--json")
    assert second.record["robots_txt"]["source"] == "store"
    assert site.paths == ["/robots.txt"]
    written = {path.name for path in Path().iterdir()} - before - {"__pycache__"}
    assert {name.partition(".")[0] for name in written} == {"store"}


def test_scrapy_version_loads_only_the_command_itself() -> None:
    code = (
        "import sys\nfrom scrapy.cmdline import execute\n"
        "try:\n    execute(['scrapy', 'version'])\nexcept SystemExit:\n    pass\n"
        "print(sorted(name for name in sys.modules"
        " if name.startswith(('scrapy_rep', 'rich', 'click', 'msgspec', 'warcio'))))\n"
        "print('twisted.internet.reactor' in sys.modules)"
    )
    assert tool(python=("-c", code)).out.splitlines()[-2:] == [
        "['scrapy_rep', 'scrapy_rep.scrapy_command']",
        "False",
    ]


def test_a_crawl_loads_no_command_and_nothing_of_reports(web: Web) -> None:
    site = web.site(RULES)
    code = (
        "import sys\nimport scrapy\nfrom scrapy.crawler import AsyncCrawlerProcess\n"
        "class Spider(scrapy.Spider):\n    name = 'x'\n"
        f"    start_urls = [{site.url('/y')!r}]\n    def parse(self, response): pass\n"
        "process = AsyncCrawlerProcess({'ADDONS': {'scrapy_rep.Addon': 500},"
        " 'LOG_ENABLED': False, 'TELNETCONSOLE_ENABLED': False})\n"
        "process.crawl(Spider)\nprocess.start()\n"
        "names = ('scrapy_rep.commands', 'scrapy_rep.reports', 'rich', 'click',"
        " 'msgspec', 'warcio')\n"
        "print([name for name in sys.modules if name.startswith(names)])"
    )
    assert tool(python=("-c", code)).out == "[]\n"
    assert site.paths == ["/robots.txt", "/y"]


def test_a_project_without_a_reactor_and_the_log(web: Web) -> None:
    site, down = web.site(RULES), web.site(Page(b"", 503))
    options = ("-s", "TWISTED_REACTOR_ENABLED=False", "-s", "LOG_LEVEL=INFO", *AT_ONCE)
    done = tool("check", site.url("/x"), down.url("/"), "--json", "-a", "x", *options)
    assert [record["reason"] for record in done.records] == ["rules", "unreachable"]
    assert done.code == 3
    assert f"note: {down.url('/robots.txt')} is unreachable: status 503\n" in done.err
    assert "Spider opened" in done.err


def test_a_broken_pipe_is_silent() -> None:
    write(urls_txt="".join(f"/private/{n}\n" for n in range(200_000)))
    with started(*CHECK, "--from", "urls.txt") as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        _, errors = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 141
    assert b"Traceback" not in errors
    assert b"Exception" not in errors


GO_ON = "warning: interrupted: this is what is known until now. To go on, run it again"
STORED = "; with -s REP_STORE=sqlite:///store.sqlite, what was fetched is not asked again"
SLOW = Page(delay=2 * TIMEOUT)


@pytest.mark.parametrize(
    ("name", "robots", "requested", "shown"),
    [("view", RULES, "/slow", ""), ("check", SLOW, "/robots.txt", f"{GO_ON}{STORED}\n")],
)
def test_ctrl_c_while_a_site_does_not_answer(
    web: Web, name: str, robots: str | Page, requested: str, shown: str
) -> None:
    site = web.site(robots, {"/slow": SLOW})
    with started(name, site.url("/slow"), "-a", "x", text=True) as process:
        wait_until(lambda: requested in site.paths, requested)
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=TIMEOUT)
    assert (process.returncode, out, errors) == (130, "", shown)


@pytest.mark.parametrize("arguments", [("check", "--from"), ("survey",)])
@pytest.mark.parametrize("store", [(), ("-s", "REP_STORE=sqlite:///s.sqlite")])
def test_ctrl_c_writes_what_is_known(
    web: Web, arguments: tuple[str, ...], store: tuple[str, ...]
) -> None:
    site, slow = web.site(RULES), web.site(SLOW)
    write(urls_txt=f"{site.url('/x')}\n{slow.url('/')}\n")
    with started(*arguments, "urls.txt", "--json", *store, text=True) as process:
        wait_until(lambda: site.paths and slow.paths, "both sites")
        if store:
            wait_until(lambda: site.root in content("s.sqlite"), "the entry")
        time.sleep(0.5)  # until the answer is with the tool
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=TIMEOUT)
    for record in map(json.loads, out.splitlines() if store else ()):
        assert record.get("url", site.url("/x")) == site.url("/x")
        assert (record.get("sites", 1), record.get("complete", False)) == (1, False)
    assert out or not store
    assert process.returncode == 130
    assert errors.endswith(f"{GO_ON}{'' if store else STORED}\n")


def test_ctrl_c_while_modules_are_imported() -> None:
    """The console script presses Ctrl-C when Scrapy is imported, which takes most of the start."""
    done = tool("check", "https://example.com/", python=("-c", IMPORTING))
    assert (done.code, done.out, done.err) == (130, "", "")


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
        wait_until(lambda: "pipe" in waiting.read_text(), "the tool")
        process.send_signal(number)
        out, errors = process.communicate(timeout=TIMEOUT)
    code = 130 if number == signal.SIGINT else -number
    assert (process.returncode, out, errors) == (code, b"", b"")


def test_completion_in_the_shell() -> None:
    environment = {"_SCRAPY_REP_COMPLETE": "bash_complete", "COMP_CWORD": "2"}
    code = "import sys; sys.argv[0] = 'scrapy-rep'; from scrapy_rep.commands.main import console"
    words = "scrapy-rep check --fro"
    done = tool(python=("-c", f"{code}; console()"), COMP_WORDS=words, **environment)
    assert done.out.splitlines() == ["plain,--from", "plain,--from-format"]


@pytest.mark.parametrize(
    ("line", "code", "err"),
    [
        ("check --robots robots.txt /private -a x >&-", 1, ""),
        ("check --robots missing.txt / 2>/dev/full", 2, ""),
        ("check --robots robots.txt / >&- 2>&- <&-", 0, ""),
        ("show robots.txt >/dev/full", 2, f"scrapy-rep: {FULL}\n"),
    ],
)
def test_streams_that_are_closed_or_full(line: str, code: int, err: str) -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", f'"$0" -m scrapy_rep.commands.main {line}', sys.executable],
        env=environment_of(),
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (code, "", err)


def test_unencodable_characters_are_escaped() -> None:
    write(robots_txt="User-agent: *\nDisallow: /ü✓\n")
    done = tool(*CHECK, "/ü✓", PYTHONIOENCODING="ascii")
    assert done.code == 1
    assert "\\xfc\\u2713" in done.out


def in_terminal(*arguments: str, columns: int = 80, stdout: int | None = None) -> tuple[int, str]:
    """Run a tool in a terminal. Returns its exit code, and what the terminal received."""
    controller, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-m", "scrapy_rep.commands.main", *arguments],
        env=environment_of(TERM="xterm-256color"),
        stdin=terminal,
        stdout=terminal if stdout is None else stdout,
        stderr=terminal,
    )
    os.close(terminal)
    received = b""
    with contextlib.suppress(OSError):  # the other side is closed
        while piece := os.read(controller, 65_536):
            received += piece
    os.close(controller)
    return process.wait(TIMEOUT), received.decode().replace("\r\n", "\n")


def test_a_terminal_has_a_width_and_colors() -> None:
    code, shown = in_terminal(*CHECK, "/private/" + "x" * 300, columns=200)
    assert (code, "\x1b[1;31mdisallowed" in shown) == (1, True)
    lines = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown).splitlines()
    assert 170 < max(map(len, lines)) <= 200
    write(urls_txt="".join(f"/private/{n}\n/{n}\n" for n in range(200)))
    _, shown = in_terminal(*CHECK, "--from", "urls.txt")
    assert shown.count("\x1b[31mdisallowed") == 200
    assert shown.count("\x1b[32mallowed") == 200
    assert "note: 400 answers: 200 allowed, 200 disallowed, 0 unknown" in shown


def test_progress_in_a_terminal() -> None:
    """With the output in a file, the line of a terminal shows what is done."""
    write(urls_txt="".join(f"/private/{n}\n" for n in range(50_000)))
    _, shown = in_terminal(*CHECK, "--from", "urls.txt", stdout=subprocess.DEVNULL)
    assert " of 50,000 URLs, " in shown
    assert "note: 50,000 answers: " in shown

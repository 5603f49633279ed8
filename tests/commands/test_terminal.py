"""The tools in a terminal: colors, width, Ctrl-C."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from typing import TYPE_CHECKING

import pytest

from testing.web import Page

from .conftest import ROBOTS, TIMEOUT, environment_of

if TYPE_CHECKING:
    from pathlib import Path

    from testing.web import Web

COLOR = re.compile(r"\x1b\[[0-9;]*m")
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def in_terminal(
    *arguments: str,
    cwd: Path,
    columns: int = 80,
    interrupt: object = None,
    **environment: str,
) -> tuple[int, str]:
    """Run a tool in a terminal. Returns its exit code, and what the terminal received.

    ``interrupt``: press Ctrl-C when this function returns true.
    """
    controller, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-m", "scrapy_rep.commands", *arguments],
        cwd=cwd,
        env=environment_of(TERM="xterm-256color", **environment),
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
    )
    os.close(terminal)
    received = b""
    until = time.monotonic() + TIMEOUT
    while time.monotonic() < until:
        readable, _, _ = select.select([controller], [], [], 0.1)
        if callable(interrupt) and interrupt():
            process.send_signal(signal.SIGINT)
            interrupt = None
        if readable:
            try:
                received += os.read(controller, 65_536)
            except OSError:  # the other side is closed
                break
    os.close(controller)
    return process.wait(TIMEOUT), received.decode().replace("\r\n", "\n")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "robots.txt").write_text(ROBOTS)
    (tmp_path / "urls.txt").write_text("".join(f"/private/{n}\n/{n}\n" for n in range(200)))
    return tmp_path


CHECK = ("check", "--robots", "robots.txt", "-a", "mybot")


def test_colors(folder: Path) -> None:
    code, shown = in_terminal(*CHECK, "/private/a", "/b", cwd=folder)
    assert code == 1
    assert COLOR.search(shown)
    assert "\x1b[31mdisallowed" in shown
    assert "\x1b[32mallowed" in shown


@pytest.mark.parametrize("columns", [60, 200])
def test_width(folder: Path, columns: int) -> None:
    _, shown = in_terminal(*CHECK, "/private/" + "x" * 300, cwd=folder, columns=columns)
    lines = ESCAPE.sub("", shown).splitlines()
    assert columns - 30 < max(map(len, lines)) <= columns


def test_no_color(folder: Path) -> None:
    code, shown = in_terminal(*CHECK, "/private/a", cwd=folder, NO_COLOR="1")
    assert code == 1
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]m", shown)
    assert "> 4" not in shown  # line 2 decides
    assert "Disallow: /private" in shown


def test_lines_have_colors_and_json_has_none(folder: Path) -> None:
    _, lines = in_terminal(*CHECK, "--from", "urls.txt", cwd=folder)
    assert lines.count("\x1b[31mdisallowed") == 200
    assert lines.count("\x1b[32mallowed") == 200
    assert "note: 400 answers: 200 allowed, 200 disallowed, 0 unknown" in lines
    _, as_json = in_terminal(*CHECK, "/a", "--json", cwd=folder)
    assert "\x1b" not in as_json


def test_ctrl_c_in_a_terminal(web: Web, tmp_path: Path) -> None:
    site = web.site(Page(ROBOTS, delay=60))
    code, shown = in_terminal(
        *("check", site.url("/a"), "-a", "mybot"),
        cwd=tmp_path,
        interrupt=lambda: bool(site.received),
    )
    assert (code, shown) == (130, "")

"""The tools in a terminal: colors and width."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from .conftest import ROBOTS, TIMEOUT, environment_of

ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def in_terminal(*arguments: str, cwd: Path, columns: int = 80) -> tuple[int, str]:
    """Run a tool in a terminal. Returns its exit code, and what the terminal received."""
    controller, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-m", "scrapy_rep.commands.main", *arguments],
        cwd=cwd,
        env=environment_of(TERM="xterm-256color"),
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
    )
    os.close(terminal)
    received = b""
    with contextlib.suppress(OSError):  # the other side is closed
        while piece := os.read(controller, 65_536):
            received += piece
    os.close(controller)
    return process.wait(TIMEOUT), received.decode().replace("\r\n", "\n")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "robots.txt").write_text(ROBOTS)
    (tmp_path / "urls.txt").write_text("".join(f"/private/{n}\n/{n}\n" for n in range(200)))
    return tmp_path


CHECK = ("check", "--robots", "robots.txt", "-a", "mybot")


def test_width_and_colors(folder: Path) -> None:
    code, shown = in_terminal(*CHECK, "/private/" + "x" * 300, cwd=folder, columns=200)
    assert (code, "\x1b[1;31mdisallowed" in shown) == (1, True)
    lines = ESCAPE.sub("", shown).splitlines()
    assert 170 < max(map(len, lines)) <= 200


def test_lines_have_colors(folder: Path) -> None:
    _, lines = in_terminal(*CHECK, "--from", "urls.txt", cwd=folder)
    assert lines.count("\x1b[31mdisallowed") == 200
    assert lines.count("\x1b[32mallowed") == 200
    assert "note: 400 answers: 200 allowed, 200 disallowed, 0 unknown" in lines

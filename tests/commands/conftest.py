"""The command-line tools, in this process and as processes of their own."""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from threading import Thread, Timer
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from scrapy_rep.commands import process_pool
from scrapy_rep.commands.main import main
from testing import console_forks

ROOT = Path(__file__).parents[2]
TIMEOUT = 120

ROBOTS = """\
User-agent: *
Disallow: /private
Allow: /private/press/
Disallow: /private/p
Crawl-delay: 5
Content-Signal: ai-train=no

User-agent: otherbot
Disallow: /
Sitemap: https://example.com/map.xml
License: https://example.com/license.xml
"""


@dataclass(frozen=True)
class Done:
    """What a tool has returned and written."""

    code: int
    out: str
    err: str

    @property
    def records(self) -> list[dict[str, Any]]:
        """The lines of JSON."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def record(self) -> dict[str, Any]:
        """The only line of JSON."""
        (record,) = self.records
        return record


Run = Callable[..., Done]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a tool in this process, in an empty folder with a ``robots.txt``."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    (tmp_path / "robots.txt").write_text(ROBOTS)

    def run(*arguments: str) -> Done:
        code = main(arguments)
        captured = capsys.readouterr()
        return Done(code, captured.out, captured.err)

    return run


def tool(
    *arguments: str,
    cwd: Path | str = "/",
    stdin: str | bytes | None = None,
    command: tuple[str, ...] = ("scrapy_rep.commands",),
    **environment: str,
) -> Done:
    """Run a tool in a process of its own."""
    if isinstance(stdin, str):
        stdin = stdin.encode()
    done = subprocess.run(
        [sys.executable, "-m", *command, *arguments],
        cwd=cwd,
        env=environment_of(**environment),
        input=stdin or b"",
        capture_output=True,
        timeout=TIMEOUT,
        check=False,
    )
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())


def forked(
    *arguments: str,
    cwd: Path | str = "/",
    stdin: str | bytes | None = None,
    **environment: str,
) -> Done:
    """Run a tool in a fork of a process that has already imported Scrapy."""
    if isinstance(stdin, str):
        stdin = stdin.encode()
    done = console_forks.run(
        arguments, cwd, environment_of(**environment), stdin=stdin or b"", timeout=TIMEOUT
    )
    return Done(done.code, done.out.decode(), done.errors.decode())


@contextmanager
def started(*arguments: str, **options: Any) -> Iterator[subprocess.Popen[Any]]:
    """Start a tool in a process of its own. It is killed if the test fails, or after TIMEOUT."""
    with subprocess.Popen(
        [sys.executable, "-m", "scrapy_rep.commands", *arguments],
        env=environment_of(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **options,
    ) as process:
        timer = Timer(TIMEOUT, process.kill)
        timer.daemon = True
        timer.start()
        try:
            yield process
        except BaseException:
            process.kill()
            raise
        finally:
            timer.cancel()


def environment_of(**more: str) -> dict[str, str]:
    """The environment of a tool. It has no width of a terminal and no colors."""
    kept = {name: value for name, value in os.environ.items() if name not in _TERMINAL}
    return {**kept, "PYTHONPATH": str(ROOT), **more}


_TERMINAL = {"COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "SCRAPY_REP_DEBUG"}


def schema(name: str, package: str = "scrapy_rep.commands") -> dict[str, Any]:
    """A schema of the package."""
    text = files(package).joinpath("schemas", f"{name}.schema.json").read_text("utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def closed_schema(name: str, package: str) -> dict[str, Any]:
    """A schema that has to describe every field."""
    closed: dict[str, Any] = _closed(schema(name, package))
    return closed


def validate(record: dict[str, Any], name: str) -> None:
    """Compare a record with a schema, which has to describe every field."""
    Draft202012Validator(_closed(schema(name))).validate(record)


def _closed(part: Any) -> Any:
    """A schema that allows only the fields that it names."""
    if isinstance(part, list):
        return [_closed(each) for each in part]
    if not isinstance(part, dict):
        return part
    closed = {key: _closed(value) for key, value in part.items()}
    if isinstance(part.get("properties"), dict) and part.get("type") == "object":
        closed["additionalProperties"] = False
    return closed


class FakeProcess:
    """What a process pool has of a process."""

    def __init__(self, other: object = None) -> None:
        self.other = other
        """Its end of the pipe, which is open as long as there is a process."""
        self.is_killed = False

    def kill(self) -> None:
        self.is_killed = True

    def join(self, timeout: float) -> None:
        assert self.is_killed


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a process pool start threads, which are quick and can call any function."""

    def start(function: Callable[[Any], Any]) -> Any:
        connection, other = multiprocessing.Pipe()
        Thread(target=process_pool.serve, args=(other, function), daemon=True).start()
        return connection, FakeProcess()

    monkeypatch.setattr(process_pool, "_start", start)

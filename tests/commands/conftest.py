"""The command-line tools, in this process and as processes of their own."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from io import BufferedReader, BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import msgspec
import pytest
from jsonschema import Draft202012Validator
from scrapy.settings import Settings

from scrapy_rep.commands import session as session_module
from scrapy_rep.commands.check import Plan
from scrapy_rep.commands.context import schema
from scrapy_rep.commands.crawlers import Crawler
from scrapy_rep.commands.explain import Check
from scrapy_rep.commands.lint import LintFinding
from scrapy_rep.commands.main import main
from scrapy_rep.commands.queue import Queue
from scrapy_rep.commands.show import Diff, Show
from scrapy_rep.commands.test import Test
from scrapy_rep.commands.view import View
from scrapy_rep.reports.records import Report
from scrapy_rep.reports.survey import Survey
from scrapy_rep.stores import Entry
from scrapy_rep.stores.sqlite import SQLiteStore
from tests.crawl.conftest import make_crawler, run_crawler

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
        """The lines of JSON. The first ones are compared with their schema and their type."""
        found: list[dict[str, Any]] = [json.loads(line) for line in self.out.splitlines()]
        for record in found[:MAX_VALIDATED]:
            kind = RECORDS[record["type"]]
            _validator(kind).validate(record)
            assert json.loads(msgspec.json.encode(msgspec.convert(record, kind))) == record
        return found

    @property
    def record(self) -> dict[str, Any]:
        """The only line of JSON."""
        (record,) = self.records
        return record


MAX_VALIDATED = 500
TYPES = (Check, Crawler, Diff, LintFinding, Plan, Queue, Report, Show, Survey, Test, View)
RECORDS = {
    schema([each])["$defs"][each.__name__]["properties"]["type"]["enum"][0]: each for each in TYPES
}


@cache
def _validator(kind: Any) -> Draft202012Validator:
    return Draft202012Validator(schema([kind]))


Run = Callable[..., Done]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a tool in this process, in an empty folder with a ``robots.txt``."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    Path("robots.txt").write_text(ROBOTS)

    def run(*arguments: str, stdin: bytes | str = b"", settings: Settings | None = None) -> Done:
        given: Any = BytesIO(stdin if isinstance(stdin, bytes) else stdin.encode())
        monkeypatch.setattr(sys, "stdin", TextIOWrapper(BufferedReader(given)))
        code = main(arguments, settings=settings)
        captured = capsys.readouterr()
        return Done(code, captured.out, captured.err)

    return run


def write(**files: bytes | str) -> None:
    """Write files into the current folder. An underscore in a name stands for a dot."""
    for name, content in files.items():
        body = content if isinstance(content, bytes) else content.encode()
        Path(name.replace("_", ".")).write_bytes(body)


def fill(path: str, entries: dict[str, Entry]) -> None:
    """Put entries into a store."""
    store = SQLiteStore(Path(path), ttl=1e9)
    for key, entry in entries.items():
        store.add(key, entry, replace=True)
    store.disconnect()


def content(path: str) -> dict[str, Entry | None]:
    """The entries of a store."""
    store = SQLiteStore(Path(path), ttl=1e9)
    found = dict(store.entries())
    store.disconnect()
    return found


Cli = Callable[..., Any]


@pytest.fixture
def cli(run: Run, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Run a tool in a thread of this process, with a crawler on the event loop of the test."""

    async def cli(*arguments: str, settings: dict[str, Any] | None = None) -> Done:
        loop = asyncio.get_running_loop()
        crawls: list[Future[None]] = []

        def run_crawl(settings: Settings, **arguments: Any) -> None:
            # The reactor is that of the test.
            kept = {
                name: settings[name]
                for name in settings
                if settings.getpriority(name) and not name.startswith("TWISTED_REACTOR")
            }

            async def crawl() -> None:
                await run_crawler(make_crawler(session_module.Session, kept), **arguments)

            crawls.append(asyncio.run_coroutine_threadsafe(crawl(), loop))
            crawls[-1].result()

        monkeypatch.setattr(session_module, "run_crawl", run_crawl)
        project = Settings({"USER_AGENT": "testbot/1.0 (+https://example.com)"})
        project.setdict(settings or {}, priority="project")
        with ThreadPoolExecutor(1) as thread:  # a new one, as coverage needs it
            done = await asyncio.wrap_future(thread.submit(run, *arguments, settings=project))
        await asyncio.gather(*map(asyncio.wrap_future, crawls), return_exceptions=True)
        return done

    return cli


def tool(
    *arguments: str,
    python: tuple[str, ...] = ("-m", "scrapy_rep.commands.main"),
    **environment: str,
) -> Done:
    """Run a tool, or other Python code, in a process of its own."""
    done = subprocess.run(
        [sys.executable, *python, *arguments],
        env=environment_of(**environment),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    return Done(done.returncode, done.stdout, done.stderr)


@contextmanager
def started(*arguments: str, **options: Any) -> Iterator[subprocess.Popen[Any]]:
    """Start a tool in a process of its own, which ends with the context."""
    with subprocess.Popen(
        [sys.executable, "-m", "scrapy_rep.commands.main", *arguments],
        env=environment_of(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **options,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def environment_of(**more: str) -> dict[str, str]:
    """The environment of a tool. It has no width of a terminal and no colors."""
    kept = {name: value for name, value in os.environ.items() if name not in _TERMINAL}
    return {**kept, "PYTHONPATH": str(ROOT), **more}


_TERMINAL = {"COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR"}

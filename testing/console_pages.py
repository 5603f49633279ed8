"""The sessions on the pages of the documentation: commands with their real output.

``python -m testing.console_pages`` runs every command of every page, and writes its output anew.
``python -m testing.console_pages tutorial`` does so for one page.

A page defines files with their name above a code block: as a line, "`robots.txt`:", or as a
comment, ``<!-- file: robots.txt -->``. Files below ``site/`` are served on loopback, as
http://127.0.0.1:50080 on the page and in the files. A command is a line ``$ scrapy-rep …`` in a
block ``console``. Pages whose blocks begin with another command than scrapy-rep, scrapy and python
are left as they are.

A command runs in a Scrapy project with these files. The store of the project has the file
``robots.txt`` as that of https://www.example.com, fetched two hours ago, so that no command uses
the network. ``reports/catalog.events.gz`` is a log of :mod:`testing.report_samples`. In the
output, other times are replaced.
"""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from threading import Thread

from scrapy_rep.protocol.access import AccessResult, CopyInfo
from scrapy_rep.stores import Entry
from scrapy_rep.stores.registry import open_store
from testing import console_forks, report_samples
from testing.web import Page, Web, text

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = DOCS / "usage" / "commands"
ORIGIN = "https://www.example.com"
SITE = "http://127.0.0.1:50080"
"""The site on loopback, whose real port has as many digits."""
REPORT = "reports/catalog.events.gz"
AGE = 2 * 3600
WIDTH = 80

SETTINGS = """\
USER_AGENT = "mybot/1.0 (+https://bot.example)"
REP_STORE = "sqlite:///store.sqlite"
"""

_FILE = re.compile(
    r"^(?:<!-- file: |`)(\S+?)(?: -->|`:)\n+```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL
)
_CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_IS_REAL = re.compile(r"^```console\n\$ (?:scrapy|python)", re.MULTILINE)
_PROGRAM = re.compile(r"(?<![\w/.-])(scrapy-rep|scrapy|python)(?= )")
_SHELL = re.compile(r"[|<>;&$`*?~(){}#\\]")
"""What only a shell understands."""
_PROGRAMS = {
    "python": shlex.quote(sys.executable),
    "scrapy": f"{shlex.quote(sys.executable)} -m scrapy",
    "scrapy-rep": f"{shlex.quote(sys.executable)} -m scrapy_rep.commands.main",
}
_TIMES = (
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?! UTC)"), "2026-11-23 09:00:00"),
    (re.compile(r"(?<=, )\d{4}-\d\d-\d\d$", re.MULTILINE), "2026-11-23"),
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC"), "2026-11-23 09:00:00 UTC"),
    (re.compile(r'"fetched_at": [0-9.]+'), '"fetched_at": 1795341600.0'),
    (re.compile(r'"refresh_at": [0-9.]+'), '"refresh_at": 1795419360.0'),
    (re.compile(r'"expires_at": [0-9.]+'), '"expires_at": 1795428000.0'),
)


def pages() -> list[Path]:
    """Return the pages with sessions, except that of :mod:`testing.crawlers_page`."""
    return sorted(
        path
        for path in DOCS.rglob("*.md")
        if _IS_REAL.search(path.read_text("utf-8")) and path.name != "crawlers.md"
    )


def with_real_output(page: str) -> str:
    """Return a page with the output that its commands have now."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "scrapy.cfg").write_text("[settings]\ndefault = projectsettings\n")
        (folder / "projectsettings.py").write_text(SETTINGS)
        if REPORT in page:
            (folder / REPORT).parent.mkdir()
            report_samples.usual(6).write(folder / REPORT)
        for match in _FILE.finditer(page):
            path = folder / match[1]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(match[2])
        # In a thread of its own, because a test may run in an event loop.
        thread = Thread(target=lambda: asyncio.run(_fill(folder)))
        thread.start()
        thread.join()
        web = Web()
        try:
            root = _serve(folder / "site", web)
            for match in _FILE.finditer(page):
                (folder / match[1]).write_text(match[2].replace(SITE, root or SITE))
            return _CONSOLE.sub(lambda match: _session(match[1], folder, root), page)
        finally:
            web.close()


def _serve(folder: Path, web: Web) -> str:
    """Serve the files of a folder. Returns the origin; empty if there is no such folder."""
    if not folder.is_dir():
        return ""
    pages = {f"/{path.name}": Page(path.read_text()) for path in folder.glob("*.html")}
    return web.site(text((folder / "robots.txt").read_text()), pages).root


def _session(block: str, folder: Path, root: str) -> str:
    commands = [line for line in block.splitlines() if line.startswith("$ ")]
    outputs = [_output(command[2:].replace(SITE, root or SITE), folder) for command in commands]
    if root:
        outputs = [output.replace(root, SITE) for output in outputs]
    parts = [f"{command}\n{output}" for command, output in zip(commands, outputs, strict=True)]
    return "```console\n" + "\n".join(parts) + "```"


def _output(command: str, folder: Path) -> str:
    """Run a command line. Returns its output and its remarks."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "COLUMNS": str(WIDTH),
        "PYTHONIOENCODING": "utf-8",
    }

    def in_shell(line: str, stdin: bytes = b"") -> bytes:
        done = subprocess.run(
            line,
            shell=True,
            cwd=folder,
            env=environment,
            input=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        return done.stdout

    tool, *rest = re.split(r" (?=[|>] )", command, maxsplit=1)
    if tool.startswith("scrapy-rep ") and not _SHELL.search(tool):
        errors = console_forks.ERRORS if rest else console_forks.OUT
        ended = console_forks.run(shlex.split(tool)[1:], folder, environment, errors=errors)
        written = ended.errors + (in_shell(f"cat {rest[0]}", ended.out) if rest else ended.out)
    else:
        written = in_shell(_PROGRAM.sub(lambda match: _PROGRAMS[match[1]], command))
    output = written.decode()
    for pattern, replacement in _TIMES:
        output = pattern.sub(replacement, output)
    return output


async def _fill(folder: Path) -> None:
    robots = folder / "robots.txt"
    if not robots.exists():
        return
    store = open_store(f"sqlite:///{folder}/store.sqlite", jobdir=None, ttl=86_400)
    assert store is not None
    now = time.time() - AGE
    url = f"{ORIGIN}/robots.txt"
    entry = Entry(
        AccessResult.SUCCESSFUL,
        now,
        now + 77_760,
        now + 86_400,
        robots.read_bytes(),
        CopyInfo(url),
        status=200,
        url=url,
    )
    await store.put(ORIGIN, entry)
    await store.close()


def main() -> None:
    """Write every page anew, or those that the arguments name."""
    for path in pages():
        if not sys.argv[1:] or path.stem in sys.argv[1:]:
            path.write_text(with_real_output(path.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main()

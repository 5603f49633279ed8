"""`check --from` of many URLs, compared with a loop over Protego.

The robots.txt files are in a SQLite store, as after a crawl. `check` reads them from there and
writes JSON Lines. The loop reads the files from a folder and writes a line of text for each URL.
Each runs in a process of its own, with its output in a file. Its CPU time from start to end counts.
"""

from __future__ import annotations

import asyncio
import resource
import subprocess
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path
from random import Random
from urllib.parse import urlsplit

from protego import Protego

from scrapy_rep.protocol.access import AccessResult, CopyInfo
from scrapy_rep.stores import Entry
from scrapy_rep.stores.registry import open_store
from testing.corpus import load
from testing.generated import questions
from testing.harness import ROOT, Duration, Options, Parameter, Result, Row, call
from testing.measure import peak

DURATION = Duration(150, 15)
PARAMETERS = {
    "urls": Parameter(1_000_000, 50_000, "URLs"),
    "origins": Parameter(1000, 200, "origins"),
    "rounds": Parameter(3, 1, "rounds, of which the best counts"),
}
AGENT = "examplebot"


def run(options: Options) -> Result:
    """Return the speed of both, and the memory of `check`."""
    count, origins = options.number("urls"), options.number("origins")
    corpus = load(options.folder, files=origins)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        urls = folder / "urls.txt"
        few = folder / "few.txt"
        bodies = corpus.bodies[:origins]
        _write_urls(urls, bodies, count)
        with urls.open() as lines:
            few.write_text("".join(islice(lines, count // 10)))
        asyncio.run(_fill(f"sqlite:///{folder}/store.sqlite", bodies))
        for number, body in enumerate(bodies):
            (folder / f"{number}.txt").write_bytes(body)
        rounds = range(options.number("rounds"))
        ours = min(call(check, name, urls.name, timeout=600)[0] for _ in rounds)
        theirs = min(call(protego, name, urls.name, timeout=600) for _ in rounds)
        small, large = (call(check, name, path.name, timeout=600)[1] for path in (few, urls))
    return Result(
        [
            Row("check --from", count / ours, "URLs/s"),
            Row("  a loop over Protego", count / theirs, "URLs/s"),
            Row("  times as fast as Protego", theirs / ours, "ratio"),
            Row("memory", large / 1024, "MiB"),
            Row("  for a tenth of the URLs", small / 1024, "MiB"),
            Row("  growth from a tenth to all", large / small, "ratio", 1.3),
        ],
        [f"{corpus.source}, {count:,} URLs on {len(bodies):,} origins"],
    )


def check(folder: str, urls: str) -> tuple[float, int]:
    """Run `check`. Returns its seconds and its peak memory in KiB."""
    arguments = [
        *(sys.executable, "-c", _CHECK, "check", "--from", f"{folder}/{urls}", "--json"),
        *("-a", AGENT, "-s", f"REP_STORE=sqlite:///{folder}/store.sqlite"),
    ]
    with Path(folder, "ours.jsonl").open("wb") as output:
        done = subprocess.run(
            arguments, cwd=ROOT, stdout=output, stderr=subprocess.PIPE, text=True, check=False
        )
    if done.returncode not in (0, 1):
        raise RuntimeError(f"check has failed: {done.stderr}")
    with Path(folder, "ours.jsonl").open() as output, Path(folder, urls).open() as given:
        if sum(1 for _ in output) != sum(1 for _ in given):
            raise RuntimeError("check has left out URLs")
    return _cpu_seconds(), int(done.stderr.split()[-1])


_CHECK = f"""
import atexit
import sys
from {peak.__module__} import peak
from scrapy_rep.commands.main import console
atexit.register(lambda: print(peak(), file=sys.stderr))
console()
"""


def protego(folder: str, urls: str) -> float:
    """Run the loop. Returns its seconds."""
    subprocess.run([sys.executable, "-m", "benchmarks.cli", folder, urls], cwd=ROOT, check=True)
    return _cpu_seconds()


def _cpu_seconds() -> float:
    """Return the CPU time of the processes that this one has started. They have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _protego_loop(folder: Path, urls: Path) -> None:
    parsers: dict[str, Protego] = {}
    with urls.open() as lines, (folder / "theirs.txt").open("w") as output:
        for line in lines:
            url = line.rstrip("\n")
            host = urlsplit(url).netloc
            parser = parsers.get(host)
            if parser is None:
                body = (folder / f"{host.partition('.')[0].removeprefix('host')}.txt").read_bytes()
                parser = parsers[host] = Protego.parse(body.decode("utf-8", "ignore"))
            word = "allowed" if parser.can_fetch(url, AGENT) else "disallowed"
            output.write(f"{word} {url}\n")


def _write_urls(path: Path, bodies: list[bytes], count: int) -> None:
    """Write URLs of all origins in turn. Half of the paths are made from the patterns of a file."""
    chance = Random(count)
    paths = [
        [urlsplit(url)._replace(scheme="", netloc="").geturl() for _, url in asked]
        for number, body in enumerate(bodies)
        for asked in [questions(str(number), body, 50)]
    ]
    with path.open("w") as output:
        for number in range(count):
            origin = number % len(bodies)
            separator = "&" if "?" in (given := chance.choice(paths[origin])) else "?"
            output.write(f"https://host{origin}.example{given}{separator}n={number}\n")


async def _fill(url: str, bodies: list[bytes]) -> None:
    store = open_store(url, jobdir=None, ttl=86_400)
    assert store is not None
    now = time.time()
    for number, body in enumerate(bodies):
        where = f"https://host{number}.example"
        copy = CopyInfo(f"{where}/robots.txt")
        entry = Entry(
            AccessResult.SUCCESSFUL, now, now + 70_000, now + 80_000, body, copy, status=200
        )
        await store.put(where, entry)
    await store.close()


if __name__ == "__main__":
    _protego_loop(Path(sys.argv[1]), Path(sys.argv[1], sys.argv[2]))

"""The commands in the README of the example project, each in a process of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[1]
PROJECT = ROOT / "example_project"
TIMEOUT = 300
"""Seconds for a process. Each takes a few on a machine that is not busy."""

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="the example web needs all of 127.0.0.0/8"
)


def environment() -> dict[str, str]:
    """The environment for a process that imports the package of this checkout."""
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def scrapy(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "scrapy", *arguments],
        cwd=PROJECT,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )


def table(output: str) -> list[dict[str, str]]:
    """The rows of a printed table. The "site" of a row is the heading above it."""
    lines = output.splitlines()
    dashes = next(number for number, line in enumerate(lines) if line.startswith("---"))
    spans = [match.span() for match in re.finditer("-+", lines[dashes])]
    names = [lines[dashes - 1][start:end].strip() for start, end in spans]
    site, rows = "", []
    # The totals stand below the last empty line.
    for before, line in pairwise(lines[dashes : len(lines) - 1 - lines[::-1].index("")]):
        if not before:
            site = line
        elif line:
            cells = [line[start:end].strip() for start, end in spans]
            rows.append({"site": site, **dict(zip(names, cells))})
    return rows


@pytest.fixture(scope="module")
def demo() -> subprocess.CompletedProcess[str]:
    return scrapy("crawl", "demo")


def test_demo_succeeds(demo: subprocess.CompletedProcess[str]) -> None:
    assert demo.returncode == 0, demo.stderr
    *lines, summary, files, heading, report = demo.stdout.splitlines()
    assert lines[0] == "The crawl of 13 small sites takes about 3 seconds."
    assert summary == "57 URLs, 33 allowed, 24 disallowed; the server received 0 disallowed pages"
    assert files == "13 robots.txt files, 0 of them fetched more than once"
    assert heading == "The report of this crawl, for your browser:"
    assert report == str(PROJECT / "reports" / "demo.html")
    assert all("is unreachable" in line for line in demo.stderr.splitlines())
    assert len(demo.stderr.splitlines()) == 2, "the first lines announce two warnings"
    assert all(len(line) <= 80 for line in [*lines, summary, files, heading])


def test_the_readme_shows_what_demo_prints(demo: subprocess.CompletedProcess[str]) -> None:
    page = (PROJECT / "README.md").read_text("utf-8")
    shown = "".join(re.findall(r"^```text\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)[:2])
    ports = re.compile(r"(http://127[.\d]+):\d+")
    printed = ports.sub(r"\1", demo.stdout).splitlines()
    for line in ports.sub(r"\1", shown.replace("…", str(ROOT), 1)).splitlines():
        assert line in printed


def test_demo_fetches_each_robots_txt_once(demo: subprocess.CompletedProcess[str]) -> None:
    files = [row for row in table(demo.stdout) if row["path"] == "/robots.txt"]
    assert len(files) == 13
    assert {row["hits"] for row in files} == {"1"}
    meant = {row["site"].partition("  ")[2]: row["why"] for row in files}
    assert "404" in meant["no robots.txt: a 404 with rules in its body"]
    assert "503" in meant["robots.txt answers 503"]
    assert "unreachable" in meant["robots.txt does not answer"]
    assert "127.0.0.17" in meant["robots.txt redirects to another host"]


DEMO = """
127.0.0.11:0 | /                 | crawled      | no rule for examplebot matches
127.0.0.11:0 | /docs/faq/1       | crawled      | line 7, Allow: /docs/faq/, for examplebot
127.0.0.11:0 | /guide.pdf?page=2 | crawled      | no rule for examplebot matches
127.0.0.11:0 | /search?q=robots  | crawled      | no rule for examplebot matches
127.0.0.11:0 | /docs/1           | dropped      | line 6, Disallow: /docs/, for examplebot
127.0.0.11:0 | /guide.pdf        | dropped      | line 8, Disallow: /*.pdf$, for examplebot
127.0.0.11:0 | /search?sort=new  | dropped      | line 9, Disallow: /*sort=, for examplebot
127.0.0.12:0 | /                 | crawled      | line 6, Allow: /$, for *
127.0.0.12:0 | /shop/            | crawled      | line 7, Allow: /shop/, for *
127.0.0.12:0 | /shop/shoes       | crawled      | line 7, Allow: /shop/, for *
127.0.0.12:0 | /about            | dropped      | line 5, Disallow: /, for *
127.0.0.12:0 | /shop/cart        | dropped      | line 8, Disallow: /shop/cart, for *
127.0.0.12:0 | /shop/shoes/edit  | dropped      | line 9, Disallow: /shop/*/edit, for *
127.0.0.13:0 | /blue/            | crawled      | no rule for * matches
127.0.0.13:0 | /red/             | dropped      | line 2, Disallow: /red/, for *
127.0.0.13:1 | /red/             | crawled      | no rule for * matches
127.0.0.13:1 | /blue/            | dropped      | line 2, Disallow: /blue/, for *
127.0.0.14:0 | /                 | crawled      | unavailable: status 404
127.0.0.14:0 | /anything         | crawled      | unavailable: status 404
127.0.0.15:0 | /                 | dropped      | unreachable: status 503
127.0.0.15:0 | /anything         | dropped      | unreachable: status 503
127.0.0.16:0 | /                 | crawled      | no rule for * matches
127.0.0.16:0 | /moved/           | dropped      | line 2, Disallow: /moved/, for *
127.0.0.16:0 | /moved/page       | dropped      | line 2, Disallow: /moved/, for *
127.0.0.17:0 | /moved/           | crawled      | no rule for * matches
127.0.0.17:0 | /only-here/       | dropped      | line 2, Disallow: /only-here/, for *
127.0.0.18:0 | /                 | dropped      | unreachable: …
127.0.0.18:0 | /anything         | dropped      | unreachable: …
127.0.0.19:0 | /open/1           | crawled      | no rule for * matches
127.0.0.19:0 | /open/2           | crawled      | no rule for * matches
127.0.0.19:0 | /private/1        | dropped      | line 2, Disallow: /private/, for *
127.0.0.19:0 | /private/2        | dropped      | line 2, Disallow: /private/, for *
127.0.0.19:0 | /private/3        | dropped      | line 2, Disallow: /private/, for *
127.0.0.19:0 | /private/4        | dropped      | line 2, Disallow: /private/, for *
127.0.0.19:0 | /private/5        | dropped      | line 2, Disallow: /private/, for *
127.0.0.19:0 | /private/6        | dropped      | line 2, Disallow: /private/, for *
127.0.0.19:0 | /private/7        | dropped      | line 2, Disallow: /private/, for *
127.0.0.19:0 | /private/8        | dropped      | line 2, Disallow: /private/, for *
127.0.0.20:0 | /old              | crawled      | no rule for * matches
127.0.0.20:0 | /private/new      | dropped      | line 2, Disallow: /private/, for *
127.0.0.21:0 | /1                | crawled      | no rule for * matches
127.0.0.21:0 | /2                | crawled      | no rule for * matches
127.0.0.21:0 | /3                | crawled      | no rule for * matches
127.0.0.22:0 | /nothing          | crawled      | no rule for * matches
127.0.0.22:0 | /meta-noindex     | item dropped | its page says noindex
127.0.0.22:0 | /meta-examplebot  | item dropped | its page says noindex
127.0.0.22:0 | /meta-otherbot    | crawled      | no rule for * matches
127.0.0.22:0 | /x-robots-tag     | item dropped | its page says noindex
127.0.0.22:0 | /expired          | item dropped | its page is unavailable since 2010-06-25
127.0.0.22:0 | /meta-nofollow    | crawled      | no rule for * matches
127.0.0.22:0 | /rel-nofollow     | crawled      | no rule for * matches
127.0.0.22:0 | /art/picture      | item dropped | its page refuses train-ai
127.0.0.22:0 | /content-usage    | item dropped | its page refuses train-ai
127.0.0.22:0 | /tdm-reservation  | item dropped | its page refuses tdm
127.0.0.22:0 | /linked/1         | crawled      | no rule for * matches
127.0.0.22:0 | /linked/2         | crawled      | no rule for * matches
127.0.0.22:0 | /linked/4         | crawled      | no rule for * matches
127.0.0.22:0 | /linked/3         | not followed | only nofollow links lead there
127.0.0.22:0 | /linked/5         | not followed | only nofollow links lead there
"""


def test_demo_urls(demo: subprocess.CompletedProcess[str]) -> None:
    shown = []
    for row in table(demo.stdout):
        if row["path"] not in {"", "/robots.txt"}:
            # Any port may be free; the last digit is 0, or 1 for the second port of a host.
            origin = re.sub(r"http://([^:]+):\d+(\d)  .*", r"\1:\2", row["site"])
            why = re.sub("^unreachable: .*…$", "unreachable: …", row["why"])
            shown.append([origin, row["path"], row["outcome"], why])
            received = row["outcome"] in {"crawled", "item dropped"}
            assert row["hits"] == ("1" if received else "0"), row
    assert shown == [[cell.strip() for cell in line.split("|")] for line in DEMO.split("\n")[1:-1]]


def test_demo_keeps_the_delay(demo: subprocess.CompletedProcess[str]) -> None:
    (gap,) = re.findall(r"at least (\S+) s apart", demo.stdout)
    assert float(gap) > 0.4


def test_demo_fails_without_robotstxt_obey() -> None:
    without = scrapy("crawl", "demo", "-s", "ROBOTSTXT_OBEY=False")
    assert without.returncode == 1
    assert "57 URLs, 57 allowed, 0 disallowed; the server received 24 disallowed pages" in (
        without.stdout
    )
    assert re.search(r"ERROR: http://127.0.0.12:\d+/about: .*, 0 expected", without.stderr)


def test_demo_fails_with_the_middleware_of_scrapy() -> None:
    by_itself = scrapy("crawl", "demo", "-s", "ADDONS={}", "-s", "ROBOTSTXT_OBEY=True")
    assert by_itself.returncode == 1
    rows = table(by_itself.stdout)
    assert not {"item dropped", "not followed"} & {row["outcome"] for row in rows}
    assert {row["hits"] for row in rows if row["path"] in {"/linked/3", "/linked/5"}} == {"1"}
    assert re.search(r"ERROR: http://127.0.0.22:\d+/linked/3: .*, 0 expected", by_itself.stderr)


def test_workers_share_robots_txt_files_and_delays() -> None:
    done = scrapy("workers", "-n", "3")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ERROR" not in done.stderr
    warnings = [line for line in done.stderr.splitlines() if "WARNING" in line]
    assert all("is unreachable" in line for line in warnings)
    assert done.stdout.splitlines()[-1] == (
        "No robots.txt fetched twice, no disallowed page received, every delay kept"
    )
    assert all(len(line) <= 80 for line in done.stdout.splitlines())
    rows = table(done.stdout)
    fetched = {row["site"]: row["robots.txt"] for row in rows}
    silent = next(site for site in fetched if site.startswith("http://127.0.0.18:"))
    assert fetched.pop(silent) == "0"
    assert list(fetched.values()) == ["1"] * 12
    assert [row["disallowed"] for row in rows] == ["0"] * 13
    assert sum(int(row["pages"]) for row in rows) == 30
    workers = re.findall(
        r"^worker \d: (\d+) URLs.*; robots.txt: (\d+) fetched", done.stdout, re.MULTILINE
    )
    assert sorted(urls for urls, _ in workers) == ["17", "17", "18"]


@pytest.mark.parametrize("url", [[], ["-a", "url=example.com"]])
def test_an_invalid_url_is_reported(url: list[str]) -> None:
    refused = scrapy("crawl", "site", *url)
    assert refused.returncode == 1
    assert "ERROR: url must be" in refused.stderr
    assert "Traceback" not in refused.stderr


@pytest.fixture
def web() -> Iterator[str]:
    """The web of the example; yields the origin of the site with a group for everyone."""
    with subprocess.Popen(
        [sys.executable, "-m", "example.web"],
        cwd=PROJECT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            origins = [process.stdout.readline().split()[0] for _ in range(13)]
            yield origins[1]
            process.communicate(timeout=TIMEOUT)
        finally:
            process.kill()


def test_site_lists_disallowed_urls(web: str, tmp_path: Path) -> None:
    pages = tmp_path / "pages.jsonl"
    url = f"url={web}/"
    site = scrapy("crawl", "site", "-a", url, "-s", "DOWNLOAD_DELAY=0", "-O", str(pages))
    assert site.returncode == 0, site.stderr
    assert site.stdout.splitlines()[-1] == "6 URLs, 3 allowed, 3 disallowed"
    rows = {row["path"]: row for row in table(site.stdout)}
    assert rows["/shop/"]["outcome"] == "crawled"
    assert rows["/shop/cart"]["outcome"] == "dropped"
    assert rows["/shop/cart"]["why"] == "line 8, Disallow: /shop/cart, for *"
    items = [json.loads(line) for line in pages.read_text().splitlines()]
    assert items[0] == {"url": f"{web}/", "title": "the group for all other crawlers: /"}
    assert {item["url"].removeprefix(web) for item in items} == {"/", "/shop/", "/shop/shoes"}


def test_site_obeys_closespider_pagecount(web: str, tmp_path: Path) -> None:
    pages = tmp_path / "pages.jsonl"
    settings = ["-s", "DOWNLOAD_DELAY=0", "-s", "CLOSESPIDER_PAGECOUNT=1"]
    site = scrapy("crawl", "site", "-a", f"url={web}/", *settings, "-O", str(pages))
    assert site.returncode == 0, site.stderr
    assert len(pages.read_text().splitlines()) < 3

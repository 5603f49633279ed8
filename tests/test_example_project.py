"""The commands in the README of the example project, each in a process of its own."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.crawl.conftest import scrapy

ROOT = Path(__file__).resolve().parents[1]
PROJECT = ROOT / "example_project"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it needs all of 127.0.0.0/8")


def crawl(*arguments: str) -> subprocess.CompletedProcess[str]:
    return scrapy("crawl", *arguments, cwd=PROJECT)


def test_demo_prints_what_the_readme_shows() -> None:
    demo = crawl("demo")
    assert demo.returncode == 0, demo.stderr
    *lines, summary, files, heading, report = demo.stdout.splitlines()
    assert lines[0] == "The crawl of 13 small sites takes about 4 seconds."
    assert summary == "57 URLs, 33 allowed, 24 disallowed; the server received 0 disallowed pages"
    assert files == "13 robots.txt files, 0 of them fetched more than once"
    assert heading == "The report of this crawl, for your browser:"
    assert report == str(PROJECT / "reports" / "demo.html")
    assert all("is unreachable" in line for line in demo.stderr.splitlines())
    assert len(demo.stderr.splitlines()) == 2, "the first lines announce two warnings"
    assert all(len(line) <= 80 for line in [*lines, summary, files, heading])
    (gap,) = re.findall(r"at least (\S+) s apart", demo.stdout)
    assert float(gap) > 0.4
    page = (PROJECT / "README.md").read_text("utf-8")
    shown = "".join(re.findall(r"^```text\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)[:2])
    ports = re.compile(r"(http://127[.\d]+):\d+")
    printed = ports.sub(r"\1", demo.stdout).splitlines()
    for line in ports.sub(r"\1", shown.replace("…", str(ROOT), 1)).splitlines():
        assert line in printed


def test_demo_fails_without_robotstxt_obey() -> None:
    without = crawl("demo", "-s", "ROBOTSTXT_OBEY=False")
    assert without.returncode == 1
    summary = "57 URLs, 57 allowed, 0 disallowed; the server received 24 disallowed pages"
    assert summary in without.stdout
    assert re.search(r"ERROR: http://127.0.0.12:\d+/about: .*, expected: 0", without.stderr)


def test_site_lists_disallowed_urls(tmp_path: Path) -> None:
    """The second site of the web of the example has a group for everyone."""
    pages = tmp_path / "pages.jsonl"
    command = [sys.executable, "-m", "example.web"]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=PROJECT, **pipes) as process:
        assert process.stdout is not None
        try:
            web = [process.stdout.readline().split()[0] for _ in range(13)][1]
            site = crawl("site", "-a", f"url={web}", "-s", "DOWNLOAD_DELAY=0", "-O", str(pages))
            process.communicate(timeout=300)
        finally:
            process.kill()
    assert site.returncode == 0, site.stderr
    assert site.stdout.splitlines()[-1] == "6 URLs, 3 allowed, 3 disallowed"
    assert re.search(r"/shop/cart +dropped +.*line 8, Disallow: /shop/cart, for \*", site.stdout)
    assert re.search(r"^/ +crawled ", site.stdout, re.MULTILINE)
    items = [json.loads(line) for line in pages.read_text().splitlines()]
    assert items[0] == {"url": web, "title": "the group for all other crawlers: /"}
    assert {item["url"].removeprefix(web) for item in items} == {"", "/shop/", "/shop/shoes"}

"""The example project, run as its README says, in processes of its own."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[1]
PROJECT = ROOT / "example_project"
TIMEOUT = 120  # of a process, in seconds; each takes a few

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="the example web needs all of 127.0.0.0/8"
)


def environment() -> dict[str, str]:
    """With this checkout's package, installed or not."""
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def crawl(spider: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "scrapy", "crawl", spider, *arguments],
        cwd=PROJECT,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )


def table(output: str, title: str) -> list[dict[str, str]]:
    """The rows of a printed table that has a head."""
    lines = output[output.index(f"\n{title}\n") :].splitlines()[3:]
    head, rule = lines[0], lines[1]
    columns = [match.span() for match in re.finditer("-+", rule)]
    rows = lines[2 : lines.index("", 2) if "" in lines[2:] else None]
    return [
        {head[start:end].strip(): row[start:end].strip() for start, end in columns} for row in rows
    ]


def in_short(url: str) -> str:
    """Without scheme, and of the port, which may be any free one, the last digit: 0 or 1."""
    return re.sub(r"http://([^:]+):\d+(\d)/", r"\1:\2/", url)


@pytest.fixture(scope="module")
def demo() -> subprocess.CompletedProcess[str]:
    return crawl("demo")


def test_demo_ends_well(demo: subprocess.CompletedProcess[str]) -> None:
    assert demo.returncode == 0, demo.stderr
    assert demo.stdout.rstrip().splitlines()[-1] == (
        "57 URLs, 31 allowed, 26 disallowed; the server received 0 disallowed pages"
    )
    assert "ERROR" not in demo.stderr
    assert all(len(line) <= 120 for line in demo.stdout.splitlines())


def test_demo_origins(demo: subprocess.CompletedProcess[str]) -> None:
    origins = table(demo.stdout, "Origins")
    assert [(row["what it shows"], row["allowed"]) for row in origins] == [
        ("a group for examplebot", "4 of 7"),
        ("the group for everyone", "3 of 6"),
        ("first port of a host", "1 of 2"),
        ("second port of it", "1 of 2"),
        ("404: no robots.txt", "2 of 2"),
        ("503: server in trouble", "0 of 2"),
        ("redirects elsewhere", "1 of 3"),
        ("where those lead", "1 of 2"),
        ("silent: never answers", "0 of 2"),
        ("late: many wait for it", "3 of 13"),
        ("a page that redirects", "1 of 2"),
        ("pages that say something", "14 of 14"),
    ]
    assert {row["fetches"] for row in origins} == {"1"}
    meant = {row["what it shows"]: row["what its robots.txt meant"] for row in origins}
    assert "404" in meant["404: no robots.txt"]
    assert "503" in meant["503: server in trouble"]
    assert "unreachable" in meant["silent: never answers"]
    assert "127.0.0.17" in meant["redirects elsewhere"]


@pytest.mark.parametrize(
    ("url", "allowed", "reason", "group", "rule", "line"),
    [
        ("127.0.0.11:0/", "yes", "rules", "examplebot", "", ""),
        (
            "127.0.0.11:0/private/open/page",
            "yes",
            "rules",
            "examplebot",
            "Allow: /private/open/",
            7,
        ),
        ("127.0.0.11:0/guide.pdf", "no", "rules", "examplebot", "Disallow: /*.pdf$", 8),
        ("127.0.0.11:0/guide.pdf?page=2", "yes", "rules", "examplebot", "", ""),
        ("127.0.0.12:0/", "yes", "rules", "*", "Allow: /$", 6),
        ("127.0.0.12:0/about", "no", "rules", "*", "Disallow: /", 5),
        ("127.0.0.13:0/red/", "no", "rules", "*", "Disallow: /red/", 2),
        ("127.0.0.13:1/red/", "yes", "rules", "*", "", ""),
        ("127.0.0.14:0/anything", "yes", "unavailable", "", "", ""),
        ("127.0.0.15:0/anything", "no", "unreachable", "", "", ""),
        ("127.0.0.16:0/moved/", "no", "rules", "*", "Disallow: /moved/", 2),
        ("127.0.0.17:0/moved/", "yes", "rules", "*", "", ""),
        ("127.0.0.18:0/", "no", "unreachable", "", "", ""),
        ("127.0.0.19:0/late/1", "no", "rules", "*", "Disallow: /late/", 2),
        ("127.0.0.20:0/private/new", "no", "rules", "*", "Disallow: /private/", 2),
    ],
)
def test_demo_urls(
    demo: subprocess.CompletedProcess[str],
    url: str,
    allowed: str,
    reason: str,
    group: str,
    rule: str,
    line: int | str,
) -> None:
    rows = {in_short(row["URL"]): row for row in table(demo.stdout, "URLs")}
    row = rows[url]
    assert (row["allowed"], row["reason"], row["group"]) == (allowed, reason, group)
    assert (row["rule"], row["line"]) == (rule, str(line))
    assert row["received"] == allowed


def test_demo_pages(demo: subprocess.CompletedProcess[str]) -> None:
    pages = table(demo.stdout, "Pages")
    assert [(row["what it says"], row["its item"], row["followed"]) for row in pages] == [
        ("nothing", "kept", "1 of 1"),
        ("meta robots: noindex", "its page says noindex", "1 of 1"),
        ("meta examplebot: noindex", "its page says noindex", ""),
        ("meta otherbot: noindex", "kept", ""),
        ("X-Robots-Tag: noindex", "its page says noindex", ""),
        ("unavailable_after, long past", "its page is unavailable since 2010-06-25", ""),
        ("meta robots: nofollow", "kept", "0 of 1"),
        ("rel=nofollow on 1 of 2 links", "kept", "1 of 2"),
        ("robots.txt: train-ai=n", "its page refuses train-ai", ""),
        ("Content-Usage: train-ai=n", "its page refuses train-ai", ""),
        ("meta tdm-reservation: 1", "its page refuses tdm", ""),
    ]


def test_demo_tells_when_links_are_followed_that_must_not_be() -> None:
    heedless = crawl("demo", "-s", "ADDONS={}", "-s", "ROBOTSTXT_OBEY=True")
    assert heedless.returncode == 1
    assert "links were followed that must not be" in heedless.stderr
    assert {row["its item"] for row in table(heedless.stdout, "Pages")} == {"kept"}


def test_demo_tells_of_disobedience() -> None:
    disobedient = crawl("demo", "-s", "ROBOTSTXT_OBEY=False")
    assert disobedient.returncode == 1
    assert "57 URLs, 57 allowed, 0 disallowed; the server received 26 disallowed pages" in (
        disobedient.stdout
    )
    assert "the server received disallowed pages" in disobedient.stderr


FILES = {
    "ours": b"User-agent: examplebot\nDisallow: /a/\nDisallow: /b/\nAllow: /a/b/\n",
    "everyone": b"User-agent: *\nDisallow: /*.pdf$\nSitemap: https://example.com/map.xml\n",
    "closed": b"User-agent: *\nCrawl-delay: 10\nDisallow: /\n",
    "others": b"User-agent: otherbot\nDisallow: /\n",
    "empty": b"",
}


def test_census(tmp_path: Path) -> None:
    for name, body in FILES.items():
        (tmp_path / f"{name}.txt").write_bytes(body)
    census = crawl("census", "-a", f"robots={tmp_path}")
    assert census.returncode == 0, census.stderr
    counts = {row[""]: row["files"] for row in table(census.stdout, "What the files say")}
    assert counts["robots.txt files"] == "5"
    assert counts["a group for us"] == "1"
    assert counts["only the group for everyone"] == "2"
    assert counts["neither"] == "2"
    assert counts["front page disallowed"] == "1"
    assert counts["a crawl-delay, for whomever"] == "1"
    assert counts["sitemaps listed"] == "1"
    assert re.search(r"pages received by the server +5\n", census.stdout)
    # The front page of each, and /a/, /b/, /a/b/, /any.pdf; that of "others" is asked for once.
    assert census.stdout.rstrip().splitlines()[-1] == (
        "9 URLs, 5 allowed, 4 disallowed; the server received 0 disallowed pages"
    )


@pytest.mark.parametrize(
    ("spider", "arguments", "named"),
    [
        ("site", [], "url"),
        ("site", ["-a", "url=example.com"], "url"),
        ("site", ["-a", "url=http://["], "url"),
        ("site", ["-a", "url=http://127.0.0.1/", "-a", "limit=many"], "limit"),
        ("site", ["-a", "url=http://127.0.0.1/", "-a", "limit=0"], "limit"),
        ("census", [], "robots"),
        ("census", ["-a", "robots=/no/such/folder"], "robots"),
    ],
)
def test_arguments_that_cannot_be_used_are_named(
    spider: str, arguments: list[str], named: str
) -> None:
    refused = crawl(spider, *arguments)
    assert refused.returncode == 1
    assert f"ERROR: {named} has to be" in refused.stderr
    assert "Traceback" not in refused.stderr


@pytest.fixture
def web() -> Iterator[int]:
    """The demo sites; gives their port."""
    with subprocess.Popen(
        [sys.executable, "-m", "example.web", "demo"],
        cwd=PROJECT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())["port"]
        process.communicate(timeout=TIMEOUT)


def test_site_crawls_no_more_than_its_limit(web: int, tmp_path: Path) -> None:
    pages = tmp_path / "pages.jsonl"
    url = f"http://127.0.0.12:{web}/"
    site = crawl(
        "site", "-a", f"url={url}", "-a", "limit=2", "-s", "DOWNLOAD_DELAY=0", "-O", str(pages)
    )
    assert site.returncode == 0, site.stderr
    items = [json.loads(line) for line in pages.read_text().splitlines()]
    assert len(items) == 2
    assert items[0] == {"url": url, "status": 200, "title": "the group for everyone: /"}
    rows = table(site.stdout, "URLs")
    assert [row["answer"] for row in rows if row["allowed"] == "yes"] == ["200", "200"]


def test_site_shows_what_is_disallowed(web: int) -> None:
    site = crawl("site", "-a", f"url=http://127.0.0.12:{web}/", "-s", "DOWNLOAD_DELAY=0")
    assert site.returncode == 0, site.stderr
    assert "6 URLs, 3 allowed, 3 disallowed" in site.stdout
    rows = {row["URL"].partition(f":{web}")[2]: row for row in table(site.stdout, "URLs")}
    assert rows["/shop/cart"]["rule"] == "Disallow: /shop/cart"


def test_the_web_does_not_outlive_a_crawl_that_is_killed() -> None:
    code = (
        "from example.web.process import WebProcess\n"
        "print(WebProcess('demo').port, flush=True)\n"
        "input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as parent:
        assert parent.stdout is not None
        port = int(parent.stdout.readline())
        socket.create_connection(("127.0.0.11", port), timeout=TIMEOUT).close()
        parent.kill()
    for _ in range(100):
        try:
            socket.create_connection(("127.0.0.11", port), timeout=TIMEOUT).close()
        except ConnectionRefusedError:
            return
        except ConnectionResetError:  # it is just going
            pass
        time.sleep(0.1)
    pytest.fail("the web is still there")

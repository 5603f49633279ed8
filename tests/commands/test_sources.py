"""URLs as users write them, and files with URLs in each format."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from scrapy_rep.commands.context import CommandError
from scrapy_rep.commands.sources import MAX_LINE, Target, numbered_urls, target_of
from tests.conftest import traced_memory

from .conftest import write

pytestmark = pytest.mark.usefixtures("run")

SITEMAP = """<?xml version="1.0" encoding="UTF-8"?>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:i="http://i.example">
<url><loc> https://a.example/1 </loc><lastmod>2026-01-01</lastmod>
<i:image><i:loc>https://a.example/1.png</i:loc></i:image></url>
<url><loc>https://a.example/2?a=1&amp;b=2</loc></url>
</urlset>
"""
INDEX = """<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
<sitemap><loc>https://a.example/map1.xml</loc></sitemap></sitemapindex>"""

ENTITIES = "".join(f'<!ENTITY e{n + 1} "{f"&e{n};" * 10}">' for n in range(1, 12))
BOMB = f"""<!DOCTYPE a [<!ENTITY e1 "{"x" * 1000}">{ENTITIES}]>
<urlset><url><lastmod>&e12;</lastmod><loc>&e12;</loc></url></urlset>""".encode()
"""10^14 characters, if its entities were expanded."""
ENTITY = b"<!DOCTYPE a [<!ENTITY b 'c'>]><url><loc>/&b;</loc></url>"

A, B = "https://a.example/1", "https://a.example/2"


def urls_from(name: str, **options: str | None) -> Iterator[str]:
    return (url for _, url in numbered_urls(name, **options))


@pytest.mark.parametrize(
    ("name", "content", "field", "urls"),
    [
        ("x.txt", f"{A}\n\n# a comment\n  {B}  \r\n", None, [A, B]),
        ("x.txt", f"\ufeff{A}\n{B}", None, [A, B]),  # a byte order mark
        ("x.txt", "", None, []),
        ("x.jsonl", f'{{"url": "{A}"}}\n\n{{"id": 1, "url": "{B}"}}\n', None, [A, B]),
        ("x", f'{{"page": "{A}"}}\n', "page", [A]),
        ("x.jsonl", f'"{A}"\n', None, [A]),
        ("x.xml", SITEMAP, None, [A, "https://a.example/2?a=1&b=2"]),
        ("x", INDEX, None, ["https://a.example/map1.xml"]),
    ],
)
def test_formats(name: str, content: str, field: str | None, urls: list[str]) -> None:
    Path(name).write_bytes(content.encode())
    Path(f"{name}.gz").write_bytes(gzip.compress(content.encode()))
    for each in (name, f"{name}.gz"):
        assert list(urls_from(each, field=field)) == urls
    # A format that is given matters more than the name.
    write(x_jsonl=f"{A}\n")
    assert list(urls_from("x.jsonl", form="lines")) == [A]


@pytest.mark.parametrize(
    ("name", "content", "field", "message"),
    [
        ("x.txt", b"\x89PNG\r\n\0\0", None, "it is a binary file"),
        ("x.jsonl", b'{"a": 1}\n', None, "line 1 has no text in the field url"),
        ("x.jsonl", b"[1\n", None, "line 1: "),
        ("x.jsonl", b"[" * 100_000, None, "line 1: the JSON is nested too deeply"),
        ("x.xml", b"<urlset><url>", None, "Premature end of data"),
        ("x.xml", BOMB, None, "entit"),  # libxml2 may refuse it first
        ("x.xml", ENTITY, None, "it declares entities"),
        ("x.xml", b"<a>" * 300, None, "Excessive depth in document"),
        ("x.gz", gzip.compress(b"https://a.example/", mtime=0)[:-4], None, "end-of-stream"),
        ("x.gz", b"\x1f\x8b\x08nothing", None, ""),
    ],
)
def test_files_that_cannot_be_read(
    name: str, content: bytes, field: str | None, message: str
) -> None:
    Path(name).write_bytes(content)
    with pytest.raises(CommandError, match=f"cannot read {name}") as raised:
        list(urls_from(name, field=field))
    assert message in str(raised.value)


def test_memory_does_not_grow_with_the_file() -> None:
    url = f"<url><loc>https://a.example/{'x' * 80}</loc></url>\n"
    write(x_xml=f"<urlset>{url * 30_000}</urlset>")
    urls = urls_from("x.xml")
    with traced_memory() as traced:
        next(urls)
        before, _ = traced()
        assert sum(1 for _ in islice(urls, 29_999)) == 29_999
        after, most = traced()
    assert after - before < 100_000
    assert most < 2_000_000


@pytest.mark.parametrize(
    "content",
    [
        "<url>" + "<x/>" * 50_000 + "<loc>https://a.example/</loc></url>",
        "<url><loc>https://a.example/</loc><x>" + "x" * 5_000_000 + "</x></url>",
        "<url><loc>https://a.example/" + "x" * 5_000_000 + "</loc></url>",
    ],
    ids=["elements", "text", "URL"],
)
def test_one_entry_of_a_sitemap_takes_bounded_memory(content: str) -> None:
    write(x_xml=f"<urlset>{content}</urlset>")
    with traced_memory() as traced:
        (url,) = urls_from("x.xml")
        _, most = traced()
    assert url.startswith("https://a.example/")
    assert len(url) <= MAX_LINE
    assert most < 10 * MAX_LINE  # libxml2 reads no longer text


def test_a_line_without_an_end_is_cut() -> None:
    write(x_txt="a" * (2 * MAX_LINE + 1))
    assert [len(url) for url in urls_from("x.txt")] == [MAX_LINE, MAX_LINE, 1]


@pytest.mark.parametrize(
    ("given", "url", "origin"),
    [
        ("https://example.com/x", "https://example.com/x", "https://example.com"),
        ("example.com/x", "https://example.com/x", "https://example.com"),
        ("//example.com/x", "https://example.com/x", "https://example.com"),
        ("example.com:8443/x", "https://example.com:8443/x", "https://example.com:8443"),
        ("localhost:8000", "https://localhost:8000", "https://localhost:8000"),
        ("localhost:8000?q", "https://localhost:8000?q", "https://localhost:8000"),
        ("[::1]/x", "https://[::1]/x", "https://[::1]"),
        ("HTTP://Example.com", "HTTP://Example.com", "http://example.com"),
        ("ftp://example.com/x", "ftp://example.com/x", "ftp://example.com"),
        # These have no robots.txt.
        ("mailto:a@example.com", "mailto:a@example.com", None),
        ("data:text/html,x", "data:text/html,x", None),
        ("s3://bucket/key", "s3://bucket/key", None),
    ],
)
def test_targets(given: str, url: str, origin: str | None) -> None:
    assert target_of(given) == Target(given, url, origin)


@pytest.mark.parametrize(
    "given", ["http://", "https://:80/x", "http://a b/", "https://[::/x", "ex ample", "/x"]
)
def test_a_web_url_without_a_valid_host(given: str) -> None:
    target = target_of(given)
    assert (target.origin, target.is_valid) == (None, False)
    # For a file, a path is enough.
    assert target_of(given, in_file=True).is_valid is (given == "/x")

"""One site for each robots.txt file of a folder, as `scrapy crawl census` serves them."""

from __future__ import annotations

from ipaddress import IPv4Address
from typing import TYPE_CHECKING

from example.web.sites import ROBOTS_TXT, Answer, Site, page

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FIRST_ADDRESS = IPv4Address("127.1.0.1")
PAGE = Answer(page("A page", ()), content_type="text/html; charset=utf-8")


def addresses(folder: Path) -> Iterator[tuple[str, Path]]:
    """Each *.txt file of `folder`, in the order of their names, with the address it gets."""
    files = sorted(path for path in folder.glob("*.txt") if path.is_file())
    for index, file in enumerate(files):
        yield str(FIRST_ADDRESS + index), file


def folder_sites(folder: Path, port: int) -> tuple[Site, ...]:
    """The sites of `folder`: its files are their robots.txt, every other path is a small page."""
    return tuple(
        Site(file.stem, address, port, {ROBOTS_TXT: Answer(file.read_bytes())}, default=PAGE)
        for address, file in addresses(folder)
    )

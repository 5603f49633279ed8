"""The names of other projects that the documentation links to, so that it builds without a network.

An inventory is what Sphinx reads to link to another project. A name that is missing here is an
error in ``make docs``.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path


class Project(NamedTuple):
    """A project with documentation by Sphinx."""

    url: str
    names: dict[str, dict[str, str]]
    """For each page, its names with their roles. The anchor of a name is the name."""


PROJECTS = {
    "python": Project(
        "https://docs.python.org/3",
        {
            "library/stdtypes.html": dict.fromkeys(
                ("bool", "bytes", "dict", "float", "frozenset", "int", "list", "str", "tuple"),
                "py:class",
            ),
            "library/exceptions.html": dict.fromkeys(("TypeError", "ValueError"), "py:exception"),
            "library/functions.html": {"object": "py:class"},
            "library/collections.abc.html": dict.fromkeys(
                (
                    "collections.abc.Callable",
                    "collections.abc.Iterable",
                    "collections.abc.Mapping",
                    "collections.abc.Sequence",
                ),
                "py:class",
            ),
            "library/constants.html": {"None": "py:data", "False": "py:data", "True": "py:data"},
            "library/datetime.html": {"datetime.datetime": "py:class"},
            "library/enum.html": {"enum.Enum": "py:class"},
            "library/typing.html": {"typing.Any": "py:data"},
        },
    ),
    "scrapy": Project(
        "https://docs.scrapy.org/en/latest",
        {"topics/downloader-middleware.html": {"scrapy.robotstxt.RobotParser": "py:class"}},
    ),
}


def write_inventories(folder: Path) -> dict[str, tuple[str, str]]:
    """Write an inventory of each project. Returns the addresses and the paths, by project."""
    folder.mkdir(parents=True, exist_ok=True)
    found = {}
    for name, project in PROJECTS.items():
        path = folder / f"{name}.inv"
        path.write_bytes(_inventory(name, project))
        found[name] = (project.url, str(path))
    return found


def _inventory(name: str, project: Project) -> bytes:
    """Return an inventory in version 2 of the format of Sphinx."""
    lines = [
        f"{target} {role} 1 {page}#$ -\n"
        for page, names in project.names.items()
        for target, role in names.items()
    ]
    head = (
        "# Sphinx inventory version 2\n"
        f"# Project: {name}\n"
        "# Version: \n"
        "# The remainder of this file is compressed using zlib.\n"
    )
    return head.encode() + zlib.compress("".join(lines).encode())

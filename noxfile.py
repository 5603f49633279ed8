"""Tests with other versions than those of `make test`. `nox --list` shows the sessions.

`make test` needs no nox: it has the newest and the oldest versions on one Python. These sessions
are the other versions, each in an environment of its own. nox and not tox, because the steps of an
installation with minimum versions are plain Python here.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import nox

if TYPE_CHECKING:
    from collections.abc import Sequence

nox.needs_version = ">=2024.4.15"
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.sessions = ["pythons", "scrapy", "lowest", "default_reactor", "no_reactor"]

PYTHONS = ["3.10", "3.11", "3.12", "3.13", "3.14"]
"""The Python versions. A version that the machine does not have is skipped, but not in CI."""

SCRAPY = ["2.14", "2.15", "2.16", "2.17", "2.18", "2.19"]
"""The minor releases of Scrapy since the oldest supported one. The last patch of each is used."""

UNRELEASED_SCRAPY = os.environ.get("UNRELEASED_SCRAPY", "git+https://github.com/scrapy/scrapy")

CRAWLS = ["tests/crawl", "tests/stores"]
"""What depends on Scrapy, on the reactor and on the packages of the extras."""


def run(session: nox.Session, *options: str, tests: Sequence[str] = CRAWLS) -> None:
    """Run some of the tests. What follows `--` on the command line of nox replaces them.

    The options of a session, such as its event loop, stay as they are.
    """
    workers = os.environ.get("WORKERS", "6")
    session.run("python", "-m", "pytest", "-n", workers, *options, *(session.posargs or tests))


@nox.session(python=PYTHONS)
def pythons(session: nox.Session) -> None:
    """All tests with the newest packages."""
    session.install("-e", ".[test]")
    run(session, "--reactor=asyncio", tests=())


@nox.session
@nox.parametrize("version", SCRAPY)
def scrapy(session: nox.Session, version: str) -> None:
    """Crawls and stores with each minor release of Scrapy."""
    session.install("-e", ".[test]", f"scrapy=={version}.*")
    run(session, "--reactor=asyncio")


@nox.session
def unreleased(session: nox.Session) -> None:
    """Crawls and stores with the newest commit of Scrapy."""
    session.install("-e", ".[test]", f"scrapy @ {UNRELEASED_SCRAPY}")
    run(session, "--reactor=asyncio")


@nox.session(python=PYTHONS[0])
def lowest(session: nox.Session) -> None:
    """Crawls, pages and stores with the minimum versions, also of what Scrapy needs."""
    constraints = ("-c", "tests/oldest.txt", "-c", "tests/lowest.txt")
    session.install("-e", ".[test]", *constraints)
    # Old packages use what Python has deprecated since.
    old = ("-W", "ignore::DeprecationWarning")
    run(session, *old, "--reactor=asyncio", tests=[*CRAWLS, "tests/pages"])


@nox.session
def default_reactor(session: nox.Session) -> None:
    """Crawls and stores on Twisted's default reactor."""
    session.install("-e", ".[test]")
    run(session, "--reactor=default")


@nox.session
def no_reactor(session: nox.Session) -> None:
    """Crawls and stores on asyncio without a reactor."""
    session.install("-e", ".[test]")
    run(session, "-p", "no:twisted")


@nox.session
def packaging(session: nox.Session) -> None:
    """The archives of a release, with each extra alone and without all: `checks/packaging.py`."""
    session.install("-e", ".[release]")
    session.run("python", "-m", "checks", "packaging", *session.posargs)

"""The table of well-known crawlers, ``crawlers.toml``: for the tools, and for a warning in a crawl.

Its first lines explain the keys.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib.resources import files
from typing import Any


def read_table() -> dict[str, Any]:
    """Return the content of the file, as it is written."""
    if sys.version_info >= (3, 11):  # only here: most crawls do not need it
        import tomllib
    else:
        import tomli as tomllib
    return tomllib.loads(_text())


def operator_of(tokens: Iterable[str]) -> tuple[str, str] | None:
    """Return the name and the operator of the first crawler with one of these product tokens.

    >>> operator_of(["googlebot"])
    ('Googlebot', 'Google')
    >>> operator_of(["mybot"])
    """
    text = _text().lower()
    wanted = {token for token in tokens if f'"{token}"' in text}
    for row in read_table()["crawler"] if wanted else ():  # it takes long to read
        if row.get("tokens", [row["name"]])[0].lower() in wanted:
            return row["name"], row["operator"]
    return None


def _text() -> str:
    return files(__package__).joinpath("crawlers.toml").read_text("utf-8")

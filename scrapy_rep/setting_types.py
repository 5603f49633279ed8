"""Parsers for the values of settings, and how values are shown.

Each parser takes the value of a setting, which is text if it comes from a command line, and returns
it in the type that the package uses. It raises ValueError for an unusable value. The message says
what the value must be.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from os import PathLike, fspath
from urllib.parse import urlsplit

from w3lib.url import safe_url_string

from .protocol.agents import product_tokens
from .protocol.paths import origin_of
from .stores.registry import StoreSource, find_type, store_forms
from .stores.url import without_password

_TEMPLATE = re.compile(r"(?:[^%\0]|%%|%\((?:name|time|pid)\)s)+")


def boolean(value: object) -> bool:
    """Parse True or False, or one of the texts and numbers that stand for them."""
    match value:
        case bool():
            return value
        case int() | str() if str(value).strip().lower() in {"1", "true"}:
            return True
        case int() | str() if str(value).strip().lower() in {"0", "false"}:
            return False
    raise ValueError("True or False")


def count(value: object) -> int:
    """Parse a whole number, 0 or more."""
    return _whole_number(value, minimum=0)


def positive_count(value: object) -> int:
    """Parse a whole number, 1 or more."""
    return _whole_number(value, minimum=1)


def seconds(value: object) -> float:
    """Parse a finite number of seconds above 0."""
    number = _number(value)
    if not 0 < number < float("inf"):
        raise ValueError("a number of seconds above 0")
    return number


def days(value: object) -> float:
    """Parse a finite number of days, 0 or more."""
    number = _number(value)
    if not 0 <= number < float("inf"):
        raise ValueError("a number of days, 0 or more")
    return number


def strings(value: object) -> tuple[str, ...]:
    """Parse a list of texts, or one text that separates them by commas."""
    if isinstance(value, str):
        value = value.split(",")
    if not isinstance(value, Iterable) or isinstance(value, (bytes, Mapping)):
        raise ValueError("a list")
    texts = tuple(str(item).strip() for item in value)
    return tuple(text for text in texts if text)


def paths(value: object) -> tuple[str, ...]:
    """Parse a path, or a list of paths. A text separates them by commas. None means no path."""
    if value is None:
        return ()
    values = [value] if isinstance(value, PathLike) else value
    if isinstance(values, Iterable) and not isinstance(values, (str, bytes, Mapping)):
        values = [fspath(item) if isinstance(item, PathLike) else item for item in values]
        if not all(isinstance(item, str) for item in values):
            raise ValueError("None, a path or a list of paths")
    try:
        return strings(values)
    except ValueError:
        raise ValueError("None, a path or a list of paths") from None


def tokens(value: object) -> tuple[str, ...]:
    """Parse a list of product tokens. The result has them in lower case, each once."""
    found = [product_tokens(text) for text in strings(value)]
    if not all(found):
        raise ValueError("a list of product tokens")
    return tuple(dict.fromkeys(token for one in found for token in one))


def statuses(low: int, high: int) -> Callable[[object], frozenset[int]]:
    """Return a parser for a list of HTTP statuses from ``low`` to ``high``."""

    def parse(value: object) -> frozenset[int]:
        expected = f"a list of statuses from {low} to {high}"
        try:
            found = frozenset(int(text) for text in strings(value))
        except ValueError:
            raise ValueError(expected) from None
        if any(not low <= status <= high for status in found):
            raise ValueError(expected)
        return found

    return parse


def host_names(value: object) -> frozenset[str]:
    """Parse a list of host names. The result has them as :class:`~scrapy_rep.origin.Origin` has."""
    try:
        return frozenset(map(_host_name, strings(value)))
    except ValueError:
        raise ValueError("a list of host names, without scheme, port, path or wildcards") from None


def choice(*choices: str) -> Callable[[object], str]:
    """Return a parser for one of several texts."""

    def parse(value: object) -> str:
        if isinstance(value, str) and value in choices:
            return value
        raise ValueError(" or ".join(repr(text) for text in choices))

    return parse


def toml_path(value: object) -> str | None:
    """Parse the path of a TOML file. None and an empty text mean that there is none."""
    if value is None or value == "":
        return None
    if isinstance(value, (str, PathLike)):
        path = fspath(value)
        if isinstance(path, str):
            return path
    raise ValueError("None or the path of a TOML file")


def archive_path(value: object) -> str | None:
    """Parse the path of a WARC file. None and an empty text mean that there is none."""
    if value is None or value == "":
        return None
    if isinstance(value, (str, PathLike)):
        path = fspath(value)
        if isinstance(path, str) and path.endswith(".warc.gz") and _TEMPLATE.fullmatch(path):
            return path
    raise ValueError(
        "None or a path that ends in .warc.gz, in which %(name)s, %(time)s and %(pid)s are "
        "replaced and %% stands for %"
    )


def _whole_number(value: object, *, minimum: int) -> int:
    try:
        number = int(str(value))
    except ValueError:
        number = minimum - 1
    if isinstance(value, bool) or number < minimum:
        raise ValueError(f"a whole number, {minimum} or more")
    return number


def _number(value: object) -> float:
    """Return a value as a number; NaN if it is not a number."""
    try:
        return float("nan") if isinstance(value, bool) else float(str(value))
    except ValueError:
        return float("nan")


def _host_name(name: str) -> str:
    is_ipv6 = name.count(":") > 1 and not name.startswith("[")
    origin = origin_of(safe_url_string(f"http://[{name}]/" if is_ipv6 else f"http://{name}/"))
    parts = urlsplit(origin or "")
    if set(name) & set("/?#@*%") or parts.hostname is None or parts.port is not None:
        raise ValueError
    if not is_ipv6 and name.rstrip(".").rpartition("]")[2].count(":"):  # the default port
        raise ValueError
    return parts.hostname


def store(value: object) -> StoreSource | None:
    """Parse the URL of a store, or what returns one. None and the empty text mean no store."""
    if value is None or value == "":
        return None
    if callable(value) or (isinstance(value, str) and find_type(value) is not None):
        return value
    raise ValueError(f"None, {store_forms()}")


def user_agents(value: object) -> str | tuple[str, ...] | None:
    """Parse a User-Agent header, a product token, or a list of tokens. None means none of these."""
    if not value:
        return None
    # A header may contain commas. On a command line, commas separate the tokens of a list.
    if isinstance(value, str) and (set(value) & set("/( ") or "," not in value):
        return value
    try:
        return strings(value)
    except ValueError:
        expected = "a product token, a list of them, or a User-Agent header"
        raise ValueError(expected) from None


def without_passwords(value: object) -> object:
    """Return the value of a setting with ``***`` in place of each password in a URL."""
    match value:
        case str():
            return without_password(value)
        case bytes():
            return without_password(value.decode("latin-1")).encode("latin-1")
        case list() | tuple():
            return type(value)(without_passwords(item) for item in value)
        case Mapping():
            return {without_passwords(key): without_passwords(item) for key, item in value.items()}
    return value

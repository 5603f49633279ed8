"""What the errors of a download mean, in words: for the log, the report and the tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy.utils.python import global_object_name

from ..protocol.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_LENGTH = 300
"""The number of characters of an error message that are kept and shown."""

_WORDS = {
    "the host name cannot be resolved": (
        "CannotResolveHostError",
        "DNSLookupError",
        "UnknownHostError",
        "gaierror",
    ),
    "the connection was refused": ("ConnectionRefusedError", "DownloadConnectionRefusedError"),
    "the connection timed out": ("ConnectTimeout", "TCPTimedOutError"),
    "it took longer than REP_TIMEOUT": ("DownloadTimeoutError", "ReadTimeout", "TimeoutError"),
    "the connection was closed before the response was complete": (
        "ConnectionAborted",
        "ConnectionDone",
        "ConnectionLost",
        "ConnectionResetError",
        "PartialDownloadError",
        "ResponseDataLossError",
        "ServerDisconnectedError",
    ),
}
_BY_NAME = {name: words for words, names in _WORDS.items() for name in names}
"""The words for an error, by the name of its class. Twisted, the standard library, Scrapy and other
download handlers have classes of the same name."""

_TLS = ("OpenSSL", "ssl", "service_identity")
"""The modules whose errors are those of TLS."""


def in_words(error: BaseException) -> str:
    """Return what went wrong, for people. It is printable, and not longer than MAX_LENGTH."""
    causes = list(_causes(error))
    for each in reversed(causes):  # the first cause says most
        if type(each).__module__.split(".")[0] in _TLS:
            return _cut(f"TLS failed: {_text(each)}")
        found = (_BY_NAME.get(base.__name__) for base in type(each).__mro__)
        words = next(filter(None, found), None)
        if words is not None:
            return words
    return _cut(f"{type(causes[-1]).__name__}: {_text(causes[-1]) or 'no reason given'}")


def raised_by(error: BaseException) -> str:
    """Return the import path of the class that raised an error, or else of the function."""
    traceback, name = error.__traceback__, "A downloader middleware"
    while traceback is not None:
        frame, traceback = traceback.tb_frame, traceback.tb_next
        name = f"{frame.f_globals.get('__name__')}.{frame.f_code.co_name}"
        if (owner := frame.f_locals.get("self")) is not None:
            name = global_object_name(type(owner))
    return name


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and what has caused it. Twisted has lists of Failures with the causes."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        reasons: Any = getattr(current, "reasons", None)
        failures = reasons if isinstance(reasons, list) else []
        values = [value for each in failures if (value := getattr(each, "value", None)) is not None]
        current = values[-1] if values else current.__cause__


def _text(error: BaseException) -> str:
    """Return the message of an error. OpenSSL's is a list of tuples whose last item says most."""
    match error.args:
        case ([*_, (*_, str(text))],):
            return text
    return str(error)


def _cut(text: str) -> str:
    return printable(" ".join(text.split()), MAX_LENGTH)

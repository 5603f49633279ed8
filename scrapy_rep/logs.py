"""The loggers of the package: what a site or a server sent is escaped and cut in every log line.

A value may be a URL, a pattern, or the text of an error that a server sent. Tracebacks have such
texts, too. User names and passwords are removed from URLs.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import PurePath
from traceback import format_exception
from typing import Any

from .protocol.printable import printable, without_credentials

MAX_VALUE_LENGTH = 1000  # characters of one value, and of one line of a traceback
MAX_TRACEBACK_LINES = 200  # the last ones are kept


def get_logger(name: str) -> logging.Logger:
    """Return the logger of a module. It escapes and cuts the arguments of each message."""
    logger = logging.getLogger(name)
    logger.addFilter(_escape)
    return logger


def spider_logger(name: str, spider: object) -> logging.LoggerAdapter[logging.Logger]:
    """Return the logger of a module in a crawl, whose records name the spider."""
    return logging.LoggerAdapter(get_logger(name), {"spider": spider})


def plural(number: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun: ``1 request``, ``1,200 requests``."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def _escape(record: logging.LogRecord) -> bool:
    if isinstance(record.args, Mapping):
        record.args = {name: _shown(value) for name, value in record.args.items()}
    elif record.args:
        record.args = tuple(map(_shown, record.args))
    if record.exc_info and not record.exc_text:
        lines = "".join(format_exception(*record.exc_info)).rstrip("\n").split("\n")
        record.exc_text = "\n".join(map(_text, lines[-MAX_TRACEBACK_LINES:]))
    return True


def _shown(value: Any) -> Any:
    """Return a value of a log line; a text instead of what may contain a text of a site."""
    is_message = hasattr(value, "url") and hasattr(value, "headers")  # a request or a response
    is_text = isinstance(value, (str, BaseException, PurePath))
    return _text(str(value)) if is_text or is_message else value


def _text(text: str) -> str:
    return printable(without_credentials(text), MAX_VALUE_LENGTH)

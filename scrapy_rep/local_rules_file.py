"""The file of REP_LOCAL_RULES, which may change during a crawl."""

from __future__ import annotations

import os
from pathlib import Path

from scrapy import Spider

from .exceptions import SettingError
from .logs import get_logger
from .policies.local_rules import LocalRules

logger = get_logger(__name__)


class LocalRulesFile(LocalRules):
    """The local rules in a file. Raises SettingError if it cannot be used."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._version = _version(path)
        """What shows that the file may have changed."""
        try:
            super().__init__(_text_of(path))
        except ValueError as error:
            raise self._error(error) from None

    def reload(self, spider: Spider | None) -> bool:
        """Read the file again if it has changed. Returns whether other rules apply now.

        A file that cannot be used changes nothing, and is logged once.
        """
        version = _version(self._path)
        if version == self._version:
            return False
        self._version = version  # before the file is read: it may change meanwhile
        try:
            has_changed = self.replace(_text_of(self._path))
        except ValueError as error:
            logger.error(
                "%(error)s. The rules that were read before still apply.",
                {"error": self._error(error)},
                extra={"spider": spider},
            )
            return False
        if has_changed:
            logger.info(
                "The local rules in %(path)s (REP_LOCAL_RULES) have changed, and apply now.",
                {"path": self._path},
                extra={"spider": spider},
            )
        return has_changed

    def _error(self, error: ValueError) -> SettingError:
        return SettingError(f"REP_LOCAL_RULES is {self._path!r}: {error}")


def _version(path: str) -> tuple[int, ...] | None:
    try:
        status = os.stat(path)
    except (OSError, ValueError):  # ValueError: a NUL in the path
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino, status.st_dev


def _text_of(path: str) -> str:
    try:
        return Path(path).read_text("utf-8")
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise ValueError(f"it cannot be read: {error}") from None

"""The file of REP_LOCAL_RULES, which may change during a crawl."""

from __future__ import annotations

import os
from concurrent.futures import Future, ThreadPoolExecutor
from stat import S_ISREG

from scrapy import Spider

from .exceptions import SettingError
from .logs import get_logger, plural
from .policies.local_rules import LocalRule, LocalRules, parsed

logger = get_logger(__name__)

MAX_CHARACTERS = 10_000_000  # of a file. One for 10,000 sites has some 2,000,000


class LocalRulesFile(LocalRules):
    """The local rules in a file. Raises SettingError if it cannot be used."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._version = _version(path)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="robotstxt-local-rules")
        self.reading: Future[dict[str, list[LocalRule]]] | None = None
        """The rules of a changed file, which a thread reads: 3,000 tables take a second."""
        try:
            super().__init__(_text_of(path))
        except ValueError as error:
            raise self._error(error) from None

    def reload(self, spider: Spider | None) -> bool:
        """Begin to read the file again if it has changed. Returns whether other rules apply now.

        A later call takes the rules. A file that is unusable changes nothing, and is logged once.
        """
        if self.reading is None:
            version = _version(self._path)
            if version != self._version:
                self._version = version  # before the file is read: it may change meanwhile
                self.reading = self._thread.submit(self._read)
            return False
        if not self.reading.done():
            return False
        reading, self.reading = self.reading, None
        try:
            has_changed = self.replace(reading.result())
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

    def log_ended(self, spider: Spider | None, now: float) -> None:
        """Log, in one line, the exceptions that have ended."""
        ended = [
            f"{site}: {rule.verdict.detail}"
            for site, rules in self.by_site.items()
            for rule in rules
            if rule.verdict.allowed and rule.expires_at <= now
        ]
        number = plural(len(ended), "exception")
        if ended:
            logger.info(
                "%(number)s in %(path)s (REP_LOCAL_RULES) ended before this crawl: %(ended)s",
                {"number": number, "path": self._path, "ended": "; ".join(ended)},
                extra={"spider": spider},
            )

    def _read(self) -> dict[str, list[LocalRule]]:
        text = _text_of(self._path)
        if not text and self.by_site:  # it is probably being written
            raise ValueError("it is empty")
        return parsed(text)

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
        if not S_ISREG(os.stat(path).st_mode):  # to open a FIFO would wait for its writer
            raise ValueError("it is not a regular file")
        with open(path, encoding="utf-8") as file:
            text = file.read(MAX_CHARACTERS + 1)
        if len(text) > MAX_CHARACTERS:
            raise ValueError(f"it has more than {MAX_CHARACTERS:,} characters")
        return text
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8") from None
    except (OSError, ValueError) as error:  # ValueError: also a NUL in the path
        raise ValueError(f"it cannot be read: {error}") from None

"""A finding, and the lines of the file that it is about.

A column counts characters from 1, as an editor does: code points of the line with its indentation,
without a byte order mark. An octet that is not UTF-8 counts as one.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from typing import TYPE_CHECKING, NamedTuple

from .lines import SIZE_LIMIT, WHITE_SPACE, decoded, read, utf_8_mark

if TYPE_CHECKING:
    from .lint_codes import Code, Severity

_LINE_END = re.compile(rb"(\r\n|\r|\n)")
_UTF_16 = {BOM_UTF16_LE: "utf-16-le", BOM_UTF16_BE: "utf-16-be"}


class Correction(NamedTuple):
    """What to write instead of a part of a line."""

    column: int
    """The first column that is replaced."""
    end_column: int
    """The first column after it. If the two are the same, the text is inserted."""
    text: str


class Finding(NamedTuple):
    """One remark about one line of a robots.txt.

    `str` is the whole finding in one line. Parts of the file that it quotes are cut and escaped.

    >>> from scrapy_rep.protocol.lint_codes import Code, Severity
    >>> print(Finding(2, Severity.WARNING, "the colon is missing", "write 'disallow:'",
    ...               Code.MISSING_COLON))
    line 2: warning: the colon is missing; write 'disallow:' (R202)
    """

    line: int
    """The number of the line, from 1."""
    severity: Severity
    """How much it matters."""
    message: str
    """What is wrong."""
    advice: str
    """What to write instead."""
    code: Code
    """The kind of finding. Its `str` is stable, such as ``R202``."""
    column: int = 1
    """The number of the first character, from 1."""
    end_column: int = 1
    """The number of the first character after it."""
    is_fixable: bool = False
    """Whether `lint_fix.fix` corrects it."""
    correction: Correction | None = None
    """What `lint_fix.fix` writes. None for a mark or an encoding, which concern the whole file."""

    def __str__(self) -> str:
        return f"line {self.line}: {self.severity}: {self.message}; {self.advice} ({self.code})"


class Source:
    """The lines of a file, as they are written and as they are read."""

    __slots__ = ("encoding", "ends", "is_correctable", "mark", "text", "written")

    def __init__(self, body: bytes) -> None:
        self.text = read(body)
        """The lines as `lines.read` returns them: each begins with a LF."""
        octets = decoded(body)
        self.mark = b""
        """The byte order mark, whole or partial."""
        self.encoding: str | None = None
        """The encoding if it is UTF-16."""
        if body[:2] in _UTF_16:
            self.mark = body[:2]
            if not body.startswith(octets, 2):
                self.encoding = _UTF_16[self.mark]
        else:
            self.mark = utf_8_mark(body)
        pieces = _LINE_END.split(octets)
        self.written = pieces[::2]
        """The lines with their indentation, in UTF-8. The first is at index 0."""
        self.ends = [*pieces[1::2], b""]
        """The end of each line."""
        self.is_correctable = len(body) <= SIZE_LIMIT and self.encoded() == body
        """Whether the file is within the size limit, and can be written again as it is."""

    def encoded(self) -> bytes:
        """Return the file with its byte order mark, in its encoding."""
        octets = self.unmarked()
        if self.encoding:
            octets = octets.decode().encode(self.encoding)
        return self.mark + octets

    def unmarked(self) -> bytes:
        """Return the file without byte order mark. UTF-16 becomes UTF-8."""
        return b"".join(
            piece for line in zip(self.written, self.ends, strict=True) for piece in line
        )

    @property
    def has_removable_mark(self) -> bool:
        """Whether `unmarked` returns a file that is read as this one is."""
        octets = self.unmarked()
        return self.is_correctable and len(octets) <= SIZE_LIMIT and decoded(octets) == octets

    def finding(
        self,
        line: int,
        code: Code,
        message: str,
        advice: str,
        start: int = 0,
        end: int | None = None,
        *,
        severity: Severity | None = None,
        correction: tuple[int, int, bytes] | None = None,
    ) -> Finding:
        """Return a finding about the octets from `start` to `end` of a line as it is read.

        Without an end it is about the line up to its comment. A correction is a start, an end, and
        the octets to write between them.
        """
        written = self.written[line - 1]
        indentation = len(written) - len(written.lstrip(WHITE_SPACE))
        if end is None:
            end = len(written[indentation:].partition(b"#")[0].rstrip(WHITE_SPACE))

        def column(offset: int) -> int:
            return len(_characters(written[: indentation + offset])) + 1

        replacement = None
        if correction is not None and self.is_correctable:
            first, last, octets = correction
            replacement = Correction(column(first), column(last), _characters(octets))
        return Finding(
            line,
            severity or code.severity,
            message,
            advice,
            code,
            column(start),
            column(max(start, end)),
            replacement is not None,
            replacement,
        )


def _characters(octets: bytes) -> str:
    return octets.decode("utf-8", "surrogateescape")

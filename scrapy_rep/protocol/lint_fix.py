"""Corrects the findings that have one safe correction.

Most corrections state what a lenient parser reads anyway (`lint_codes.RESTATING`), so that all
crawlers read it. One gives a line a meaning that has none: a slash in front of a pattern. Comments,
line ends, spaces and all other lines keep their octets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .lines import SIZE_LIMIT
from .lint_codes import FIXABLE, Code, codes_of
from .lint_findings import Source
from .lint_lines import findings_of_lines
from .lint_octets import findings_of_octets

if TYPE_CHECKING:
    from collections.abc import Iterable

_MARKS = frozenset([Code.BYTE_ORDER_MARK, Code.UTF_16_MARK, Code.UTF_16])


def fix(body: bytes, codes: Iterable[str] | None = None) -> bytes:
    r"""Return a robots.txt with the corrections of the findings that are fixable.

    `codes` limits them, as `select` of `lint` does. To correct a corrected file changes nothing. A
    file of more than 500 KiB is returned as it is, and so is one that would have more. What the
    body holds never raises. Raises TypeError if the body is not bytes, and ValueError for a code
    that does not exist.

    >>> print(fix(b"User-agents: *\nDissallow private # see /private\n").decode(), end="")
    User-agent: *
    Disallow: /private # see /private
    """
    selected = FIXABLE if codes is None else FIXABLE & codes_of(codes)
    corrected = _corrected(body, selected)
    # A correction may show another mistake in the same line, at most once for each kind.
    while corrected != body and len(corrected) <= SIZE_LIMIT:
        body, corrected = corrected, _corrected(corrected, selected)
    return body


def _corrected(body: bytes, codes: frozenset[Code]) -> bytes:
    source = Source(body)
    if not source.is_correctable:
        return body
    found = [*findings_of_octets(source, body), *findings_of_lines(source, strict=False)]
    findings = [finding for finding in found if finding.is_fixable and finding.code in codes]
    if any(finding.code in _MARKS for finding in findings):
        return source.unmarked()
    # From the end of each line to its beginning, so that columns stay valid.
    for finding in sorted(findings, key=lambda found: (found.line, found.correction), reverse=True):
        assert finding.correction is not None
        column, end_column, text = finding.correction
        written = source.written[finding.line - 1].decode("utf-8", "surrogateescape")
        written = written[: column - 1] + text + written[end_column - 1 :]
        source.written[finding.line - 1] = written.encode("utf-8", "surrogateescape")
    return source.encoded()

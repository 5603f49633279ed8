"""Findings: lines of a robots.txt that do not do what their author probably meant.

Nothing here changes how a file is read. Findings say how the rest of the package reads it, and what
other crawlers read otherwise. `lint_codes` has the table of what is found, `lint_fix` corrects it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .lint_codes import Code, Severity, chosen_codes
from .lint_findings import Correction, Finding, Source
from .lint_groups import findings_of_groups, findings_of_repeated_values
from .lint_lines import findings_of_lines
from .lint_octets import findings_of_octets

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Code", "Correction", "Finding", "Severity", "lint"]


def lint(
    body: bytes, *, strict: bool = False, select: Iterable[str] = (), ignore: Iterable[str] = ()
) -> list[Finding]:
    r"""Return the lines of a robots.txt that do not do what they seem to, in the order of the file.

    `body` is the body of the response as it came. `strict` finds what `RobotsTxt` makes of it with
    ``strict=True``. An empty list means that there is nothing to report. `select` and `ignore` are
    codes (``R202``), beginnings of codes (``R2``) or names (``missing-colon``). Without `select`
    every kind of finding is reported. What `ignore` names is not reported.

    What the body holds never raises. Raises TypeError if the body is not bytes, and ValueError for
    a code that does not exist.

    >>> for finding in lint(b"User-agent: *\nDissallow: /private\nSitemap: /sitemap.xml"):
    ...     print(f"{finding.line}:{finding.column}: {finding.code} {finding.message}")
    2:1: R203 'dissallow' is misspelled
    3:10: R502 the sitemap '/sitemap.xml' is no absolute URL
    """
    codes = chosen_codes(select, ignore)
    source = Source(body)
    findings = [
        *findings_of_octets(source, body),
        *findings_of_lines(source, strict=strict),
        *findings_of_groups(source, strict=strict),
        *findings_of_repeated_values(source, strict=strict),
    ]
    findings = [finding for finding in findings if finding.code in codes]
    return sorted(findings, key=lambda found: (found.line, found.column, found.code.code))

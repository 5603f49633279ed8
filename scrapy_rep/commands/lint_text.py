"""The findings of ``lint`` on a terminal, with colors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from ..protocol.lint_codes import Severity
from ..protocol.lint_formats import to_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..protocol.lint_findings import Finding
    from .output import Output

_STYLES = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.INFO: "cyan"}


def print_findings(found: Iterable[tuple[str, Finding]], output: Output) -> None:
    """Print a line for each finding, with its severity in color."""
    for name, finding in found:
        (line,) = to_text([(name, finding)])
        place = f":{finding.line}:{finding.column}: "
        file, _, rest = line.partition(f"{place}{finding.severity}")
        severity = (str(finding.severity), _STYLES[finding.severity])
        output.print(Text.assemble((file, "bold"), place, severity, rest))

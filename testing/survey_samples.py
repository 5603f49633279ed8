"""The JSON form of surveys without a crawl: a usual one, and one with hostile texts."""

from __future__ import annotations

from itertools import cycle
from typing import TYPE_CHECKING, Any

from scrapy_rep.commands.survey_comparison import differences
from scrapy_rep.commands.survey_workers import purposes
from scrapy_rep.protocol.access import AccessResult
from scrapy_rep.reports.survey import VERSION, Sample, Survey

from . import generated

if TYPE_CHECKING:
    from collections.abc import Iterable

FILES = 150
"""Generated files of a usual survey."""

_NEW_FILE = b"""\
User-agent: *
Content-Signal: search=yes, ai-train=no
Disallow: /search
Crawl-delay: 5

User-agent: GPTBot
User-agent: CCBot
Disallow: /

User-agent: PerplexityBot
Disallow: /archive

User-agent: Applebot
Allow: /
"""


def usual() -> dict[str, Any]:
    """Return a survey of generated files in three strata, compared with an older one."""
    older, survey = Survey(purposes()), Survey(purposes())
    bodies = list(generated.files(FILES).values())
    for body in bodies:
        older.add(Sample(body, 200))
    for year, body in zip(cycle(("2024", "2025", "2026")), bodies, strict=False):
        survey.add(Sample(body, 200, stratum=year))
    for _ in range(20):
        survey.add(Sample(_NEW_FILE, 200, stratum="2026"))
    for status, result in (
        (404, AccessResult.UNAVAILABLE),
        (404, AccessResult.UNAVAILABLE),
        (403, AccessResult.DISALLOWED),
        (503, AccessResult.UNREACHABLE),
    ):
        survey.add(Sample(None, status, result.value, "2025"))
    return _record(survey, older)


def hostile(attacks: Iterable[str]) -> dict[str, Any]:
    """Return a survey whose texts are attacks, wherever a file or its name can have a text."""
    attacks = list(attacks)
    older, survey = Survey(purposes()), Survey(purposes())
    for attack in attacks:
        text = attack.encode("utf-8", "surrogatepass")
        lines = (b"User-agent: %s", b"Disallow: /%s", b"%s: x", b"Content-Signal: %s=yes")
        survey.add(Sample(b"\n".join(line % text for line in lines), 200, stratum=attack))
    record = _record(survey, older)
    total = record["total"]
    # The JSON form may come from another program, so that it may have any text anywhere.
    total["agents"] = total["ai_agents"] = [
        {"agent": attack, "purposes": [attack], "files": 3}
        | dict.fromkeys(("everything", "something", "nothing"), 1)
        for attack in attacks
    ]
    total["blocked_agents"] = [{"agent": attack, "files": 1} for attack in attacks]
    total["preferences"] = [{"preference": attack, "files": 1} for attack in attacks]
    for name in ("statuses", "results", "findings"):
        total[name] = dict.fromkeys(attacks, 1)
    total["purposes"] = {attack: {"named": 1, "everything": 1} for attack in attacks}
    record["made_at"] = attacks[0]
    record["differences"] = [
        {"measure": attack, "name": attack, "before": 0.5, "after": 1, "change": 0.5}
        for attack in attacks
    ]
    return record


def _record(survey: Survey, older: Survey) -> dict[str, Any]:
    found = survey.as_json()
    return {
        "type": "survey",
        "version": VERSION,
        "made_at": "2026-11-22T08:30:00Z",
        "complete": True,
        "problems": 0,
        **found,
        "differences": differences(found["total"], older.as_json()["total"]),
    }

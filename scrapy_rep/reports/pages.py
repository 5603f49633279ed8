"""The HTML pages of reports and surveys, and their summaries for a terminal.

A page is one file that loads nothing. Jinja2 escapes each value, and :func:`shown` cuts it and
makes its invisible characters visible, whatever the template says. A template of a page extends
``base.html``, and quotes all attributes. ``charts.html`` has the charts, and ``sentences.html``
what the page and the summary of a report both say. A report needs no script: ``page.js`` adds
sorting and filtering to its table of origins.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files
from math import isfinite
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from ..logs import plural
from ..protocol.printable import printable
from . import answers
from .records import Report, moment

if TYPE_CHECKING:
    from .survey import Survey

LINKS = frozenset({"https://datatracker.ietf.org/doc/html/draft-illyes-webbotauth-cbcp-01"})
"""The links to other pages. Nothing loads them until the reader follows them."""

MAX_TEXT = 2_000  # characters of one value that are shown
MAX_DETAILS = 3_000_000
"""Characters of the details of all origins. A browser reads about 10 MB in a second, and 10,000
rows of the table have about 4 MB."""


def report_page(report: Report) -> str:
    spiders = ", ".join(dict.fromkeys(shown(run.spider, 100) for run in report.runs[:100]))
    days = {moment(day)[:10] for run in report.runs for day in (run.started_at, run.written_at)}
    return render(
        "report.html",
        title=f"Crawl report: {spiders}, {period(min(days), max(days))}",
        description="What the robots.txt files of the sites said, and what the crawl did.",
        script_name="page.js",
        report=report,
        max_details=MAX_DETAILS,
    )


def report_summary(report: Report) -> str:
    """Return the summary of a report for a terminal, as ``templates/summary.html`` describes it."""
    return render_text("summary.html", report=report)


def survey_page(survey: Survey) -> str:
    """Return the page of a survey, which has no script."""
    return render(
        "survey.html",
        title=_survey_title(survey),
        description="The state of the robots.txt files of many sites.",
        survey=survey,
    )


def _survey_title(survey: Survey) -> str:
    sources, others = survey.sources[:5], len(survey.sources[5:])
    more = [plural(others, "other")] if others else []
    dates = [period(survey.first_date, survey.last_date)] if survey.first_date else []
    return f"Survey of robots.txt files: {', '.join([*sources, *more, *dates])}"


def survey_summary(survey: Survey) -> str:
    """Return a survey for a terminal, as ``templates/summary.html`` describes the form."""
    return render_text("survey_summary.html", title=_survey_title(survey), survey=survey)


def render(template: str, **values: Any) -> str:
    """Return a page from a template of the package. The values are of any origin."""
    return environment().get_template(template).render(values)


SEPARATOR = "\x1f"  # between two cells of a text: a text of a site has an escape in its place


def render_text(template: str, **values: Any) -> str:
    """Return a text for a terminal, whose form ``summary.html`` describes."""
    return Markup(render(template, sep=Markup(SEPARATOR), **values)).unescape()


@cache
def environment() -> Environment:
    """Return the environment of the templates. They use `answers`, and the functions below."""
    made = Environment(
        loader=PackageLoader(__package__),
        autoescape=True,
        undefined=StrictUndefined,
        extensions=["jinja2.ext.do"],
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: value if isinstance(value, Markup) else shown(value),
    )
    made.globals["answers"] = answers
    filters = asset, link, moment, percent, plural, seconds, shown, size, source
    made.filters |= {
        **{each.__name__: each for each in filters},
        "number": "{:,}".format,
        "state_kind": lambda state: answers.STATES.get(state, ("", "plain"))[1],
        "state_text": lambda state: answers.STATES.get(state, (state, ""))[0],
    }
    return made


def shown(text: object, length: int = MAX_TEXT) -> str:
    """Return a text of a site as a page shows it: cut, with escapes for all invisible but tabs."""
    text = str(text)
    return "\t".join(printable(part, length) for part in text[: length + 1].split("\t"))


def link(target: str) -> str:
    """Return the target of a link. Raises ValueError unless it is in the page, or in `LINKS`."""
    if not target.startswith("#") and target not in LINKS:
        raise ValueError(f"not a link of a page: {target!r}")
    return target


@cache
def asset(name: str) -> Markup:
    """Return a style or a script of the package, for an element of its own."""
    text = files(__package__).joinpath(name).read_text("utf-8").replace("\r\n", "\n")
    if "</" in text:
        raise ValueError(f"{name} has an end tag")
    return Markup(text)


def source(text: str) -> Markup:
    """Return the source expression of a style or script, for a Content-Security-Policy."""
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return Markup(f"'sha256-{digest}'")


def percent(part: float, whole: float) -> str:
    """Return a share. A share above 0 % never reads 0 %, and one below 100 % never 100 %."""
    if not whole:
        return "\N{EN DASH}"
    share = 100 * part / whole
    if 0 < share < 0.1:
        return "< 0.1 %"
    if 99.9 < share < 100:
        return "> 99.9 %"
    return f"{share:.0f} %" if share in (0, 100) or share >= 10 else f"{share:.1f} %"


def seconds(number: float) -> str:
    """Return a length of time, such as ``0.25 s``, ``12 s``, ``3 min 20 s`` and ``3 d 4 h``."""
    if not isfinite(number):
        return "unknown"
    if number < 0.0005:
        return "< 0.001 s" if number > 0 else "0 s"
    if number < 1:
        return f"{number:.3f}".rstrip("0").rstrip(".") + " s"
    if number < 100:
        return f"{number:.3g}" + " s"
    whole = round(number)
    units = ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "min"), (60, "min", 1, "s"))
    large, name, small, small_name = next(each for each in units if whole >= each[0])
    rest = whole % large // small
    return f"{whole // large:,} {name}" + (f" {rest} {small_name}" if rest else "")


def size(number: int) -> str:
    """Return a size: ``120 B``, ``4.2 KiB``, ``500 KiB``."""
    if number < 1_024:
        return f"{number:,} B"
    kibibytes = number / 1_024
    return f"{kibibytes:.1f} KiB" if kibibytes < 10 else f"{kibibytes:,.0f} KiB"


def period(first: str, last: str | None) -> str:
    """Return the days from the first one to the last one."""
    return first if first == last else f"{first} to {last}"

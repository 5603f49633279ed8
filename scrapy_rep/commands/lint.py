"""``lint``: lines that do not do what they seem to, and their corrections; ``rule`` explains them.

A finding quotes parts of a file escaped and cut. Names of files and URLs are escaped here.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from difflib import unified_diff
from importlib.resources import files
from itertools import filterfalse
from pathlib import Path
from urllib.parse import urlsplit

import click
from msgspec import Struct
from rich.cells import cell_len

from ..logs import plural
from ..protocol.access import recognize
from ..protocol.freshness import DEFAULT_LIFETIME, lifetime
from ..protocol.lint import NOT_ROBOTS_TXT, Finding, Source, about_file, fix, lint
from ..protocol.lint_codes import Code, Severity, chosen_codes, codes_of
from ..protocol.paths import ROBOTS_TXT, host_of
from ..protocol.printable import cut, printable
from .context import (
    STANDARD_INPUT,
    CommandError,
    Context,
    ExitCode,
    completing,
    refuse_if,
    tool,
    writing,
)
from .crawlers import known_tokens
from .explain import Answer, reason_text
from .policy import Policy
from .sources import is_file, read_policies, target_of

_MAX_NAME = 1000
"""Characters of the name of a file that are shown."""
_MAX_BEFORE, _MAX_LINE = 60, 100
"""Characters of a line that are shown before the place of a finding, and in all."""
_STYLES = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.INFO: "cyan"}


_COMPLETE = completing(lambda: (text for code in Code for text in (code, code.short_name)))


class LintFinding(Struct, kw_only=True, tag_field="type", tag="finding"):
    """A finding. Lines and columns count from 1; ``end_column`` is the first one behind it."""

    version: int = 1
    file: str
    line: int
    column: int
    end_column: int
    code: str
    name: str
    severity: str
    message: str
    advice: str
    is_fixable: bool

    @classmethod
    def of(cls, name: str, found: Finding) -> LintFinding:
        values = found._asdict()
        del values["correction"]  # --diff shows it
        values |= {"code": str(found.code), "severity": found.severity.value}
        return cls(file=name, name=found.code.short_name, **values)


@tool(
    "Report lines of a robots.txt that do not do what they seem to, or that other crawlers read "
    "differently. 'scrapy-rep rule R202' explains a code. A folder stands for each robots.txt in "
    "it, or, if there is none, for each file that ends in .txt.",
    ("lint robots.txt", "a file"),
    ("lint robots.txt --diff", "show what --fix would change"),
    ("lint robots.txt --fix", "correct the findings that have one safe correction"),
    ("lint example.com --ignore R206,R3", "the robots.txt of a site, without these findings"),
    found="there is an error or a warning; with --diff: a correction",
    unknown="a site does not answer",
    records=(LintFinding,),
    reads_sites=True,
)
@click.argument("names", nargs=-1, required=True, metavar="ROBOTS...")
@click.option(
    "--select",
    multiple=True,
    metavar="CODE[,CODE]",
    help="Report only these findings: codes, beginnings of codes, or names.",
    shell_complete=_COMPLETE,
)
@click.option(
    "--ignore",
    multiple=True,
    metavar="CODE[,CODE]",
    help="Leave out these findings.",
    shell_complete=_COMPLETE,
)
@click.option("--fix", "fixes", is_flag=True, help="Make the safe corrections.")
@click.option("--diff", is_flag=True, help="Show what --fix would change, and nothing else.")
@click.option(
    "--unsafe-fixes",
    "unsafe",
    is_flag=True,
    help="With --fix or --diff: also corrections that may change what is allowed.",
)
def lint_tool(
    context: Context,
    names: Sequence[str],
    select: Sequence[str],
    ignore: Sequence[str],
    fixes: bool,
    diff: bool,
    unsafe: bool,
) -> int:
    selected, ignored = _codes(select), _codes(ignore)
    refuse_if(fixes and diff, "--fix and --diff exclude each other")
    refuse_if(unsafe and not (fixes or diff), "--unsafe-fixes belongs to --fix or --diff")
    refuse_if(diff and context.as_json, "--diff and --format json exclude each other")
    others = ", ".join(filterfalse(is_file, names)) or STANDARD_INPUT * (STANDARD_INPUT in names)
    refuse_if(fixes and others, f"--fix corrects files, and {others} is not a file")
    codes = chosen_codes(selected, ignored)
    found: list[Finding] = []
    unknown = matters = False
    sources = [source for each in names for source in _files(each)]
    for name, body, about_site in context.counted(_bodies(sources, context), "files", len(sources)):
        unknown |= body is None and not about_site
        if not diff:
            about_site = [finding for finding in about_site if finding.code in codes]
            _write(name, b"", about_site, context, quiet=True)
            found += about_site
        if body is None:
            continue
        fixed = fix(body, codes, unsafe=unsafe) if fixes or diff else body
        if diff:
            matters |= _show_changes(name, body, fixed, context)
            continue
        if fixed != body:
            from ..reports.files import write_atomically

            with writing(name):
                write_atomically(Path(name), fixed)
            context.note(f"{name} is corrected")
        findings = lint(fixed, select=selected, ignore=ignored, crawlers=known_tokens())
        _write(name, fixed, findings, context, quiet=context.quiet)
        found += findings
    if (found or not unknown) and not (context.quiet or context.as_json or diff):
        _write_notes(found, context)
    if unknown:
        return ExitCode.UNKNOWN
    matters |= any(finding.severity is not Severity.INFO for finding in found)
    return ExitCode.FOUND if matters else ExitCode.OK


@tool(
    "Explain findings of lint, each with an example and what to write instead. Without a code, "
    "list all of them.",
    ("rule R202", "what a code means"),
    ("rule colon R4", "by a part of its name, and all that begin so"),
)
@click.argument("names", nargs=-1, metavar="[CODE]...", shell_complete=_COMPLETE)
def rule_tool(context: Context, names: Sequence[str]) -> int:
    parts = [name for name in names if any(name.lower() in code.short_name for code in Code)]
    codes = codes_of(_codes([name for name in names if name not in parts]))
    codes |= {code for code in Code for part in parts if part.lower() in code.short_name}
    if not codes:
        context.write("".join(f"{each}  {each.severity:7}  {each.short_name}\n" for each in Code))
    text = (files(__package__) / "lint_codes.md").read_text("utf-8")
    sections = re.split(r"^#{2,3} (?=.)", text, flags=re.MULTILINE)
    explanations = {section[:4]: section.strip() for section in sections}  # each begins with a code
    context.write("\n".join(f"{explanations[each]}\n" for each in Code if each in codes))
    return ExitCode.OK


def _files(name: str) -> list[str]:
    """Return the name of a file or a site, or the files of a folder."""
    if not Path(name).is_dir():
        return [name]
    inside = sorted(each for each in Path(name).rglob("*.txt") if each.is_file())
    named = [each for each in inside if each.name == "robots.txt"]
    refuse_if(not inside, f"the folder {name} has no robots.txt and no other file with .txt")
    return [str(each) for each in named or inside]


def _codes(options: Sequence[str]) -> list[str]:
    names = [name for option in options for name in option.split(",")]
    try:
        codes_of(names)
    except ValueError as error:
        raise CommandError(str(error)) from None
    return names


def _bodies(
    names: Sequence[str], context: Context
) -> Iterator[tuple[str, bytes | None, list[Finding]]]:
    """Yield each name with its robots.txt, and the findings about the answer of a site.

    There is no robots.txt if the site has none, or does not answer: then there is also no finding.
    """
    others = [name for name in names if not is_file(name)]
    policies = dict(zip(others, read_policies(others, context), strict=True))
    for name in names:
        policy = policies.get(name)
        if policy is None:
            yield name, context.read_file(name), []
        elif policy.access.is_unreachable:
            context.warn(policy.access.problem)
            yield name, None, []
        else:
            text = policy.text[1:] if policy.body is None else policy.body
            body = None if policy.robots is None else text
            yield policy.access.url, body, list(_about_site(name, policy))


_REFUSED = Code.REFUSED, "let crawlers get it: without it, they may take everything for allowed"
_STATES = {
    "not-robots-txt": (Code.NOT_ROBOTS_TXT, NOT_ROBOTS_TXT),
    "challenge": (Code.CHALLENGE, "exempt /robots.txt from the test: no crawler passes it"),
    "refused": _REFUSED,
    "disallowed-status": _REFUSED,
    "unavailable": (Code.UNAVAILABLE, "nothing has to be done if everything may be crawled"),
    "redirects": (Code.TOO_MANY_REDIRECTS, "answer with the file at its own address"),
}
"""The code and the advice for each state without rules; "redirects" are too many of them."""

_PLAIN_TEXT = re.compile(r"text/plain(\s*;\s*charset=\"?(utf-8|us-ascii)\"?)?\s*", re.IGNORECASE)


def _about_site(given: str, policy: Policy) -> Iterator[Finding]:
    """Yield findings about the answer of a site. None of them is about a line."""
    access, answer, verdict = policy.access, policy.answer, Answer()
    verdict.judge(policy.verdict(f"{policy.origin}/", ()))
    why, headers = reason_text(verdict), dict[str, str]()
    if answer is not None and answer.status < 300:
        headers = dict(answer.headers) if policy.robots is not None else {}
        why += f", {recognize(answer.body or b'', answer.headers.get('content-type')).form}"
    # After too many redirects, the last response has no meaning of its own.
    is_redirect = access.state == "unavailable" and access.status is None
    state = "redirects" if is_redirect else access.state
    code, remedy = _STATES.get(state, _REFUSED)
    path, final = urlsplit(target_of(given).url).path, access.final_url or access.url
    kind = headers.get("content-type", "text/plain" if not headers else "missing")
    kept = lifetime(headers, time.time()) or 0
    rows = [
        (path.endswith(ROBOTS_TXT) and path != ROBOTS_TXT, Code.OTHER_ADDRESS,
         f"no crawler reads {given}", "crawlers read only /robots.txt, which follows"),
        (state in _STATES, code, why, remedy),
        (not _PLAIN_TEXT.fullmatch(kind), Code.CONTENT_TYPE,
         f"the content type is {kind}", "send 'text/plain; charset=utf-8'"),
        (kept > DEFAULT_LIFETIME, Code.LONG_LIFETIME,
         f"the headers let crawlers keep the file for {kept:,.0f} seconds",
         "send 'Cache-Control: max-age=86400' or less, so that changes are seen within a day"),
        (host_of(final) != host_of(access.url), Code.OTHER_HOST,
         f"the rules are those of {final}, to which the site redirects",
         "answer with a file of its own if other rules are meant"),
        (access.state == "rules" and not policy.text.strip(), Code.EMPTY,
         "the file is empty: everything is allowed", "write rules if less is meant"),
    ]  # fmt: skip
    for is_found, code, message, advice in rows:
        if is_found:
            yield about_file(code, message, advice)


def _show_changes(name: str, body: bytes, fixed: bytes, context: Context) -> bool:
    """Write the difference of two texts, escaped. Return whether there is one."""
    shown = printable(name, _MAX_NAME)
    before, after = (
        [printable(line.decode("utf-8", "replace"), _MAX_NAME) for line in Source(text).written]
        for text in (body, fixed)
    )
    if body != fixed and before == after:
        context.write(f"{shown}: only its encoding changes\n")
    lines = unified_diff(before, after, shown, shown, lineterm="")
    context.write("".join(f"{line}\n" for line in lines))
    return body != fixed


def _write(
    name: str, body: bytes, findings: Sequence[Finding], context: Context, *, quiet: bool
) -> None:
    lines = Source(body).written if findings else []
    for finding in findings:
        if context.as_json:
            context.record(LintFinding.of(name, finding))
            continue
        style = _STYLES[finding.severity]
        context.write(f"{to_text(name, finding, context.styled(str(finding.severity), style))}\n")
        if not quiet:
            line = lines[finding.line - 1] if finding.line <= len(lines) else b""
            text = line.decode("utf-8", "replace")
            shown, mark = excerpt(text, finding.column, finding.end_column)
            context.write(f"    {shown}\n    {context.styled(mark, style)}\n")


def _write_notes(found: Sequence[Finding], context: Context) -> None:
    context.write("", flush=True)
    corrected = [finding for finding in found if finding.correction is not None]
    safe = sum(finding.is_fixable for finding in corrected)
    unsafe = len(corrected) - safe
    parts = [plural(len(found), "finding")]
    parts += [f"--fix corrects {safe:,}"] * bool(safe)
    parts += [f"--fix --unsafe-fixes {unsafe:,} more"] * bool(unsafe)
    context.note("; ".join(parts))
    if codes := sorted({finding.code for finding in found}):
        context.note(f"'scrapy-rep rule {' '.join(codes)}' explains them")


def excerpt(line: str, column: int, end_column: int) -> tuple[str, str]:
    """Return the part of a line around a place, escaped, and a line with carets under the place."""
    column, end_column = column - 1, end_column - 1
    first = max(0, column - _MAX_BEFORE)
    places = ((first, column), (column, end_column), (end_column, None))
    before, place, after = (printable(line[start:end], _MAX_NAME) for start, end in places)
    before = "…" + before if first else before
    shown = before + place + after
    length = max(1, min(cell_len(place), _MAX_LINE - cell_len(before)))
    return cut(shown, _MAX_LINE), " " * cell_len(before) + "^" * length


def to_text(name: str, found: Finding, severity: str) -> str:
    """Return a finding as a line: ``robots.txt:2:1: warning R202 missing-colon: …``."""
    place = f"{printable(name, _MAX_NAME)}:{found.line}:{found.column}"
    code = f"{found.code} {found.code.short_name}"
    return f"{place}: {severity} {code}: {found.message}; {found.advice}"

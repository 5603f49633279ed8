"""Findings: lines of a robots.txt that do not do what their author probably meant.

Nothing here changes how a file is read. Findings say how the rest of the package reads it, and what
other crawlers read differently. `lint_codes` has the table of what is found. `lint` reports it, and
`fix` corrects what has one safe correction.

A column counts characters from 1, as an editor does: code points of the line with its indentation,
without a byte order mark. A byte that is not UTF-8 counts as one.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from difflib import get_close_matches
from functools import cached_property, lru_cache, partial
from typing import NamedTuple, TypeAlias

from . import lint_checks as checks
from . import parser
from .access import recognize
from .agents import WILDCARD_AGENT, is_possible_token, parse_user_agent, tokens_of_line
from .lines import SIZE_LIMIT, WHITE_SPACE, decoded, file_of, read, require_bytes, utf_8_mark
from .lint_codes import Code, Severity, chosen_codes, codes_of
from .matcher import RankedRule, one_star, rank
from .parser import RULE_FIELDS, RawRule, field_of
from .paths import encoded_pattern, origin_of, pattern_of
from .printable import printable, quoted
from .records import CONTENT_SIGNAL, CONTENT_USAGE, HELD_ABOVE, KNOWN_FIELDS, USAGE
from .robotstxt import RobotsTxt
from .usage import AIPREF, POLICY_PREFIX, POLICY_TOKENS, TRAIN_AI, use_of

__all__ = ["Code", "Correction", "Finding", "Severity", "fix", "lint"]

_MAX_FIELD_LENGTH = 40  # characters of an unknown field that are shown, and compared with others
_GOOGLE_LINE_LENGTH = 16_663
"""Bytes of a line that Google's open-source parser keeps: eight times the longest URL, 2,083, but
for the NUL at the end of its buffer."""
_MAX_RULES = 2048  # Yandex: the analysis of a robots.txt reports a file with more as an error
_MAX_COMPARED = 100_000
"""Rules that are compared in all combinations of groups. With more, each group is read alone."""

_MAX_ABOVE = 100
"""Statements above all groups that are compared with those of each group."""
_EVERYONE = WILDCARD_AGENT.encode()
_WHOLE = (b"/", b"*", b"/*")  # the patterns of all paths
_ABOVE = b""
"""In place of a token: what is stated above all groups. No crawler has it."""
_FIELDS = sorted(KNOWN_FIELDS)
# Above any user-agent line these are ignored.
_ONLY_IN_GROUPS = {*RULE_FIELDS, *parser.GROUP_FIELDS} - HELD_ABOVE
_FIELD_AND_SCHEME = re.compile(rb"([a-z -]+?)[ \t\v\f]+https?").fullmatch
# The beginning of a field, and an ending such as those of "Disallowed", "User-agents" and
# "Disallow;". Longer endings may have a meaning of their own.
_FIELD_AND_ENDING = re.compile(rb"%b[a-z]{0,3}[;=,.-]?" % checks.NAMES).fullmatch
# A path without its slash. Other values may be meant for any place in the path or query: ".pdf$",
# "?page=", "page=".
_PATH_WITHOUT_SLASH = re.compile(
    rb"[A-Za-z0-9][^:=?$\x00-\x20\x7f]*(?:\?[^:$\x00-\x20\x7f]*)?"
).fullmatch
# A name, and a comma, semicolon or bar before the next one.
_SEVERAL_TOKENS = re.compile(rb"[\w.*-]+(?:[ \t]*[,;|][ \t]*[\w.*-]+)+").fullmatch
_NAME = re.compile(rb"[a-z][a-z _-]*").fullmatch
_IDENTIFIER = re.compile(rb"[a-z_-]+").fullmatch
_TOKEN = re.compile(rb"[A-Za-z0-9_-]+").fullmatch
_LINE_END = re.compile(rb"(\r\n|\r|\n)")

_Span: TypeAlias = tuple[int, int]
_Tokens: TypeAlias = list[bytes]
_Best: TypeAlias = dict[str, RankedRule]


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
    """The kind of finding, which is stable, such as ``R202``."""
    column: int = 1
    """The number of the first character, from 1."""
    end_column: int = 1
    """The number of the first character after it."""
    is_fixable: bool = False
    """Whether `fix` corrects it: the correction is safe."""
    correction: Correction | None = None
    """What `fix` writes, also if that is not safe. None for a mark, which is not in a line."""

    def __str__(self) -> str:
        return f"line {self.line}: {self.severity}: {self.message}; {self.advice} ({self.code})"


class Source:
    """The lines of a file, as they are written and as they are read."""

    def __init__(self, body: bytes) -> None:
        self.text = read(body)
        """The lines as `lines.read` returns them: each begins with a LF."""
        self.lines = self.text.split(b"\n")
        """The same lines, by their numbers. There is no line 0."""
        self.file = file_of(body)
        start = self.file[:2]
        self.mark = start if start in (BOM_UTF16_LE, BOM_UTF16_BE) else utf_8_mark(self.file)
        """The byte order mark, whole or partial."""
        text = decoded(body)
        self.pieces = _LINE_END.split(text)
        """Each line in UTF-8, with its indentation, and its end, in turn."""
        self.is_correctable = len(body) <= SIZE_LIMIT and self.mark + text == body
        """Whether the file is within the size limit, and neither in UTF-16 nor in a page."""

    @cached_property
    def rules(self) -> list[RawRule]:
        """All rules with a value, whether they are in a group or not."""
        records = parser.records(self.text, strict=False)
        rules = (record for record in records if record.field in RULE_FIELDS and record.value)
        return [(field == b"allow", value, line) for line, field, value in rules]

    @cached_property
    def allowed(self) -> list[str]:
        """The patterns of all Allow lines, sorted."""
        return _patterns(rule for rule in self.rules if rule[0])

    @cached_property
    def allowed_unencoded(self) -> list[str]:
        """Those of Allow lines that no safe correction percent-encodes."""
        return _patterns(
            rule for rule in self.rules if rule[0] and encoded_pattern(rule[1]) != rule[1]
        )

    @cached_property
    def beginnings(self) -> Counter[bytes]:
        """How many rules have each text as their value without its last character."""
        return Counter(value[:-1] for _, value, _ in self.rules)

    @property
    def written(self) -> list[bytes]:
        """The lines with their indentation, in UTF-8. The first is at index 0."""
        return self.pieces[::2]

    def finding(
        self,
        line: int,
        code: Code,
        message: str,
        advice: str,
        span: _Span | None = None,
        *,
        correction: tuple[int, int, bytes] | None = None,
        is_safe: bool = True,
    ) -> Finding:
        """Return a finding about a span of the bytes of a line as it is read.

        Without a span it is about the line up to its comment. A correction is a start, an end, and
        the bytes to write between them.
        """
        written = self.pieces[2 * line - 2]
        indentation = len(written) - len(written.lstrip(WHITE_SPACE))
        content = written[indentation:].partition(b"#")[0].rstrip(WHITE_SPACE)

        def column(offset: int) -> int:
            return len(_characters(written[: indentation + offset])) + 1

        replacement = None
        if correction is not None and self.is_correctable:
            first, last, added = correction
            replacement = Correction(column(first), column(last), _characters(added))
        start, end = span or (0, len(content))
        place = column(start), column(max(start, end)), replacement is not None and is_safe
        return Finding(line, code.severity, message, advice, code, *place, replacement)

    def remark(self, number: int, check: checks.Check, **values: object) -> Finding:
        """Return a finding about a whole line. The values are those of the message and advice."""
        message, advice = (text.format(**values) for text in (check.message, check.advice))
        return self.finding(number, check.code, message, advice)


_Findings: TypeAlias = Iterator[Finding]

NOT_ROBOTS_TXT = "publish plain text in UTF-8, or answer with 404 if there is no robots.txt"


def about_file(code: Code, message: str, advice: str, line: int = 1) -> Finding:
    """Return a finding about a file as a whole, or from a line on."""
    return Finding(line, code.severity, message, advice, code)


def _characters(text: bytes) -> str:
    return text.decode("utf-8", "surrogateescape")


def lint(
    body: bytes,
    *,
    select: Iterable[str] = (),
    ignore: Iterable[str] = (),
    crawlers: Mapping[str, str] | None = None,
) -> list[Finding]:
    r"""Return the lines of a robots.txt that do not do what they seem to, in the order of the file.

    `body` is the body of the response as it came. `select` and `ignore` are codes (``R202``),
    beginnings of codes (``R2``) or names (``missing-colon``). Without `select` every kind of
    finding is reported, except those that `ignore` names.

    `crawlers` maps the product tokens of known crawlers, in lower case, to how they are written. A
    token that resembles one of them (``GPT-bot``) is reported.

    What the body holds never raises. Raises TypeError if the body is not bytes, and ValueError for
    a code that does not exist.

    >>> for finding in lint(b"User-agent: *\nDissallow: /private\nSitemap: /sitemap.xml"):
    ...     print(f"{finding.line}:{finding.column}: {finding.code} {finding.message}")
    2:1: R203 'dissallow' is misspelled
    3:10: R502 the sitemap '/sitemap.xml' is not an absolute URL
    """
    codes = chosen_codes(select, ignore)
    require_bytes(body)
    if form := recognize(body).form:
        findings = [about_file(Code.NOT_ROBOTS_TXT, f"the file is {form}", NOT_ROBOTS_TXT)]
    else:
        source = Source(body)
        sections = _sections(source)
        findings = [*_findings_of_lines(source, crawlers or {})]
        findings += _findings_of_groups(source, sections)
        findings = _kept_apart(findings, sections)
    findings = [finding for finding in findings if finding.code in codes]
    return sorted(findings, key=lambda found: (found.line, found.column, found.code))


def _kept_apart(findings: list[Finding], sections: list[_Section]) -> list[Finding]:
    """Return findings whose advice never removes all rules of a section, which would join the next.

    Each gets another advice than the others only where all rules of its section are to be removed.
    """
    removed = {finding.line for finding in findings if checks.REMOVE in finding.advice}
    kept = {line for each in sections if removed.issuperset(each.ends) for line in each.ends}
    return [
        finding._replace(advice=finding.advice.replace(checks.REMOVE, checks.EMPTY))
        if finding.line in kept
        else finding
        for finding in findings
    ]


def fix(body: bytes, codes: Iterable[str] | None = None, *, unsafe: bool = False) -> bytes:
    r"""Return a robots.txt with the safe corrections of its findings.

    A correction is safe if it states what a lenient parser reads anyway, or the pattern of the line
    percent-encoded, and allows nothing that was disallowed. `unsafe` makes the others as well. No
    correction makes a rule of a comment, a host, a URL or a value in another line. Comments, line
    ends, spaces and all other lines keep their bytes. To correct a corrected file changes nothing.
    A file of more than 500 KiB is returned as it is, and so is one that would have more.

    `codes` limits the corrections, as `select` of `lint` does. Raises as `lint` does.

    >>> print(fix(b"User-agents: *\nDissallow /private # see /private\n").decode(), end="")
    User-agent: *
    Disallow: /private # see /private
    """
    selected = frozenset(Code) if codes is None else codes_of(codes)
    corrected = _corrected(body, selected, unsafe=unsafe)
    # A correction may show another mistake in the same line, at most once for each kind.
    while corrected != body and len(corrected) <= SIZE_LIMIT:
        body, corrected = corrected, _corrected(corrected, selected, unsafe=unsafe)
    return body


def _corrected(body: bytes, codes: frozenset[Code], *, unsafe: bool) -> bytes:
    source = Source(body)
    if not source.is_correctable or recognize(body).form:
        return body
    findings = [
        finding
        for finding in _findings_of_lines(source, {})
        if finding.code in codes and (finding.is_fixable or (unsafe and finding.correction))
    ]
    if any(finding.code is Code.BYTE_ORDER_MARK for finding in findings):
        return b"".join(source.pieces)
    # From the end of each line to its beginning, so that columns stay valid.
    for finding in sorted(findings, key=lambda found: (found.line, found.correction), reverse=True):
        assert finding.correction is not None
        column, end_column, text = finding.correction
        place = 2 * finding.line - 2
        written = _characters(source.pieces[place])
        written = written[: column - 1] + text + written[end_column - 1 :]
        source.pieces[place] = written.encode("utf-8", "surrogateescape")
    return source.mark + b"".join(source.pieces)


def _findings_of_bytes(source: Source) -> _Findings:
    """Yield findings about byte order marks, encodings, NUL bytes and long lines."""
    if source.mark:
        code, message = Code.BYTE_ORDER_MARK, "not every crawler skips the byte order mark"
        text = b"".join(source.pieces)
        if not source.file.startswith(text, len(source.mark)):
            code, message = Code.UTF_16, "the file is UTF-16, which most crawlers do not decode"
        # Without the first of two marks, the second is one, and the first line means another thing.
        is_fixable = source.is_correctable and decoded(text) == text
        finding = about_file(code, message, "save the file as UTF-8 without a mark")
        yield finding._replace(is_fixable=is_fixable)
    for number, line in enumerate(source.written, 1):
        content = line.lstrip(WHITE_SPACE)
        nul = content.partition(b"#")[0].find(b"\0")
        if nul >= 0:
            message = "Google reads the line only up to the NUL byte in it"
            yield source.finding(number, Code.NUL_BYTE, message, "remove it", (nul, nul + 1))
        if len(line) > _GOOGLE_LINE_LENGTH:
            message = f"Google reads only the first {_GOOGLE_LINE_LENGTH} bytes of a line"
            yield source.finding(number, Code.LONG_LINE, message, "write a shorter line")
        try:
            content.decode()
        except UnicodeDecodeError as error:
            span = error.start, error.start + 1
            message, advice = "a byte that is not UTF-8", "save the file as UTF-8"
            yield source.finding(number, Code.NOT_UTF_8, message, advice, span)
    if len(source.file) > SIZE_LIMIT:
        last = source.text.count(b"\n") + (not source.text.endswith(b"\n"))
        message = f"nothing is read from here on: the file has more than {SIZE_LIMIT} bytes"
        yield about_file(Code.TOO_LARGE, message, "write fewer or shorter rules", last)


# Lines


class _Line(NamedTuple):
    """A line with a field and a value."""

    finding: Callable[..., Finding]
    """Returns a finding about the line: `Source.finding` with its number."""
    name: bytes
    """The name as it is written, in lower case."""
    field: bytes
    """The field in a lenient reading."""
    value: bytes
    span: _Span
    """Where the value begins and ends."""
    colon: int
    """Where the colon is; -1 without one."""

    @property
    def is_rule(self) -> bool:
        return self.field in RULE_FIELDS and self.value != b""


def _read_line(source: Source, number: int, content: bytes) -> _Line | None:
    """Return a line without its comment; None if it has no field."""
    record = parser.parse_line(content, number, strict=False)
    if record is None:
        return None
    colon = content.find(b":")
    name = content[:colon].rstrip(WHITE_SPACE) if colon >= 0 else content.split()[0]
    span = len(content) - len(record.value), len(content)
    finding = partial(source.finding, number)
    return _Line(finding, name.lower(), record.field, record.value, span, colon)


def _findings_of_lines(source: Source, crawlers: Mapping[str, str]) -> _Findings:
    """Yield findings about lines that are skipped, misspelled or out of place, and values."""
    yield from _findings_of_bytes(source)
    known_crawlers = _Crawlers(crawlers)
    started = False
    rules = 0
    above = b""
    for number, text in enumerate(source.lines):
        content = text.partition(b"#")[0].strip(WHITE_SPACE)
        if not content:
            continue
        line = _read_line(source, number, content)
        found, above = _about_content(source, number, content, line, above)
        if found is not None:
            yield found
        if line is None:
            continue
        started = started or line.field == parser.USER_AGENT
        rules += line.is_rule
        if found is None:
            yield from _about_field(line)
            yield from _about_place(line, started, rules)
            yield from _about_value(source, line, text, known_crawlers)


def _about_content(
    source: Source, number: int, content: bytes, line: _Line | None, above: bytes
) -> tuple[Finding | None, bytes]:
    """Return what is wrong with a line as a whole, and the field that it leaves without a value.

    `above` is the field that the line above leaves so: the line may have its value.
    """
    if (line is None or line.field not in _FIELDS) and above and checks.BELOW[above](content):
        field, value = above.decode().capitalize(), printable(_text(content))
        message = f"the value of '{field}:' is in the next line, where it is skipped"
        return source.finding(number, Code.NO_COLON, message, f"write '{field}: {value}'"), above
    left = line.field if line and not line.value and line.field in checks.BELOW else b""
    for check in checks.LINES:
        match = check.find(content)
        if isinstance(match, re.Match):
            place = match.lastgroup or 0
            values = {"found": printable(_text(match[place])), "point": ord(_text(match[0])[0])}
            message, advice = (text.format(**values) for text in (check.message, check.advice))
            return source.finding(number, check.code, message, advice, match.span(place)), left
    if line is not None:
        return None, left
    near = _nearest(_text(content.split()[0]).lower())
    advice = f"write '{near}:'" if near else "begin comments with '#'"
    return source.finding(number, Code.NO_COLON, "no colon, so the line is skipped", advice), left


def _about_place(line: _Line, started: bool, rules: int) -> _Findings:
    if not started and line.field in _ONLY_IN_GROUPS:
        message = f"{_text(line.field)} before any user-agent line is ignored"
        yield line.finding(Code.OUTSIDE_GROUP, message, "write 'User-agent: *' above it")
    if line.is_rule and rules == _MAX_RULES + 1:
        message = f"the file has more than {_MAX_RULES:,} rules, the limit of Yandex"
        yield line.finding(Code.MANY_RULES, message, "write fewer rules, with '*'")


def _about_field(line: _Line) -> _Findings:
    name, span = line.name, (0, len(line.name))
    scheme = _FIELD_AND_SCHEME(name)
    if scheme and field_of(scheme[1]) in (b"sitemap", b"license") and line.value.startswith(b"//"):
        # "Sitemap https://example.com/": the first colon is that of the URL.
        message = "the colon is missing, and the one in the URL is read instead"
        advice = f"write '{_text(field_of(scheme[1]))}:'"
        code, added = Code.MISSING_COLON, (scheme.end(1), scheme.end(1), b":")
        finding = line.finding(code, message, advice, scheme.span(1), correction=added)
        yield finding._replace(severity=Severity.ERROR)
    elif name in (b"noindex", b"nofollow"):  # they belong in pages and headers
        message = f"no crawler reads {quoted(name)} in a robots.txt: Google stopped in 2019"
        advice = f"send the header 'X-Robots-Tag: {_text(name)}' with the pages"
        yield line.finding(Code.OBSOLETE_FIELD, message, advice, span)
    elif line.field in _FIELDS:
        yield from _about_spelling(line, span)
    else:
        yield _about_unknown_field(line, span)


def _about_unknown_field(line: _Line, span: _Span) -> Finding:
    name, near = line.name, _nearest(_text(line.name))
    message = f"unknown field {quoted(name, _MAX_FIELD_LENGTH)}, the line is skipped"
    correction = None
    if near:
        code, advice = Code.UNREAD_FIELD, f"write '{near}:'"
        # What is in front of the right name was put there on purpose.
        if _NAME(name) and not name.endswith(near.encode()):
            correction = *span, near.capitalize().encode()
        else:
            advice += ", or '#' in front of a comment"
    elif line.colon >= 0:
        code, advice = Code.UNKNOWN_FIELD, "remove it if it is a mistake"
    else:
        code, advice = Code.NO_COLON, "begin comments with '#'"
    return line.finding(code, message, advice, span, correction=correction, is_safe=False)


def _about_spelling(line: _Line, span: _Span) -> _Findings:
    name, (_, end) = line.name, span
    advice, correction = f"write '{_text(line.field)}:'", None
    if line.colon < 0:
        message, added = "the colon is missing", (end, end, b":")
        yield line.finding(Code.MISSING_COLON, message, advice, span, correction=added)
    if name in (b"allowaitraining", b"disallowaitraining"):  # draft-canel-robots-ai-control-00
        message = f"{quoted(name)} is of an expired draft, and is read as {quoted(line.field)}"
        advice = "write 'Content-Usage: train-ai=n' to refuse AI training"
        yield line.finding(Code.AI_TRAINING_FIELD, message, advice, span)
    elif name != line.field:
        if name in parser.TYPOS or _FIELD_AND_ENDING(name):
            correction = *span, line.field.capitalize()
        message = f"{quoted(name)} is misspelled"
        yield line.finding(Code.MISSPELLED_FIELD, message, advice, span, correction=correction)
    elif line.colon > end:
        message = "not every crawler skips white space before the colon"
        space, added = (end, line.colon), (end, line.colon, b"")
        yield line.finding(Code.SPACE_BEFORE_COLON, message, advice, space, correction=added)


def _about_token(line: _Line, crawlers: _Crawlers) -> _Findings:
    value, span = line.value, line.span
    tokens = tokens_of_line(value)
    if not value:
        yield line.finding(Code.NO_TOKEN, "no product token", "write '*' for everyone")
    elif not any(map(is_possible_token, tokens)):
        yield _about_impossible_token(line)
    elif value[:1] == b"*":
        return
    elif _text(tokens[-1]).startswith(POLICY_PREFIX) and _text(tokens[-1]) not in POLICY_TOKENS:
        message = f"no use has the policy token {quoted(tokens[-1])}"
        advice = f"write {' or '.join(map(repr, POLICY_TOKENS))}"
        yield line.finding(Code.UNKNOWN_POLICY_TOKEN, message, advice, span)
    elif tokens[0] != value.lower() or not _IDENTIFIER(tokens[0]):
        yield _about_cut_token(line, tokens)
    elif tokens[0] in (b"all", b"any", b"anyone", b"everybody", b"everyone"):
        message = f"this group is for a crawler with the name {quoted(value)}"
        yield line.finding(Code.TOKEN_FOR_EVERYONE, message, "write '*' for all crawlers", span)
    elif near := crawlers.nearest(_text(tokens[0])):
        message = f"no known crawler has the product token {quoted(value)}"
        advice = f"write '{near}' if you mean that crawler"
        yield line.finding(Code.SIMILAR_TOKEN, message, advice, span)


def _about_impossible_token(line: _Line) -> Finding:
    message = f"no crawler has the product token {quoted(line.value)}"
    advice = "write letters, hyphens and underscores, or '*' alone for everyone"
    if found := checks.bare_token(_text(line.value)):
        advice = f"write '{printable(found[0])}' without {found[1]}"
    return line.finding(Code.INVALID_TOKEN, message, advice, line.span)


def _about_cut_token(line: _Line, tokens: list[bytes]) -> Finding:
    """Return the finding about a value that holds more than the token that crawlers compare."""
    value, (start, end) = line.value, line.span
    first, token = tokens[0], tokens[-1]
    code, correction, is_safe = Code.TOKEN_CUT, None, True
    advice = "write letters, hyphens and underscores only"
    message = f"of {quoted(value)} most crawlers compare {quoted(first)} alone"
    if not _IDENTIFIER(first):
        message = f"most crawlers find no product token in {quoted(value)}"
    sent = _product_of(value)
    if _SEVERAL_TOKENS(value):
        code, advice = Code.SEVERAL_VALUES, "write a user-agent line for each of them"
    elif sent and sent.lower() not in tokens:
        code, is_safe, correction = Code.HEADER_AS_TOKEN, False, (start, end, sent)
        advice = f"write {quoted(sent)}, the product token in this header"
    elif token != b"mozilla" and _IDENTIFIER(token) and value[len(token) :].startswith(b"/"):
        code, correction = Code.TOKEN_WITH_VERSION, (start + len(token), end, b"")
        advice = f"write {quoted(value[: len(token)])}"
    return line.finding(code, message, advice, line.span, correction=correction, is_safe=is_safe)


def _product_of(value: bytes) -> bytes | None:
    """Return the product token in a User-Agent header; None without one, or if it is not certain.

    Some have names of several words, of which only the first would be found.
    """
    tokens = parse_user_agent(value).tokens if b"/" in value else ()
    if not tokens or not _TOKEN(tokens[0].encode()):
        return None
    at, lowered = -1, value.lower()
    while (at := lowered.find(tokens[0].encode(), at + 1)) >= 0:
        end = at + len(tokens[0])
        if lowered[at - 1 : at] in b" \t;(" and lowered[end : end + 1] in b"/;)(":
            return value[at:end]
    return None


class _Crawlers:
    """The known crawlers, and the tokens that are taken for theirs."""

    def __init__(self, crawlers: Mapping[str, str]) -> None:
        self._known = {*crawlers, "pinterest"}  # "Pinterest/0.2" is not Pinterestbot
        self._plain = {_without_hyphens(token): written for token, written in crawlers.items()}
        beginnings = {token.partition("-")[0]: written for token, written in crawlers.items()}
        names = {token.removesuffix("bot"): written for token, written in crawlers.items()}
        shorter = {each: name for token, name in self._plain.items() for each in _shorter(token)}
        self._near = {**shorter, **beginnings, **names, **self._plain}

    def nearest(self, token: str) -> str | None:
        """Return the crawler that a token is taken for: ``gpt-bot``, ``chatgpt``, ``googlbot``."""
        is_known = not self._known.isdisjoint((token, token.partition("-")[0]))
        if is_known or len(token) > _MAX_FIELD_LENGTH:
            return None
        plain = _without_hyphens(token)
        if found := self._near.get(token) or self._near.get(plain):
            return found
        for each in _shorter(plain):
            near = self._near.get(each, "")
            # One letter more, or two letters that changed places.
            if each in self._plain or sorted(plain) == sorted(_without_hyphens(near.lower())):
                return near
        return None


def _without_hyphens(token: str) -> str:
    return token.replace("-", "").replace("_", "")


def _shorter(token: str) -> Iterator[str]:
    """Yield a token without one of its letters, if it is long enough to be known all the same."""
    if len(token) >= 8:
        yield from (token[:at] + token[at + 1 :] for at in range(len(token)))


def _about_value(source: Source, line: _Line, text: bytes, crawlers: _Crawlers) -> _Findings:
    """Yield the first mistake in a value. `text` is the line with its comment."""
    before, _, comment = text.partition(b"#")
    if line.is_rule and before[-1:] not in WHITE_SPACE and comment[:1].strip(WHITE_SPACE + b"#"):
        message = f"'#' begins a comment, so the pattern is {quoted(line.value)}"
        yield line.finding(Code.COMMENT_IN_PATTERN, message, checks.NO_FRAGMENT, line.span)
    elif line.field in _FIELDS and (second := checks.FIELD_WITHIN(line.value)):
        name = _text(second[1].lower())
        message = f"two records on one line: '{name}' has no effect, as it is a part of the value"
        start, end = (line.span[0] + offset for offset in second.span())
        advice = "write each record on a line of its own"
        yield line.finding(Code.SEVERAL_RECORDS, message, advice, (start, end))
    elif line.field == parser.USER_AGENT:
        yield from _about_token(line, crawlers)
    elif line.is_rule and line.value[0] not in b"/*":
        yield _about_unmatchable(line, _text(line.value))
    elif line.value or line.field not in RULE_FIELDS:
        for check in checks.CHECKS.get(line.field, ()):
            if check.find(line.value) and not _is_meant(source, check.code, line.value):
                yield _about_mistake(source, line, check)
                break


def _is_meant(source: Source, code: Code, value: bytes) -> bool:
    """Return whether other rules show that a value that looks like a mistake is meant so."""
    if code is Code.LAST_CHARACTER:  # "/a;" beside "/a?" and "/a/"
        return source.beginnings[value[:-1]] > 1
    if code is Code.RESOURCES_DISALLOWED:  # some of them are allowed
        return _first(source.allowed, pattern_of(value)[0].rstrip("*$")) is not None
    return False


def _patterns(rules: Iterable[RawRule]) -> list[str]:
    return sorted(pattern for _, _, _, pattern in rank(rules, strict=False))


def _first(patterns: list[str], start: str) -> str | None:
    """Return the first of sorted patterns that begins so."""
    place = bisect_left(patterns, start)
    return next((each for each in patterns[place : place + 1] if each.startswith(start)), None)


def _about_mistake(source: Source, line: _Line, check: checks.Check) -> Finding:
    value, meant = line.value, check.meant(line.value)
    message = check.message.format(value=quoted(value))
    advice = check.advice.format(meant=quoted(meant))
    correction, is_safe = None, False
    if check.code is Code.UNENCODED_PATTERN:
        correction = *line.span, meant
        (pattern, length), (_, longer) = pattern_of(value), pattern_of(meant)
        # A longer Allow may win over rules that disallow now, and so may one that has the same
        # pattern. A longer Disallow may win over an Allow below it.
        is_alone = _first(source.allowed, pattern) != pattern
        is_alone = is_alone and not _first(source.allowed_unencoded, pattern)
        is_safe = line.field == b"disallow" and (length == longer or is_alone)
    return line.finding(
        check.code, message, advice, line.span, correction=correction, is_safe=is_safe
    )


def _about_unmatchable(line: _Line, value: str) -> Finding:
    plain, correction = value.strip(checks.QUOTATION_MARKS), None
    why = "as every path begins with a slash"
    code, meant = Code.UNMATCHABLE_PATTERN, f"/*{value}"
    message = f"the pattern {quoted(line.value)} never matches"
    if found := checks.host_and_path(plain.encode("utf-8")):
        return _about_host(line, message, *found)
    if _PATH_WITHOUT_SLASH(line.value):
        code, meant = Code.MISSING_SLASH, f"/{value}"
        correction = line.span[0], line.span[0], b"/"
    elif plain != value:
        meant = f"/{plain.lstrip('/')}"
        why = "without quotation marks, which don't belong to a path"
    elif checks.REGULAR_EXPRESSION(line.value):
        meant = "/page*"
        why = "because a pattern is not a regular expression: only '*' and '$' are special"
    elif value[0] == "\\":
        meant = value.replace("\\", "/")
    elif value.startswith("./"):
        meant = value[1:]
    advice = f"write '{printable(meant)}', {why}"
    return line.finding(code, message, advice, line.span, correction=correction, is_safe=False)


def _about_host(line: _Line, message: str, host: str, path: str) -> Finding:
    message += (
        f": it begins with the host '{printable(host)}', and a robots.txt is for its own host"
    )
    advice = f"{checks.REMOVE}, as rules for that host belong into its own robots.txt"
    if path.strip("/*$"):
        advice = f"write '{printable(path)}' if you mean a path of this site, else {checks.REMOVE}"
    return line.finding(Code.URL_AS_PATTERN, message, advice, line.span)


@lru_cache(maxsize=256)
def _nearest(field: str) -> str | None:
    known = [_text(known) for known in _FIELDS] if len(field) <= _MAX_FIELD_LENGTH else []
    return next(iter(get_close_matches(field, known, 1, 0.75)), None)


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")


# Groups. Of rules that match the same paths one decides, and the others never do. Not found: rules
# that others with more stars cover, such as "/ab" by "/a*b".


class _Section(NamedTuple):
    """A run of user-agent lines, and the rules below it up to the next run."""

    tokens: list[bytes]
    agents: list[tuple[int, frozenset[bytes]]]
    """Each user-agent line with its longest token."""
    rules: list[RawRule]
    ends: list[int]
    """The lines of all rules, also of those without a value."""

    @property
    def closes(self) -> int | None:
        """The line of the rule that disallows the whole site, if no rule allows it."""
        return _closing_line(self.rules)


def _closing_line(rules: Iterable[RawRule]) -> int | None:
    whole = [(allow, line) for allow, value, line in rules if value in _WHOLE]
    is_open = any(allow for allow, _ in whole)
    return None if is_open else next((line for _, line in whole), None)


def _sections(source: Source) -> list[_Section]:
    found: list[_Section] = []
    records = parser.records_of_groups(source.text, strict=False, ends=RULE_FIELDS)
    for (line, field, value), tokens in records:
        if tokens is None:
            continue
        if not found or found[-1].tokens is not tokens:
            found.append(_Section(tokens, [], [], []))
        if field == parser.USER_AGENT:
            found[-1].agents.append((line, frozenset(tokens_of_line(value)[-1:])))
        elif field in RULE_FIELDS:
            found[-1].ends.append(line)
            if value:
                found[-1].rules.append((field == b"allow", value, line))
    return found


def _findings_of_groups(source: Source, sections: list[_Section]) -> _Findings:
    """Yield findings about the rules of groups, disallowed sitemaps, and a site that is closed."""
    of_everyone = [rule for each in sections if _EVERYONE in each.tokens for rule in each.rules]
    closing = _closing_line(of_everyone)
    for section in sections:
        yield from _about_joined_section(source, section, closing)
    yield from _about_equal_rules(source, sections)
    yield from _about_usage(source, sections)
    is_for_everyone = {token for each in sections for token in each.tokens} == {_EVERYONE}
    if closing and is_for_everyone and not any(allow for allow, _, _ in of_everyone):
        yield source.remark(closing, checks.SITE_CLOSED)
    records = parser.records(source.text, strict=False)
    if sitemaps := [record.value for record in records if record.field == b"sitemap"]:
        yield from _about_sitemaps(source, sitemaps[:100])


def _about_joined_section(source: Source, section: _Section, closing: int | None) -> _Findings:
    """Yield a finding about lines that look like sections of their own, but share their rules."""
    if not section.rules or len(section.agents) == 1:
        return
    *earlier, (joining, own) = _parts(source, section)
    start, others = next((part for part in earlier if not part[1] <= own), (0, own))
    if not start:
        return
    rules = {line: (allow, value) for allow, value, line in section.rules}
    is_closed = closing in rules and _EVERYONE in section.tokens
    line = closing if is_closed and closing else section.closes or min(rules)
    values = {"joining": joining, "line": line, "names": _names(sorted(others - own))}
    remark = checks.CLOSED if is_closed else checks.JOINED
    found = source.remark(start, remark, rule=_rule_text(*rules[line]), **values)
    yield found._replace(severity=Severity.ERROR) if is_closed else found


def _rule_text(allow: bool, value: bytes) -> str:
    return quoted((b"Allow: " if allow else b"Disallow: ") + value)


def _names(tokens: Iterable[bytes]) -> str:
    return quoted(b", ".join(tokens))


def _parts(source: Source, section: _Section) -> list[tuple[int, set[bytes]]]:
    """Return the first line and the tokens of each part of a run that looks like a section.

    Comments between user-agent lines do not end a part. Neither do blank lines in a list that has
    one before its rules, too, unless everyone is in it: what is for one crawler and for everyone
    was hardly meant as one list.
    """
    last = section.agents[-1][0]
    is_spaced = _EVERYONE not in section.tokens and not source.lines[last + 1]
    found: list[tuple[int, set[bytes]]] = []
    previous = 0
    for line, tokens in section.agents:
        between = source.lines[previous + 1 : line]
        if not found or any(text[:1] != b"#" and (text or not is_spaced) for text in between):
            found.append((line, set()))
        found[-1][1].update(tokens)
        previous = line
    return found


def _about_equal_rules(source: Source, sections: list[_Section]) -> _Findings:
    """Yield findings about rules that match what a better one of the same group matches.

    Sections of the same token are one group. A rule is found if it decides for none of its tokens.
    That another section has the same rule once more is no mistake.
    """
    groups = _groups([(section.tokens, section.rules) for section in sections])
    merged = [_best(rule for each in group for rule in sections[each].rules) for group in groups]
    of_section: dict[int, list[_Best]] = {}
    for best, group in zip(merged, groups, strict=True):
        for number in group:
            of_section.setdefault(number, []).append(best)
    for number, section in enumerate(sections):
        yield from _about_rules(source, section, of_section.get(number, []))


def _groups(sections: Sequence[tuple[_Tokens, Sized]]) -> dict[tuple[int, ...], list[bytes]]:
    """Return the numbers of the sections that are one group for some tokens, and these tokens.

    Nothing if they are too many to compare. A section has its tokens, and what is compared of it.
    """
    numbers: dict[bytes, dict[int, None]] = {}
    for number, (tokens, _) in enumerate(sections):
        for token in tokens:
            numbers.setdefault(token, {})[number] = None
    groups: dict[tuple[int, ...], list[bytes]] = {}
    for token, found in numbers.items():
        groups.setdefault(tuple(found), []).append(token)
    compared = sum(len(sections[each][1]) for group in groups for each in group)
    return groups if compared <= _MAX_COMPARED else {}


def _best(rules: Iterable[RawRule]) -> _Best:
    """Return the rule that wins among those of the same `_stem`, by that."""
    best: _Best = {}
    for rule in rank(rules, strict=False):
        best.setdefault(_stem(rule[-1]), rule)
    return best


def _about_rules(source: Source, section: _Section, merged: list[_Best]) -> _Findings:
    best = _best(section.rules)
    for rule in section.rules:
        allow, value, line = rule
        # One that names an index page may stand for its folder as well.
        ranked = rank([rule], strict=False)
        winners, together = [best[_stem(pattern)] for _, _, _, pattern in ranked], ""
        if line in (winner[2] for winner in winners):
            winners = [each[_stem(pattern)] for each in merged for _, _, _, pattern in ranked]
            together = checks.TOGETHER
            if any(disallows is not allow for _, disallows, _, _ in winners):
                continue
        if winners:
            length, disallows, decides, _ = winners[0]
            tokens = frozenset().union(*dict(section.agents).values()) if together else ()
            is_tie = not (allow or disallows) and ranked[0][0] == length
            field, reason = "allow" if allow else "disallow", checks.TIE if is_tie else ""
            together = together.format(_names(sorted(tokens)))
            values = {"field": field, "value": quoted(value), "reason": reason, "decides": decides}
            yield source.remark(line, checks.NEVER_DECIDES, together=together, **values)


def _stem(pattern: str) -> str:
    """Return the shortest pattern that matches the same paths: without stars that match nothing."""
    return one_star(pattern).removesuffix("*$").removesuffix("*")


def _about_sitemaps(source: Source, sitemaps: list[bytes]) -> _Findings:
    robots = RobotsTxt(source.text[1:])
    disallowed: dict[int, bytes] = {}
    for sitemap in sitemaps:
        url = _text(sitemap)
        rule = robots.verdict(url, WILDCARD_AGENT).rule if origin_of(url) else None
        if rule is not None and not rule.allow and "sitemap" in rule.pattern.lower():
            disallowed.setdefault(rule.line, sitemap)
    for line, sitemap in disallowed.items():
        yield source.remark(line, checks.SITEMAP_DISALLOWED, url=quoted(sitemap))


# Statements about the use of content


class _Statement(NamedTuple):
    """One name in a statement about the use of content."""

    line: int
    text: str
    field: bytes
    use: tuple[str, str]
    """The shortest pattern of the paths that it is about, and the use, by AIPREF's name."""
    granted: bool


_Statements: TypeAlias = list[_Statement]


def _about_usage(source: Source, sections: list[_Section]) -> _Findings:
    """Yield findings about statements that contradict each other, or do not hold for a group."""
    runs = _statements(source, sections)
    groups = _groups(runs)
    above = runs[0][1][:_MAX_ABOVE]
    stated = [[each for number in group for each in runs[number][1]] for group in groups]
    yield from _about_contradictions(source, above, stated)
    lines: dict[bytes, dict[bytes, int]] = {}
    granting: dict[bytes, _Statement | None] = {}
    for own, tokens in zip(stated, groups.values(), strict=True):
        fields = {each.field: each.line for each in reversed(own)}
        grants = (each for each in own if each.granted and each.use == ("", TRAIN_AI))
        lines |= dict.fromkeys(tokens, fields)
        granting |= dict.fromkeys(tokens, next(grants, None))
    for section in sections:
        if section.closes:
            yield from _about_training(source, section, section.closes, granting)
            continue  # nobody can use what nobody can fetch
        for field in (CONTENT_SIGNAL.field, CONTENT_USAGE.field):
            if not any(each.field == field for each in above):
                yield from _about_lost_signal(source, section, field, lines)


def _statements(source: Source, sections: list[_Section]) -> list[tuple[_Tokens, _Statements]]:
    """Return what each run of user-agent lines states, and first what holds above all groups."""
    above = [
        _Statement(line, _rule_text(allow, value).strip("'"), b"", ("", use), allow)
        for section in sections
        for token, use in POLICY_TOKENS.items()
        if token.encode() in section.tokens
        for allow, value, line in section.rules
        if value in _WHOLE
    ]
    found = [([_ABOVE], above)]
    parsers = {row.field: row.parse for row in USAGE}
    ends = {*RULE_FIELDS, *parser.GROUP_FIELDS}
    records = parser.records_of_groups(source.text, strict=False, ends=ends)
    for (line, field, value), tokens in records:
        parsed = parsers[field](value) if field in parsers else None
        if parsed is None or (tokens is None and field not in HELD_ABOVE):
            continue
        if tokens is not None and found[-1][0] is not tokens:
            found.append((tokens, []))
        run = found[0 if tokens is None else -1][1]
        path = "" if parsed[0][0] in ("/", "*", "/*") else _stem(parsed[0][0])
        words = {True: "yes", False: "no"} if field in HELD_ABOVE else {True: "y", False: "n"}
        for name, answer in parsed[1].items():
            written = words[answer] if isinstance(answer, bool) else answer
            text, use = printable(f"{name}={written}"), (path, use_of(name))
            run.append(_Statement(line, text, field, use, answer is not False))
    return found


def _about_contradictions(
    source: Source, above: _Statements, groups: list[_Statements]
) -> _Findings:
    """Yield a finding about each line that grants what another one for the same crawler refuses."""
    found: dict[int, tuple[_Statement, _Statement]] = {}
    for group in groups:
        has_signal = any(each.field == CONTENT_SIGNAL.field for each in group)
        own = [each for each in above if not (has_signal and each.field == CONTENT_SIGNAL.field)]
        own += group
        refused = {each.use: each for each in reversed(own) if not each.granted}
        for each in own:
            if each.granted and each.use in refused and each.use[1] in AIPREF:
                found.setdefault(each.line, (each, refused[each.use]))
    for grant, refusal in found.values():
        values = {"grant": grant.text, "refusal": refusal.text, "line": refusal.line}
        yield source.remark(grant.line, checks.CONTRADICTION, **values)


def _about_training(
    source: Source, section: _Section, closes: int, granting: Mapping[bytes, _Statement | None]
) -> _Findings:
    """Yield a finding about a crawler that is shut out although training is granted."""
    names = [token for token in section.tokens if token in checks.TRAINING_CRAWLERS]
    found = (granting.get(token) for token in (_ABOVE, _EVERYONE, *names))
    grant = next(filter(None, found), None)
    if names and grant and _EVERYONE not in section.tokens:
        values = {"grant": grant.text, "line": grant.line, "closes": closes, "names": _names(names)}
        yield source.remark(section.agents[0][0], checks.TRAINING, **values)


def _about_lost_signal(
    source: Source, section: _Section, field: bytes, lines: Mapping[bytes, Mapping[bytes, int]]
) -> _Findings:
    """Yield a finding about a group that does not have the statement of everyone."""
    line = lines.get(_EVERYONE, {}).get(field)
    lost = [
        (place, token)
        for place, tokens in section.agents
        for token in sorted(tokens)
        if field not in lines.get(token, ()) and not token.startswith(POLICY_PREFIX.encode())
    ]
    if line and lost:
        names = _names(token for _, token in lost)
        values = {"name": field.decode().title(), "line": line, "names": names}
        yield source.remark(lost[0][0], checks.LOST, **values)

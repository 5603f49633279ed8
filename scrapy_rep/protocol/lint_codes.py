"""The table of what lint reports: a code, a name and an explanation for each kind of finding.

The codes are stable: a code keeps its meaning, and the code of a finding that is removed is not
used again. The first digit tells what the finding is about. ``docs/reference/lint.md`` has
a section for each code; a test compares the page with this table.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

PAGE = "docs/reference/lint.md"
"""The page of the documentation with a section for each code."""


class Severity(str, Enum):
    """How much a finding matters. Each severity is also a `str`, which is its value."""

    ERROR = "error"
    """The line has no effect, or another effect than it says."""
    WARNING = "warning"
    """The line works here, but not with every crawler; or another line makes it redundant."""
    INFO = "info"
    """The line is correct, but its effect may be unexpected."""

    def __str__(self) -> str:
        return self.value


_ERROR, _WARNING, _INFO = Severity


class Code(Enum):
    """A kind of finding. `str` is the code, such as ``R202``.

    >>> print(Code.MISSING_COLON, Code.MISSING_COLON.short_name, Code.MISSING_COLON.severity)
    R202 missing-colon warning
    """

    def __init__(
        self, code: str, short_name: str, severity: Severity, summary: str, why: str
    ) -> None:
        self.code = code
        """The letter R and three digits."""
        self.short_name = short_name
        self.severity = severity
        """How much it matters. A finding may matter more, in a strict reading for example."""
        self.summary = summary
        """What is wrong, in one sentence."""
        self.why = why
        """What follows from it."""

    def __str__(self) -> str:
        return self.code

    @property
    def is_fixable(self) -> bool:
        """Whether `lint.fix` has a correction for findings of this kind."""
        return self in FIXABLE

    @property
    def documentation(self) -> str:
        """The link target: the page of the documentation, and the section of this code.

        >>> Code.MISSING_COLON.documentation
        'docs/reference/lint.md#r202-missing-colon'
        """
        return f"{PAGE}#{self.code.lower()}-{self.short_name}"

    # R1: the file

    BYTE_ORDER_MARK = (
        "R101", "byte-order-mark", _WARNING,
        "The file begins with a UTF-8 byte order mark.",
        "Google and scrapy-rep skip it. Other crawlers read it as a part of the first line, which "
        "they do not understand then.",
    )  # fmt: skip
    UTF_16_MARK = (
        "R102", "utf-16-mark", _WARNING,
        "The file begins with a UTF-16 byte order mark, but is not UTF-16.",
        "scrapy-rep drops the mark. Other crawlers do not understand the first line, or decode the "
        "whole file into characters without meaning.",
    )  # fmt: skip
    UTF_16 = (
        "R103", "utf-16", _WARNING,
        "The file is UTF-16.",
        "RFC 9309 requires UTF-8. scrapy-rep decodes the file. Google's parser does not, and finds "
        "no rule in it.",
    )  # fmt: skip
    NOT_UTF_8 = (
        "R104", "not-utf-8", _WARNING,
        "A line has an octet that is not UTF-8.",
        "RFC 9309 requires UTF-8. Crawlers compare the octet with URLs in different ways.",
    )  # fmt: skip
    NUL_AT_END = (
        "R105", "nul-at-end", _WARNING,
        "A value ends in NUL octets.",
        "scrapy-rep drops them, and Google's parser ends the line there. Other crawlers compare "
        "them with URLs.",
    )  # fmt: skip
    NUL_IN_LINE = (
        "R106", "nul-in-line", _WARNING,
        "There is a NUL octet within a line.",
        "Google's parser ends the line there. scrapy-rep and others read all of it.",
    )  # fmt: skip
    LONG_LINE = (
        "R107", "long-line", _WARNING,
        "A line has more than 16,663 bytes.",
        "Google's parser ignores the rest of the line. A pattern that is cut matches more URLs.",
    )  # fmt: skip
    TOO_LARGE = (
        "R108", "too-large", _ERROR,
        "The file has more than 500 KiB.",
        "RFC 9309 does not require that crawlers read more, and Google and scrapy-rep do not.",
    )  # fmt: skip

    NOT_ROBOTS_TXT = (
        "R109", "not-robots-txt", _ERROR,
        "The file is a page in HTML or XML.",
        "It has no rules, so that everything is allowed. Perhaps the server answers each request "
        "with a page for browsers, such as that of a login.",
    )  # fmt: skip

    # R2: lines and fields

    NO_COLON = (
        "R201", "no-colon", _ERROR,
        "A line has no colon and is skipped.",
        "A line without a colon is read only if it has exactly two words, and the first is a known "
        "field.",
    )  # fmt: skip
    MISSING_COLON = (
        "R202", "missing-colon", _WARNING,
        "The colon behind a field is missing.",
        "Google and scrapy-rep accept a line of exactly two words. Other crawlers skip it. In "
        "front of a URL, the colon of the URL is taken for the one that is missing.",
    )  # fmt: skip
    MISSPELLED_FIELD = (
        "R203", "misspelled-field", _WARNING,
        "A field is misspelled.",
        "Google and scrapy-rep accept this spelling. Other crawlers skip the line.",
    )  # fmt: skip
    LONGER_FIELD = (
        "R204", "longer-field", _WARNING,
        "A field begins with the name of a known field, but is longer.",
        "Google's parser and scrapy-rep compare only the beginning: 'Disallowed' is read as "
        "'Disallow'. Other crawlers skip the line.",
    )  # fmt: skip
    UNREAD_FIELD = (
        "R205", "unread-field", _ERROR,
        "A field resembles a known one, but no crawler reads it.",
        "The line is skipped.",
    )  # fmt: skip
    UNKNOWN_FIELD = (
        "R206", "unknown-field", _INFO,
        "A field is not known.",
        "The line is skipped. RFC 9309 permits other records, so this may be intended.",
    )  # fmt: skip

    # R3: user-agent lines and groups

    OUTSIDE_GROUP = (
        "R301", "outside-group", _ERROR,
        "A line that needs a group is above any user-agent line.",
        "It holds for no crawler and is ignored.",
    )  # fmt: skip
    NO_TOKEN = (
        "R302", "no-token", _ERROR,
        "A user-agent line names no product token.",
        "It starts a group that no crawler uses.",
    )  # fmt: skip
    INVALID_TOKEN = (
        "R303", "invalid-token", _ERROR,
        "No crawler can have the product token of a user-agent line.",
        "A product token consists of letters, hyphens and underscores. '*' is no wildcard within a "
        "token.",
    )  # fmt: skip
    TOKEN_WITH_VERSION = (
        "R304", "token-with-version", _INFO,
        "A user-agent line names a version.",
        "Most crawlers compare only the part before the slash. Some compare the whole value, so "
        "the line does not apply to them.",
    )  # fmt: skip
    TOKEN_WITH_DIGITS = (
        "R305", "token-with-digits", _INFO,
        "The product token of a user-agent line has digits.",
        "RFC 9309 permits letters, hyphens and underscores only. scrapy-rep and the crawler itself "
        "compare the whole token. Google's parser and others compare the part before the digit.",
    )  # fmt: skip
    TOKEN_CUT = (
        "R306", "token-cut", _INFO,
        "Only a part of a user-agent line is a product token.",
        "Most crawlers compare only the letters, hyphens and underscores at the beginning.",
    )  # fmt: skip
    REPEATED_GROUP = (
        "R307", "repeated-group", _INFO,
        "A product token has several groups.",
        "RFC 9309 merges them into one. Some crawlers use only the first or the last of them.",
    )  # fmt: skip
    NOT_SEARCHED = (
        "R308", "not-searched", _INFO,
        "The file has too many rules to search all of it.",
        "Findings may be missing, above all rules that never decide.",
    )  # fmt: skip

    # R4: rules

    MISSING_SLASH = (
        "R401", "missing-slash", _ERROR,
        "A pattern does not begin with a slash.",
        "Every path begins with a slash, so the pattern never matches.",
    )  # fmt: skip
    URL_AS_PATTERN = (
        "R402", "url-as-pattern", _ERROR,
        "A pattern is a whole URL.",
        "Patterns are compared with the path of a URL, so it never matches. A robots.txt has rules "
        "for its own host only.",
    )  # fmt: skip
    UNMATCHABLE_PATTERN = (
        "R403", "unmatchable-pattern", _ERROR,
        "A pattern begins with neither a slash nor a star.",
        "Every path begins with a slash, so the pattern never matches.",
    )  # fmt: skip
    NEVER_DECIDES = (
        "R404", "never-decides", _WARNING,
        "A rule never decides.",
        "For each path that it matches, another rule wins: a longer one, an allow of the same "
        "length, or the same rule further up.",
    )  # fmt: skip

    # R5: other records

    UNREADABLE_VALUE = (
        "R501", "unreadable-value", _ERROR,
        "A value cannot be read.",
        "The line is ignored.",
    )  # fmt: skip
    RELATIVE_URL = (
        "R502", "relative-url", _ERROR,
        "The URL of a sitemap or a license is not absolute.",
        "The specifications require the whole URL. Many crawlers ignore others.",
    )  # fmt: skip
    TIME_FORMAT = (
        "R503", "time-format", _WARNING,
        "A time of day has a colon or a dot.",
        "The standard of 1996 has times of four digits. Some crawlers read no others.",
    )  # fmt: skip
    REPEATED_VALUE = (
        "R504", "repeated-value", _WARNING,
        "A crawler has several crawl-delays or visit-times that differ.",
        "scrapy-rep uses the last one. Other crawlers use the first, or another.",
    )  # fmt: skip
    CLEAN_PARAM_PATH = (
        "R505", "clean-param-path", _ERROR,
        "The path of a clean-param never matches.",
        "It begins with neither a slash nor a star.",
    )  # fmt: skip
    CLEAN_PARAM_CHARACTERS = (
        "R506", "clean-param-characters", _WARNING,
        "The path of a clean-param has characters that Yandex does not read.",
        "Yandex reads letters, digits and the characters . - / * _ only.",
    )  # fmt: skip
    CLEAN_PARAM_LENGTH = (
        "R507", "clean-param-length", _WARNING,
        "A clean-param has more than 500 characters.",
        "Yandex reads no more.",
    )  # fmt: skip

    # R6: the use of content

    UNREADABLE_SIGNAL = (
        "R601", "unreadable-signal", _ERROR,
        "A part of a content-signal cannot be read.",
        "That part is skipped.",
    )  # fmt: skip
    UNKNOWN_SIGNAL = (
        "R602", "unknown-signal", _WARNING,
        "A content-signal has a name that is not defined.",
        "It states nothing.",
    )  # fmt: skip
    UNREADABLE_USAGE = (
        "R603", "unreadable-usage", _ERROR,
        "A content-usage cannot be read.",
        "All of the line states nothing: it must be a dictionary of RFC 9651, with labels in lower "
        "case.",
    )  # fmt: skip
    USAGE_VALUE = (
        "R604", "usage-value", _ERROR,
        "A label of a content-usage has a value other than y and n.",
        "The label states nothing.",
    )  # fmt: skip
    OBSOLETE_LABEL = (
        "R605", "obsolete-label", _ERROR,
        "A content-usage has a label that only earlier drafts of AIPREF define.",
        "The label states nothing.",
    )  # fmt: skip
    SIGNAL_NAME_IN_USAGE = (
        "R606", "signal-name-in-usage", _ERROR,
        "A content-usage has a label that only content-signal defines.",
        "The label states nothing: AIPREF calls ai-train train-ai, and ai-input ai-use.",
    )  # fmt: skip
    AI_TRAINING_FIELD = (
        "R607", "ai-training-field", _ERROR,
        "A field comes from a draft about AI training that expired.",
        "Google's parser and scrapy-rep read DisallowAITraining as Disallow, and AllowAITraining "
        "as Allow, for crawlers of every kind (draft-canel-robots-ai-control, 2024).",
    )  # fmt: skip


RESTATING = frozenset(
    [
        Code.BYTE_ORDER_MARK, Code.UTF_16_MARK, Code.UTF_16, Code.NUL_AT_END, Code.MISSING_COLON,
        Code.MISSPELLED_FIELD, Code.LONGER_FIELD, Code.TOKEN_WITH_VERSION, Code.TIME_FORMAT,
    ]
)  # fmt: skip
"""The codes whose correction states what a lenient parser reads anyway. No verdict changes."""

FIXABLE = RESTATING | {Code.MISSING_SLASH}
"""The codes that `lint.fix` corrects. The slash makes a rule match that never matched."""

_BY_NAME = {code.short_name: code for code in Code}


def codes_of(names: Iterable[str]) -> frozenset[Code]:
    """Return the codes that are named: by code, by the beginning of a code, or by short name.

    Raises ValueError for a name that stands for no code, and TypeError for a single str.

    >>> sorted(map(str, codes_of(["R60", "missing-colon"])))[:3]
    ['R202', 'R601', 'R602']
    """
    if isinstance(names, str):
        raise TypeError("the codes must be a list or another collection of str, not a str")
    found: set[Code] = set()
    for name in names:
        written = name.strip()
        if written.lower() in _BY_NAME:
            found.add(_BY_NAME[written.lower()])
            continue
        matching = [code for code in Code if written and code.code.startswith(written.upper())]
        if not matching:
            raise ValueError(
                f"{name!r} is no code of a finding: write a code such as R202, the beginning of "
                "codes such as R2, or a name such as missing-colon"
            )
        found.update(matching)
    return frozenset(found)


def chosen_codes(select: Iterable[str], ignore: Iterable[str]) -> frozenset[Code]:
    """Return the codes that are selected and not ignored. Nothing selected: all codes.

    >>> sorted(map(str, chosen_codes(["R20"], ["R202", "unread-field"])))
    ['R201', 'R203', 'R204', 'R206']
    """
    return (codes_of(select) or frozenset(Code)) - codes_of(ignore)

"""The table of what lint reports: a code, a name and a severity for each kind of finding.

The codes are stable: a code keeps its meaning, and the code of a finding that is removed is not
used again. The first digit tells what the finding is about. ``commands/lint_codes.md`` explains
each code. The documentation makes a page of each explanation.
"""

from __future__ import annotations

from collections.abc import Iterable

from .verdict import TextEnum


class Severity(TextEnum):
    """How much a finding matters. Each severity is also a `str`, which is its value."""

    ERROR = "error"
    """The line has no effect, or another effect than it says."""
    WARNING = "warning"
    """The line works here, but not with every crawler; it probably does more or less than its
    author wants; or another line makes it redundant."""
    INFO = "info"
    """The line is correct, but its effect may be unexpected."""


_ERROR, _WARNING, _INFO = Severity


class Code(TextEnum):
    """A kind of finding. Each code is also a `str`: the letter R and three digits.

    >>> print(Code.MISSING_COLON, Code.MISSING_COLON.short_name, Code.MISSING_COLON.severity)
    R202 missing-colon warning
    >>> Code.MISSING_COLON == "R202"
    True
    """

    severity: Severity
    """How much it matters. A finding may matter more, such as a missing colon."""

    def __new__(cls, code: str, severity: Severity) -> Code:
        made = str.__new__(cls, code)
        made._value_, made.severity = code, severity
        return made

    @property
    def short_name(self) -> str:
        """The name in words, such as ``missing-colon``."""
        return self.name.lower().replace("_", "-")

    # R1: the file

    BYTE_ORDER_MARK = "R101", _WARNING
    UTF_16 = "R103", _WARNING
    NOT_UTF_8 = "R104", _WARNING
    NUL_BYTE = "R105", _WARNING
    LONG_LINE = "R107", _WARNING
    TOO_LARGE = "R108", _ERROR
    NOT_ROBOTS_TXT = "R109", _ERROR
    INVISIBLE_CHARACTER = "R110", _WARNING
    MANY_RULES = "R111", _INFO

    # R2: lines and fields

    NO_COLON = "R201", _ERROR
    MISSING_COLON = "R202", _WARNING
    MISSPELLED_FIELD = "R203", _WARNING
    UNREAD_FIELD = "R205", _ERROR
    UNKNOWN_FIELD = "R206", _INFO
    SEVERAL_RECORDS = "R207", _ERROR
    SEVERAL_VALUES = "R208", _WARNING
    OBSOLETE_FIELD = "R209", _WARNING
    SPACE_BEFORE_COLON = "R210", _INFO
    OTHER_COMMENT_MARK = "R211", _WARNING
    HTML_IN_LINE = "R212", _WARNING

    # R3: user-agent lines and groups

    OUTSIDE_GROUP = "R301", _ERROR
    NO_TOKEN = "R302", _ERROR
    INVALID_TOKEN = "R303", _ERROR
    TOKEN_WITH_VERSION = "R304", _INFO
    TOKEN_CUT = "R306", _INFO
    TOKEN_FOR_EVERYONE = "R309", _WARNING
    HEADER_AS_TOKEN = "R310", _WARNING
    SIMILAR_TOKEN = "R311", _WARNING
    SITE_CLOSED = "R312", _WARNING
    UNKNOWN_POLICY_TOKEN = "R313", _ERROR
    JOINED_SECTION = "R314", _WARNING

    # R4: rules

    MISSING_SLASH = "R401", _ERROR
    URL_AS_PATTERN = "R402", _ERROR
    UNMATCHABLE_PATTERN = "R403", _ERROR
    NEVER_DECIDES = "R404", _WARNING
    COMMENT_IN_PATTERN = "R405", _ERROR
    REGULAR_EXPRESSION = "R406", _WARNING
    DOLLAR_WITHIN = "R407", _WARNING
    REPEATED_STAR = "R408", _INFO
    STAR_ALONE = "R409", _INFO
    RESOURCES_DISALLOWED = "R410", _INFO
    SITEMAP_DISALLOWED = "R411", _WARNING
    REVEALING_PATH = "R412", _INFO
    UNENCODED_PATTERN = "R413", _WARNING
    SPACE_BEHIND_SLASH = "R414", _WARNING
    PARAMETER_AS_PATH = "R415", _INFO
    DOUBLE_SLASH = "R416", _INFO
    LAST_CHARACTER = "R417", _INFO

    # R5: other records

    UNREADABLE_VALUE = "R501", _ERROR
    RELATIVE_URL = "R502", _ERROR
    LONG_DELAY = "R508", _WARNING

    # R6: the use of content

    UNREADABLE_SIGNAL = "R601", _ERROR
    UNREADABLE_USAGE = "R603", _ERROR
    OTHER_LABEL = "R605", _ERROR
    AI_TRAINING_FIELD = "R607", _ERROR
    CONTRADICTING_SIGNALS = "R608", _INFO
    LOST_SIGNAL = "R609", _INFO

    # R7: the answer of a site, which only the command-line tool sees

    REFUSED = "R701", _ERROR
    CHALLENGE = "R702", _ERROR
    TOO_MANY_REDIRECTS = "R703", _ERROR
    OTHER_ADDRESS = "R704", _ERROR
    CONTENT_TYPE = "R705", _WARNING
    LONG_LIFETIME = "R706", _WARNING
    OTHER_HOST = "R707", _INFO
    EMPTY = "R708", _INFO
    UNAVAILABLE = "R709", _INFO


def codes_of(names: Iterable[str]) -> frozenset[Code]:
    """Return the codes that are named: by code, by the beginning of a code, or by short name.

    Raises ValueError for a name that stands for no code, and TypeError for a single str.
    """
    if isinstance(names, str):
        raise TypeError("the codes must be a list or another collection of str, not a str")
    found: set[Code] = set()
    for name in names:
        beginning, short_name = name.strip().upper(), name.strip().lower()
        matching = {
            code
            for code in Code
            if short_name and (code.short_name == short_name or code.startswith(beginning))
        }
        if not matching:
            raise ValueError(
                f"{name!r} is not a code of a finding: write a code such as R202, the beginning of "
                "codes such as R2, or a name such as missing-colon"
            )
        found |= matching
    return frozenset(found)


def chosen_codes(select: Iterable[str], ignore: Iterable[str]) -> frozenset[Code]:
    """Return the codes that are selected and not ignored. Nothing selected: all codes."""
    return (codes_of(select) or frozenset(Code)) - codes_of(ignore)

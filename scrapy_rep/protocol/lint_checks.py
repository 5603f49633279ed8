"""What lint tests in lines and values: a row for each kind of mistake, with what it says about it.

Nothing here knows of groups, or of any other line. `lint` asks the tables and makes the findings.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from itertools import chain
from typing import NamedTuple
from urllib.parse import urlsplit

from . import parser, usage
from .lint_codes import Code
from .paths import encoded_pattern
from .records import RECORD_TYPES, parse_delay

MAX_DELAY = 300
"""Seconds, as REP_MAX_CRAWL_DELAY. crawler-commons takes a longer Crawl-delay for a refusal."""

REMOVE = "remove the line"
EMPTY = "write 'Disallow:' without a value in its place, which keeps its section apart"
"""What to do with a rule that has no use, and with one that is the only rule of its section."""

NO_FRAGMENT = (
    f"{REMOVE}, as the part of a URL behind '#' is never sent; for the character in a path write "
    "'%23'"
)

TRAINING_CRAWLERS = frozenset(
    b"ai2bot amazonbot applebot-extended bytespider ccbot claudebot cohere-training-data-crawler "
    b"facebookbot google-extended gptbot meta-externalagent mistralai-training omgili pangubot "
    b"tiktokspider timpibot webzio-extended".split()
)
"""The tokens of the well-known crawlers that collect training data. A test compares the two."""

SPELLINGS = {*parser.TYPOS, *chain.from_iterable(parser.PREFIXES.values())}
NAMES = b"(?:%b)" % b"|".join(map(re.escape, sorted(SPELLINGS, key=len, reverse=True)))
_ANY_NAME = b"(?:%b)" % b"|".join([NAMES, *(row.field for row in RECORD_TYPES)])
# The name of a field within a value.
FIELD_WITHIN = re.compile(rb"(?:^|(?<=[ \t\v\f,;]))(%b)[ \t\v\f]*:" % NAMES, re.IGNORECASE).search
QUOTATION_MARKS = "\"'`\u00b4\u2018\u2019\u201a\u201c\u201d\u201e\u00ab\u00bb"
REGULAR_EXPRESSION = re.compile(
    rb"\^|\([^()|]*\|[^()]*\)|\[\^?(?:a-z|A-Z|0-9)[^\[\]]*\]|\\[dws.]|\(\.[*+]\)"
).search


class Check(NamedTuple):
    """A mistake, and what lint reports about it. Names in braces in its texts stand for values."""

    code: Code
    message: str
    """The message. ``{value}`` stands for the quoted value of a record."""
    advice: str
    """What to write instead. ``{meant}`` stands for what is meant, in quotation marks."""
    find: Callable[[bytes], object] = bool
    """Returns something true for a line or a value with the mistake: of a line, where it is."""
    meant: Callable[[bytes], bytes] = bytes
    """Returns the value that is probably meant."""


# Groups, which no table tests

JOINED = Check(
    Code.JOINED_SECTION,
    "only Allow and Disallow end a section, so line {joining} joins this one: {rule} in line "
    "{line} also holds for {names}",
    "write 'Disallow:' without a value above line {joining} to end this section, or, if the rule "
    "is for both, the user-agent lines directly below each other",
)
CLOSED = JOINED._replace(
    message=f"{JOINED.message}, and closes the site to every crawler without a group"
)
NEVER_DECIDES = Check(
    Code.NEVER_DECIDES,
    "{together}{field} {value} never decides{reason}: line {decides} does",
    REMOVE,
)
TOGETHER = "in the groups for {} taken together, "
TIE = ", as of equally long rules an Allow wins"
SITE_CLOSED = Check(
    Code.SITE_CLOSED,
    "this closes the whole site to every crawler, so that search engines lose it",
    "write 'Disallow:' without a path if crawlers are welcome",
)
SITEMAP_DISALLOWED = Check(
    Code.SITEMAP_DISALLOWED,
    "this disallows the sitemap {url}, which the file names",
    f"{REMOVE}, or that of the sitemap",
)
CONTRADICTION = Check(
    Code.CONTRADICTING_SIGNALS,
    "'{grant}' contradicts '{refusal}' in line {line}: the refusal holds",
    "state the same in both lines",
)
TRAINING = Check(
    Code.CONTRADICTING_SIGNALS,
    "'{grant}' in line {line} grants AI training, but line {closes} closes the site to {names}, "
    "which crawls for it: that holds",
    "refuse the use, or allow the crawler",
)
LOST = Check(
    Code.LOST_SIGNAL,
    "the {name} of '*' in line {line} does not hold for {names}, as a group of its own replaces "
    "'*'",
    "repeat the {name} in this group if it is meant for it, too",
)

# Lines

LINES = [
    Check(
        Code.INVISIBLE_CHARACTER,
        "an invisible character (U+{point:04X}) is a part of the line",
        "remove it",
        # No-break spaces, soft hyphens, and characters without width. U+200C and U+200D are part of
        # words.
        re.compile(
            rb"\xc2[\xa0\xad]|\xe2\x80[\x8b\x8e\x8f\xa8-\xaf]|\xe2\x81[\xa0-\xa4]|\xef\xbb\xbf"
        ).search,
    ),
    Check(Code.OTHER_COMMENT_MARK,
          "comments begin with '#', not with '{found}': the lines below this one are read as rules",
          "write '#' in front of each line of the comment",
          re.compile(rb"<!--(?!.*-->)|/\*(?=[ \t*]|\Z)(?!.*\*/)").match),
    Check(
        Code.OTHER_COMMENT_MARK,
        "comments begin with '#', not with '{found}': crawlers skip a line that they cannot read",
        "write '#' in front of a comment",
        re.compile(
            rb"//|/\*(?=[ \t*]|\Z)|\*+/\Z|;|<!--|-->|--|::|%%|['\"!%%](?=[ \t]*%b)|\xef\xbc\x83"
            rb"|\\+(?=\Z|[ \t]*%b)|rem(?=[ \t]|\Z)" % (_ANY_NAME, _ANY_NAME),
            re.IGNORECASE,
        ).match,
    ),
    Check(
        Code.NO_COLON,
        "'{found}' is not the colon of a field, and crawlers skip the line",
        "write ':' in place of '{found}'",
        re.compile(
            rb"%b[ \t]*(?P<place>\xef\xbc\x9a|\xe2\x88\xb6|\xef\xb9\x95|\xef\xb8\xb0|\xea\x9e\x89"
            rb"|\xcb\x90|\xd6\x89|\xd7\x83)" % _ANY_NAME,
            re.IGNORECASE,
        ).match,
    ),
    Check(Code.SEVERAL_RECORDS,
          "'{found}' does not end the line: what is behind it is a part of the value",
          "write each record on a line of its own",
          re.compile(
              rb"(?i)(?<=.)(?P<place>\\[rn]|</?(?:br|p|div|li)[ \t]*/?>|%%0[AD])[ \t]*%b[ \t]*:"
              % _ANY_NAME
          ).search),
    Check(
        Code.HTML_IN_LINE,
        "'{found}' is HTML, which a crawler reads as a part of the line",
        "remove the HTML",
        re.compile(
            rb"</?(?:a|b|body|br|code|div|em|font|h[1-6]|head|hr|html|i|li|meta|p|pre|script|span"
            rb"|strong|style|table|td|title|tr|u|ul)(?:[ \t][^<>]*)?/?>|<!--|-->|&nbsp;",
            re.IGNORECASE,
        ).search,
    ),
    Check(Code.NO_COLON, "the address of a sitemap without a field is skipped",
          "write 'Sitemap: {found}'",
          re.compile(rb"(?i)https?://[^ \t]*(?:sitemap|\.xml|\.gz)[^ \t]*\Z").match),
    Check(Code.NO_COLON, "a URL without a field is skipped",
          "write 'Sitemap: {found}' if it is a sitemap, or '#' in front of it",
          re.compile(rb"(?i)(?:https?://|www\.)[^ \t]+\Z").match),
    Check(Code.NO_COLON, "a path without a field is skipped",
          "write 'Disallow: {found}' or 'Allow: {found}', or '#' in front of it",
          re.compile(rb"/[^ \t:]*\Z").match),
]  # fmt: skip
"""What is tested in all lines without their comments. Of several mistakes the first is reported.
``{found}`` is the text at its place, and ``{point}`` the number of the first character there."""

_PATH, _URL = re.compile(rb"[/*][^ \t]*").fullmatch, re.compile(rb"https?://[^ \t]+").fullmatch
BELOW = {
    b"allow": _PATH,
    b"disallow": _PATH,
    b"user-agent": re.compile(rb"\*|(?!%b)[a-z][a-z0-9_.-]*" % _ANY_NAME, re.IGNORECASE).fullmatch,
    b"sitemap": _URL,
    b"license": _URL,
    b"crawl-delay": re.compile(rb"[0-9.]+").fullmatch,
}
"""What the line below a field without a value may hold that is meant as its value."""

# Values


def _unreadable(field: bytes, expected: str) -> Check:
    (parse,) = (row.parse for row in RECORD_TYPES if row.field == field)
    message = f"{field.decode()} {{value}} cannot be read and is ignored"
    advice = f"write {expected}"
    return Check(Code.UNREADABLE_VALUE, message, advice, lambda value: parse(value) is None)


def _urls(name: str) -> list[Check]:
    return [
        Check(Code.SEVERAL_VALUES, f"a line has one {name}, and {{value}} is read as one URL",
              f"write a {name} line for each URL",
              re.compile(rb"(?i)[ \t,;](?:https?:)?//").search),
        Check(Code.RELATIVE_URL, f"the {name} {{value}} is not an absolute URL",
              f"write its whole URL, such as https://example.com/{name}.xml",
              lambda value: path_of_url(value) is None),
    ]  # fmt: skip


_SPACE_IN_FRONT = re.compile(rb"/[ \t]+(?=[^ \t])")
# Two quotation marks may be those of a script.
_SLIP_AT_END = re.compile(rb"(?:(?<=[\w/)])[;,]+|\\[nrt]|(?<!['\"`])['\"`])\Z")
_PATTERNS = [
    Check(Code.OTHER_COMMENT_MARK, "comments begin with '#', and {value} is one path",
          "write '#' in front of a comment",
          re.compile(rb"[ \t](?:(?:/\*|;|--)(?=[ \t]|\Z)|//(?=[^/]))").search),
    Check(Code.SEVERAL_VALUES, "the pattern {value} is one path, with a comma or a space in it",
          "write a line for each path; for a space in a path write '%20'",
          re.compile(rb"[ \t,]/|,[ \t]").search),
    Check(Code.REGULAR_EXPRESSION,
          "the pattern {value} is not a regular expression: only '*' and a final '$' are special",
          "write a rule for each beginning of a path, with '*' for any characters",
          REGULAR_EXPRESSION),
    Check(Code.SPACE_BEHIND_SLASH,
          "the space behind a slash in {value} is a part of the path, and probably a slip",
          "write {meant}, or '%20' for a space", _SPACE_IN_FRONT.search,
          partial(_SPACE_IN_FRONT.sub, b"/")),
    Check(Code.LAST_CHARACTER, "the last character of {value} is a part of the path",
          "write {meant} if it is a slip", _SLIP_AT_END.search, partial(_SLIP_AT_END.sub, b"")),
    Check(Code.UNENCODED_PATTERN,
          "Google compares {value} as it is written, and it never matches a URL in its normal form",
          "write {meant}", lambda value: encoded_pattern(value).lower() != value.lower(),
          encoded_pattern),
    Check(Code.PARAMETER_AS_PATH,
          "{value} matches only paths that begin so, and no parameter of a query",
          "write {meant} for a parameter", re.compile(rb"/[\w.\[\]%-]*[\w\]]=[^/?*]*").fullmatch,
          lambda value: b"/*" + value[1:]),
    Check(Code.DOUBLE_SLASH, "{value} matches only paths that begin with two slashes",
          "write {meant} if you mean a path with one; a robots.txt is for its own host only",
          re.compile(rb"//[^/*$?]").match, lambda value: value[1:]),
    Check(Code.DOLLAR_WITHIN,
          "a '$' in {value} is an ordinary character, as it is not the last one",
          "end the pattern with it, or write '%24' for the character",
          lambda value: b"$" in value[:-1]),
    Check(Code.REPEATED_STAR, "several stars in {value} match what one matches", "write one '*'",
          lambda value: b"**" in value),
    Check(Code.STAR_ALONE, "not every crawler reads the pattern {value} as all paths",
          "write '/' for all paths", lambda value: value == b"*"),
]  # fmt: skip
CHECKS = {
    b"allow": _PATTERNS,
    b"disallow": [
        *_PATTERNS,
        Check(Code.RESOURCES_DISALLOWED,
              "without {value} a crawler cannot see pages as browsers show them",
              "allow scripts and style sheets",
              re.compile(
                  rb"(?i)(?!.*/api/).*(?:/(?:css|js|javascripts?|styles|stylesheets?)/?"
                  rb"|(?:\A|/)\*\.(?:css|js))\*?\$?"
                  rb"|/?(?:\*|(?!(?:wp-)?admin)[^/]+)?/(?:_next|_nuxt|assets|static|wp-includes"
                  rb"|wp-content(?:/(?:plugins|themes))?)/?\*?\$?"
              ).fullmatch),
        Check(Code.REVEALING_PATH, "everyone can read here that there is {value}",
              f"protect it with a password on the server, and {REMOVE}",
              re.compile(
                  rb"(?i)/[^*?]*(?:\.(?:sql|bak|dump|mdb|pem)|/\.(?:env|git|svn|ssh|htpasswd)"
                  rb"|/(?:db_?)?(?:backups?|dumps?))/?\$?"
              ).fullmatch),
    ],
    b"sitemap": _urls("sitemap"),
    b"license": _urls("license"),
    b"crawl-delay": [
        _unreadable(b"crawl-delay", "seconds, such as 10 or 0.5"),
        Check(Code.LONG_DELAY,
              "with a crawl-delay of {value} seconds, crawlers ignore it, shorten it, or stay away",
              f"write at most {MAX_DELAY}, or disallow what crawlers should not fetch",
              lambda value: (parse_delay(value) or 0) > MAX_DELAY),
    ],
    b"request-rate": [
        _unreadable(b"request-rate", "requests/seconds, such as 1/10 or 1/10m 0600-0845")
    ],
    b"visit-time": [_unreadable(b"visit-time", "two times of day in UTC, such as 0600-0845")],
    b"clean-param": [_unreadable(b"clean-param", "names, and perhaps a path: ref&sid /shop/")],
    b"content-signal": [
        Check(Code.UNREADABLE_SIGNAL,
              "a part of content-signal {value} is not defined and is skipped",
              "write an optional path and then a list such as 'search=yes, ai-train=no'",
              usage.has_unreadable_signal),
    ],
    b"content-usage": [
        Check(Code.UNREADABLE_USAGE,
              "content-usage {value}, or a value in it, cannot be read and states nothing",
              "write an optional path and then a list such as 'train-ai=n, search=y'",
              usage.has_unreadable_usage),
        Check(Code.OTHER_LABEL,
              "content-usage {value} has a label of an earlier draft or of content-signal, which "
              "states nothing", "write train-ai, ai-use or search", usage.has_other_label),
    ],
}  # fmt: skip
"""What is tested in the values of a record. Of several mistakes the first is reported."""


_OUTSIDE = {
    QUOTATION_MARKS: "quotation marks",
    "\\": "the backslash",
    "[](){}<>": "brackets",
    ".^$,;:+?|": "the other characters",
}
_STARS = "*\uff0a"
_BARE = re.compile("[A-Za-z0-9_-]+").fullmatch


def bare_token(value: str) -> tuple[str, str] | None:
    """Return the token inside a value, and what is around it; None if there is no such token."""
    bare = value.strip("".join(_OUTSIDE))
    if bare and not bare.strip(_STARS + "."):
        bare = "*"
    elif not _BARE(bare):
        return None
    return bare, next(
        (name for each, name in _OUTSIDE.items() if value[0] in each), "the other characters"
    )


# A host in front of a path: behind a scheme any text, else one with a known ending. File names such
# as "index.js" have endings of countries, too.
_HOST = re.compile(
    rb"""
    (?: (?: https? | ftp ) (?: [:;] /+ | // ) ([^/?]*)
      | ( (?: www\. [a-z0-9.-]+ | localhost | [0-9]+ (?: \. [0-9]+ ){3}
          | (?: [a-z0-9-]+ \. )+
            (?: com | org | net | edu | gov | mil | info | biz | app | dev | shop | online | site
              | store | blog | cloud | tech | xyz | [a-z]{2} (?= [/:] )
              | (?! js | py | pl | rb | cc | md | ps | gz | db | so | ts | vb | sh | cs ) [a-z]{2} )
          ) (?: : [0-9]+ )? )
    ) ( [/?] .* )?
    """,
    re.VERBOSE | re.IGNORECASE,
).fullmatch


def host_and_path(value: bytes) -> tuple[str, str] | None:
    """Return the host and the path of a pattern that begins with a host; None for another one."""
    match = _HOST(value)
    if match is None:
        return None
    any_host, host, path = (each.decode("utf-8", "replace") for each in match.groups(b""))
    return any_host or host, path


def path_of_url(value: bytes) -> str | None:
    """Return the path and query of a URL, or None if the value is not an absolute URL."""
    try:
        parts = urlsplit(value.decode("utf-8", "replace"))
    except ValueError:
        return None
    if parts.scheme not in ("http", "https", "ftp") or not parts.netloc:
        return None
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")

"""A parsed robots.txt: whether a crawler may fetch a URL, and what other records the file has."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Sequence
from functools import cached_property
from typing import TypeAlias

from . import records as other_records
from .access import REASONS, REDIRECT_STATUSES, AccessPolicy, AccessResult, Answer, meaning
from .agents import WILDCARD_AGENT, product_tokens
from .lines import SIZE_LIMIT, decoded, read, require_bytes
from .matcher import GroupMatcher, PatternIndex
from .parser import Group, GroupText, groups, list_groups, list_records
from .paths import ROBOTS_TXT, path_of, plain_url
from .printable import printable
from .records import CleanParam, RequestRate, VisitTime
from .usage import POLICY_PREFIX, POLICY_TOKENS
from .verdict import Reason, Rule, Verdict

_State: TypeAlias = tuple[bytes, bool, bool, str | None, Reason | None, str | None]
"""Text, whether it is cut, `strict`, URL; why the body has no effect, and more about that."""

UserAgent: TypeAlias = str | bytes | Sequence[str]
"""A product token, a whole User-Agent header, or a sequence of these in order of preference."""


class RobotsTxt:
    r"""A parsed robots.txt (RFC 9309).

    `body` is the body of the response, of which the first 500 KiB are read. If a browser made an
    HTML page of the file, its text is read. No content raises an error: unreadable lines are
    ignored. `url` is the URL of the robots.txt, against which relative
    sitemaps are resolved. `strict` turns off the tolerance for common mistakes, such as
    ``Dissallow``. Raises TypeError if the body is not bytes, or if the URL is not a str.

    >>> robots = RobotsTxt(b"User-agent: mybot\nDisallow: /private")
    >>> robots.allowed("https://example.com/private/a", "mybot/1.0 (+https://example.com/bot)")
    False
    >>> print(robots.verdict("https://example.com/private/a", "mybot"))
    line 2, Disallow: /private, for mybot

    All methods read their arguments in the same way:

    - `url` is absolute, with the scheme http, https, ws, wss or ftp, or a path that starts with
      ``/``. **Its scheme, host and port are ignored**: you choose the file that applies, with
      `robots_txt_url`. Any other URL raises ValueError.
    - `user_agent` is a product token (``mybot``), a whole User-Agent header (a value with a slash,
      a parenthesis or a space), or a list or tuple of these in order of preference. The group of
      the first token that the file names applies, else the group of ``*`` (RFC 9309 §2.2.1). Any
      other type raises TypeError.

    Two objects are equal if they were made from the same lines, with the same `strict` and `url`.
    They are hashable and picklable. `str` and `repr` are short and safe to log.
    """

    def __init__(self, body: bytes, *, strict: bool = False, url: str | None = None) -> None:
        if url is not None and not isinstance(url, str):
            raise TypeError(f"url must be str or None, not {type(url).__name__}")
        self.__setstate__((read(body), len(body) > SIZE_LIMIT, strict, url, None, None))

    def __getstate__(self) -> _State:
        """Return what `pickle` keeps: the text, and nothing that is derived from it."""
        return self._text, self._is_cut, self._strict, self._url, self._reason, self._detail

    def __setstate__(self, state: _State) -> None:
        self._text, self._is_cut, self._strict, self._url, self._reason, self._detail = state
        self._spans = groups(self._text, strict=self._strict)
        self._indexed: dict[object, tuple[PatternIndex, list[Verdict | None]]] = {}
        self._matchers: dict[bytes, GroupMatcher] = {}

    @classmethod
    def parse(cls, body: bytes, *, strict: bool = False, url: str | None = None) -> RobotsTxt:
        """Parse the body of a response that was successful. The constructor does the same."""
        return cls(body, strict=strict, url=url)

    @classmethod
    def from_response(
        cls, status: int | None, body: bytes = b"", url: str | None = None, *, strict: bool = False
    ) -> RobotsTxt:
        r"""Return what a response to the request for a robots.txt means (RFC 9309 §2.3.1).

        ======================== ===========================================================
        status                   meaning
        ======================== ===========================================================
        2xx but 206              the rules in the body
        \                        `Reason.NOT_ROBOTS_TXT` for an HTML page without rules, or
        \                        `Reason.CHALLENGE`: everything is allowed
        401, 403                 `Reason.REFUSED` or `Reason.CHALLENGE`: everything is allowed
        other 4xx                `Reason.UNAVAILABLE`: everything is allowed (§2.3.1.3)
        407, 429                 `Reason.UNREACHABLE`: everything is disallowed
        all others, and None     `Reason.UNREACHABLE`: everything is disallowed (§2.3.1.4)
        ======================== ===========================================================

        Pass None as the status if there was no response. Follow redirects before you call this, up
        to five (§2.3.1.2): a redirect is unreachable here. The URL of the robots.txt itself is
        always allowed (§2.2.2). The meaning is that of one response: it includes no earlier copy,
        and does not expire. Raises TypeError if the status is not an int, or if the body is not
        bytes.

        >>> robots = RobotsTxt.from_response(404, b"Not found", "https://example.com/robots.txt")
        >>> print(robots.verdict("/private", "mybot"))
        unavailable: status 404
        """
        if status is not None and not isinstance(status, int):
            raise TypeError(f"a status must be int or None, not {type(status).__name__}")
        require_bytes(body)
        result = AccessResult.UNREACHABLE
        if status is not None:
            result, _ = meaning(Answer(url or "", status, body), AccessPolicy())
        if result is AccessResult.SUCCESSFUL:
            return cls(body, strict=strict, url=url)
        robots = cls(b"", strict=strict, url=url)
        robots._reason = REASONS.get(result, Reason.UNREACHABLE)
        robots._detail = "no response" if status is None else f"status {status:d}"
        if status in REDIRECT_STATUSES:
            robots._detail += ", a redirect that was not followed"
        return robots

    @property
    def text(self) -> bytes | None:
        """The file as it was read; None if it is longer than the limit of 500 KiB.

        Lines end in LF and are not indented, a byte order mark and NUL bytes at the ends of values
        are removed, and UTF-16 is UTF-8. `RobotsTxt` reads it as it read the file: of two marks,
        both stay.
        """
        text = self._text[1:]
        if decoded(text) != text:  # it begins with a mark, which would be dropped
            text = BOM_UTF8 + text
        return None if self._is_cut or len(text) > SIZE_LIMIT else text

    def allowed(self, url: str, user_agent: UserAgent) -> bool:
        """Return whether a crawler may fetch a URL (RFC 9309 §2.2.2).

        Raises ValueError if the URL is neither absolute nor a path that starts with ``/``.
        """
        return self.verdict(url, user_agent).allowed

    def verdict(self, url: str, user_agent: UserAgent) -> Verdict:
        r"""Return whether a crawler may fetch a URL, and why (RFC 9309 §2.2.2).

        The verdict is true if the URL is allowed. Raises ValueError as `allowed` does.

        >>> robots = RobotsTxt(b"User-agent: *\nDisallow: /private\nAllow: /private/open")
        >>> robots.verdict("https://example.com/private/open", "mybot").rule
        Rule(allow=True, pattern='/private/open', line=3)
        """
        # This is the hot path of a crawl: every function call costs a measurable part of its time.
        try:
            index, verdicts = self._indexed[user_agent]
            plain = plain_url(url)
        except (KeyError, TypeError):
            plain = None
        if plain is None:
            return self._verdict(path_of(url), user_agent)
        verdict = verdicts[index.first(plain[1])]
        return self._verdict(plain[1], user_agent) if verdict is None else verdict

    def matches(self, url: str, user_agent: UserAgent) -> tuple[Rule, ...]:
        r"""Return every rule of the crawler's group that matches a URL, the best first.

        The first rule decides: it is the longest, and allow wins among rules of the same length
        (RFC 9309 §2.2.2). Empty if no rule matches, and for the URL of robots.txt itself. If the
        comparison exceeds its number of steps (`Reason.TOO_COMPLEX`), the rules that were found
        until then are returned. Raises ValueError as `allowed` does.

        >>> robots = RobotsTxt(b"User-agent: *\nDisallow: /a\nAllow: /a/b\nDisallow: /c")
        >>> [str(rule) for rule in robots.matches("/a/b", "mybot")]
        ['line 3, Allow: /a/b', 'line 2, Disallow: /a']
        """
        path = path_of(url)
        return self._matcher(self._token(user_agent)).matching_rules(path)

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        r"""The groups in the order of the file, each with its agents and its rules.

        RFC 9309 §2.2.1: groups that name the same agent are one group for it.

        >>> robots = RobotsTxt(b"User-agent: a\nUser-agent: b\nDisallow: /x\nAllow: /x/y")
        >>> for group in robots.groups:
        ...     print(group.agents, *group.rules)
        ('a', 'b') line 3, Disallow: /x line 4, Allow: /x/y
        """
        return tuple(list_groups(self._text, strict=self._strict))

    @property
    def agents(self) -> tuple[str, ...]:
        """The product tokens that the file has groups for, in lower case, each once."""
        return tuple(dict.fromkeys(agent for group in self.groups for agent in group.agents))

    def records(self, name: str, user_agent: UserAgent | None = None) -> tuple[str, ...]:
        r"""Return the values of all records with a name, known or not, in the order of the file.

        With a user agent only those in the crawler's group. The name may be in any case. Only the
        fields that this package uses have other spellings: ``crawl delay``, but not ``no-index``.
        RFC 9309 §2.2.4 permits records that it does not define. Values are as they are written,
        without comments. Raises TypeError if the name is not a str.

        >>> robots = RobotsTxt(b"User-agent: *\nFetch-hint: slow\nUser-agent: mybot\nDisallow:")
        >>> robots.records("fetch-hint"), robots.records("fetch-hint", "mybot")
        (('slow',), ())
        """
        if not isinstance(name, str):
            raise TypeError(f"the name of a record must be str, not {type(name).__name__}")
        token = None if user_agent is None else self._token(user_agent)
        return tuple(list_records(self._text, name, token, strict=self._strict))

    @property
    def has_pacing(self) -> bool:
        """Whether the file has any Crawl-delay, Request-rate or Visit-time."""
        return any(row.field in self._extensions.fields for row in other_records.PACING)

    def crawl_delay(self, user_agent: UserAgent) -> float | None:
        """Return the Crawl-delay of the crawler's group in seconds, or None.

        The last valid one applies: a finite number, zero or more. RFC 9309 does not define it.
        """
        return self._group_records(user_agent).get(other_records.CRAWL_DELAY)

    def request_rate(self, user_agent: UserAgent) -> RequestRate | None:
        r"""Return the last valid Request-rate of the crawler's group, or None.

        The period is in seconds, the window in minutes after midnight UTC (not in RFC 9309).

        >>> RobotsTxt(b"User-agent: *\nRequest-rate: 1/10m").request_rate("mybot")
        RequestRate(requests=1, seconds=600, window=None)
        """
        return next(reversed(self.request_rates(user_agent)), None)

    def request_rates(self, user_agent: UserAgent) -> tuple[RequestRate, ...]:
        r"""Return all valid Request-rates of the crawler's group, in the order of the file.

        >>> robots = RobotsTxt(b"User-agent: *\nRequest-rate: 1/10\nRequest-rate: 1/2 2000-0600")
        >>> [str(rate) for rate in robots.request_rates("mybot")]
        ['1/10s', '1/2s from 20:00 to 06:00 UTC']
        """
        return self._group_records(user_agent).get(other_records.REQUEST_RATE)

    def visit_time(self, user_agent: UserAgent) -> VisitTime | None:
        """Return the last valid Visit-time of the crawler's group, or None.

        The site accepts requests in these minutes after midnight UTC (not in RFC 9309).
        """
        return self._group_records(user_agent).get(other_records.VISIT_TIME)

    @property
    def sitemaps(self) -> tuple[str, ...]:
        """The URLs of the sitemaps, in the order of the file, each once (sitemaps.org).

        A relative one is resolved against the URL of the robots.txt, if that is known.
        """
        return self._extensions.resolved(other_records.SITEMAP)

    @property
    def host(self) -> str | None:
        """The main mirror of the site, as the first Host record has it (Yandex), or None."""
        return self._extensions.file.get(other_records.HOST)

    @property
    def clean_params(self) -> tuple[CleanParam, ...]:
        """The query parameters that do not change a page (Clean-param, Yandex)."""
        return self._extensions.file.get(other_records.CLEAN_PARAM)

    def canonicalize(self, url: str) -> str:
        r"""Return a URL without the query parameters that do not change the page (Yandex).

        Each Clean-param record removes its parameters below its path, for all crawlers. The case of
        a name matters. The other parameters and the fragment stay as they are. Canonicalize to
        compare pages, not to request them: the verdict may be another. Raises ValueError as
        `allowed` does.

        >>> robots = RobotsTxt(b"Clean-param: ref&sid /shop")
        >>> robots.canonicalize("https://example.com/shop/book?ref=mail&id=7&sid=1#reviews")
        'https://example.com/shop/book?id=7#reviews'
        """
        return self._cleaner.clean(url)

    @property
    def has_usage(self) -> bool:
        """Whether the file has any Content-Signal, Content-Usage or policy token."""
        fields = {row.field for row in other_records.USAGE}
        return bool(self._uses) or not fields.isdisjoint(self._extensions.fields)

    def usage_policies(self, url: str) -> dict[str, Verdict]:
        r"""Return what the groups of policy tokens state for a URL, by the token.

        Such a group is for a use in place of a crawler: a Disallow that decides refuses it, and an
        Allow that decides grants it (draft-kelley-aipref-training-preference-signal). It changes no
        verdict on a crawler. Raises ValueError as `allowed` does.

        >>> robots = RobotsTxt(b"User-agent: __usage_ai-training\nDisallow: /art/")
        >>> print(robots.usage_policies("https://example.com/art/1")["__usage_ai-training"])
        line 2, Disallow: /art/, for __usage_ai-training
        """
        path = path_of(url)
        verdicts = {token: self._matcher(token.encode()).verdict(path) for token in self._uses}
        return {
            token: verdict
            for token, verdict in verdicts.items()
            if verdict.rule is not None or verdict.reason is Reason.TOO_COMPLEX
        }

    def content_signals(self, url: str, user_agent: UserAgent) -> dict[str, bool | str]:
        r"""Return the Content-Signals for a URL by name: True for yes, False for no.

        The value of ``use`` is ``immediate``, ``reference`` or ``full``. The signals are those of
        the crawler's group, or, if it has none, those above all groups. The statement of the
        longest path that matches applies, and so do the refusals of shorter paths for names that it
        lacks. Raises ValueError as `allowed` does.

        >>> robots = RobotsTxt(b"User-agent: *\nContent-Signal: /news ai-train=no, use=reference")
        >>> robots.content_signals("https://example.com/news/today", "mybot")
        {'ai-train': False, 'use': 'reference'}
        """
        path = path_of(url)
        stated = self._group_records(user_agent).get(other_records.CONTENT_SIGNAL)
        return (stated or self._extensions.file.get(other_records.CONTENT_SIGNAL)).of(path)

    def content_usage(self, url: str, user_agent: UserAgent) -> dict[str, bool]:
        """Return the Content-Usage preferences for a URL by name: True for y, False for n.

        The statement of the longest path that matches applies (draft-ietf-aipref-attach). Labels
        that AIPREF does not define are listed. A disallowed URL has no preferences. Raises
        ValueError as `allowed` does.
        """
        path = path_of(url)
        stated = self._group_records(user_agent).get(other_records.CONTENT_USAGE)
        return stated.of(path) if stated and self.allowed(url, user_agent) else {}

    @property
    def licenses(self) -> tuple[str, ...]:
        """The URLs of the licenses, each once (RSL 1.0).

        A license is for every crawler, wherever it stands in the file. A relative one is resolved
        as in `sitemaps`. Nothing fetches them.
        """
        return self._extensions.resolved(other_records.LICENSE)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RobotsTxt):
            return NotImplemented
        return self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    def __str__(self) -> str:
        if self._reason is not None:
            return f"{self._reason}: {self._detail}"
        number = len(self.agents)
        return f"groups for {number} agent{'s' * (number != 1)}" if number else "no groups"

    def __repr__(self) -> str:
        url = "" if self._url is None else f" {printable(self._url)}"
        return f"<RobotsTxt{url}: {self}>"

    @property
    def _identity(self) -> tuple[object, ...]:
        return self._text, self._strict, self._url, self._reason, self._detail

    @cached_property
    def _extensions(self) -> other_records.Records:
        return other_records.Records(self._text, strict=self._strict, url=self._url)

    @property
    def _uses(self) -> list[str]:
        return [token for token in POLICY_TOKENS if token.encode() in self._spans]

    @cached_property
    def _cleaner(self) -> other_records.ParameterCleaner:
        return other_records.ParameterCleaner(self.clean_params)

    def _group_records(self, user_agent: UserAgent) -> other_records.RecordValues:
        return self._extensions.of(self._token(user_agent))

    def _verdict(self, path: str, user_agent: UserAgent) -> Verdict:
        matcher = self._matcher(self._token(user_agent))
        if self._reason is not None:
            allowed = self._reason is not Reason.UNREACHABLE or path == ROBOTS_TXT
            return Verdict(allowed, self._reason, detail=self._detail)
        verdict = matcher.verdict(path)
        if matcher.index is not None and not isinstance(user_agent, list):
            if len(self._indexed) >= 64:  # a crawl has one or a few user agents
                self._indexed.clear()
            self._indexed[user_agent] = matcher.index, matcher.verdicts
        return verdict

    def _matcher(self, token: bytes) -> GroupMatcher:
        matcher = self._matchers.get(token)
        if matcher is None:
            text = GroupText(self._text, self._spans.get(token, []), self._strict)
            matcher = self._matchers[token] = GroupMatcher(token.decode() or None, text)
        return matcher

    def _token(self, user_agent: UserAgent) -> bytes:
        """Return the first token that has a group, else ``*``; empty if that has none either."""
        for name in (*product_tokens(user_agent), WILDCARD_AGENT):
            token = name.encode()
            if token in self._spans and not name.startswith(POLICY_PREFIX):
                return token
        return b""

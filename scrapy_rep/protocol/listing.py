"""Lists the groups and records of a file as they are written.

Verdicts do not come from here: `parser` finds the rules of one group much faster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .agents import WILDCARD_AGENT, product_tokens, tokens_of_line
from .parser import field_of, records
from .records import GROUP_FIELDS
from .verdict import Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

_USER_AGENT = b"user-agent"
_RULE_FIELDS = frozenset([b"allow", b"disallow"])


class Group(NamedTuple):
    """One group of a robots.txt, as it is written (RFC 9309 §2.1).

    Several groups may name the same agent. Together they are its rules (RFC 9309 §2.2.1).
    """

    agents: tuple[str, ...]
    """The product tokens of its user-agent lines, in lower case, each once. Empty if no crawler can
    have such a token. A token with digits is listed whole. The group also applies to the crawler
    that has its first letters as a name: RFC 9309 reads ``MJ12bot`` as ``mj``."""
    rules: tuple[Rule, ...]
    """Its rules, in the order of the file. Lines without a pattern are no rules."""


def list_groups(text: bytes, *, strict: bool) -> Iterator[Group]:
    """Yield the groups in the order of the file. Rules above any user-agent line are skipped."""
    agents: dict[str, None] = {}
    rules: list[Rule] = []
    started = naming = False
    for line, field, value in records(text, strict=strict):
        if field == _USER_AGENT:
            if started and not naming:
                yield Group(tuple(agents), tuple(rules))
                agents, rules = {}, []
            started = naming = True
            agent = _agent_of_line(value)
            if agent is not None:
                agents[agent] = None
        elif started and field in _RULE_FIELDS:
            # Only rules end a run of user-agent lines (RFC 9309 §2.2.4).
            naming = False
            if value:
                rules.append(Rule.of(value, line, allow=field == b"allow"))
    if started:
        yield Group(tuple(agents), tuple(rules))


def list_records(text: bytes, name: str, *, strict: bool) -> Iterator[str]:
    """Yield the values of all records with a name, in the order of the file."""
    wanted = _field(name, strict=strict)
    for _, field, value in records(text, strict=strict):
        if field == wanted:
            yield _text(value)


def list_group_records(text: bytes, name: str, token: str, *, strict: bool) -> Iterator[str]:
    """Yield the values of the records with a name in the groups of a token.

    A record other than a rule ends a run of user-agent lines, but only for itself, as Crawl-delay
    does. So ``a: X-name 1``, ``b: X-name 2`` stay apart.
    """
    wanted, agent = _field(name, strict=strict), token.encode()
    ends = _RULE_FIELDS if wanted in _RULE_FIELDS else _RULE_FIELDS | GROUP_FIELDS | {wanted}
    naming = included = False
    for _, field, value in records(text, strict=strict):
        if field == _USER_AGENT:
            included = (included and naming) or agent in tokens_of_line(value)
            naming = True
            if wanted == _USER_AGENT and agent in tokens_of_line(value):
                yield _text(value)
            continue
        if field in ends:
            naming = False
        if included and field == wanted:
            yield _text(value)


def _agent_of_line(value: bytes) -> str | None:
    """Return the longest token of a user-agent line that a crawler can have."""
    for octets in reversed(tokens_of_line(value)):
        token = octets.decode("ascii")
        if token == WILDCARD_AGENT or product_tokens(token) == (token,):
            return token
    return None


def _field(name: str, *, strict: bool) -> bytes:
    # Only ASCII letters have a case here, as in `parser`: str.lower() makes "k" of a Kelvin sign.
    field = name.strip().encode("utf-8", "surrogatepass").lower()
    return field if strict else field_of(field)


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")

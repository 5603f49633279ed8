"""A second implementation of the protocol, slow and simple, to compare with.

It shares no code with the package, so that each checks the other.
"""

from __future__ import annotations

import re
from typing import NamedTuple

LIMIT = 512_000
SPACE = b" \t\v\f"
UNRESERVED = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
HEX = "0123456789abcdefABCDEF"
ENCODED = [*map(chr, range(33)), *"\"'<>[\\]^`{|}", *map(chr, range(127, 256))]

USER_AGENT = [b"user-agent"]
ALLOW = [b"allow"]
DISALLOW = [b"disallow"]
TYPOS_OF_USER_AGENT = [b"useragent", b"user agent"]
TYPOS_OF_DISALLOW = [b"dissallow", b"dissalow", b"disalow", b"diasllow", b"disallaw"]


class Answer(NamedTuple):
    """The values that are compared: the answer, the line of the rule, the token of the group."""

    allowed: bool
    line: int | None
    agent: str | None


class Rule(NamedTuple):
    allow: bool
    value: bytes
    line: int


def answer(body: bytes, url: str, token: str, *, strict: bool = False) -> Answer:
    """Return the answer of a file for a crawler with a token, or without one ("")."""
    groups = read_groups(body, strict=strict)
    agent: str | None = None
    if token and token in groups:
        agent = token
    elif "*" in groups:
        agent = "*"
    path = url_form(url)
    if path == "/robots.txt":
        return Answer(True, None, None)  # in all groups
    rule = decide(groups[agent] if agent else [], path, strict=strict)
    if rule is None:
        return Answer(True, None, agent)
    return Answer(rule.allow, rule.line, agent)


def read_groups(body: bytes, *, strict: bool) -> dict[str, list[Rule]]:
    groups: dict[str, list[Rule]] = {}
    current: list[str] = []
    naming = False
    for number, line in enumerate(lines(body), 1):
        field, value = read_line(line, strict=strict)
        if not strict:
            field = prefixed(field)
        if field in USER_AGENT:
            if not naming:
                current = []
            naming = True
            for token in tokens_of_line(value):
                current.append(token)
                groups.setdefault(token, [])
        elif field in ALLOW + DISALLOW:
            naming = False
            for token in dict.fromkeys(current):
                if value:
                    groups[token].append(Rule(field in ALLOW, value, number))
    return groups


def lines(body: bytes) -> list[bytes]:
    text = body[:LIMIT]
    if len(body) > LIMIT and body[LIMIT : LIMIT + 1] not in (b"\r", b"\n"):
        while text and text[-1:] not in (b"\r", b"\n"):
            text = text[:-1]
    if text.startswith((b"\xff\xfe", b"\xfe\xff")) and b"\x00" not in text:
        text = text[2:]
    elif text.startswith((b"\xff\xfe", b"\xfe\xff")):
        text = text.decode("utf-16", "replace").encode("utf-8")
    else:
        for octet in (b"\xef", b"\xbb", b"\xbf"):
            if not text.startswith(octet):
                break
            text = text[1:]
    return re.split(rb"\r\n|\r|\n", text)


def read_line(line: bytes, *, strict: bool) -> tuple[bytes, bytes]:
    line = line.split(b"#")[0]
    while line[-1:] and line[-1:] in SPACE + b"\x00":
        line = line[:-1]
    line = line.lstrip(SPACE)
    if b":" in line:
        field, value = line.split(b":", 1)
    elif not strict and len(re.split(rb"[ \t\v\f]+", line)) == 2:
        field, value = re.split(rb"[ \t\v\f]+", line)
    else:
        return b"", b""
    return field.strip(SPACE).lower(), value.strip(SPACE)


def prefixed(field: bytes) -> bytes:
    """Return the field that is a prefix of a name, as Google's matcher does."""
    meant = [(USER_AGENT + TYPOS_OF_USER_AGENT, USER_AGENT), (ALLOW, ALLOW)]
    for names, fields in [*meant, (DISALLOW + TYPOS_OF_DISALLOW, DISALLOW)]:
        if any(field[: len(name)] == name for name in names):
            return fields[0]
    return field


def tokens_of_line(value: bytes) -> list[str]:
    if value == b"*" or (value[:1] == b"*" and value[1:2] in (b" ", b"\t", b"\v", b"\f")):
        return ["*"]
    run = ""
    for octet in value:
        if chr(octet) not in UNRESERVED.replace(".", "").replace("~", "") + "_":
            break
        if chr(octet).isdigit():
            break
        run += chr(octet).lower()
    whole = re.split(rb"[ \t\v\f/*]", value)[0].decode("latin-1")
    found = [run] if run else []
    if whole.lower() != run and whole.isascii():
        found.append(whole.lower())
    return found


def decide(rules: list[Rule], path: str, *, strict: bool) -> Rule | None:
    # All forms of all rules. Equal forms are one rule.
    merged: dict[str, list[tuple[int, Rule]]] = {}
    for rule in rules:
        values = [rule.value]
        last = rule.value.rfind(b"/")
        if rule.allow and not strict and rule.value[last:].startswith(b"/index.htm") and last >= 0:
            values.append(rule.value[: last + 1] + b"$")
        for value in values:
            if rule.value[:1] in (b"/", b"*"):
                pattern, length = pattern_form(value)
                merged.setdefault(pattern, []).append((length, rule))
    best: tuple[int, bool, int] | None = None
    deciding: Rule | None = None
    for pattern, same in merged.items():
        if matches_either(pattern, path):
            longest = max(length for length, _ in same)
            allows = any(rule.allow for _, rule in same)
            # The line is that of the longest rule with the winning answer, and of these the first.
            length, rule = min(
                ((length, rule) for length, rule in same if rule.allow == allows),
                key=lambda one: (-one[0], one[1].line),
            )
            key = (longest, allows, -rule.line)
            if best is None or key > best:
                best, deciding = key, rule
    return deciding


def matches_either(pattern: str, path: str) -> bool:
    if matches(pattern, path):
        return True
    if "?" not in pattern:
        return False
    query = pattern.split("?", 1)[1]
    if not any(piece in query for piece in ("/", ":", "?", "@", "%2F", "%3A", "%3F", "%40")):
        return False
    return matches(with_encoded_query(pattern), with_encoded_query(path))


def matches(pattern: str, path: str) -> bool:
    """Match by the set of places in the path that the pattern can reach."""
    places = {0}
    for number, character in enumerate(pattern):
        if character == "$" and number == len(pattern) - 1:
            return len(path) in places
        if character == "*":
            places = set(range(min(places), len(path) + 1)) if places else set()
        else:
            places = {place + 1 for place in places if path[place : place + 1] == character}
    return bool(places)


def with_encoded_query(text: str) -> str:
    before, mark, query = text.partition("?")
    for character in "/:?@":
        query = query.replace(character, f"%{ord(character):02X}")
    return before + mark + query


def url_form(url: str) -> str:
    authority = re.match(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#]*", url)
    path = url[authority.end() :] if authority else url
    path = path.split("#")[0]
    if not path.startswith("/"):
        path = "/" + path
    octets = path.encode("utf-8", "surrogatepass").decode("latin-1")
    return encode(decode(octets)).replace("*", "%2A").replace("$", "%24")


def pattern_form(value: bytes) -> tuple[str, int]:
    decoded = decode(value.decode("latin-1"))
    length = sum(3 if ord(character) > 127 else 1 for character in decoded)
    form = ""
    for number, character in enumerate(decoded):
        ends = number == len(decoded) - 1
        form += "%24" if character == "$" and not ends else encode(character)
    return form, length


def decode(text: str) -> str:
    """Step 1 of the normal form: decode the escapes one by one."""
    done = ""
    while text:
        escape = text[:3]
        if len(escape) < 3 or escape[0] != "%" or escape[1] not in HEX or escape[2] not in HEX:
            done, text = done + text[0], text[1:]
            continue
        character = chr(int(escape[1:], 16))
        text = text[3:]
        if character in UNRESERVED and not new_escape(done, character, text):
            done += character
        else:
            done += escape.upper()
    return done


def new_escape(done: str, character: str, rest: str) -> bool:
    """Whether a decoded character would complete another escape."""
    around = done[-2:] + character + rest[:1]
    return any(
        around[start] == "%" and around[start + 1] in HEX and around[start + 2] in HEX
        for start in range(len(around) - 2)
    )


def encode(text: str) -> str:
    """Step 2 of the normal form: encode the other characters."""
    return "".join(
        f"%{ord(character):02X}" if character in ENCODED else character for character in text
    )

"""Entries as lines of JSON, to move them between machines.

    line = {"type": "policy", "version": 1, "origin": …, "entry": head, "body": …, "sha256": …} LF

The head is that of :mod:`.entry`, with absolute times. A body that is not UTF-8 is in
``body_base64``. Lines may come from anywhere, so every value is checked.
"""

from __future__ import annotations

import base64
import binascii
import json
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from .entry import BODY_LIMIT, HEAD_LIMIT, URL_LIMIT, from_head, head_of

if TYPE_CHECKING:
    from .entry import Entry

TYPE = "policy"
FORMAT = 1
"""The version of a line."""

LINE_LIMIT = 6 * BODY_LIMIT + HEAD_LIMIT + 6 * URL_LIMIT
"""The most octets of a line: each octet of the body may have an escape, such as ``\\u0001``."""


def to_line(key: str, entry: Entry) -> str:
    """Return the line of an entry, with the LF."""
    record = _head(key, entry)
    if entry.body is not None:
        try:
            record["body"] = entry.body.decode("utf-8")
        except UnicodeDecodeError:
            record["body_base64"] = base64.b64encode(entry.body).decode("ascii")
        record["sha256"] = sha256(entry.body).hexdigest()
    return json.dumps(record) + "\n"


def to_text(key: str, entry: Entry) -> str:
    """Return the line of an entry without its body and without the LF.

    The body is kept elsewhere.
    """
    record = _head(key, entry)
    if entry.body is not None:
        record["sha256"] = sha256(entry.body).hexdigest()
    return json.dumps(record)


def from_line(line: bytes) -> tuple[str, Entry]:
    """Return the key and the entry of a line. Raises ValueError for any other line."""
    record = _record(line)
    return _entry(record, _body(record))


def from_text(text: bytes, body: bytes | None) -> tuple[str, Entry]:
    """Return the key and the entry of a text of :func:`to_text` and a body. Raises ValueError."""
    return _entry(_record(text), body)


def _head(key: str, entry: Entry) -> dict[str, Any]:
    return {"type": TYPE, "version": FORMAT, "origin": key, "entry": head_of(entry)}


def _record(line: bytes) -> dict[str, Any]:
    try:
        record = json.loads(line.decode("utf-8"))
    except (ValueError, RecursionError):
        raise ValueError("it is not JSON") from None
    if not isinstance(record, dict) or record.get("type") != TYPE:
        raise ValueError("it is not a policy")
    if record.get("version") != FORMAT or isinstance(record["version"], bool):
        raise ValueError(f"it is of version {str(record.get('version'))[:20]!r}, not {FORMAT}")
    return record


def _entry(record: dict[str, Any], body: bytes | None) -> tuple[str, Entry]:
    key = record.get("origin")
    if not isinstance(key, str) or not 0 < len(key) <= URL_LIMIT:
        raise ValueError("it has no origin")
    if body is None and "sha256" in record:
        raise ValueError("its body is missing")
    if body is not None and len(body) > BODY_LIMIT:
        raise ValueError("its body is too long")
    if body is not None and record.get("sha256") != sha256(body).hexdigest():
        raise ValueError("its body does not have the SHA-256 that it states")
    return key, from_head(record.get("entry"), body)


def _body(record: dict[str, Any]) -> bytes | None:
    text, encoded = record.get("body"), record.get("body_base64")
    if text is None and encoded is None:
        return None
    try:
        if isinstance(text, str) and encoded is None:
            body = text.encode("utf-8")
        elif isinstance(encoded, str) and text is None:
            body = base64.b64decode(encoded, validate=True)
        else:
            raise ValueError("its body is not valid")
    except (UnicodeEncodeError, binascii.Error):
        raise ValueError("its body is not valid") from None
    return body

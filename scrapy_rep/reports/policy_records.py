"""The policies of a store as WARC 1.1 records, and back.

A policy is one or two records, each in a gzip member of its own:

    policy   = [resource] metadata
    resource = the last good copy of the file, if there is one (WARC 1.1 §6.4)
    metadata = JSON with all other fields (WARC 1.1 §6.5); it refers to the resource

A store does not keep the messages of a site, so there are no records of requests and responses. A
file may come from anywhere, so every value is checked.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from ..protocol.access import AccessResult
from ..protocol.paths import origin_of, robots_txt_url
from ..stores.entry import BODY_LIMIT, HEAD_LIMIT, LATEST, URL_LIMIT
from ..stores.entry_lines import from_text, to_text
from .archive_reader import UNREADABLE, reason_of, records
from .members import BrokenMember
from .warc_records import (
    DIGEST_FIELD,
    ORIGIN_FIELD,
    WARC_FORMAT,
    digest_of,
    file_sha256,
    make_record_id,
    record_octets,
    version_of,
    warc_date,
    warcinfo_record,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

    from ..stores.entry import Entry

CONTENT_TYPE = "application/json"

_URL = re.compile("(?:https?|ftp)://[!-~]+")

TEXT_LIMIT = HEAD_LIMIT + 6 * URL_LIMIT + 1000
"""The most octets of the JSON of a policy."""


class ArchivedPolicy(NamedTuple):
    """A policy in a WARC file, or a record that cannot be read."""

    offset: int
    """Where the record starts in the file."""
    key: str
    entry: Entry | None
    """None if the record cannot be read."""
    reason: str = ""
    """Why it cannot be read."""


def file_record(filename: str, at: float) -> bytes:
    """Return the record at the start of a file. ``at`` is in seconds since 1970."""
    fields = {
        "software": f"scrapy-rep{version_of('scrapy-rep')} warcio{version_of('warcio')}",
        **WARC_FORMAT,
        "description": (
            "robots.txt files and what a crawler knows of them, exported from a store. Each "
            "resource is the last good copy of a file, and the metadata after it is the policy."
        ),
    }
    return warcinfo_record(make_record_id(), filename, at, fields)


def policy_records(key: str, entry: Entry) -> bytes:
    """Return the records of a policy. Raises ValueError for a key that is no URL."""
    if not _URL.fullmatch(key):
        raise ValueError("its origin is not valid")
    is_robots_txt = origin_of(key) == key
    url = robots_txt_url(key) if is_robots_txt else key
    origin = {ORIGIN_FIELD: key} if is_robots_txt else {}
    resource, reference = b"", {}
    if entry.body is not None:
        record_id, digest = make_record_id(), digest_of(entry.body)
        headers = {
            "WARC-Type": "resource",
            "WARC-Record-ID": record_id,
            "WARC-Date": _date(_last_known_good(entry)),
            "WARC-Target-URI": entry.copy.url if is_robots_txt and entry.copy else url,
            **origin,
            DIGEST_FIELD: f"sha256:{file_sha256(entry.body)}",
            "WARC-Payload-Digest": digest,
            "WARC-Block-Digest": digest,
            "Content-Type": "text/plain",
        }
        resource = record_octets("resource", headers, None, entry.body)
        reference = {"WARC-Refers-To": record_id}
    text = to_text(key, entry).encode()
    headers = {
        "WARC-Type": "metadata",
        "WARC-Record-ID": make_record_id(),
        "WARC-Date": _date(entry.fetched_at),
        "WARC-Target-URI": url,
        **origin,
        **reference,
        "WARC-Block-Digest": digest_of(text),
        "Content-Type": CONTENT_TYPE,
    }
    return resource + record_octets("metadata", headers, None, text)


def _last_known_good(entry: Entry) -> float:
    """Return when the copy was last known to be good, at the latest."""
    if entry.result is AccessResult.UNREACHABLE and entry.unreachable_since is not None:
        return entry.unreachable_since
    return entry.fetched_at


def _date(at: float) -> str:
    return warc_date(min(at, LATEST - 1))  # no date has the year 10000


def read_policies(stream: BinaryIO) -> Iterator[ArchivedPolicy]:
    """Yield the policies of a WARC file. Records of other kinds are skipped."""
    resource_id, body = None, b""
    for found in records(stream):
        if isinstance(found, BrokenMember):
            yield ArchivedPolicy(found.offset, "", None, found.reason)
            continue
        offset: int = found[0]
        record: Any = found[1]
        try:
            headers = record.rec_headers
            if record.rec_type == "resource":
                resource_id = headers.get_header("WARC-Record-ID")
                body = _content(record, BODY_LIMIT)
            elif _is_policy(record):
                reference = headers.get_header("WARC-Refers-To")
                own = body if reference is not None and reference == resource_id else None
                yield ArchivedPolicy(offset, *from_text(_content(record, TEXT_LIMIT), own))
        except UNREADABLE as error:
            yield ArchivedPolicy(offset, "", None, reason_of(error))


def _is_policy(record: Any) -> bool:
    content_type: str | None = record.rec_headers.get_header("Content-Type")
    return str(record.rec_type) == "metadata" and content_type == CONTENT_TYPE


def _content(record: Any, limit: int) -> bytes:
    content: bytes = record.raw_stream.read(limit + 1)
    return content

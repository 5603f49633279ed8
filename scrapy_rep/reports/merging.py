"""Merges the reports of several runs: of several spiders, processes, or starts of a job.

The first report of each function is changed, and the second one may become a part of it.
"""

from __future__ import annotations

from dataclasses import fields
from math import inf
from typing import TYPE_CHECKING, TypeVar

from .model import (
    MAX_EXAMPLES,
    Deciding,
    HostPace,
    Limits,
    OriginReport,
    Report,
    RobotsFile,
    RuleText,
    Seen,
    Usage,
    Version,
)
from .timeline import merged

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


def merge(report: Report, other: Report) -> None:
    """Add a report of other runs."""
    report.runs += other.runs
    report.totals.add(other.totals)
    _add_texts(report.invalid_hosts, other.invalid_hosts)
    seconds = max(report.timeline.seconds, other.timeline.seconds)
    report.timeline = merged(seconds, report.timeline.slots + other.timeline.slots)
    _merge_limits(report.limits, other.limits)
    origins = {origin.origin: origin for origin in report.origins}
    for origin in other.origins:
        if origin.origin in origins:
            _merge_origin(origins[origin.origin], origin)
        else:
            report.origins.append(origin)
    hosts = {host.host: host for host in report.hosts}
    for host in other.hosts:
        if host.host in hosts:
            _merge_host(hosts[host.host], host)
        else:
            report.hosts.append(host)
    _merge_by_key(report.files, other.files, _merge_file)


def _merge_limits(limits: Limits, other: Limits) -> None:
    for each in fields(Limits):
        own, more = getattr(limits, each.name), getattr(other, each.name)
        is_count = each.name.endswith("_left_out")
        setattr(limits, each.name, own + more if is_count else max(own, more))


def _merge_origin(origin: OriginReport, other: OriginReport) -> None:
    origin.counts.add(other.counts)
    origin.versions = _merged_versions(origin.versions + other.versions)
    origin.versions_left_out += other.versions_left_out
    origin.deciding_left_out += other.deciding_left_out
    known = {_identity(each): each for each in origin.deciding}
    for deciding in other.deciding:
        if (same := known.get(_identity(deciding))) is not None:
            _merge_deciding(same, deciding)
        else:
            origin.deciding.append(deciding)
    paces = [(pace.records, pace.local_delay, pace.applied) for pace in origin.pace]
    origin.pace += [
        pace for pace in other.pace if (pace.records, pace.local_delay, pace.applied) not in paces
    ]
    _merge_by_key(origin.directives, other.directives, _merge_seen)
    _merge_by_key(origin.usage, other.usage, _merge_usage)
    _merge_by_key(origin.terms, other.terms, _merge_seen)
    _merge_by_key(origin.licenses, other.licenses, _merge_seen)


def _merged_versions(versions: list[Version]) -> list[Version]:
    """Return states in the order of time. The same state is one if there is none in between."""
    merged: list[Version] = []
    for version in sorted(versions, key=lambda version: version.first_at):
        last = merged[-1] if merged else None
        if last is None or version_key(last) != version_key(version):
            merged.append(version)
            continue
        if version.last_at > last.last_at:
            last.last_at, last.expires_at = version.last_at, version.expires_at
            last.failure = version.failure
        last.fetches += version.fetches
    return merged


def version_key(version: Version) -> tuple[object, ...]:
    """Return what two versions have in common if they are the same state of a robots.txt."""
    return (
        version.result,
        version.status,
        version.url,
        tuple(version.redirects),
        version.effect,
        version.sha256,
    )


def _identity(deciding: Deciding) -> tuple[object, ...]:
    rule: RuleText | None = deciding.rule
    return (
        deciding.reason,
        deciding.allowed,
        deciding.sha256,
        deciding.agent,
        None if rule is None else (rule.allow, rule.pattern, rule.line),
        deciding.detail,
    )


def _merge_deciding(deciding: Deciding, other: Deciding) -> None:
    deciding.sent += other.sent
    deciding.dropped += other.dropped
    deciding.final_url += other.final_url
    deciding.delayed += other.delayed
    deciding.delay_seconds += other.delay_seconds
    _add_texts(deciding.examples, other.examples)


def _merge_host(host: HostPace, other: HostPace) -> None:
    host.requests += other.requests
    host.first_at = min(host.first_at, other.first_at)
    host.last_at = max(host.last_at, other.last_at)
    host.gaps.merge(other.gaps)
    host.paced_gaps.merge(other.paced_gaps)
    host.too_short += other.too_short
    if other.shortest_delay is not None and other.longest_delay is not None:
        host.shortest_delay = min(other.shortest_delay, host.shortest_delay or inf)
        host.longest_delay = max(other.longest_delay, host.longest_delay or 0)


def _merge_seen(seen: Seen, other: Seen) -> None:
    seen.responses += other.responses
    seen.dropped += other.dropped
    _add_texts(seen.examples, other.examples)
    _add_texts(seen.details, other.details)


def _merge_usage(usage: Usage, other: Usage) -> None:
    usage.granted += other.granted
    usage.refused += other.refused
    usage.dropped += other.dropped
    _add_texts(usage.examples, other.examples)


def _merge_file(file: RobotsFile, other: RobotsFile) -> None:
    if file.text is None:
        file.text = other.text


def _merge_by_key(found: dict[str, T], other: dict[str, T], add: Callable[[T, T], None]) -> None:
    for key, value in other.items():
        if key in found:
            add(found[key], value)
        else:
            found[key] = value


def _add_texts(texts: list[str], others: list[str]) -> None:
    for text in others:
        if len(texts) < MAX_EXAMPLES and text not in texts:
            texts.append(text)

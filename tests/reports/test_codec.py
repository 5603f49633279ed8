from __future__ import annotations

import json
from dataclasses import fields, is_dataclass
from math import inf
from types import NoneType
from typing import Any, get_args, get_type_hints

import pytest

from scrapy_rep.reports import model
from scrapy_rep.reports.codec import RecordError, from_json, iso, to_json, to_text
from scrapy_rep.reports.model import (
    Counts,
    Deciding,
    HostPace,
    OriginReport,
    Report,
    RuleText,
    Seen,
    Time,
    Version,
)

from .samples import NOW, fetched, recorder, sent


def compact(record: Any) -> Any:
    return json.loads(to_text(record))


def test_a_report_survives_json() -> None:
    made = recorder()
    origin = fetched(made, "http://a.example")
    sent(
        made, "http://a.example/b", origin.verdict("/b", ("mybot",), NOW, made._unreachable_policy)
    )
    report = made.report()
    assert from_json(Report, json.loads(json.dumps(to_json(report)))) == report
    assert from_json(Report, compact(report)) == report


def test_the_compact_form_lacks_what_has_its_default() -> None:
    host = HostPace("a.example", last_at=Time(NOW), shortest_delay=0.0)
    assert compact(host) == {
        "host": "a.example",
        "last_at": iso(NOW),
        "shortest_delay": 0.0,  # the default is None
    }
    host.gaps.add(1)
    assert compact(host)["gaps"] == {"count": 1, "smallest": 1, "histogram": {"0": 1}}
    assert from_json(HostPace, compact(host)) == host
    deciding = OriginReport("http://a.example", "a.example", deciding=[Deciding("rules", False)])
    assert compact(deciding)["deciding"] == [{"reason": "rules", "allowed": False}]


def test_the_compact_form_of_each_kind_of_value() -> None:
    text = '\ud800\u202e\n"\x1b'
    deciding = Deciding(
        text, True, rule=RuleText(False, "/", 1), delay_seconds=inf, examples=[text, ""]
    )
    assert from_json(Deciding, compact(deciding)) == deciding
    assert to_text(deciding).isascii()
    origin = OriginReport("http://a.example", "a.example", directives={text: Seen(1)})
    origin.counts = Counts(dropped_for={text: 1, "rules": 2}, waited=True, wait_seconds=2)
    assert from_json(OriginReport, compact(origin)) == origin
    assert to_text(Counts()) == "{}"


def test_a_field_that_may_be_none_has_this_default() -> None:
    # So the compact form has no None.
    optional = [
        (kind.__name__, each.name, each.default)
        for kind in vars(model).values()
        if is_dataclass(kind) and isinstance(kind, type)
        for each in fields(kind)
        if NoneType in get_args(get_type_hints(kind)[each.name])
    ]
    assert len(optional) > 10
    assert [each for each in optional if each[-1] is not None] == []


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (NOW + 0.1239, "2023-11-14T22:13:20.123Z"),
    ],
)
def test_times_are_iso_8601(seconds: float, text: str) -> None:
    assert iso(seconds) == text


def test_numbers_of_a_histogram_are_keys() -> None:
    host = HostPace("a.example", first_at=Time(NOW), last_at=Time(NOW))
    host.gaps.add(1)
    record = json.loads(json.dumps(to_json(host)))
    assert record["gaps"]["histogram"] == {"0": 1}
    assert from_json(HostPace, record) == host


def test_unknown_fields_are_ignored_and_defaults_may_be_missing() -> None:
    assert from_json(Counts, {"sent_allowed": 3, "later": 1}) == Counts(sent_allowed=3)


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        (Counts, [], "it must be of the type dict"),
        (Counts, {"waited": "1"}, "waited: it must be of the type int"),
        (Counts, {"waited": True}, "waited: it must be of the type int"),
        (Counts, {"dropped_for": {"rules": None}}, "dropped_for: it must be of the type int"),
        (Deciding, {}, "reason is missing"),
        (Deciding, {"reason": "rules", "rule": {}}, "rule: allow is missing"),
        (
            Version,
            {"result": "r", "effect": "", "source": "", "first_at": 5},
            "first_at: it must be",
        ),
        (
            Version,
            {"result": "r", "effect": "", "source": "", "first_at": "x"},
            "first_at: it must",
        ),
        *(
            (
                Version,
                {"result": "r", "effect": "", "source": "", "first_at": at},
                "first_at: it must be a time from 1970 to 9999",
            )
            for at in ("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00")
        ),
        (
            HostPace,
            {"host": "a", "gaps": {"histogram": {"x": 1}}},
            "gaps: histogram: 'x' is no int",
        ),
    ],
)
def test_another_form_is_an_error_that_names_the_field(
    kind: type, value: object, message: str
) -> None:
    with pytest.raises(RecordError, match=f"^{message}"):
        from_json(kind, value)


def test_a_whole_number_stands_for_a_float() -> None:
    assert from_json(Counts, {"wait_seconds": 2}).wait_seconds == 2.0


def test_optional_records() -> None:
    deciding = Deciding("rules", True, rule=RuleText(True, "/", 1))
    assert from_json(Deciding, to_json(deciding)) == deciding
    assert from_json(Deciding, to_json(Deciding("rules"))).rule is None


def test_derived_fields_are_in_json_only() -> None:
    record = to_json(OriginReport("http://a.example", "a.example"))
    assert (record["state"], record["counts"]["sent"]) == ("unknown", 0)
    assert from_json(OriginReport, record) == OriginReport("http://a.example", "a.example")

"""Content-Signal and Content-Usage."""

from __future__ import annotations

import pytest

from scrapy_rep.protocol.robotstxt import RobotsTxt
from scrapy_rep.protocol.usage import (
    combined,
    content_signals,
    content_usage,
    evaluated,
    of_response,
    refused,
)


@pytest.mark.parametrize(
    ("value", "signals"),
    [
        ("search=yes, ai-train=no", {"search": True, "ai-train": False}),
        ("Search = YES,,ai_input=maybe,x", {"search": True}),
        ("search=yes, search=no", {"search": False}),
        ("search=ye\u017f, \u017fearch=no", {}),  # a letter whose upper case is "S"
        ("", {}),
    ],
)
def test_content_signals(value: str, signals: dict[str, bool]) -> None:
    assert content_signals(value) == signals


@pytest.mark.parametrize(
    ("value", "stated"),
    [
        ("train-ai=n, search=y", {"train-ai": False, "search": True}),
        (" train-ai=n\t,\tsearch=y ", {"train-ai": False, "search": True}),
        ("train-ai=n, train-ai=y", {"train-ai": True}),
        ("train-ai=y, train-ai=1", {}),
        ('train-ai=n;exceptions="a b";x, search', {"train-ai": False}),
        ("train-ai=N", {}),
        ("train-ai=yes", {}),
        ('train-ai="n"', {}),
        ("", {}),
        ("a=1, b=-1.5, c=:YQ==:, d=?1, e=@1700000000, f=tok/en, g=y", {"g": True}),
        ('a="x\\"y", b=("a" 1.0;q=?0  tok ), c=(), d=%"caf%c3%a9", e=n', {"e": False}),
        ("*=y", {"*": True}),
        # No dictionaries of RFC 9651, so nothing is known.
        ("Train-ai=n", None),
        ("train-ai=n;x=(a b)", None),
        ("train-ai=n,", None),
        ("train-ai=n;", None),
        ("train-ai= n", None),
        ("train-ai=n search=y", None),
        (",train-ai=n", None),
        ("train-ai=", None),
        ("train-ai=(n", None),
        ('train-ai="n', None),
        ("train-ai=1.2345", None),
        ("train-ai=1234567890123456", None),
        ("train-ai=n, é=y", None),
    ],
)
def test_content_usage(value: str, stated: dict[str, bool] | None) -> None:
    assert content_usage(value) == stated


def test_a_use_is_refused_if_any_statement_refuses_it() -> None:
    assert combined([{"a": True, "b": False}, {"a": False, "c": True}, {"b": True}]) == {
        "a": False,
        "b": False,
        "c": True,
    }
    assert combined([]) == {}


@pytest.mark.parametrize(
    ("signals", "usages", "stated"),
    [
        ([], [], {}),
        (["search=yes", "ai-train=no"], [], {"search": True, "ai-train": False}),
        (["search=yes", "search=no"], [], {"search": False}),
        ([], ["train-ai=n", "search=y"], {"train-ai": False, "search": True}),
        ([], ["train-ai=n", "train-ai=y"], {"train-ai": True}),  # one dictionary, the last counts
        ([], ["train-ai=n", "search=y,"], {}),  # one dictionary, which is invalid
        (["search=yes"], ["search=n"], {"search": False}),
    ],
)
def test_the_headers_of_a_response(
    signals: list[str], usages: list[str], stated: dict[str, bool]
) -> None:
    assert of_response(signals, usages) == stated


@pytest.mark.parametrize(
    ("statements", "reserved", "preferences"),
    [
        ([], None, {}),
        ([{"train-ai": True}, {"train-ai": False}], None, {"train-ai": False}),
        ([{"ai-train": False}, {"train-ai": True}], None, {"train-ai": False}),
        ([{"train-ai": True, "ai-train": False}], None, {"train-ai": False}),
        ([{"ai-input": True}], True, {"ai-input": True, "tdm": False}),
        ([], False, {"tdm": True}),
    ],
)
def test_a_use_has_one_name_for_all_vocabularies(
    statements: list[dict[str, bool]], reserved: bool | None, preferences: dict[str, bool]
) -> None:
    assert evaluated(statements, reserved) == preferences


def test_an_unknown_use_is_not_refused() -> None:
    preferences = evaluated([{"train-ai": False, "search": True}])
    assert refused(["search", "ai-input", "tdm"], preferences) == []
    assert refused(["search", "train-ai"], preferences) == ["train-ai"]
    assert refused(["ai-train"], preferences) == ["ai-train"]


def test_rfc_figure_4_holds_for_the_paths_of_usage() -> None:
    robots = RobotsTxt.parse(b"User-agent: *\nContent-Usage: /?u=/a train-ai=n\n")
    assert robots.content_usage("/?u=%2Fa", "a") == {"train-ai": False}
    assert robots.content_usage("/?u=%2Fb", "a") == {}
    assert not RobotsTxt.parse(b"User-agent: *\nDisallow: /*u=/a?b=").allowed(
        "/" + "u" * 600 + "u=/a?b=", "a"
    )

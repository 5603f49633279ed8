"""Content-Signal, Content-Usage, and how the vocabularies are read together."""

from __future__ import annotations

from pathlib import Path

import pytest

from scrapy_rep.protocol import usage
from scrapy_rep.protocol.robotstxt import RobotsTxt
from scrapy_rep.protocol.usage import content_signals, evaluated, policy_statements, refused
from scrapy_rep.protocol.verdict import Reason
from testing.hostile import ATTACKS

pytestmark = pytest.mark.rule("Usage of content")
FORBIDDEN = {"ai-train": False}


@pytest.mark.rule("Content-Signal")
@pytest.mark.parametrize(
    ("value", "signals"),
    [
        ("search=yes, ai-train=no", {"search": True, "ai-train": False}),
        ("Search = YES,,ai_input=maybe,x", {"search": True}),
        ("search=yes, search=no", {"search": False}),
        ("search=yes,ai-train=no,use=reference",  # Cloudflare's managed robots.txt
         {"search": True, "ai-train": False, "use": "reference"}),
        ("use=full, use=immediate, use=reference", {"use": "immediate"}),
        ("use=yes, use=some, search=full", {}),
        # A header has no path: the refusals count, the grants do not.
        ("/members/ ai-train=no, search=yes", {"ai-train": False}),
        ("search=ye\u017f, \u017fearch=no", {}),  # a letter whose upper case is "S"
        ("", {}),
    ],
)  # fmt: skip
def test_content_signals(value: str, signals: dict[str, bool | str]) -> None:
    assert content_signals(value) == signals


def signals(robots_txt: str, url: str) -> dict[str, bool | str]:
    return RobotsTxt.parse(robots_txt.encode()).content_signals(url, "mybot")


@pytest.mark.parametrize(
    ("value", "inside", "outside"),
    [
        # Inside is /members/a, outside is /a.
        ("/members/ ai-train=no, search=yes", {"ai-train": False, "search": True}, {}),
        ("/members/\tai-train=no,use=immediate", {"ai-train": False, "use": "immediate"}, {}),
        ("/mem*s/ ai-train=no", FORBIDDEN, {}), ("*members ai-train=no", FORBIDDEN, {}),
        ("/%6Dembers/ ai-train=no", FORBIDDEN, {}), ("/ ai-train=no", FORBIDDEN, FORBIDDEN),
        ("/members/, ai-train=no", FORBIDDEN, {}),
        ("/members/,x ai-train=no", {}, {}),  # a path with a comma
        ("/members/", {}, {}), ("/members/ nothing", {}, {}),
        # No path: the refusals hold everywhere, and nothing is granted.
        ("members/ ai-train=no, search=yes", FORBIDDEN, FORBIDDEN),
        ("/members/ /b ai-train=no, search=yes", FORBIDDEN, FORBIDDEN),
        ("search=yes ai-train=no, ai-input=yes", FORBIDDEN, FORBIDDEN),
        ("use=reference search=yes", {"use": "reference"}, {"use": "reference"}),
        # Behind the first part there is no path: what is unreadable is skipped.
        ("/members/ ai-train=no, or search=no", FORBIDDEN, {}),
    ],
)  # fmt: skip
def test_a_path_before_content_signals(
    value: str, inside: dict[str, bool | str], outside: dict[str, bool | str]
) -> None:
    robots_txt = f"User-agent: *\nContent-Signal: {value}\n"
    assert signals(robots_txt, "/members/a") == inside
    assert signals(robots_txt, "/a") == outside
    assert signals(f"Content-Signal: {value}\n", "https://example.com/members/a") == inside


LONGEST = """\
User-agent: *
Content-Signal: ai-train=no, search=yes, use=reference
Content-Signal: /open ai-train=yes
Content-Signal: /open/books search=no
Content-Signal: /open/books ai-input=yes
Content-Signal: /open/b* use=full
Content-Signal: /shut search=no
Content-Signal: /%73hut search=yes
Allow: /
"""


@pytest.mark.rule("Content-Signal")
@pytest.mark.parametrize(
    ("url", "stated"),
    [
        ("/", {"ai-train": False, "search": True, "use": "reference"}),
        # The grants of a shorter path do not hold, its refusals and its limit do.
        ("/open", {"ai-train": True, "use": "reference"}),
        ("/open/b", {"use": "full"}),  # /open takes back the refusal of ai-train
        ("/open/books", {"search": False, "ai-input": True}),
        ("/shut", {"search": False, "ai-train": False, "use": "reference"}),
    ],
)
def test_the_content_signals_of_the_longest_path(url: str, stated: dict[str, bool | str]) -> None:
    assert signals(LONGEST, url) == stated


@pytest.mark.parametrize("before", ["", "User-agent: *\n"])
def test_a_path_without_signals_does_not_hide_those_above_all_groups(before: str) -> None:
    robots_txt = f"Content-Signal: ai-train=no\n{before}Content-Signal: /a what\n"
    assert signals(robots_txt, "/a") == FORBIDDEN


def test_content_signals_that_take_too_many_steps_to_find_grant_nothing() -> None:
    attack = ATTACKS["permutations"]
    paths = attack.body.decode().replace("Disallow:", "Content-Signal:").split("\n")[1:]
    every = " search=yes, use=full\n".join(paths[:9000])
    robots_txt = f"User-agent: *\nContent-Signal: ai-train=no\n{every} ai-input=yes\n"
    for more in ("", f"Content-Signal: /*{'a' * 200} search=yes\n"):
        # With more, the longest path is found, but there are too many shorter ones.
        robots = RobotsTxt.parse((robots_txt + more).encode())
        url = attack.url(2048) + "a" * 200
        for _ in range(2):
            assert robots.content_signals(url, "mybot") == FORBIDDEN


@pytest.mark.no_cover
def test_long_content_signals_are_read_in_linear_time() -> None:
    for piece in (" ", "=", ",", "a=yes,", "/", "/,", "a=no ", "\x00", "a =  no\t"):
        value = piece * (64 * 1024 // len(piece))
        assert set(content_signals(value)) <= {"a"}
        assert set(signals(f"Content-Signal: {value}", "/")) <= {"a"}
        assert set(signals(f"Content-Signal: /{value}", "/")) <= {"a"}


@pytest.mark.rule("Content-Usage")
@pytest.mark.parametrize(
    ("value", "stated"),
    [
        ("train-ai=n, search=y", {"train-ai": False, "search": True}),
        (" train-ai=n\t,\tsearch=y ", {"train-ai": False, "search": True}),
        ("train-ai=n, train-ai=y", {"train-ai": True}), ("train-ai=y, train-ai=1", {}),
        ('train-ai=n;exceptions="a b";x, search', {"train-ai": False}), ("train-ai=yes", {}),
        ("", {}), ("a=1, b=-1.5, c=:YQ==:, d=?1, e=@1700000000, f=tok/en, g=y", {"g": True}),
        ('a="x\\"y", b=("a" 1.0;q=?0  tok ), c=(), d=%"caf%c3%a9", e=n', {"e": False}),
        # draft-ietf-aipref-vocab §6
        ('train-ai=y, train-ai, search=n, search="n"', {}),
        ("train-ai;allow=n, train-ai=y", {"train-ai": True}), ('train-ai;has;parameters="?"', {}),
        # Labels of earlier drafts are listed as they stand.
        ("ai-use=n, bots=n, genai=y", {"ai-use": False, "bots": False, "genai": True}),
        # No dictionaries of RFC 9651, so nothing is known.
        ("Train-ai=n", {}), ("train-ai=n;x=(a b)", {}), ("train-ai=n,", {}),
        ("train-ai= n", {}), (",train-ai=n", {}), ('train-ai="n', {}),
        ("train-ai=1.2345", {}), ("train-ai=1234567890123456", {}), ("train-ai=n, é=y", {}),
    ],
)  # fmt: skip
def test_content_usage(value: str, stated: dict[str, bool]) -> None:
    assert usage.content_usage(value) == stated


@pytest.mark.rule("Names for one use", "Labels of earlier drafts")
@pytest.mark.parametrize(
    ("statements", "reserved", "preferences"),
    [
        ([], None, {}), ([{"train-ai": True}, {"train-ai": False}], None, {"train-ai": False}),
        ([{"ai-train": False}, {"train-ai": True}], None, {"train-ai": False}),
        ([{"train-ai": True, "ai-train": False}], None, {"train-ai": False}),
        ([{"ai-train": True}], None, {"train-ai": True}),
        ([{"ai-input": False}, {"ai-use": True}], None, {"ai-use": False}),
        ([{"ai-input": True}, {"ai-use": False}], None, {"ai-use": False}),
        ([{"ai-input": True}], True, {"tdm": False}),  # no grant of all AI use
        ([{"use": "immediate", "search": True}], None,
         {"use=immediate": True, "use=reference": False, "use=full": False, "search": True}),
        ([{"use": "full"}, {"use": "reference"}], None,
         {"use=immediate": True, "use=reference": True, "use=full": False}),
        ([], False, {"tdm": True}),
        # Labels of earlier drafts and unknown labels have no effect, not even on TDM reservation.
        ([{name: False} for name in sorted(usage.AIPREF_EARLIER)], None, {}),
        ([{"tdm": False}], False, {"tdm": True}), ([{"Train-AI": False, "foo": False}], None, {}),
    ],
)  # fmt: skip
def test_a_use_has_one_name_for_all_vocabularies(
    statements: list[dict[str, bool | str]], reserved: bool | None, preferences: dict[str, bool]
) -> None:
    assert evaluated(statements, reserved) == preferences
    assert evaluated([evaluated(statements, reserved)]) == {
        name: granted for name, granted in preferences.items() if name != "tdm"
    }


def test_an_unknown_use_is_not_refused() -> None:
    preferences = evaluated([{"train-ai": False, "search": True}])
    assert refused(["search", "ai-input", "ai-use", "tdm"], preferences) == []
    assert refused(["search", "train-ai"], preferences) == ["train-ai"]
    assert refused(["ai-train"], preferences) == ["ai-train"]


# The example of draft-ietf-aipref-attach
ATTACHED = b"""
User-Agent: *
Allow: /
Disallow: /never/
Content-Usage: train-ai=n
Content-Usage: /ai-ok/ train-ai=y

User-Agent: ExampleBot
Allow: /
Content-Usage: train-ai=y
"""
LONGEST_USAGE = b"""
Content-Usage: bots=n
User-agent: *
Allow: /
Disallow: /private
Content-Usage: train-ai=n, search=y
Content-Usage: /open train-ai=y
Content-Usage: /open search=n
Content-Usage: /open train-ai=n
Content-Usage: /open/*.txt
Content-Usage: /bad train-ai=
Content-Usage: /x?u=/a search=y
User-agent: none
Disallow:
"""


@pytest.mark.rule("Content-Usage")
@pytest.mark.parametrize(
    ("robots_txt", "url", "agent", "stated"),
    [
        (ATTACHED, "/test", "mybot", {"train-ai": False}),
        (ATTACHED, "/never/test", "mybot", {}),
        (ATTACHED, "/ai-ok/test", "mybot", {"train-ai": True}),
        (ATTACHED, "/test", "ExampleBot", {"train-ai": True}),
        (ATTACHED, "/never/test", "ExampleBot", {"train-ai": True}),
        (LONGEST_USAGE, "/", "a", {"train-ai": False, "search": True}),
        (LONGEST_USAGE, "/private", "a", {}),
        (LONGEST_USAGE, "/open", "a", {"train-ai": False, "search": False}),
        (LONGEST_USAGE, "/open/a.txt", "a", {}),
        (LONGEST_USAGE, "/bad", "a", {}),
        (LONGEST_USAGE, "/x?u=%2Fa", "a", {"search": True}),  # RFC 9309, figure 4
        (LONGEST_USAGE, "/x?u=%2Fb", "a", {"train-ai": False, "search": True}),
        (LONGEST_USAGE, "/", "none", {}),
    ],
)
def test_content_usage_of_the_longest_path(
    robots_txt: bytes, url: str, agent: str, stated: dict[str, bool]
) -> None:
    assert RobotsTxt.parse(robots_txt).content_usage(url, agent) == stated


# Readings that a setting turns on

TRAINING = b"""
User-agent: *
Disallow: /all/

User-agent: __usage_ai-training
User-agent: GPTBot
Disallow: /art/
Allow: /art/free/
Disallow: /*.jpg$
"""


@pytest.mark.rule("__usage_ai-training")
@pytest.mark.parametrize(
    ("path", "stated", "rule"),
    [
        ("/art/1", {"train-ai": False}, "line 7, Disallow: /art/"),
        ("/art/free/1", {"train-ai": True}, "line 8, Allow: /art/free/"),
        ("/cat.jpg", {"train-ai": False}, "line 9, Disallow: /*.jpg$"), ("/news", {}, None),
        ("/all/1", {}, None),  # the group of everyone has no part in it
        ("/robots.txt", {}, None),
    ],
)  # fmt: skip
def test_the_rules_of_a_policy_token_grant_and_refuse_its_use(
    path: str, stated: dict[str, bool], rule: str | None
) -> None:
    robots = RobotsTxt.parse(TRAINING)
    assert robots.has_usage
    found = policy_statements(robots.usage_policies(f"https://a{path}"))
    source = f"robots.txt, {rule}, for __usage_ai-training"
    assert found == ([(source, stated)] if rule else [])
    assert evaluated(statement for _, statement in found) == stated


@pytest.mark.rule("__usage_ai-training")
def test_no_crawler_has_a_policy_token() -> None:
    text = b"User-agent: __usage_ai-training\nDisallow: /\n"
    for user_agent in ("__usage_ai-training", "__usage_ai-training/1.0 (+https://a)", "mybot"):
        assert RobotsTxt.parse(text).verdict("/", user_agent).reason is Reason.NO_RULES
        verdict = RobotsTxt.parse(text + b"User-agent: *\nAllow: /b\n").verdict("/b", user_agent)
        assert (verdict.allowed, verdict.agent) == (True, "*")


@pytest.mark.parametrize("status", [200, 401, 402, 404, 503])
def test_a_policy_token_counts_only_in_a_file_that_is_read(status: int) -> None:
    robots = RobotsTxt.from_response(status, TRAINING)
    assert bool(robots.usage_policies("https://a/art/1")) is (status == 200)


def test_a_group_of_a_policy_token_that_takes_too_many_steps_refuses() -> None:
    rules = "".join(f"Disallow: /{'*a' * 40}{number}$\n" for number in range(2000))
    robots = RobotsTxt.parse(f"User-agent: __usage_ai-training\n{rules}".encode())
    (statement,) = policy_statements(robots.usage_policies("https://a/" + "a" * 2000))
    assert statement == ("robots.txt, too-complex", {"train-ai": False})


def test_each_version_is_named_on_the_conformance_page() -> None:
    page = Path(__file__).parents[2].joinpath("docs/about/conformance.md").read_text("utf-8")
    assert [one for one in usage.VOCABULARIES if f"| {' | '.join(one)} |" not in page] == []

"""Verdicts: the examples of RFC 9309 and of Google's specification, and their edge cases."""

from __future__ import annotations

import pickle

import pytest

from scrapy_rep.protocol.robotstxt import RobotsTxt
from scrapy_rep.protocol.verdict import Reason, Rule, Verdict

SITE = "https://example.com"


def allowed(robots_txt: str, url: str, agent: str = "foobot", *, strict: bool = False) -> bool:
    """Return the answer, which is the same with an index and without one."""
    robots = RobotsTxt.parse(robots_txt.encode(), strict=strict)
    answers = {robots.allowed(url, agent) for _ in range(3)}
    assert len(answers) == 1
    return answers.pop()


# RFC 9309 §2.2.1, figure 2: two groups for one token are one group.
FIGURE_2 = """
user-agent: ExampleBot
disallow: /foo
disallow: /bar

user-agent: ExampleBot
disallow: /baz
"""

# §2.2.1, figure 3: the group for everyone, and one for a crawler.
FIGURE_3 = """
user-agent: *
disallow: *
user-agent: ExampleBot
allow: /example
user-agent: BazBot
disallow: /example/nope
"""


@pytest.mark.rule("Groups for the same crawler")
def test_rfc_figure_2_groups_for_the_same_token_are_merged() -> None:
    for path in ("/foo", "/bar", "/baz"):
        assert not allowed(FIGURE_2, SITE + path, "examplebot")


@pytest.mark.rule("The group for *")
@pytest.mark.parametrize(
    ("agent", "path", "expected"),
    [
        ("examplebot", "/example/nope", True), ("examplebot", "/anything", True),
        ("bazbot", "/example/nope", False), ("bazbot", "/example", True),
        ("otherbot", "/example", False),
    ],
)  # fmt: skip
def test_rfc_figure_3_only_one_group_is_used(agent: str, path: str, expected: bool) -> None:
    assert allowed(FIGURE_3, SITE + path, agent) is expected


@pytest.mark.rule("Percent-encoding")
@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("/foo/bar?baz=quz", "/foo/bar?baz=quz"),
        ("/foo/bar?baz=https://foo.bar", "/foo/bar?baz=https%3A%2F%2Ffoo.bar"),
        ("/foo/bar?baz=https%3A%2F%2Ffoo.bar", "/foo/bar?baz=https://foo.bar"),
        ("/foo/bar/ツ", "/foo/bar/%E3%83%84"), ("/foo/bar/%E3%83%84", "/foo/bar/%E3%83%84"),
        ("/foo/bar/%e3%83%84", "/foo/bar/ツ"), ("/foo/bar/%62%61%7A", "/foo/bar/baz"),
        ("/foo/bar/baz", "/foo/bar/%62%61%7A"),
    ],
)  # fmt: skip
def test_rfc_figure_4_encoded_and_decoded_forms_match(pattern: str, path: str) -> None:
    assert not allowed(f"User-agent: *\nDisallow: {pattern}", SITE + path)
    assert allowed(f"User-agent: *\nDisallow: {pattern}", SITE + path[:-1])


@pytest.mark.rule("Comments and white space", "*, $ and #")
@pytest.mark.parametrize(
    ("rules", "path", "expected"),
    [
        ("Disallow: /a # a comment", "/a", False),
        ("Allow: /this/path/exactly$\nDisallow: /this", "/this/path/exactly", True),
        ("Allow: /this/path/exactly$\nDisallow: /this", "/this/path/exactly/not", False),
        ("Allow: /this/*/exactly\nDisallow: /this", "/this/path/exactly/and/more", True),
        ("Allow: /this/*/exactly\nDisallow: /this", "/this/path", False),
    ],
)
def test_rfc_figure_5_special_characters(rules: str, path: str, expected: bool) -> None:
    assert allowed(f"User-agent: *\n{rules}", SITE + path) is expected


@pytest.mark.rule("*, $ and #")
@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("/path/file-with-a-%2A.html", "/path/file-with-a-*.html", True),
        ("/path/file-with-a-%2A.html", "/path/file-with-a-%2A.html", True),
        ("/path/file-with-a-%2A.html", "/path/file-with-a-thing.html", False),
        ("/path/foo-%24", "/path/foo-$", True), ("/path/foo-%24", "/path/foo-%24", True),
        ("/path/foo-%24", "/path/foo-", False), ("/path/foo-$", "/path/foo-", True),
        ("/path/foo-$", "/path/foo-$", False), ("/path/$foo", "/path/$foo", True),
    ],
)  # fmt: skip
def test_rfc_figure_6_the_characters_themselves(pattern: str, path: str, matches: bool) -> None:
    assert allowed(f"User-agent: *\nDisallow: {pattern}", SITE + path) is not matches


# §5.1, the simple example.
SECTION_5_1 = """
User-Agent: *
Disallow: *.gif$
Disallow: /example/
Allow: /publications/

User-Agent: foobot
Disallow:/
Allow:/example/page.html
Allow:/example/allowed.gif

User-Agent: barbot
User-Agent: bazbot
Disallow: /example/page.html

User-Agent: quxbot
"""


@pytest.mark.rule("Examples of the RFC and of Google")
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(
    ("agent", "path", "expected"),
    [
        ("anybot", "/image.gif", False), ("anybot", "/image.gif?x", True),
        ("anybot", "/example/a", False), ("anybot", "/", True), ("foobot", "/", False),
        ("foobot", "/example/page.html", True), ("foobot", "/example/other.gif", False),
        ("barbot", "/example/page.html", False), ("barbot", "/image.gif", True),
        ("quxbot", "/example/", True),
    ],
)  # fmt: skip
def test_rfc_section_5_1(agent: str, path: str, expected: bool, strict: bool) -> None:
    assert allowed(SECTION_5_1, SITE + path, agent, strict=strict) is expected


@pytest.mark.rule("Allow and Disallow", "Examples of the RFC and of Google")
def test_rfc_section_5_2_the_longest_match() -> None:
    robots_txt = (
        "User-Agent: foobot\nAllow: /example/page/\nDisallow: /example/page/disallowed.gif\n"
    )
    assert not allowed(robots_txt, SITE + "/example/page/disallowed.gif")
    assert allowed(robots_txt, SITE + "/example/page/allowed.gif")


@pytest.mark.rule("Index pages")
@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("/index.html", "/", True), ("/index.htm", "/", True), ("/a/index.htmx", "/a/", True),
        ("/a/index.html", "/a/", True), ("/a/index.html", "/a/b", False),
        ("/a/index.html", "/a", False), ("/a/xindex.html", "/a/", False),
        ("/index.html/a", "/", False),
    ],
)  # fmt: skip
def test_google_index_pages_stand_for_directories(pattern: str, path: str, expected: bool) -> None:
    robots_txt = f"user-agent: *\ndisallow: /\nallow: {pattern}"
    assert allowed(robots_txt, path) is expected
    assert not allowed(robots_txt, path, strict=True)


@pytest.mark.rule("Index pages")
def test_an_index_page_has_the_length_of_its_directory_pattern() -> None:
    assert not allowed("user-agent: *\ndisallow: /a/**\nallow: /a/index.html", "/a/")
    assert allowed("user-agent: *\ndisallow: /a/\nallow: /a/index.html", "/a/")


def test_a_verdict_is_small_and_has_reason_rule_and_agent() -> None:
    body = "# one\r\n\r\nUser-agent: FooBot\rDisallow: /caf\u00e9 #x\r\n".encode()
    verdict = RobotsTxt.parse(body).verdict(SITE + "/caf%C3%A9", "FooBot/1.0 (+http://x)")
    assert verdict == Verdict(False, Reason.RULES, Rule(False, "/café", 4), "foobot")
    assert str(verdict.reason) == "rules"
    assert {verdict: 1}[pickle.loads(pickle.dumps(verdict))] == 1
    assert len(pickle.dumps(verdict)) < 300
    with pytest.raises(AttributeError):
        verdict.allowed = True  # type: ignore[misc]


MANY = "".join(f"\ndisallow: /{number}" for number in range(200))


@pytest.mark.rule("/robots.txt")
@pytest.mark.parametrize(
    ("robots_txt", "path", "expected"),
    [
        ("", "/", Verdict(True, Reason.NO_RULES)),
        ("user-agent: other\ndisallow: /", "/", Verdict(True, Reason.NO_RULES)),
        ("user-agent: *", "/", Verdict(True, Reason.NO_RULES, None, "*")),
        ("user-agent: *\ndisallow:", "/", Verdict(True, Reason.NO_RULES, None, "*")),
        ("user-agent: *\ndisallow: /a", "/", Verdict(True, Reason.RULES, None, "*")),
        ("user-agent: *\ndisallow: a", "/", Verdict(True, Reason.RULES, None, "*")),
        ("user-agent: *\ndisallow: /", "/robots.txt", Verdict(True, Reason.NO_RULES)),
        ("user-agent: *" + MANY, "/a", Verdict(True, Reason.RULES, None, "*")),
        ("user-agent: *" + MANY, "/150",
         Verdict(False, Reason.RULES, Rule(False, "/150", 152), "*")),
        ("user-agent: *" + MANY.replace("/", "/*"), "/7",
         Verdict(False, Reason.RULES, Rule(False, "/*7", 9), "*")),
    ],
)  # fmt: skip
def test_reasons_of_a_verdict(robots_txt: str, path: str, expected: Verdict) -> None:
    robots = RobotsTxt.parse(robots_txt.encode())
    assert [robots.verdict(path, "foobot") for _ in range(3)] == [expected] * 3


@pytest.mark.rule("Several tokens")
@pytest.mark.parametrize(
    "agent",
    ["foobot", "FooBot", b"foobot", "FooBot/1.0 (+http://x)", ("x", "foobot"), ["x", "FooBot"]],
)
def test_types_of_user_agents(agent: str | bytes | list[str]) -> None:
    robots = RobotsTxt.parse(b"user-agent: foobot\ndisallow: /a\nuser-agent: x-y\ndisallow: /")
    for _ in range(2):
        assert not robots.allowed("/a", agent)
        assert robots.verdict("/b", agent).agent == "foobot"


def test_the_number_of_kept_user_agents_is_bounded() -> None:
    robots = RobotsTxt.parse(b"user-agent: *\ndisallow: /a")
    assert not any(robots.allowed("/a", f"bot{number}") for number in range(1000))
    assert len(robots._indexed) <= 64


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"\n\r\n  a: b\r", b"\n\na: b\n"),
        (b"\xef\xbb\xbfa: \xff\0\n", b"a: \xff\n"),
        ("a: ü".encode("utf-16"), "a: ü".encode()),
        (b"#" * 512_000, b"#" * 512_000),
        (b"#" * 512_001, None),
        (b"\xef\xbb\xbf\xef\xbb\xbfa: b", b"\xef\xbb\xbf\xef\xbb\xbfa: b"),
    ],
)
def test_the_text_is_what_was_read_unless_it_was_cut(body: bytes, text: bytes | None) -> None:
    assert RobotsTxt.parse(body).text == text


@pytest.mark.parametrize(
    "robots",
    [
        RobotsTxt(b"User-agent: *\nDisallow: /a", strict=True, url="https://a.example/robots.txt"),
        RobotsTxt.from_response(404),
        RobotsTxt.from_response(503),
    ],
)
def test_a_pickled_file_has_its_text_only(robots: RobotsTxt) -> None:
    before = pickle.dumps(robots)
    expected = [robots.verdict(f"/{path}", "mybot") for path in "aab"]
    assert pickle.dumps(robots) == before  # what was derived is not in it
    copy = pickle.loads(before)
    assert (copy, str(copy)) == (robots, str(robots))
    assert [copy.verdict(f"/{path}", "mybot") for path in "aab"] == expected

"""Verdicts: the examples of RFC 9309 and of Google's specification, and their edge cases."""

from __future__ import annotations

import pickle

import pytest

from scrapy_rep.protocol.robotstxt import Reason, RobotsTxt, Rule, Verdict

SITE = "https://example.com"


def allowed(
    robots_txt: str | bytes, url: str, agent: str = "foobot", *, strict: bool = False
) -> bool:
    """Return the answer, which is the same with an index and without one."""
    body = robots_txt if isinstance(robots_txt, bytes) else robots_txt.encode()
    robots = RobotsTxt.parse(body, strict=strict)
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


@pytest.mark.parametrize("path", ["/foo", "/bar", "/baz"])
def test_rfc_figure_2_groups_for_the_same_token_are_merged(path: str) -> None:
    assert not allowed(FIGURE_2, SITE + path, "examplebot")


@pytest.mark.parametrize(
    ("agent", "path", "expected"),
    [
        ("examplebot", "/example/nope", True),
        ("examplebot", "/anything", True),
        ("bazbot", "/example/nope", False),
        ("bazbot", "/example", True),
        ("otherbot", "/example", False),
    ],
)
def test_rfc_figure_3_only_one_group_is_used(agent: str, path: str, expected: bool) -> None:
    assert allowed(FIGURE_3, SITE + path, agent) is expected


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("/foo/bar?baz=quz", "/foo/bar?baz=quz"),
        ("/foo/bar?baz=https://foo.bar", "/foo/bar?baz=https%3A%2F%2Ffoo.bar"),
        ("/foo/bar?baz=https%3A%2F%2Ffoo.bar", "/foo/bar?baz=https://foo.bar"),
        ("/foo/bar/ツ", "/foo/bar/%E3%83%84"),
        ("/foo/bar/%E3%83%84", "/foo/bar/%E3%83%84"),
        ("/foo/bar/%e3%83%84", "/foo/bar/ツ"),
        ("/foo/bar/%62%61%7A", "/foo/bar/baz"),
        ("/foo/bar/baz", "/foo/bar/%62%61%7A"),
    ],
)
def test_rfc_figure_4_encoded_and_decoded_forms_match(pattern: str, path: str) -> None:
    assert not allowed(f"User-agent: *\nDisallow: {pattern}", SITE + path)
    assert allowed(f"User-agent: *\nDisallow: {pattern}", SITE + path[:-1])


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


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("/path/file-with-a-%2A.html", "/path/file-with-a-*.html", True),
        ("/path/file-with-a-%2A.html", "/path/file-with-a-%2A.html", True),
        ("/path/file-with-a-%2A.html", "/path/file-with-a-thing.html", False),
        ("/path/foo-%24", "/path/foo-$", True),
        ("/path/foo-%24", "/path/foo-%24", True),
        ("/path/foo-%24", "/path/foo-", False),
        ("/path/foo-$", "/path/foo-", True),
        ("/path/foo-$", "/path/foo-$", False),
        ("/path/$foo", "/path/$foo", True),
    ],
)
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


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(
    ("agent", "path", "expected"),
    [
        ("anybot", "/image.gif", False),
        ("anybot", "/image.gif?x", True),
        ("anybot", "/example/a", False),
        ("anybot", "/publications/a", True),
        ("anybot", "/", True),
        ("foobot", "/", False),
        ("foobot", "/example/page.html", True),
        ("foobot", "/example/allowed.gif", True),
        ("foobot", "/example/other.gif", False),
        ("barbot", "/example/page.html", False),
        ("bazbot", "/example/page.html", False),
        ("barbot", "/image.gif", True),
        ("quxbot", "/example/", True),
        ("quxbot", "/image.gif", True),
    ],
)
def test_rfc_section_5_1(agent: str, path: str, expected: bool, strict: bool) -> None:
    assert allowed(SECTION_5_1, SITE + path, agent, strict=strict) is expected


def test_rfc_section_5_2_the_longest_match() -> None:
    robots_txt = (
        "User-Agent: foobot\nAllow: /example/page/\nDisallow: /example/page/disallowed.gif\n"
    )
    assert not allowed(robots_txt, SITE + "/example/page/disallowed.gif")
    assert allowed(robots_txt, SITE + "/example/page/allowed.gif")


# Google, "URL matching based on path values": pattern, what matches, what does not.
GOOGLE_PATHS = [
    ("/", ["/", "/any/valid/URL"], []),
    ("/*", ["/", "/any/valid/URL"], []),
    ("/$", ["/"], ["/any"]),
    (
        "/fish",
        ["/fish", "/fish.html", "/fish/salmon.html", "/fishheads", "/fishheads/yummy.html",
         "/fish.php?id=anything"],
        ["/Fish.asp", "/catfish", "/?id=fish", "/desert/fish"],
    ),
    (
        "/fish*",
        ["/fish", "/fish.html", "/fish/salmon.html", "/fishheads", "/fishheads/yummy.html",
         "/fish.php?id=anything"],
        ["/Fish.asp", "/catfish", "/?id=fish", "/desert/fish"],
    ),
    (
        "/fish/",
        ["/fish/", "/fish/?id=anything", "/fish/salmon.htm"],
        ["/fish", "/fish.html", "/animals/fish/", "/Fish/Salmon.asp"],
    ),
    (
        "/*.php",
        ["/index.php", "/filename.php", "/folder/filename.php",
         "/folder/filename.php?parameters", "/folder/any.php.file.html", "/filename.php/"],
        ["/", "/windows.PHP"],
    ),
    (
        "/*.php$",
        ["/filename.php", "/folder/filename.php"],
        ["/filename.php?parameters", "/filename.php/", "/filename.php5", "/windows.PHP"],
    ),
    (
        "/fish*.php",
        ["/fish.php", "/fishheads/catfish.php?parameters"],
        ["/Fish.PHP"],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("pattern", "matching", "others"), GOOGLE_PATHS)
def test_google_paths(pattern: str, matching: list[str], others: list[str]) -> None:
    robots_txt = f"User-agent: *\nDisallow: {pattern}\n"
    for path in matching:
        assert not allowed(robots_txt, SITE + path), path
    for path in others:
        assert allowed(robots_txt, SITE + path), path


@pytest.mark.parametrize(
    ("rules", "path", "expected"),
    [
        ("allow: /p\ndisallow: /", "/page", True),
        ("allow: /folder\ndisallow: /folder", "/folder/page", True),
        ("allow: /page\ndisallow: /*.htm", "/page.htm", False),
        ("allow: /page\ndisallow: /*.ph", "/page.php5", True),
        ("allow: /$\ndisallow: /", "/", True),
        ("allow: /$\ndisallow: /", "/page.htm", False),
    ],
)
def test_google_precedence(rules: str, path: str, expected: bool) -> None:
    assert allowed(f"user-agent: *\n{rules}", SITE + path) is expected


# Google, "Order of precedence for user agents": which group each crawler uses.
GOOGLE_GROUPS = """
user-agent: googlebot-news
disallow: /news

user-agent: *
disallow: /everyone

user-agent: googlebot
disallow: /googlebot
"""


@pytest.mark.parametrize(
    ("tokens", "group"),
    [
        (["googlebot-news", "googlebot"], "/news"),
        (["googlebot"], "/googlebot"),
        (["googlebot-image", "googlebot"], "/googlebot"),
        (["otherbot"], "/everyone"),
        (["storebot-google"], "/everyone"),
    ],
)
def test_google_groups_by_crawler(tokens: list[str], group: str) -> None:
    robots = RobotsTxt.parse(GOOGLE_GROUPS.encode())
    answers = {path: robots.allowed(path, tokens) for path in ("/news", "/everyone", "/googlebot")}
    assert answers == {path: path != group for path in answers}


def test_google_groups_of_one_token_are_combined_across_other_groups() -> None:
    robots_txt = """
user-agent: googlebot-news
disallow: /fish

user-agent: *
disallow: /carrots

user-agent: googlebot-news
disallow: /shrimp
"""
    assert not allowed(robots_txt, "/fish", "googlebot-news")
    assert not allowed(robots_txt, "/shrimp", "googlebot-news")
    assert allowed(robots_txt, "/carrots", "googlebot-news")
    assert not allowed(robots_txt, "/carrots", "googlebot")


def test_google_only_rules_end_a_group() -> None:
    robots_txt = """
user-agent: a
sitemap: https://example.com/sitemap.xml
crawl-delay: 5
unknown: x

user-agent: b
disallow: /
"""
    assert not allowed(robots_txt, "/", "a")
    assert not allowed(robots_txt, "/", "b")


@pytest.mark.parametrize(
    ("line", "lenient"),
    [
        ("dissallow: /a", True), ("dissalow: /a", True), ("disalow: /a", True),
        ("diasllow: /a", True), ("disallaw: /a", True), ("DISALLAW : /a", True),
        ("disallow /a", True), ("disallow\t/a # why", True), ("disallow /a b", False),
        ("disallowed: /a", True), ("Disallow all of: /a", True), ("disallowed /a", True),
        ("disallow /b: /a", True), ("dissallowing : /a", True), ("allow-not: /a", False),
        ("xdisallow: /a", False), ("disallow # x: /a", False),
        ("disallow", False), ("disallow =/a", False),
    ],
)  # fmt: skip
def test_google_typos(line: str, lenient: bool) -> None:
    assert allowed(f"user-agent: *\n{line}", "/a") is not lenient
    assert allowed(f"user-agent: *\n{line}", "/a", strict=True)


@pytest.mark.parametrize("line", ["useragent: foobot", "user agent: foobot", "user-agent foobot"])
def test_google_typos_of_user_agent(line: str) -> None:
    assert not allowed(f"{line}\ndisallow: /", "/a")
    assert allowed(f"{line}\ndisallow: /", "/a", strict=True)


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("/index.html", "/", True),
        ("/index.htm", "/", True),
        ("/a/index.htmx", "/a/", True),
        ("/a/index.html", "/a/", True),
        ("/a/index.html", "/a/b", False),
        ("/a/index.html", "/a", False),
        ("/a/xindex.html", "/a/", False),
        ("/index.html/a", "/", False),
    ],
)
def test_google_index_pages_stand_for_their_directory(
    pattern: str, path: str, expected: bool
) -> None:
    robots_txt = f"user-agent: *\ndisallow: /\nallow: {pattern}"
    assert allowed(robots_txt, path) is expected
    assert not allowed(robots_txt, path, strict=True)


def test_an_index_page_has_the_length_of_its_directory_pattern() -> None:
    assert not allowed("user-agent: *\ndisallow: /a/**\nallow: /a/index.html", "/a/")
    assert allowed("user-agent: *\ndisallow: /a/\nallow: /a/index.html", "/a/")


@pytest.mark.parametrize(
    ("robots_txt", "agent", "expected"),
    [
        ("user-agent: mybot/2.1\ndisallow: /", "mybot", False),
        ("user-agent: MyBot\ndisallow: /", "mYbOT", False),
        ("user-agent: my\ndisallow: /", "mybot", True),
        ("user-agent: mybot\ndisallow: /", "my", True),
        ("user-agent: * everyone\ndisallow: /", "mybot", False),
        ("user-agent: *bot\ndisallow: /", "mybot", True),
        ("user-agent: MJ12bot\ndisallow: /", "mj12bot", False),
        ("user-agent: MJ12bot/v1.4\ndisallow: /", "MJ12bot", False),
        ("user-agent: MJ13bot\ndisallow: /", "mj12bot", True),
        ("user-agent: mj\ndisallow: /", "mj12bot", True),
        ("user-agent: MJ12bot\ndisallow: /", "mj", False),
        ("user-agent: бот\ndisallow: /", "бот", True),
        ("user-agent:\ndisallow: /", "", True),
        ("user-agent: *\nallow: /\nuser-agent:\ndisallow: /", "mybot", True),
        ("disallow: /", "mybot", True),
        ("user-agent: *\ndisallow: /\nuser-agent: mybot\ndisallow:", "mybot", True),
        ("user-agent: *\ndisallow: /\nuser-agent: mybot", "mybot", True),
        ("user-agent: *\ndisallow: /", "*", False),
    ],
)
def test_groups_and_tokens(robots_txt: str, agent: str, expected: bool) -> None:
    assert allowed(robots_txt, "/", agent) is expected


@pytest.mark.parametrize(
    ("rules", "path", "expected"),
    [
        ("disallow: a", "/a", True),
        ("disallow: $", "/", True),
        ("disallow: *a", "/xa", False),
        ("disallow: /%2F", "/%2f", False),
        ("disallow: /%2F", "//", True),
        ("disallow: /?a%26b", "/?a&b", True),
        ("disallow: /a+b", "/a%2Bb", True),
        ("disallow: /a b", "/a%20b", False),
        ("disallow: /a b", "/a+b", True),
        ("disallow: /*/feed/", "/x?u=/feed/", False),
        ("disallow: /x?u=*/a", "/x?u=https%3A%2F%2Fh%2Fa", False),
        ("disallow: /x?u=*/a$", "/x?u=h%2Fa", False),
        ("disallow: /x?u=/a\nallow: /x?u=", "/x?u=%2Fa", False),
        ("disallow: /x?u=/a", "/x?u=b", True),
        ("disallow: /%", "/%", False),
        ("disallow: /%2", "/%2", False),
        ("disallow: /%zz", "/%zz", False),
        ("disallow: /%252F", "/%2F", True),
        ("disallow: /a/../b", "/b", True),
        ("disallow: //a", "//a", False),
        ("disallow: /a*b*c", "/abc", False),
        ("disallow: /a*b*c$", "/abcx", True),
        ("disallow: /a*ba$", "/aba", False),
        ("disallow: /ab*ba$", "/aba", True),
        ("disallow: /a*$", "/abc", False),
        ("disallow: /a**", "/abc", False),
        ("disallow: /%41", "/A", False),
        ("disallow: /robots.txt", "/robots.txt", True),
        ("disallow: /", "/robots.txt?", False),
        ("disallow: /", "/%72obots.txt", True),
        ("disallow: /a", "/b#/a", True),
    ],
)
def test_matching(rules: str, path: str, expected: bool) -> None:
    assert allowed(f"user-agent: *\n{rules}", path) is expected
    assert allowed(f"user-agent: *\n{rules}", SITE + path) is expected


@pytest.mark.parametrize(
    ("rules", "path", "line"),
    [
        ("disallow: /a\ndisallow: /ab", "/ab", 3),
        ("disallow: /ab\ndisallow: /a*", "/ab", 2),
        ("disallow: /a\nallow: /a", "/a", 3),
        ("disallow: /a b\nallow: /a%20", "/a%20b", 3),  # 4 octets and 5
        ("disallow: /a%20b\nallow: /a b", "/a%20b", 3),  # one rule, and allow wins
        ("disallow: /a%20b\nallow: /a b\ndisallow: /a%20*", "/a%20b", 3),  # with length 6
        ("disallow: /a b\ndisallow: /a%20b", "/a%20b", 3),
        ("disallow: /a \ndisallow: /a", "/a", 2),
        ("disallow: /é\ndisallow: /%C3%A9*", "/é", 3),
        ("disallow: /%61b\nallow: /a", "/ab", 2),
    ],
)
def test_the_line_that_decides(rules: str, path: str, line: int) -> None:
    robots = RobotsTxt.parse(f"user-agent: *\n{rules}".encode())
    for _ in range(3):
        verdict = robots.verdict(path, "foobot")
        assert verdict.rule is not None
        assert verdict.rule.line == line


def test_a_verdict_has_reason_rule_and_agent() -> None:
    body = "# one\r\n\r\nUser-agent: FooBot\rDisallow: /caf\u00e9 #x\r\n".encode()
    robots = RobotsTxt.parse(body)
    rule = Rule(False, "/café", 4)
    verdict = robots.verdict(SITE + "/caf%C3%A9", "FooBot/1.0 (+http://x)")
    assert verdict == Verdict(False, Reason.RULES, rule, "foobot")
    assert pickle.loads(pickle.dumps(verdict)) == verdict
    assert len(pickle.dumps(verdict)) < 300
    assert str(verdict.reason) == "rules"


@pytest.mark.parametrize(
    ("robots_txt", "path", "expected"),
    [
        ("", "/", Verdict(True, Reason.NO_RULES)),
        ("user-agent: other\ndisallow: /", "/", Verdict(True, Reason.NO_RULES)),
        ("user-agent: *\ndisallow:", "/", Verdict(True, Reason.NO_RULES, None, "*")),
        ("user-agent: *\ndisallow: /a", "/", Verdict(True, Reason.RULES, None, "*")),
        ("user-agent: *\ndisallow: a", "/", Verdict(True, Reason.RULES, None, "*")),
        ("user-agent: *\ndisallow: /", "/robots.txt", Verdict(True, Reason.NO_RULES)),
    ],
)
def test_reasons_of_a_verdict_without_a_rule(robots_txt: str, path: str, expected: Verdict) -> None:
    robots = RobotsTxt.parse(robots_txt.encode())
    assert [robots.verdict(path, "foobot") for _ in range(3)] == [expected] * 3


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


@pytest.mark.parametrize("agent", [None, 1, {"a": 1}, ["a", 1], ("a", None)])
def test_a_user_agent_of_another_type_is_refused(agent: object) -> None:
    robots = RobotsTxt.parse(b"user-agent: *\ndisallow: /a")
    with pytest.raises(TypeError, match="a user agent must be str"):
        robots.allowed("/", agent)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"", b""),
        (b"Sitemap: /a", b"Sitemap: /a"),
        (b"\n\r\n  a: b\r", b"\n\na: b\n"),
        (b"\xef\xbb\xbfa: \xff\0\n", b"a: \xff\n"),
        ("a: ü".encode("utf-16"), "a: ü".encode()),
        (b"#" * 512_000, b"#" * 512_000),
        (b"#" * 512_001, None),
    ],
)
def test_the_text_is_what_was_read_unless_it_was_cut(body: bytes, text: bytes | None) -> None:
    assert RobotsTxt.parse(body).text == text

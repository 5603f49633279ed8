"""Clean-param: the rules and the examples of Yandex, and what no file can break."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_rep import RobotsTxt
from scrapy_rep.protocol.clean_params import MAX_NAMES

SITE = "https://www.example.com"


def canonicalize(records: str, url: str) -> str:
    return RobotsTxt.parse(records.encode()).canonicalize(url)


# https://yandex.com/support/webmaster/en/robot-workings/clean-param
BOOK = "User-agent: Yandex\nClean-param: ref /some_dir/get_book.pl"
TWO_FORUMS = "Clean-param: s&ref /forum*/showthread.php"
TWO_SCRIPTS = "Clean-param: s /forum/index.php\nClean-param: s /forum/showthread.php"


@pytest.mark.parametrize(
    ("records", "url", "expected"),
    [
        (BOOK, "/some_dir/get_book.pl?ref=site_1&book_id=123", "/some_dir/get_book.pl?book_id=123"),
        (BOOK, "/some_dir/get_book.pl?ref=site_2&book_id=123", "/some_dir/get_book.pl?book_id=123"),
        (BOOK, "/some_dir/get_book.pl?book_id=123&ref=site_3", "/some_dir/get_book.pl?book_id=123"),
        (BOOK, "/other/get_book.pl?ref=site_1", "/other/get_book.pl?ref=site_1"),
        ("User-agent: Yandex\nClean-param: utm", "/any/page?utm=1", "/any/page"),  # no path
        ("Clean-param: s /forum/showthread.php", "/forum/showthread.php?s=681498b9648949605&t=8243",
         "/forum/showthread.php?t=8243"),
        ("Clean-param: s /forum/showthread.php", "/forum/showthread.php5?s=1",  # a prefix
         "/forum/showthread.php5"),
        ("Clean-param: sid /index.php", "/index.php?page=1&sid=2564126ebdec301c607e5df",
         "/index.php?page=1"),
        (TWO_FORUMS, "/forum_old/showthread.php?s=681498605&t=8243&ref=1311",
         "/forum_old/showthread.php?t=8243"),
        (TWO_FORUMS, "/forum_new/showthread.php?s=1e71c417a&t=8243&ref=9896",
         "/forum_new/showthread.php?t=8243"),
        (TWO_FORUMS, "/news/showthread.php?s=1&t=8243", "/news/showthread.php?s=1&t=8243"),
        (TWO_SCRIPTS, "/forum/index.php?s=1e71c4427317a117a&t=8243", "/forum/index.php?t=8243"),
        (TWO_SCRIPTS, "/forum/showthread.php?s=681498b9&t=8243", "/forum/showthread.php?t=8243"),
        ("Clean-param: sid&sort /forum/*.php", "/forum/a/b.php?sort=up&page=2&sid=1",
         "/forum/a/b.php?page=2"),
        ("Clean-param: someTrash&otherTrash", "/?otherTrash=1&q=a&someTrash", "/?q=a"),
        ("Clean-param: someTrash", "/?sometrash=1", "/?sometrash=1"),  # case-sensitive
        ("Clean-param: a /Forum", "/forum?a=1", "/forum?a=1"),
    ],
)  # fmt: skip
def test_yandex_examples(records: str, url: str, expected: str) -> None:
    assert canonicalize(records, SITE + url) == SITE + expected
    assert canonicalize(records, url) == expected


@pytest.mark.parametrize(
    ("records", "url", "expected"),
    [
        ("Clean-param: a", "/x?b=2&a=1&c=3&a=4&b=1#part?a=1", "/x?b=2&c=3&b=1#part?a=1"),
        ("Clean-param: a", "/x?a=1#part", "/x#part"),
        ("Clean-param: a", "/x?a", "/x"),
        ("Clean-param: a", "/x#?a=1", "/x#?a=1"),  # no query
        ("Clean-param: a", "/x?", "/x?"),
        ("Clean-param: a", "/x?b=%41&&c=+#", "/x?b=%41&&c=+#"),  # not a character changes
        ("Clean-param: a", "/x?&a=1&&b=2&", "/x?&&b=2&"),
        ("Clean-param: a", "/x?b=1;a=2", "/x?b=1;a=2"),  # Yandex names "&" alone
        ("Clean-param: a", "/x?aa=1&ab&A=2", "/x?aa=1&ab&A=2"),
        ("Clean-param: a", "/x?b=1?a=2&a=3", "/x?b=1?a=2"),
        ("Clean-param: %61", "/x?a=1", "/x"),  # escapes are compared as in paths
        ("Clean-param: a[]&ö", "/x?a%5B%5D=1&%c3%b6=2&a%5b%5d=3&z=4", "/x?z=4"),
        ("Clean-param: a /é*z", "/%C3%A9/z?a=1", "/%C3%A9/z"),
        ("Clean-param: a *", "/x?a=1", "/x"),
        ("Clean-param: a *.php", "/x.php?a=1", "/x.php"),
        ("Clean-param: a x", "/x?a=1", "/x?a=1"),  # no path begins so
        ("Clean-param: a /x$", "/x?a=1", "/x?a=1"),  # "$" is no anchor for Yandex
        ("Clean-param: a /x$", "/x$y?a=1", "/x$y"),
        ("Clean-param: a /x?", "/x?a=1", "/x?a=1"),  # the prefix is that of a path
        ("Clean-param: a /*y", "/x?b=y&a=1", "/x?b=y&a=1"),
        ("Clean-param: &", "/x?&=1&a=2", "/x?&=1&a=2"),  # no name
        ("Clean-param: a /p\nClean-param: b /p\nClean-param: c", "/p?a&b&c&d", "/p?d"),
        ("User-agent: other\nClean-param: a\nUser-agent: *\nDisallow:", "/x?a", "/x"),  # for all
        ("Disallow: /", "/x?a=1", "/x?a=1"),
        ("", "/x?a=1", "/x?a=1"),
    ],
)
def test_what_is_removed(records: str, url: str, expected: str) -> None:
    assert canonicalize(records, SITE + url) == SITE + expected


def test_a_url_that_is_none_is_refused_with_and_without_records() -> None:
    for records in ("", "Clean-param: a"):
        with pytest.raises(ValueError, match="is neither an absolute URL"):
            canonicalize(records, "mybot?a=1")


def test_a_missing_file_cleans_nothing() -> None:
    robots = RobotsTxt.from_response(404, b"Clean-param: a")
    assert robots.canonicalize("/?a=1") == "/?a=1"


def test_names_beyond_the_limit_are_not_read() -> None:
    records = "Clean-param: " + "&".join(f"n{number}" for number in range(MAX_NAMES + 1))
    assert canonicalize(records, f"/?n{MAX_NAMES - 1}=1") == "/"
    assert canonicalize(records, f"/?n{MAX_NAMES}=1") == f"/?n{MAX_NAMES}=1"


def test_what_takes_too_many_steps_leaves_the_url_as_it_is() -> None:
    paths = [f"/{'*a' * 40}*{number}" for number in range(9_000)]
    records = "\n".join(f"Clean-param: sid {path}" for path in paths)
    url = "/" + "a" * 2000 + "?sid=1"
    assert canonicalize(records, url) == url


HOSTILE = {
    "64 KB of names": b"Clean-param: " + b"a&" * 32_000 + b"b /",
    "one name of 64 KB": b"Clean-param: " + b"a" * 64_000,
    "a path of 64 KB": b"Clean-param: a /" + b"*a" * 32_000,
    "20,000 lines": b"".join(b"Clean-param: a&n%d /%d*/x\n" % (n, n) for n in range(20_000)),
    "control characters": b"Clean-param: \x00a\x1b&b\x7f /\x01*\xff\xfe",
    "broken escapes": b"Clean-param: %zz&%2&a%C3 /%zz*%\nClean-param: a /%2",
    "only separators": b"Clean-param: " + b"&" * 64_000,
}


@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE)
def test_no_file_and_no_url_raises(body: bytes) -> None:
    robots = pickle.loads(pickle.dumps(RobotsTxt.parse(body)))
    assert robots.canonicalize("/?kept=1") == "/?kept=1"
    for url in ("/" + "a" * 5000 + "?" + "a=1&" * 5000, f"{SITE}/1/x?a&%zz=%&\ud800=1&a%C3=2"):
        once = robots.canonicalize(url)
        assert pickle.loads(pickle.dumps(robots)).canonicalize(once) == once


@given(
    st.lists(st.tuples(st.text("ab&%6", min_size=1, max_size=3), st.text("/*$ab?", max_size=4))),
    st.text("ab/?&=#%61", max_size=14),
)
def test_property_canonicalizing_twice_changes_nothing_more(
    records: list[tuple[str, str]], rest: str
) -> None:
    lines = "\n".join(f"Clean-param: {names} {path}" for names, path in records)
    once = canonicalize(lines, "/" + rest)
    assert canonicalize(lines, once) == once
    assert (
        once.partition("?")[0].partition("#")[0] == ("/" + rest).partition("?")[0].partition("#")[0]
    )

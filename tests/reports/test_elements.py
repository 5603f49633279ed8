from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import scrapy_rep.reports
from scrapy_rep.reports.elements import Html, code, h, join, page, shown

from .parsed_page import Parsed


@pytest.mark.parametrize(
    ("element", "markup"),
    [
        (h("p", "a < b & c"), "<p>a &lt; b &amp; c</p>"),
        (h("p", h("code", "x"), " and ", 1200), "<p><code>x</code> and 1,200</p>"),
        (h("ul", (h("li", text) for text in "ab")), "<ul><li>a</li><li>b</li></ul>"),
        (h("td", None, class_=None), "<td></td>"),
        (h("td", class_="a b", aria_label='"'), '<td class="a b" aria-label="&quot;"></td>'),
        (h("th", scope="row", aria_hidden=True, lang=False), "<th scope=row aria-hidden></th>"),
        (h("meta", name="viewport"), "<meta name=viewport>"),
        (h("path", d="M0 0"), '<path d="M0 0"></path>'),
        (h("a", "x", href="#answers"), '<a href="#answers">x</a>'),
        (join("a", h("p"), ["<", 1]), "a<p></p>&lt;1"),
        (h("td", value=-1), "<td value=-1></td>"),
        (h("td", class_=""), '<td class=""></td>'),
        (h("td", class_="a=b>c"), '<td class="a=b&gt;c"></td>'),
    ],
)
def test_markup(element: Html, markup: str) -> None:
    assert str(element) == markup
    assert len(element) == len(markup)


def test_the_size_is_in_octets() -> None:
    assert len(h("p", "é")) == len("<p>é</p>".encode())


@pytest.mark.parametrize(
    ("name", "attributes"),
    [
        ("script", {}),
        ("img", {}),
        ("iframe", {}),
        ("style", {}),
        ("p", {"onclick": "x"}),
        ("p", {"style": "x"}),
        ("p", {"src": "x"}),
        ("a", {"href": "https://evil.example/"}),
        ("a", {"href": "javascript:alert(1)"}),
        ("a", {"href": ""}),
    ],
)
def test_there_is_no_element_or_attribute_that_runs_or_loads(
    name: str, attributes: dict[str, str]
) -> None:
    with pytest.raises(ValueError, match="not in a page"):
        h(name, **attributes)


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("/a b", "/a b"),
        ("a\tb", "a\tb"),
        ("a\nb\r", r"a\nb\r"),
        ("\x00\x1b[2J", r"\x00\x1b[2J"),
        ("a\u202eb", r"a\u202eb"),
        ("\u200b\ufeff", r"\u200b\ufeff"),
        ("\ud800", r"\ud800"),
        ("שלום", "שלום"),
    ],
)
def test_invisible_characters_are_shown(text: str, result: str) -> None:
    assert shown(text) == result
    assert str(code(text)) == f"<code>{result}</code>"


def test_a_long_text_is_cut() -> None:
    assert shown("x" * 3_000, 10) == "x" * 9 + "…"
    assert len(shown("\t".join("x" * 3_000), 100)) <= 101


@given(st.text())
def test_a_text_is_never_markup(text: str) -> None:
    parsed = Parsed(str(h("p", h("code", text), aria_label=text)))
    assert parsed.elements == ["p", "code"]
    assert [name for name, _ in parsed.attributes] == ["aria-label"]
    assert parsed.text == parsed.attributes[0][1]
    if text.isprintable():
        assert parsed.text == text


def test_a_page_has_the_hashes_of_its_style_and_script() -> None:
    text = page("a</title>", "b", h("p", "c"), "p { color: red }", "1 < 2")
    parsed = Parsed(text)
    assert text.startswith("<!DOCTYPE html>\n<html lang=en dir=ltr><head><meta charset=utf-8>")
    assert "<title>a&lt;/title&gt;</title><style>p { color: red }</style>" in text
    assert "<script>1 < 2</script>" in text
    hashes = [
        base64.b64encode(hashlib.sha256(octets).digest()).decode()
        for octets in (b"p { color: red }", b"1 < 2")
    ]
    assert ("content", (
        f"default-src 'none'; style-src 'sha256-{hashes[0]}'; script-src 'sha256-{hashes[1]}'; "
        "base-uri 'none'; form-action 'none'"
    )) in parsed.attributes  # fmt: skip


def test_a_style_cannot_end_its_element() -> None:
    with pytest.raises(ValueError, match="an end tag"):
        page("a", "b", h("p"), "</style>", "")


def test_only_elements_makes_markup() -> None:
    folder = Path(scrapy_rep.reports.__file__).parent
    for path in folder.glob("*.py"):
        if path.name != "elements.py":
            assert not re.search(r"\bHtml\(", path.read_text("utf-8")), path

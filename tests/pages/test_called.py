"""The directives of pages that are parsed when they are asked for."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from copy import copy
from dataclasses import asdict
from typing import Any

import pytest
from scrapy.http import HtmlResponse

from scrapy_rep.pages import directives, html
from scrapy_rep.pages.called import directives_when_asked


def test_a_page_is_parsed_once_when_a_directive_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parsed = list[bytes]()

    def parse(page: bytes, *names: Any) -> Iterator[Any]:
        parsed.append(page)
        return html.elements(page, *names)

    monkeypatch.setattr(directives, "elements", parse)
    body = b'<meta name="robots" content="nofollow">'
    page = HtmlResponse("https://a.example/", headers={"X-Robots-Tag": "noindex"}, body=body)
    found, *copies = (directives_when_asked(page, (), None) for _ in range(3))
    assert not parsed
    assert (found.noindex, found.nofollow, found.noai) == (True, True, False)
    assert parsed == [body]
    assert not hasattr(found, "index")
    assert pickle.loads(pickle.dumps(copies[0])) == copy(copies[1]) == found
    assert asdict(found) == asdict(copies[0])
    assert parsed == [body] * 3

"""The line of a robots.txt that refuses a use."""

from __future__ import annotations

import pytest

from scrapy_rep import RobotsTxt
from scrapy_rep.protocol.lines import read
from scrapy_rep.protocol.refusals import refusing_line

SIGNAL = b"User-agent: *\nContent-Signal: /art ai-train=no\nContent-Signal: search=yes\n"
POLICY = b"User-agent: __usage_ai-training\nDisallow: /art\n"


@pytest.mark.parametrize(
    ("body", "path", "expected"),
    [
        pytest.param(SIGNAL, "/art/1", "line 2, Content-Signal: /art ai-train=no", id="a record"),
        pytest.param(SIGNAL, "/", None, id="of another path"),
        pytest.param(
            POLICY, "/art/1", "line 2, Disallow: /art, for __usage_ai-training", id="a policy group"
        ),
        pytest.param(POLICY, "/", None, id="a policy group for another path"),
        pytest.param(POLICY + b"Allow: /art/1\n", "/art/1", None, id="a policy group grants it"),
        pytest.param(b"User-agent: *\nContent-Usage: train-ai=y\n", "/", None, id="a grant"),
    ],
)
def test_the_line_that_refuses_training(body: bytes, path: str, expected: str | None) -> None:
    robots, url = RobotsTxt.parse(body), f"http://a.example{path}"
    assert refusing_line(robots, read(body), url, "*", "ai-train") == expected

"""Asks a robots.txt in every way that a crawl does."""

from __future__ import annotations

from scrapy_rep.protocol.robotstxt import RobotsTxt

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

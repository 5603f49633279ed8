"""How a robots.txt was had, as text."""

from __future__ import annotations

from typing import Any

import pytest

from scrapy_rep.commands.access_text import describe_access
from scrapy_rep.commands.policy import Access

NOW = 1_800_000_000.0
URL = "https://example.com/robots.txt"


def described(**fields: Any) -> dict[str, str]:
    """The rows for a robots.txt that was had in some way."""
    values: dict[str, Any] = {"url": URL, "source": "site", "state": "rules", **fields}
    return {name: str(text) for name, text in describe_access(Access(**values).as_json(NOW))}


def test_from_the_site() -> None:
    rows = described(status=200, final_url=URL, fetched_at=NOW, expires_at=NOW + 86_400)
    assert rows == {
        "robots.txt": URL,
        "Fetched": "status 200, from the site, just now",
        "Valid until": "2027-01-16 08:00:00 UTC",
    }


@pytest.mark.parametrize(
    ("seconds", "age"),
    [
        (-5, "just now"),
        (2, "2 s ago"),
        (60, "1 minute ago"),
        (7300, "2 hours ago"),
        (86_400, "1 day ago"),
        (400_000, "4 days ago"),
    ],
)
def test_ages(seconds: float, age: str) -> None:
    assert described(fetched_at=NOW - seconds)["Fetched"] == f"from the site, {age}"


def test_from_a_store() -> None:
    rows = described(source="store", store="sqlite:///x", status=404, final_url=f"{URL}?2")
    assert rows["Fetched"] == "status 404, from the store sqlite:///x"
    assert rows["Redirected to"] == f"{URL}?2"


def test_redirects() -> None:
    rows = described(source="http-cache", redirects=(URL, "http://b/"), final_url="http://c/")
    assert rows["Redirects"] == f"{URL} → http://b/ → http://c/"
    assert rows["Fetched"] == "from Scrapy's HTTP cache"


def test_the_last_good_copy() -> None:
    rows = described(
        state="stale-copy", failure="status 503\x1b", unreachable_since=NOW, expires_at=NOW + 60
    )
    assert rows["Fetched"] == "from the site, the last good copy"
    assert rows["Failure"] == "status 503\\x1b"
    assert rows["Since"] == "2027-01-15 08:00:00 UTC"
    assert rows["Next attempt"] == "2027-01-15 08:01:00 UTC"


def test_a_file() -> None:
    assert described(source="file", url="a\x1b.txt") == {"robots.txt": "the file a\\x1b.txt"}

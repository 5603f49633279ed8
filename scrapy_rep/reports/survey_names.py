"""The names of what a survey counts, as people read them. Text and page have the same ones."""

from __future__ import annotations

from .quantities import octets, seconds

FEATURES = {
    "wildcard-group": "A group for all crawlers (*)",
    "disallows-everything-for-all": "Everything disallowed for *",
    "disallows-something-for-all": "Something disallowed for *",
    "disallows-nothing-for-all": "Nothing disallowed for *",
    "names-an-agent": "A group for a named crawler",
    "disallow": "Disallow with a pattern",
    "allow": "Allow with a pattern",
    "star": "A pattern with *",
    "end-anchor": "A pattern that ends in $",
    "sitemap": "Sitemap",
    "crawl-delay": "Crawl-delay",
    "request-rate": "Request-rate",
    "visit-time": "Visit-time",
    "noindex": "Noindex",
    "host": "Host",
    "clean-param": "Clean-param",
    "content-signal": "Content-Signal",
    "content-usage": "Content-Usage",
    "license": "License",
    "findings": "Findings of lint",
    "no-group": "No group",
    "empty": "Nothing but white space",
    "html": "A page of HTML",
    "too-large": "More than 500 KiB",
}
"""What a file may have, in the order in which it is shown."""

NUMBERS = {
    "size": "Size",
    "lines": "Lines",
    "groups": "Groups",
    "agents": "Agents",
    "rules": "Rules",
    "longest-pattern": "Longest pattern",
    "sitemaps": "Sitemaps",
    "crawl-delay": "Crawl-delay",
}

QUANTILES = {
    "p10": "10 %",
    "p25": "25 %",
    "median": "Median",
    "p75": "75 %",
    "p90": "90 %",
    "p99": "99 %",
    "max": "Largest",
}


def quantile(name: str, number: int) -> str:
    """Return a quantile of one of the :data:`NUMBERS` with its unit."""
    if name == "size":
        return octets(number)
    return seconds(number / 1000) if name == "crawl-delay" else f"{number:,}"

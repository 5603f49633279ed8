"""Reserved characters in queries, compared with a slow matcher.

The check makes paths from the patterns of each file, and puts them into the queries of URLs, plain
and encoded. It also encodes and decodes the queries of the paths. The slow matcher is
:mod:`testing.reference`, which compares every rule: a folder of 2,000 real files takes minutes.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from urllib.parse import quote, unquote

from scrapy_rep.protocol.robotstxt import RobotsTxt
from testing import reference
from testing.corpus import load
from testing.harness import Duration, Options, Parameter, Result, Row

DURATION = Duration(90, 8)
PARAMETERS = {
    "files": Parameter(500, 50, "generated files"),
    "patterns": Parameter(6, 3, "patterns of each file, and as many with a query"),
}


def run(options: Options) -> Result:
    """Count the verdicts that name another line."""
    corpus = load(options.folder, files=options.number("files"))
    most = options.number("patterns")
    count = 0
    differing = []
    for name, body in sorted(corpus.files.items()):
        robots = RobotsTxt.parse(body)
        rules = reference.read_groups(body, strict=False).get("*", [])
        chosen = sorted({rule.value.decode("utf-8", "replace") for rule in rules})
        queries = [pattern for pattern in chosen if "?" in pattern]
        source = random.Random(name)
        for pattern in {
            *source.sample(chosen, min(len(chosen), most)),
            *source.sample(queries, min(len(queries), most)),
        }:
            for url in urls(pattern):
                count += 1
                expected = reference.decide(rules, reference.url_form(url), strict=False)
                verdict = robots.verdict(url, ())
                line = verdict.rule.line if verdict.rule else None
                if (expected.line if expected else None) != line:
                    differing.append(f"{name} {url}: {expected}, not {verdict}")
    return Result(
        [
            Row(f"verdicts, about {corpus.source}", count, "verdicts"),
            Row("verdicts that differ", len(differing), "verdicts", 0),
        ],
        differing,
    )


def urls(pattern: str) -> Iterator[str]:
    """Yield URLs that are like a pattern, with reserved characters in the query."""
    path = pattern.replace("*", "a/b").rstrip("$")
    for reserved in (path, quote(path, safe="")):
        yield f"/x?u={reserved}"
        yield f"/x?a=b:c@d&path={reserved}"
        yield f"{path}?u=https:{reserved}"
    before, mark, query = path.partition("?")
    if mark:
        yield before + mark + quote(query, safe="=&")
        yield before + mark + quote(query, safe="=&/%")
        yield before + mark + unquote(query)

"""Reports without a crawl: one of a usual crawl, large ones, and one whose sites are hostile.

Also surveys, whose rows may come from another program.
"""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from statistics import median_high

import msgspec

from scrapy_rep.reports.records import (
    AskedPace,
    Counts,
    Deciding,
    Gaps,
    HostPace,
    OriginReport,
    Report,
    RobotsFile,
    RuleText,
    Run,
    Seen,
    Version,
    utc,
)
from scrapy_rep.reports.survey import Survey

START = 1_795_336_200.0
"""2026-11-22 08:30:00 UTC."""

_FILE = """\
# Rules for {host}
User-agent: *
Disallow: /search
Disallow: /cart
Allow: /search/about
Disalow: /tmp
Crawl-delay: {delay}

User-agent: GPTBot
User-agent: CCBot
Disallow: /

Sitemap: https://{host}/sitemap.xml
"""
_NAMES = """
    shop news forum wiki blog docs maps jobs music video photos books games travel health
"""
_SITES = _NAMES.split()


def run(**values: object) -> Run:
    """Return a run that ended well. ``values`` replace its fields."""
    found = Run(
        "20261122T083000-1-00000000",
        "catalog",
        "scrapy-rep 0.1.0, Scrapy 2.19.0",
        "catalogbot/1.2 (+https://bot.example/about)",
        utc(START),
        utc(START + 2_700),
        ["catalogbot"],
        {"REP_REPORT": "['reports/catalog.html']", "REP_STORE": "'sqlite:///robots.db'"},
        utc(START + 2_700),
        "finished",
        scrapy_settings={
            "USER_AGENT": "catalogbot/1.2 (+https://bot.example/about)",
            "HTTPCACHE_ENABLED": "True",
            "HTTPCACHE_POLICY": "scrapy.extensions.httpcache.RFC2616Policy",
            "AUTOTHROTTLE_ENABLED": "False",
            "DEPTH_LIMIT": "6",
        },
        downloads={
            "request_method_count/GET": 1_204,
            "response_status_count/200": 1_180,
            "response_status_count/404": 24,
        },
    )
    for name, value in values.items():
        setattr(found, name, value)
    return found


def empty(*runs: Run) -> Report:
    """Return a report without requests."""
    return Report(utc(START + 3_000), list(runs) or [run()])


def finished(made: Report) -> Report:
    """Return a report after its sums are made, and its origins are in order."""
    for origin in made.origins:
        counts = origin.counts
        counts.sent = counts.sent_allowed + counts.sent_exempt
        counts.sent += counts.sent_disallowed + counts.sent_unchecked
        counts.dropped = sum(counts.dropped_for.values())
        origin.state = origin.versions[-1].result if origin.versions else "unknown"
    made.totals = Counts()
    for name in Counts.__struct_fields__:
        if name != "dropped_for":
            setattr(made.totals, name, sum(getattr(each.counts, name) for each in made.origins))
    reasons: Counter[str] = Counter()
    for origin in made.origins:
        reasons.update(origin.counts.dropped_for)
    made.totals.dropped_for = dict(reasons)
    made.origins.sort(
        key=lambda each: (
            not each.counts.disallowed,
            each.state != "unreachable",
            -each.counts.sent - each.counts.dropped,
            each.origin,
        )
    )
    return made


def gaps(lengths: list[float]) -> Gaps:
    """Return these gaps."""
    if not lengths:
        return Gaps()
    return Gaps(len(lengths), min(lengths), median_high(lengths))


def report(origins: int = 15, seed: int = 1) -> Report:
    """Return the report of a crawl of this many origins. One in seven has no rules."""
    chance = random.Random(seed)
    made = empty()
    for number in range(origins):
        _add_origin(made, number, chance)
    finished(made)
    return made


def _add_origin(made: Report, number: int, chance: random.Random) -> None:
    name = _SITES[number % len(_SITES)]
    number_text = str(number // len(_SITES) or "")
    host = f"{name}{number_text}.example"
    origin = OriginReport(f"https://{host}", host)
    made.origins.append(origin)
    result = "unreachable" if number % 11 == 5 else "unavailable" if number % 7 == 3 else "rules"
    delay = (0, 2, 0, 5, 0, 10, 0, 1)[number % 8]
    body = _FILE.format(host=host, delay=delay or "none")
    version = Version(
        result,
        {"rules": "rules", "unavailable": "allow", "unreachable": "disallow"}[result],
        "site",
        utc(START + number % 60),
        utc(START + number % 60 + 1_800),
        {"rules": 200, "unavailable": 404, "unreachable": 503}[result],
        f"https://{host}/robots.txt",
        fetches=2,
        expires_at=utc(START + 86_400),
    )
    origin.versions.append(version)
    requests = chance.randrange(20, 400)
    counts = origin.counts
    counts.robots_txt = 2
    if result == "unreachable":
        version.failure = "status 503"
        counts.dropped_for["unreachable"] = requests
        pages = [f"https://{host}/page/{page}" for page in range(3)]
        origin.deciding.append(
            Deciding("unreachable", False, dropped=requests, detail="status 503", examples=pages)
        )
    elif result == "unavailable":
        counts.sent_allowed = requests
        origin.deciding.append(Deciding("unavailable", True, sent=requests, detail="status 404"))
    else:
        version.sha256 = hashlib.sha256(body.encode()).hexdigest()
        version.octets = len(body)
        made.files[version.sha256] = RobotsFile(len(body), body)
        dropped = requests // 6
        counts.sent_allowed, counts.dropped_for["rules"] = requests - dropped, dropped
        items = [f"https://{host}/item/{page}" for page in range(5)]
        searches = [f"https://{host}/search?q={q}" for q in "abc"]
        about = [f"https://{host}/search/about"]
        for rule, sent, kept_back, examples in (
            (None, requests - dropped - 3, 0, items),
            (RuleText(False, "/search", 3), 0, dropped, searches),
            (RuleText(True, "/search/about", 5), 3, 0, about),
        ):
            by_rule = Deciding("rules", not kept_back, version.sha256, "*", rule)
            by_rule.sent, by_rule.dropped, by_rule.examples = sent, kept_back, examples
            origin.deciding.append(by_rule)
    _add_pace(made, origin, delay if result == "rules" else 0, chance)
    if number % 5 == 1:
        origin.directives["noindex"] = Seen(4, 0, [f"https://{host}/item/2"])
        origin.usage["train-ai"] = Seen(12, 0, [f"https://{host}/item/1"], refused=12)


def _add_pace(made: Report, origin: OriginReport, delay: int, chance: random.Random) -> None:
    counts = origin.counts
    sent = counts.sent_allowed
    lengths = [
        delay * (1 + 0.3 * chance.random() ** 3) if delay else 0.05 + 4 * chance.random()
        for _ in range(min(sent, 40))
    ]
    pace = HostPace(origin.host, sent + 2, utc(START), utc(START + 2_700), gaps(lengths))
    made.hosts.append(pace)
    if delay:
        pace.paced_gaps = gaps(lengths)
        counts.delayed, counts.delay_seconds = sent - 1, 60.0 * delay
        pace.shortest_delay = pace.longest_delay = float(delay)
        origin.pace.append(AskedPace(utc(START), f"Crawl-delay: {delay}", 0.0, float(delay)))


def troubled(origins: int = 15) -> Report:
    """Return a report in which the crawl did what it should not, and whose record has gaps."""
    made = report(origins)
    names = {origin.origin: origin for origin in made.origins}
    first, second = names["https://shop.example"], names["https://news.example"]
    first.counts.sent_disallowed = 2
    first.deciding[1].sent = 2
    first.versions.insert(
        0,
        Version(
            "unavailable",
            "allow",
            "store",
            utc(START - 5_000),
            utc(START - 4_000),
            404,
            first.versions[0].url,
            [f"{first.origin}/old"],
        ),
    )
    second.counts.final_url_disallowed = second.counts.final_url_dropped = 1
    second.counts.sent_exempt = 3
    second.deciding.append(Deciding("exempt", sent=3, examples=[f"{second.origin}/mine"]))
    made.hosts[1].too_short = 4
    made.hosts[1].paced_gaps.count += 1
    made.hosts[1].paced_gaps.smallest = 0.4
    made.runs.append(run(id="2", ended_at=None, finish_reason=None, damage="line 7 cannot be read"))
    made.limits.origins_left_out, made.limits.files_left_out = 120, 3
    return finished(made)


def hostile(texts: list[str]) -> Report:
    """Return a report in which each text of a site is one of these, in turn."""
    made = empty(*(_hostile_run(text) for text in texts))
    at = utc(START)
    for number, text in enumerate(texts):
        digest = f"{number:02}{text}"
        state = [text], text, digest, 10
        made.origins.append(
            OriginReport(
                f"https://{number}{text}",
                f"{number}{text}",
                text,
                Counts(4, 1, 1, 1, 1, 3, {text: 2, "rules": 1}, 1, 1, 1, 1, 1, 1, 1),
                [
                    Version(text, text, text, at, at, 200, text, *state),
                    Version("unreachable", text, text, at, at, 200, text, *state),
                ],
                deciding=[
                    Deciding(
                        text,
                        False,
                        digest,
                        text,
                        RuleText(False, text, 1),
                        text,
                        1,
                        1,
                        1,
                        [text],
                    ),
                    Deciding(text, None, detail=text, examples=[text]),
                ],
                pace=[AskedPace(at, text, 1.0, 1.0)],
                directives={text: Seen(1, 1, [text], [text])},
                usage={text: Seen(2, 1, [text], [text], 1)},
                terms={text: Seen(1, 1, [text], [text])},
                licenses={text: Seen(1, 1, [text], [text])},
            )
        )
        found = gaps([1.0])
        made.hosts.append(HostPace(f"{number}{text}", 2, at, at, found, 1.0, 2.0, found, 1))
        made.files[digest] = RobotsFile(10, f"{text}\nUser-agent: *\nDisallow: {text}\n{text}: 1\n")
    made.totals = made.origins[0].counts
    return made


def _hostile_run(text: str) -> Run:
    return run(
        id=text,
        spider=text,
        software=text,
        user_agent=text,
        settings={text: text},
        scrapy_settings={"USER_AGENT": text, text: text},
        finish_reason=text,
        damage=text,
        downloads={text: 1},
    )


def large(origins: int = 10_000, rules: int = 20) -> Report:
    """Return a report of many origins. Each has a file of its own, and this many deciding rules."""
    made = report(origins)
    for origin in made.origins:
        sha256 = origin.versions[-1].sha256
        if sha256 is not None:
            origin.deciding += [
                Deciding(
                    "rules",
                    False,
                    sha256,
                    "*",
                    RuleText(False, f"/private/{rule}/*", 3),
                    dropped=1,
                    examples=[f"{origin.origin}/private/{rule}/{page}" for page in range(5)],
                )
                for rule in range(rules)
            ]
    return made


def survey(*texts: str) -> Survey:
    """Return a survey in which each figure has rows with these names."""
    counts = [{"name": text, "number": 1, "share": 0.5} for text in texts]
    extents = [
        {"name": text, "files": 3, "share": 0.5, "everything": 1, "something": 1, "nothing": 1}
        for text in texts
    ]
    quantiles = ("p10", "p25", "median", "p75", "p90", "p99", "largest")
    numbers = [{"name": text, **dict(zip(quantiles, range(7), strict=True))} for text in texts]
    differences = [{"name": text, "before": 0.5, "now": 1.0, "change": 0.5} for text in texts]
    figures = {
        "results": counts, "statuses": counts, "numbers": numbers, "features": counts,
        "agents": extents, "blocked_agents": counts, "ai_agents": extents, "purposes": extents,
        "preferences": counts, "findings": counts, "unknown_fields": counts,
        "differences": differences,
    }  # fmt: skip
    return msgspec.convert(
        {
            "type": "survey", "version": 3, "made_at": texts[0], "complete": False, "problems": 0,
            "sites": 2, "files": 2, "figures": figures, "left_out": {"features": 30},
        },
        Survey,
    )  # fmt: skip

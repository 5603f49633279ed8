"""Reports without a crawl: one of a usual crawl, large ones, and one whose sites are hostile."""

from __future__ import annotations

import hashlib
import random

from scrapy_rep.reports.gaps import Gaps
from scrapy_rep.reports.model import (
    AskedPace,
    Counts,
    Deciding,
    HostPace,
    Limits,
    OriginReport,
    Report,
    RobotsFile,
    RuleText,
    Run,
    Seen,
    Time,
    Timeline,
    TimeSlot,
    Usage,
    Version,
)

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


def limits(**left_out: int) -> Limits:
    """Return the limits of a record."""
    usual = Limits(100_000, 100_000, 200_000, 500, 20, 2_000, 65_536, 20_000_000, 5, 10_000_000)
    for name, value in left_out.items():
        setattr(usual, name, value)
    return usual


def run(**values: object) -> Run:
    """Return a run that ended well. ``values`` replace its fields."""
    found = Run(
        "20261122T083000-1-00000000",
        "catalog",
        "scrapy-rep 0.1.0, Scrapy 2.19.0",
        "catalogbot/1.2 (+https://bot.example/about)",
        ["catalogbot"],
        {"REP_REPORT": "['reports/catalog.html']", "REP_STORE": "'sqlite:///robots.db'"},
        Time(START),
        Time(START + 2_700),
        Time(START + 2_700),
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


def report(origins: int = 15, seed: int = 1) -> Report:
    """Return the report of a crawl of this many origins. One in seven has no rules."""
    chance = random.Random(seed)
    made = Report(limits(), [run()])
    for number in range(origins):
        _add_origin(made, number, chance)
    seconds = 8
    for slot in range(2_700 // seconds):
        wave = 0.6 + 0.4 * chance.random() if slot < 250 else 0.2 * chance.random()
        made.timeline.slots.append(
            TimeSlot(
                Time((START // seconds + slot) * seconds),
                round(made.totals.sent / 260 * wave),
                {"rules": round(made.totals.dropped / 260 * chance.random())},
                1 if slot < origins * 2 else 0,
            )
        )
    made.timeline.seconds = seconds
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
        {"rules": 200, "unavailable": 404, "unreachable": 503}[result],
        f"https://{host}/robots.txt",
        first_at=Time(START + number % 60),
        last_at=Time(START + number % 60 + 1_800),
        fetches=2,
        expires_at=Time(START + 86_400),
    )
    origin.versions.append(version)
    requests = chance.randrange(20, 400)
    counts = origin.counts
    counts.robots_txt = 2
    if result == "unreachable":
        version.failure = "status 503"
        counts.dropped_for["unreachable"] = requests
        origin.deciding.append(
            Deciding(
                "unreachable",
                False,
                dropped=requests,
                detail="status 503",
                examples=[f"https://{host}/page/{page}" for page in range(3)],
            )
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
        origin.deciding += [
            Deciding(
                "rules",
                True,
                version.sha256,
                "*",
                sent=requests - dropped - 3,
                examples=[f"https://{host}/item/{page}" for page in range(5)],
            ),
            Deciding(
                "rules",
                False,
                version.sha256,
                "*",
                RuleText(False, "/search", 3),
                dropped=dropped,
                examples=[f"https://{host}/search?q={q}" for q in "abc"],
            ),
            Deciding(
                "rules",
                True,
                version.sha256,
                "*",
                RuleText(True, "/search/about", 5),
                sent=3,
                examples=[f"https://{host}/search/about"],
            ),
        ]
    _add_pace(made, origin, delay if result == "rules" else 0, chance)
    if number % 5 == 1:
        origin.directives["noindex"] = Seen(4, 0, [f"https://{host}/item/2"])
        origin.usage["train-ai"] = Usage(0, 12, 0, [f"https://{host}/item/1"])
    made.totals.add(counts)


def _add_pace(made: Report, origin: OriginReport, delay: int, chance: random.Random) -> None:
    counts = origin.counts
    pace = HostPace(origin.host, counts.sent + 2, Time(START), Time(START + 2_700))
    made.hosts.append(pace)
    for _ in range(min(counts.sent, 40)):
        gap = delay * (1 + 0.3 * chance.random() ** 3) if delay else 0.05 + 4 * chance.random()
        pace.gaps.add(gap)
        if delay:
            pace.paced_gaps.add(gap)
    if delay:
        counts.delayed, counts.delay_seconds = counts.sent - 1, 60.0 * delay
        pace.shortest_delay = pace.longest_delay = float(delay)
        origin.pace.append(AskedPace(Time(START), f"Crawl-delay: {delay}", 0.0, float(delay)))


def troubled(origins: int = 15) -> Report:
    """Return a report in which the crawl did what it should not, and whose record has gaps."""
    made = report(origins)
    first, second = made.origins[0], made.origins[1]
    first.counts.sent_disallowed = 2
    first.deciding[1].sent = 2
    first.versions.insert(
        0,
        Version(
            "unavailable",
            "allow",
            "store",
            404,
            first.versions[0].url,
            [f"{first.origin}/old"],
            first_at=Time(START - 5_000),
            last_at=Time(START - 4_000),
            fetches=1,
        ),
    )
    second.counts.final_url_disallowed = second.counts.final_url_dropped = 1
    second.counts.sent_exempt = 3
    second.deciding.append(Deciding("exempt", sent=3, examples=[f"{second.origin}/mine"]))
    made.totals.add(Counts(2, 3, 2, final_url_disallowed=1, final_url_dropped=1))
    made.hosts[1].too_short = 4
    made.hosts[1].paced_gaps.add(0.4)
    made.runs.append(run(id="2", ended_at=None, finish_reason=None, damage="line 7 cannot be read"))
    made.limits.origins_left_out, made.limits.files_left_out = 120, 3
    return made


def hostile(texts: list[str]) -> Report:
    """Return a report in which each text of a site is one of these, in turn."""
    made = Report(limits())
    for number, text in enumerate(texts):
        digest = f"{number:02}{text}"
        gaps = Gaps()
        gaps.add(1)
        made.origins.append(
            OriginReport(
                f"https://{number}{text}",
                f"{number}{text}",
                Counts(1, 1, 1, 1, {text: 2, "rules": 1}, 1, 1, 1, 1, 1, 1, 1),
                [
                    Version(text, text, text, 200, text, [text], text, digest, 10),
                    Version("unreachable", text, text, 200, text, [text], text, digest, 10),
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
                        1,
                        1,
                        [text],
                    ),
                    Deciding(text, None, detail=text, examples=[text]),
                ],
                pace=[AskedPace(Time(START), text, 1.0, 1.0)],
                directives={text: Seen(1, 1, [text], [text])},
                usage={text: Usage(1, 1, 1, [text])},
                terms={text: Seen(1, 1, [text], [text])},
                licenses={text: Seen(1, 1, [text], [text])},
            )
        )
        made.hosts.append(
            HostPace(f"{number}{text}", 2, Time(START), Time(START), gaps, 1.0, 2.0, gaps, 1)
        )
        made.files[digest] = RobotsFile(10, f"{text}\nUser-agent: *\nDisallow: {text}\n{text}: 1\n")
        made.totals.add(made.origins[-1].counts)
        made.runs.append(
            run(
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
        )
    made.invalid_hosts = texts[:5]
    made.timeline = Timeline(1, [TimeSlot(Time(START), 1, dict.fromkeys(texts, 1), 1)])
    return made


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

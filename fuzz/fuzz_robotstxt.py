"""Fuzz the protocol: nothing may raise or take long, and the slow reference must agree.

python -m fuzz.fuzz_robotstxt [corpus folder] [-max_total_time=600]
"""

from __future__ import annotations

import sys

import atheris

with atheris.instrument_imports(include=["scrapy_rep.protocol"]):
    from scrapy_rep.protocol.agents import product_tokens
    from scrapy_rep.protocol.lint import fix, lint
    from scrapy_rep.protocol.paths import origin_of
    from scrapy_rep.protocol.robotstxt import RobotsTxt

from testing import reference

# The reference is quadratic, so it is asked about small files only.
_SMALL = 400


_FIELDS = ["User-agent", "Allow", "Disallow", "Content-Usage", "Content-Signal", "License",
           "Request-rate", "Visit-time"]  # fmt: skip
# With letters and digits that str.lower() and int() take for ASCII: a long s, a Kelvin sign, a
# dotted I, a full-width digit.
_PIECES = ["*", "$", "%", "/", "?", "#", "a", "b", ":", "%2", "%2F", "*$", " ", "index.htm", "\0",
           "=", ",", "1", "0600-0845", "s", "yes", "n", "\u017f", "\u212a", "\u0130",
           "\uff11"]  # fmt: skip
_RATES = ["1/10", "1/\uff11", "1/10 0600-0845"]
_UNITS = ["", "s", "M", "\u017f", "\u212a", "\u0130"]


def made_up_file(provider: atheris.FuzzedDataProvider) -> bytes:
    """A file of records, their values made of runs: of stars, of dollars, of nothing."""
    lines = []
    for _ in range(provider.ConsumeIntInRange(0, 8)):
        field = provider.PickValueInList(_FIELDS)
        runs = [
            provider.PickValueInList(_PIECES) * provider.ConsumeIntInRange(0, 12)
            for _ in range(provider.ConsumeIntInRange(0, 5))
        ]
        start = provider.PickValueInList(["", "/", "*", *_RATES]) + provider.PickValueInList(_UNITS)
        lines.append(f"{field}: {start}{''.join(runs)}\n")
    return ("User-agent: *\n" + "".join(lines)).encode()


def one_input(data: bytes) -> None:
    """One file, one URL and one user agent out of the fuzzer's octets."""
    provider = atheris.FuzzedDataProvider(data)
    strict = provider.ConsumeBool()
    url = "/" + provider.ConsumeUnicode(provider.ConsumeIntInRange(0, 60))
    agent = provider.ConsumeUnicode(provider.ConsumeIntInRange(0, 60))
    made_up = provider.ConsumeBool()
    body = made_up_file(provider) if made_up else provider.ConsumeBytes(provider.remaining_bytes())
    robots = RobotsTxt.parse(body, strict=strict, url="https://example.com/robots.txt")
    verdicts = [robots.verdict(url, agent) for _ in range(3)]
    assert verdicts[0] == verdicts[1] == verdicts[2]
    assert robots.allowed(url, agent) is verdicts[0].allowed
    robots.content_usage(url, agent), robots.content_signals(url, agent), robots.licenses
    robots.request_rates(agent)
    assert all(str(finding) for finding in lint(body))
    fixed = fix(body)
    assert not any(finding.is_fixable for finding in lint(fixed))
    origin_of(url)
    tokens = product_tokens(agent)
    if len(body) <= _SMALL and len(tokens) < 2:
        expected = reference.answer(body, url, tokens[0] if tokens else "", strict=strict)
        rule = verdicts[0].rule
        got = reference.Answer(verdicts[0].allowed, rule.line if rule else None, verdicts[0].agent)
        assert got == expected, (got, expected)
        assert next(iter(robots.matches(url, agent)), None) == rule


def main() -> None:
    """Run until told to stop, or until something fails."""
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()

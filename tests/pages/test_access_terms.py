"""What a response requires, judged by its status and its headers."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scrapy.http import Response

from scrapy_rep import AccessTerms
from scrapy_rep.pages.directives import MAX_OFFERS, terms_of
from scrapy_rep.protocol.printable import LENGTH


def terms(status: int, headers: dict[str, Any]) -> AccessTerms | None:
    return terms_of(Response("https://a.example/", status, headers))


@pytest.mark.parametrize(
    ("status", "headers", "expected"),
    [
        (402, {"crawler-price": "USD 0.01"}, AccessTerms(payment_required=True, price="USD 0.01")),
        (402, {}, AccessTerms(payment_required=True)),
        # A page that was paid for, and a refusal that no payment changes.
        (200, {"crawler-charged": "USD 0.01"}, None),
        (200, {"crawler-price": "USD 0.01"}, None),
        (403, {"crawler-error": "CrawlerForbidden"}, None),
        # Not of the source.
        (402, {"crawler-price": ["USD 0.01", "USD 9"]},
         AccessTerms(payment_required=True, price="USD 0.01")),
        (402, {"crawler-price": "  "}, AccessTerms(payment_required=True)),
        # x402
        (402, {"PAYMENT-REQUIRED": " e30= "}, AccessTerms(payment_required=True, offers="e30=")),
        (200, {"PAYMENT-REQUIRED": "e30="}, None),
        (402, {"PAYMENT-REQUIRED": "\x1b[2J"}, AccessTerms(payment_required=True)),
        (402, {"PAYMENT-REQUIRED": "A" * (MAX_OFFERS + 1)}, AccessTerms(payment_required=True)),
    ],
)  # fmt: skip
def test_a_payment(status: int, headers: dict[str, Any], expected: AccessTerms | None) -> None:
    assert terms(status, headers) == expected


@pytest.mark.parametrize(
    ("status", "lines", "is_required"),
    [
        # RSL 1.0 §6.3
        (401, ['License error="invalid_token", error_description="License token missing, expired, '
               'revoked, or malformed"'], True),
        (402, ['License error="insufficient_scope"'], True),
        # A token that does not permit this use: another crawl has no use for it.
        (403, ['License error="insufficient_scope"'], False),
        # RFC 9110 §11: schemes and names in any case, several challenges in one line or more
        (401, ["License"], True),
        (401, ["  LICENSE\tERROR = invalid_token "], True),
        (401, ['Basic realm="a, b", License error="x", Bearer error="y"'], True),
        (401, ['Basic realm="a"', 'License error="x"'], True),
        (401, ['Negotiate YWJj==, License, error="x"'], True),
        (401, [",, ,License error=x,,"], True),
        # Without the scheme
        (401, [], False),
        (401, ['Basic realm="License"'], False),
        (401, ['Basic realm="a, License error=b"'], False),
        (401, ["Basic License=1"], False),
        (401, ["Licenses error=x"], False),
        (401, ["License=x"], False),
        (401, ["License = x"], False),
        (402, ['Payment id="1", method="card"'], False),
        # Broken and hostile
        (401, ['License error="never ended, Basic realm=x'], True),
        (401, ["License ===,=,= =,\x00\x1b="], False),  # a parameter with the name License
        (401, ["License a,=,= =,\x00\x1b="], True),
        (401, ["Basic"] * 10 + ["License"], False),  # beyond the lines that are read
        (401, [" " * 65_536 + "License"], False),
        (401, ["," * 65_536], False),
        (401, ['"' * 65_536], False),
        (401, ["\\" * 65_536], False),
    ],
)  # fmt: skip
def test_rsl_a_license(status: int, lines: list[str], is_required: bool) -> None:
    found = terms(status, {"WWW-Authenticate": lines})
    assert (found is not None and found.license_required) == is_required


HEADERS = ("crawler-price", "PAYMENT-REQUIRED", "WWW-Authenticate")


@given(
    st.sampled_from([401, 402]),
    st.dictionaries(st.sampled_from(HEADERS), st.lists(st.binary())),
    st.text('License ,="\\\x1b'),
)
def test_no_header_raises_and_all_texts_are_short_and_printable(
    status: int, headers: dict[str, list[bytes]], challenge: str
) -> None:
    headers.setdefault("WWW-Authenticate", []).append(f"License {challenge}".encode())
    headers.setdefault("crawler-price", []).append(b"9" * 65_536)
    found = terms(status, headers)
    if found is None:
        assert status == 401
        return
    assert str(found).isprintable()
    assert len(str(found)) < 2 * LENGTH
    assert found.offers is None or found.offers.isprintable()


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (AccessTerms(payment_required=True), "a payment"),
        (AccessTerms(payment_required=True, offers="e30="), "a payment (x402)"),
        (AccessTerms(payment_required=True, price="USD 0.01", offers="e30="),
         "a payment (USD 0.01)"),
        (AccessTerms(license_required=True, price="USD 0.01"), "a license"),
        (AccessTerms(payment_required=True, license_required=True), "a payment and a license"),
    ],
)  # fmt: skip
def test_the_text_names_what_is_required(found: AccessTerms, text: str) -> None:
    assert str(found) == text

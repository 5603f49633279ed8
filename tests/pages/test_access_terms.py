from __future__ import annotations

import base64
import json
import marshal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_rep import AccessTerms, PaymentOffer
from scrapy_rep.pages.access_terms import (
    HEADERS,
    MAX_OFFERS,
    MAX_PAYMENT_REQUIRED,
    MAX_URL,
    access_terms,
)
from scrapy_rep.protocol.printable import LENGTH

PAYMENT, AUTHENTICATE = "payment-required", "www-authenticate"


def encoded(value: object) -> str:
    return base64.b64encode(json.dumps(value).encode()).decode()


def terms(status: int, **headers: str | list[str]) -> AccessTerms | None:
    """What a response with these headers requires, their names written with underscores."""
    lines = {
        name.replace("_", "-"): [value] if isinstance(value, str) else value
        for name, value in headers.items()
    }
    return access_terms(status, lines)


@pytest.mark.parametrize(
    ("status", "headers", "expected"),
    [
        (402, {"crawler_price": "USD 0.01"}, AccessTerms(payment_required=True, price="USD 0.01")),
        (402, {"crawler_price": "USD 0.02", "crawler_error": "InvalidCrawlerExactPrice"},
         AccessTerms(payment_required=True, price="USD 0.02", error="InvalidCrawlerExactPrice")),
        (402, {"crawler_error": "MissingCrawlerPrice"},
         AccessTerms(payment_required=True, error="MissingCrawlerPrice")),
        (402, {}, AccessTerms(payment_required=True)),
        # A page that was paid for, and a refusal that no payment changes.
        (200, {"crawler_charged": "USD 0.01"}, None),
        (200, {"crawler_price": "USD 0.01"}, None),
        (403, {"crawler_error": "CrawlerForbidden"}, None),
        (502, {"crawler_error": "InvalidContentPrice"}, None),
        # Not of the source.
        (402, {"crawler_price": ["USD 0.01", "USD 9"]},
         AccessTerms(payment_required=True, price="USD 0.01")),
        (402, {"crawler_price": "  "}, AccessTerms(payment_required=True)),
    ],
)  # fmt: skip
def test_cloudflare_pay_per_crawl(
    status: int, headers: dict[str, Any], expected: AccessTerms | None
) -> None:
    assert terms(status, **headers) == expected


X402_EXAMPLE = (
    "eyJ4NDAyVmVyc2lvbiI6MiwiZXJyb3IiOiJQQVlNRU5ULVNJR05BVFVSRSBoZWFkZXIgaXMgcmVxdWlyZWQiLCJyZXNv"
    "dXJjZSI6eyJ1cmwiOiJodHRwczovL2FwaS5leGFtcGxlLmNvbS9wcmVtaXVtLWRhdGEiLCJkZXNjcmlwdGlvbiI6IkFj"
    "Y2VzcyB0byBwcmVtaXVtIG1hcmtldCBkYXRhIiwibWltZVR5cGUiOiJhcHBsaWNhdGlvbi9qc29uIn0sImFjY2VwdHMi"
    "Olt7InNjaGVtZSI6ImV4YWN0IiwibmV0d29yayI6ImVpcDE1NTo4NDUzMiIsImFtb3VudCI6IjEwMDAwIiwiYXNzZXQi"
    "OiIweDAzNkNiRDUzODQyYzU0MjY2MzRlNzkyOTU0MWVDMjMxOGYzZENGN2UiLCJwYXlUbyI6IjB4MjA5NjkzQmM2YWZj"
    "MEM1MzI4YkEzNkZhRjAzQzUxNEVGMzEyMjg3QyIsIm1heFRpbWVvdXRTZWNvbmRzIjo2MCwiZXh0cmEiOnsibmFtZSI6"
    "IlVTREMiLCJ2ZXJzaW9uIjoiMiJ9fV19"
)
X402_OFFER = PaymentOffer(
    amount="10000",
    asset="0x036CbD53842c5426634e7929541eC2318f3dCF7e",
    network="eip155:84532",
    scheme="exact",
    pay_to="0x209693Bc6afc0C5328bA36FaF03C514EF312287C",
)
X402_ERROR = "PAYMENT-SIGNATURE header is required"
OFFER = {"amount": "1", "asset": "USD"}


def test_x402_the_example_of_the_http_transport() -> None:
    found = terms(402, payment_required=X402_EXAMPLE)
    assert found == AccessTerms(payment_required=True, offers=(X402_OFFER,), error=X402_ERROR)
    assert str(found) == "a payment (x402, 10000)"
    assert terms(200, payment_required=X402_EXAMPLE) is None
    # A failed payment has another header.
    failed = encoded({"success": False, "errorReason": "insufficient_funds"})
    assert terms(402, payment_response=failed) == AccessTerms(payment_required=True)


@pytest.mark.parametrize(
    ("header", "offers"),
    [
        (encoded({"accepts": [OFFER]}), [PaymentOffer("1", "USD", "", "", "")]),
        (encoded({"accepts": [OFFER]}).rstrip("="), [PaymentOffer("1", "USD", "", "", "")]),
        (base64.urlsafe_b64encode(b'{"accepts": [{"amount": "\xc3\xbf\xc3\xbf?~"}]}').decode(),
         [PaymentOffer("ÿÿ?~", "", "", "", "")]),
        (encoded({"accepts": [OFFER] * (MAX_OFFERS + 1)}),
         [PaymentOffer("1", "USD", "", "", "")] * MAX_OFFERS),
        (encoded({"accepts": [{"amount": "1\x1b[2J\u202e\ud800"}]}),
         [PaymentOffer("1\\x1b[2J\\u202e\\ud800", "", "", "", "")]),
        # Not of the form of PaymentRequirements.
        (encoded({"accepts": [1, None, [], {}, {"amount": 5}, {"amount": ""}]}), []),
        (encoded({"accepts": [{**OFFER, "asset": ["USD"], "payTo": {}}]}),
         [PaymentOffer("1", "", "", "", "")]),
        (encoded({"accepts": {"amount": "1"}}), []),
        (encoded({"error": 1}), []),
        (encoded([OFFER]), []),
        (encoded("accepts"), []),
        (encoded(None), []),
        # Not readable.
        ("", []),
        ("=", []),
        ("====", []),
        ("A", []),
        ("!" * 64, []),
        ("e30=\r\n", []),
        ("\xff\x00", []),
        (base64.b64encode(b"\xff\xfe\xfd").decode(), []),
        (base64.b64encode(b'{"accepts": ').decode(), []),
        (base64.b64encode(b'{"accepts": ' + b"1" * 5000 + b"}").decode(), []),  # int() refuses it
        (base64.b64encode(b"[" * 12_000).decode(), []),
        (base64.b64encode(b'{"a":' * 2_400).decode(), []),
        ("A" * 65_536, []),
        (encoded({"accepts": [OFFER], "error": "x" * MAX_PAYMENT_REQUIRED}), []),
    ],
)  # fmt: skip
def test_x402_any_header_is_read(header: str, offers: list[PaymentOffer]) -> None:
    found = terms(402, payment_required=header)
    assert found is not None
    assert found.offers == tuple(offers)
    assert found.error is None


DESCRIBED = 'error_description="Access to this resource requires a valid license"'


@pytest.mark.parametrize(
    ("status", "lines", "expected"),
    [
        # RSL 1.0 §6.3
        (401, ['License error="invalid_token", error_description="License token missing, expired, '
               'revoked, or malformed"'],
         AccessTerms(license_required=True, error="invalid_token")),
        (401, [f'License error="invalid_request", {DESCRIBED}'],
         AccessTerms(license_required=True, error="invalid_request")),
        (402, ['License error="insufficient_scope"'],
         AccessTerms(payment_required=True, license_required=True, error="insufficient_scope")),
        # The draft of 2025-09
        (401, [f'License error="invalid_request", {DESCRIBED}, '
               'authorization_uri="https://api.rslcollective.org"'],
         AccessTerms(license_required=True, error="invalid_request",
                     authorization_uri="https://api.rslcollective.org")),
        # A token that does not permit this use: another crawl has no use for it.
        (403, ['License error="insufficient_scope"'], None),
        (503, ['License error="server_error"'], None),
        # RFC 9110 §11: schemes and names in any case, several challenges in one line or more
        (401, ["License"], AccessTerms(license_required=True)),
        (401, ["license"], AccessTerms(license_required=True)),
        (401, ["  LICENSE\tERROR = invalid_token "],
         AccessTerms(license_required=True, error="invalid_token")),
        (401, ['Basic realm="a, b", License error="x", Bearer error="y"'],
         AccessTerms(license_required=True, error="x")),
        (401, ['Basic realm="a"', 'License error="x"'],
         AccessTerms(license_required=True, error="x")),
        (401, ['Negotiate YWJj==, License, error="x"'],
         AccessTerms(license_required=True, error="x")),
        (401, ['License error="a \\"b\\" c"'],
         AccessTerms(license_required=True, error='a "b" c')),
        (401, ['License error="first", error="second"', 'License error="third"'],
         AccessTerms(license_required=True, error="first")),
        (401, [",, ,License error=x,,"], AccessTerms(license_required=True, error="x")),
        # Without the scheme
        (401, [], None),
        (401, [""], None),
        (401, ['Basic realm="License"'], None),
        (401, ['Basic realm="a, License error=b"'], None),
        (401, ["Basic License=1"], None),
        (401, ["Licenses error=x"], None),
        (401, ["License=x"], None),
        (401, ["License = x"], None),
        (402, ['Payment id="1", method="card"'], AccessTerms(payment_required=True)),
        # Broken and hostile
        (401, ['License error="never ended, Basic realm=x'],
         AccessTerms(license_required=True, error="never ended, Basic realm=x")),
        (401, ['License error="ends \\'], AccessTerms(license_required=True, error="ends \\")),
        (401, ["License error"], AccessTerms(license_required=True)),
        (401, ["License ===,=,= =,\x00\x1b="], None),  # a parameter with the name License
        (401, ["License a,=,= =,\x00\x1b="], AccessTerms(license_required=True)),
        (401, ["License error=\x1b[2J"], AccessTerms(license_required=True, error="\\x1b[2J")),
        (401, ['License authorization_uri="https://a/\x1b"'], AccessTerms(license_required=True)),
        (401, [f'License authorization_uri="https://a/{"a" * MAX_URL}"'],
         AccessTerms(license_required=True)),
        (401, ["Basic"] * 10 + ["License"], None),  # beyond the lines that are read
        (401, [" " * 65_536 + "License"], None),
        (401, ["," * 65_536], None),
        (401, ['"' * 65_536], None),
        (401, ["\\" * 65_536], None),
    ],
)  # fmt: skip
def test_rsl_a_license_challenge(
    status: int, lines: list[str], expected: AccessTerms | None
) -> None:
    assert access_terms(status, {AUTHENTICATE: lines}) == expected


def test_values_are_cut_where_they_are_long() -> None:
    found = terms(
        402,
        crawler_price="USD " + "9" * 65_536,
        www_authenticate='License error="' + "x" * 4000 + '"',
        payment_required=encoded({"accepts": [dict.fromkeys(("amount", "payTo"), "9" * 999)]}),
    )
    assert found is not None
    assert found.price is not None
    assert found.error is not None
    assert {len(found.price), len(found.error), len(found.offers[0].pay_to)} == {LENGTH}
    assert len(str(found)) < 2 * LENGTH


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda values: st.lists(values) | st.dictionaries(st.sampled_from(["accepts", *OFFER]), values),
)
LINES = st.lists(st.text()) | JSON.map(lambda value: [encoded(value)])


@given(
    st.sampled_from([401, 402]),
    st.dictionaries(st.sampled_from(HEADERS), LINES),
    st.text('License ,="\\\x1b'),
)
def test_no_header_raises_and_all_texts_are_printable(
    status: int, headers: dict[str, list[str]], challenge: str
) -> None:
    headers.setdefault(AUTHENTICATE, []).append(f"License {challenge}")
    found = access_terms(status, headers)
    if found is None:
        assert status == 401
        return
    texts = [found.price, found.error, found.authorization_uri, str(found)]
    texts += [text for offer in found.offers for text in offer]
    assert all(text is None or text.isprintable() for text in texts)
    assert len(found.offers) <= MAX_OFFERS


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (AccessTerms(payment_required=True), "a payment"),
        (AccessTerms(payment_required=True, price="USD 0.01", offers=(X402_OFFER,)),
         "a payment (USD 0.01)"),
        (AccessTerms(license_required=True, price="USD 0.01"), "a license"),
        (AccessTerms(payment_required=True, license_required=True), "a payment and a license"),
    ],
)  # fmt: skip
def test_the_text_names_what_is_required(found: AccessTerms, text: str) -> None:
    assert str(found) == text


def test_the_fields_as_json_types() -> None:
    found = terms(402, payment_required=X402_EXAMPLE, crawler_price="USD 0.01")
    assert found is not None
    as_dict = found.to_dict()
    assert as_dict == {
        "payment_required": True,
        "license_required": False,
        "price": "USD 0.01",
        "offers": [X402_OFFER._asdict()],
        "authorization_uri": None,
        "error": X402_ERROR,
    }
    assert json.loads(json.dumps(as_dict)) == marshal.loads(marshal.dumps(as_dict)) == as_dict

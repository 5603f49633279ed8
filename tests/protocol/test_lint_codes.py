"""The table of codes."""

from __future__ import annotations

import re

import pytest

from scrapy_rep.protocol.lint_codes import Code, codes_of


@pytest.mark.parametrize("code", Code)
def test_each_row_is_complete(code: Code) -> None:
    assert re.fullmatch("R[1-7][0-9]{2}", code.code)
    assert re.fullmatch("[a-z0-9]+(-[a-z0-9]+)*", code.short_name)
    assert str(code) == code.code


def test_codes_and_names_are_unique_and_in_order() -> None:
    codes = [code.code for code in Code]
    assert codes == sorted(set(codes))
    assert len({code.short_name for code in Code}) == len(codes)


def test_codes_of() -> None:
    assert codes_of([]) == frozenset()
    assert codes_of(["R"]) == frozenset(Code)
    assert codes_of(["r202", "MISSING-slash"]) == {Code.MISSING_COLON, Code.MISSING_SLASH}
    assert {str(code)[3] for code in codes_of(["R60"])} == set("123457")

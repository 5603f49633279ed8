"""Requests as JSON."""

from __future__ import annotations

import pytest
from scrapy import Request
from scrapy.utils.request import request_from_dict

from scrapy_rep.frontier.json_requests import dumps, loads


@pytest.mark.parametrize(
    "request_",
    [
        Request("http://a.example/é?q=%2F", priority=-3, dont_filter=True),
        Request("http://a.example/", method="POST", body=bytes(range(256))),
        Request("http://a.example/", headers={"X-Name": ["ä", b"\xff"], "Accept": "*/*"}),
        Request("http://a.example/", meta={"depth": 2, "a": [None, {"b": 1.5}]}, flags=["x"]),
        Request("http://a.example/", cookies={"name": "value"}, cb_kwargs={"page": 1}),
    ],
)
def test_a_request_is_what_it_was(request_: Request) -> None:
    found = request_from_dict(loads(dumps(request_.to_dict())))
    assert found.to_dict() == request_.to_dict()


@pytest.mark.parametrize("value", [b"bytes", object(), {1, 2}])
def test_other_values_are_refused(value: object) -> None:
    with pytest.raises(TypeError):
        dumps(Request("http://a.example/", meta={"value": value}).to_dict())

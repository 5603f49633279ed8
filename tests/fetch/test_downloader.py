"""What the errors of a download mean, in words."""

from __future__ import annotations

import socket
import ssl

import pytest
from OpenSSL import SSL
from scrapy.exceptions import IgnoreRequest
from twisted.internet import error
from twisted.python.failure import Failure
from twisted.web.client import ResponseFailed, ResponseNeverReceived

from scrapy_rep.fetch.downloader import MAX_LENGTH, in_words

REFUSED = "the connection was refused"
CLOSED = "the connection was closed before the response was complete"


def caused(outer: Exception, cause: Exception) -> Exception:
    outer.__cause__ = cause
    return outer


@pytest.mark.parametrize(
    ("raised", "words"),
    [
        (error.ConnectionRefusedError(), REFUSED),
        (ConnectionRefusedError(111, "Connect call failed"), REFUSED),
        (caused(OSError("all attempts failed"), ConnectionRefusedError()), REFUSED),
        (error.DNSLookupError("no results"), "the host name cannot be resolved"),
        (socket.gaierror(-2, "unknown"), "the host name cannot be resolved"),
        (error.TimeoutError(), "it took longer than REP_TIMEOUT"),
        (TimeoutError("Getting it took longer than 1 seconds"), "it took longer than REP_TIMEOUT"),
        (error.TCPTimedOutError(), "the connection timed out"),
        (ConnectionResetError(104, "reset"), CLOSED),
        (ResponseNeverReceived([Failure(error.ConnectionLost())]), CLOSED),
        (ResponseFailed([Failure(error.ConnectionDone())], None), CLOSED),
        (
            ResponseNeverReceived([Failure(SSL.Error([("SSL routines", "", "wrong version")]))]),
            "TLS failed: wrong version",
        ),
        (ssl.SSLCertVerificationError(1, "self-signed"), "TLS failed: self-signed"),
        (IgnoreRequest("not\nhere"), "IgnoreRequest: not here"),
        (ResponseNeverReceived([Failure(ValueError("odd"))]), "ValueError: odd"),
        (ZeroDivisionError(), "ZeroDivisionError: no reason given"),
    ],
)
def test_an_error_in_words(raised: Exception, words: str) -> None:
    assert in_words(raised) == words


def test_the_words_are_short_and_end() -> None:
    outer, inner = ValueError("x" * 1000), ValueError("y" * 1000)
    outer.__cause__, inner.__cause__ = inner, outer
    assert len(in_words(outer)) <= MAX_LENGTH

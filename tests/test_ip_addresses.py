"""Public addresses, and the spellings of an address."""

from __future__ import annotations

from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_rep.ip_addresses import is_local_name, is_public, literal_address, plain_address

pytestmark = pytest.mark.rule("A redirect to an address that is not public")
NOT_PUBLIC = """
0.0.0.0 0.1.2.3 10.0.0.1 127.0.0.1 127.255.255.255 172.16.0.1 172.31.255.255 192.168.0.1
100.64.0.1 100.127.255.255          RFC 6598
169.254.169.254                     link-local: the metadata services of clouds
192.0.2.1 198.18.0.1                documentation, benchmarks
224.0.0.1 239.255.255.250           multicast
240.0.0.1 255.255.255.255
:: ::1 ::1%lo fe80::1 fe80::1%eth0 fec0::1 fc00::1 fd12:3456::1 ff02::1
2001:db8::1 100::1 4000::1          documentation, discard, not assigned
::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:0:10.0.0.1 ::10.0.0.1
2002:7f00:1:: 2002:a9fe:a9fe::1     6to4 of 127.0.0.1 and 169.254.169.254
64:ff9b::127.0.0.1 64:ff9b::a00:1   NAT64
64:ff9b:1::8.8.8.8 2001:0:7f00:1::  NAT64 of a local network, Teredo
"""
PUBLIC = """
1.1.1.1 8.8.8.8 93.184.215.14 100.63.255.255 100.128.0.0 172.32.0.1 192.167.255.255
2606:4700::1111 2a00:1450:4001::200e ::ffff:8.8.8.8 2002:808:808::1 64:ff9b::8.8.8.8
"""


def addresses(text: str) -> list[str]:
    """Return the addresses of a table. Remarks stand behind two spaces."""
    return [each for line in text.splitlines() for each in line.partition("  ")[0].split()]


@pytest.mark.parametrize("address", addresses(NOT_PUBLIC))
def test_addresses_that_are_not_public(address: str) -> None:
    assert not is_public(ip_address(address))
    assert literal_address(address) is not None


@pytest.mark.parametrize("address", addresses(PUBLIC))
def test_public_addresses(address: str) -> None:
    assert is_public(ip_address(address))


@pytest.mark.parametrize(
    "spelling",
    [
        "127.0.0.1", "127.0.0.1.", "127.1", "127.0.1", "2130706433", "0x7f000001", "0X7F.0.0.1",
        "0177.0.0.1", "017700000001", "0x7f.0.0x0.01", "%31%32%37.0.0.1",
        "127\uff0e0\u30020\uff611", "\uff11\uff12\uff17.0.0.1",
    ],
)  # fmt: skip
def test_all_spellings_of_an_address_are_read(spelling: str) -> None:
    assert str(literal_address(spelling)) == "127.0.0.1"


@pytest.mark.parametrize(
    "name",
    [
        "", ".", "example.com", "a.b.c.d", "1.2.3.4.5", "256.1.1.1", "1.2.3.256", "1.2.65536",
        "4294967296", "08.0.0.1", "0xg.0.0.1", "1..2", "-1", "1_0", "1.2.3.4.example", "::g",
        "1" * 5000,
    ],
)  # fmt: skip
def test_names_that_are_no_address(name: str) -> None:
    assert literal_address(name) is None


def test_local_names() -> None:
    for name in ("localhost", "LocalHost.", "a.localhost", "%6cocalhost"):
        assert is_local_name(name)
    for name in ("localhost.example", "mylocalhost", "", "local"):
        assert not is_local_name(name)


@given(st.text())
def test_no_host_raises_an_error(host: str) -> None:
    literal_address(host)
    is_local_name(host)


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", "127.0.0.1"), ("0x7f.1", "127.0.0.1"), ("0177.0.0.1", "127.0.0.1"),
        ("2130706433", "127.0.0.1"), ("::ffff:127.0.0.1", "127.0.0.1"),
        ("[::ffff:7f00:1]", "127.0.0.1"), ("127.1.", "127.0.0.1"), ("0:0:0:0:0:0:0:1", "[::1]"),
        ("[2001:DB8::1]", "[2001:db8::1]"), ("example.com", None), ("localhost", None), ("", None),
    ],
)  # fmt: skip
def test_plain_address(host: str, expected: str | None) -> None:
    assert plain_address(host) == expected

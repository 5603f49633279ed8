"""What the arguments of ``diff`` and ``test`` name: files, sites, and sites in a store."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING, Any

import pytest
from scrapy.settings import Settings

from scrapy_rep.commands import diff, view
from scrapy_rep.commands import test as test_command
from scrapy_rep.commands.context import Context
from scrapy_rep.commands.difference import Comparison, Side
from scrapy_rep.commands.exits import CommandError, ExitCode
from scrapy_rep.commands.flips import Flips
from scrapy_rep.commands.policy import Access, Policy, of_file
from scrapy_rep.commands.sources import Source, fetch, get_policies, source_of
from scrapy_rep.protocol.access import AccessResult
from scrapy_rep.protocol.robotstxt import RobotsTxt
from scrapy_rep.stores import Entry, StoreError
from scrapy_rep.stores.memory import MemoryStore
from testing.web import Page

from .conftest import validate
from .test_session import session
from .test_view import viewed

if TYPE_CHECKING:
    from pathlib import Path

    from scrapy_rep.commands.session import Session
    from testing.web import Web

STORE = "memory://test-sources"
ORIGIN = "https://x.example"


def context_of(*, json: bool = True, **settings: Any) -> Context:
    return Context(
        Namespace(json=json, loglevel=None), Settings({"USER_AGENT": "testbot/1.0", **settings})
    )


def test_what_an_argument_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.example").write_text("")
    context = context_of()
    assert source_of("x.example", context).file == "x.example"
    assert source_of("http://x.example", context).origin == "http://x.example"
    assert source_of("y.example/a", context).origin == "https://y.example"
    assert source_of("store:y.example", context).stored == "https://y.example"
    assert source_of("https://y.example/a.txt", context).origin == "https://y.example"
    for name in ("no.txt", "/no/such", "./no", "store:no.txt", "mailto:x", "http://["):
        with pytest.raises(CommandError):
            source_of(name, context)


async def test_sites_and_a_store(web: Web) -> None:
    site = web.site("User-agent: *\nDisallow: /")
    store = MemoryStore.named("test-sources", ttl=86_400)
    entry = Entry(AccessResult.RULES, 1e9, 4e9, 4e9, b"User-agent: *\nDisallow: /a", status=200)
    await store.put(site.root, entry)
    context = context_of(REP_STORE=STORE)
    works: list[Any] = []

    def run(work: Any, *, keep_bodies: bool = False) -> Any:
        works.append(work)
        raise KeyboardInterrupt

    context.run = run  # type: ignore[method-assign]
    sources = [source_of(f"store:{site.root}", context), source_of(site.root, context)]
    with pytest.raises(KeyboardInterrupt):
        get_policies(sources, context)
    assert context.scrapy_settings["REP_STORE"] is None
    old, new = await session(works[0])
    assert (old.access.source, new.access.source) == ("store", "site")
    assert (old.verdict("/b", ()).allowed, new.verdict("/b", ()).allowed) == (True, False)
    assert site.robots_fetches == 1


@pytest.mark.parametrize(
    ("entry", "state", "allowed"),
    [
        (Entry(AccessResult.UNAVAILABLE, 1.0, 2.0, status=404), "unavailable", True),
        (Entry(AccessResult.UNREACHABLE, 1.0, 2.0, failure="no"), "unreachable", False),
        (
            Entry(AccessResult.UNREACHABLE, 1.0, 2.0, body=b"", failure="no"),
            "stale-copy",
            True,
        ),
    ],
)
async def test_what_a_store_has(entry: Entry, state: str, allowed: bool) -> None:
    store = MemoryStore.named("test-sources", ttl=86_400)
    await store.put(ORIGIN, entry)
    (policy,) = await stored(context_of())
    assert (policy.access.state, policy.verdict("/", ()).allowed) == (state, allowed)


async def stored(context: Context, origin: str = ORIGIN, url: str = STORE) -> list[Policy]:
    source = Source("", stored=origin)

    async def work(session: Session) -> list[Policy]:
        return await fetch(session, [source], {}, url, context)

    found: list[Policy] = await session(work)
    return found


async def test_what_a_store_does_not_have(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CommandError, match=r"has no robots.txt of https://no.example") as caught:
        await stored(context_of(), "https://no.example")
    assert caught.value.code is ExitCode.UNKNOWN
    with pytest.raises(CommandError, match="cannot open the store nonsense://x"):
        await stored(context_of(), url="nonsense://x")

    async def fail(store: MemoryStore, origin: str) -> None:
        raise StoreError("it is broken")

    monkeypatch.setattr(MemoryStore, "get", fail)
    with pytest.raises(CommandError, match="it is broken"):
        await stored(context_of())


async def test_ctrl_c_before_all_is_known() -> None:
    class Closing:
        async def get_policies(self, origins: Any) -> dict[str, Policy]:
            return {}

    closing: Any = Closing()
    with pytest.raises(KeyboardInterrupt):
        await fetch(closing, [Source("", origin=ORIGIN)], {}, None, context_of())


# What the subcommands do with what they get from the network.


def canned(context: Context, result: Any) -> Context:
    context.run = lambda work, *, keep_bodies=False: result  # type: ignore[method-assign]
    return context


def unreachable() -> Policy:
    access = Access(f"{ORIGIN}/robots.txt", "site", "unreachable", failure="refused")
    return Policy(ORIGIN, None, RobotsTxt.from_response(None).verdict, access)


@pytest.mark.parametrize("json", [True, False])
def test_diff_with_a_site_that_is_unreachable(
    json: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    file = of_file("x", b"")
    context = canned(context_of(json=json), [unreachable(), file])
    arguments = Namespace(old=ORIGIN, new=ORIGIN, urls=None, format=None, field=None, agent=[])
    assert diff.run(arguments, context) == ExitCode.UNKNOWN
    written = capsys.readouterr()
    assert "is unreachable: refused" in written.err
    assert "unreachable" in written.out


def test_test_with_sites(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "e").write_text(f"allow a {ORIGIN}/\nallow a https://y.example/\n")
    body = b"User-agent: *\nDisallow: /"
    known = Policy(
        "https://y.example", RobotsTxt(body), RobotsTxt(body).verdict, Access("y", "site", "rules")
    )
    context = canned(context_of(json=False), {ORIGIN: unreachable(), "https://y.example": known})
    arguments = Namespace(expectations=str(tmp_path / "e"), robots=None)
    assert test_command.run(arguments, context) == ExitCode.UNKNOWN
    out = capsys.readouterr().out
    assert "the robots.txt is unreachable: refused" in out
    assert "2 expectations: 0 hold, 1 failed, 1 not known." in out


def test_urls_of_a_site(capsys: pytest.CaptureFixture[str]) -> None:
    sides = [
        Side.of(of_file("x", body), url=None, strict=False)
        for body in (b"", b"User-agent: *\nDisallow: /")
    ]
    comparison = Comparison(sides[0], sides[1], None)
    comparison.record()
    output = context_of().output
    flips = Flips((sides[0], sides[1]), comparison.changed, frozenset([ORIGIN]), output)
    urls = [f"{ORIGIN}/a", "/b", "https://y.example/", "http://[", "mailto:x"]
    assert [flip.url for flip in flips.find(iter(urls))] == [f"{ORIGIN}/a", "/b"]
    assert (flips.urls, flips.found, flips.invalid) == (2, 2, 2)
    assert "https://y.example/ is a URL of another site" in capsys.readouterr().err


async def test_view_writes_what_it_has_seen(web: Web, capsys: pytest.CaptureFixture[str]) -> None:
    site = web.site(None, {"/big": Page("<p>x")})
    record = await viewed(site.url("/big"))
    for json in (True, False):
        context = canned(context_of(json=json), record)
        arguments = Namespace(url="x.example/big", agent=None)
        assert view.run(arguments, context) == ExitCode.OK
        written = capsys.readouterr()
        assert "/big" in written.out
        assert "it is taken for https://x.example/big" in written.err
    validate(record, "view")

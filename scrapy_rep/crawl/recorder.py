"""The interface of what records a crawl for its report. A crawl without a report has none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from scrapy import Request

    from ..origin import Origin
    from ..protocol.access import FetchResult
    from ..protocol.access_terms import AccessTerms
    from ..protocol.pages import PageDirectives
    from ..protocol.verdict import Verdict


class Recorder(Protocol):
    """Gets each event of one crawl when it happens. Its methods neither block nor raise.

    :mod:`scrapy_rep.reports` implements it. Times are seconds.
    """

    delay_of: Callable[[str], float]
    """Returns the delay that the crawl keeps for a host. 0 for none. The middleware sets it."""

    is_complete: Callable[[], bool]
    """Returns whether :meth:`sent` gets each request. The middleware sets it."""

    def sent(self, request: Request) -> None:
        """A download handler gets a request, for a page or for a robots.txt."""

    def dropped(self, url: str, verdict: Verdict) -> None:
        """A request for a page is not sent."""

    def waited(self, request: Request, policy_seconds: float, pace_seconds: float) -> None:
        """A request for a page proceeds or is dropped, after it waited for its robots.txt or for
        the pace of its site.
        """

    def final_url_disallowed(self, url: str, verdict: Verdict, *, dropped: bool) -> None:
        """A response came from a disallowed URL, which is not that of its request."""

    def fetched(
        self, origin: Origin, event: FetchResult, body: bytes | None, *, from_store: bool
    ) -> None:
        """The robots.txt of an origin was fetched, or found in the store.

        The state of the origin has changed already. ``body`` is the file as it was received; None
        where none was received. From a store, ``event`` has no meaning.
        """

    def paced(self, origin: Origin, agents: tuple[str, ...], local_delay: float) -> None:
        """The pace of an origin is known, after a fetch of its robots.txt.

        ``agents`` are the product tokens of the crawler. ``local_delay`` is what a local rule says.
        """

    def page(self, url: str, directives: PageDirectives, usage: Mapping[str, bool]) -> None:
        """A response gets its annotations."""

    def dropped_for_directive(self, url: str, name: str) -> None:
        """An item or a request from a response is dropped because of a directive."""

    def dropped_for_usage(self, url: str, names: Sequence[str]) -> None:
        """An item from a response is dropped because the response refuses these uses."""

    def terms(self, url: str, terms: AccessTerms) -> None:
        """A response requires a payment or a license."""

"""What a crawl logs of a site without a robots.txt: what there is instead, and what that means.

There is one line for each site, and one for each outage (RFC 9309 §2.3.1).
"""

from __future__ import annotations

from scrapy import Spider

from .logs import get_logger
from .origin import Origin, Restored, State
from .protocol import access
from .protocol.access import AccessResult, FetchResult, Unreachable
from .settings import Settings

logger = get_logger(__name__)


def log_outcome(
    file: Origin,
    event: FetchResult | Restored,
    settings: Settings,
    now: float,
    spider: Spider | None,
) -> None:
    """Log that a fetch has brought no rules, unless that is known."""
    if isinstance(event, Unreachable) and file.state is State.UNREACHABLE and file.failures < 2:
        logger.warning(
            "The robots.txt of %(origin)s is unreachable: %(failure)s. %(effect)s.",
            {
                "origin": file.key,
                "failure": event.failure.rstrip("."),
                "effect": _effect_of_outage(file, event, settings, now),
            },
            extra={"spider": spider},
        )
    elif file.state is State.UNAVAILABLE:
        why = file.unavailable.value if file.status is not None else access.TOO_MANY_REDIRECTS
        if why != file.notes.logged_unavailable:
            file.notes.logged_unavailable = why
            _log_unavailable(file, spider)


def _effect_of_outage(file: Origin, event: Unreachable, settings: Settings, now: float) -> str:
    if file.content is not None:
        return "Its last good copy is used"
    if settings.on_unreachable == "allow":
        return "All requests to the site are allowed, because REP_ON_UNREACHABLE is 'allow'"
    if settings.on_unreachable == "wait":
        return (
            f"Requests to the site wait up to {settings.max_wait:g} s (REP_MAX_WAIT), then they "
            f"are dropped. The next attempt is in {file.refresh_at - now:.0f} s"
        )
    status, remedy = event.status or 0, "REP_ON_UNREACHABLE = 'allow'"
    if event.failure == access.TOO_MANY_REDIRECTS:
        remedy = f"REP_ON_TOO_MANY_REDIRECTS = 'unavailable' or {remedy}"
    elif 200 <= status <= 299 and event.failure.endswith(access.NO_ROBOTS_TXT):
        remedy = f"REP_NOT_ROBOTS = 'unavailable' or {remedy}"
    elif 500 <= status <= 599:
        remedy = f"REP_5XX_AS_404_HOSTS = [{file.host!r}] or {remedy}"
    return (
        "All requests to the site are disallowed (RFC 9309 §2.3.1.4) until a fetch succeeds, for "
        f"{settings.unreachable_days:g} days at most (REP_UNREACHABLE_DAYS): then they are "
        f"allowed. To allow them now, set {remedy}"
    )


def _log_unavailable(file: Origin, spider: Spider | None) -> None:
    """Log that a site answers with something else than a robots.txt or a 404."""
    values = {"origin": file.key, "status": file.status, "url": file.url}
    if file.status is None:
        logger.warning(
            "The robots.txt of %(origin)s redirects more than five times, or in a loop (last "
            "%(url)s). All requests to the site are allowed (RFC 9309 §2.3.1.2). To change that, "
            "set REP_ON_TOO_MANY_REDIRECTS = 'unreachable'.",
            values,
            extra={"spider": spider},
        )
    elif file.unavailable is AccessResult.NOT_ROBOTS_TXT:
        logger.warning(
            "The robots.txt of %(origin)s is not a robots.txt, but a page without rules, such as "
            "that of a login or an error (status %(status)s, %(url)s). All requests to the site "
            "are allowed. To change that, set REP_NOT_ROBOTS = 'unreachable'.",
            values,
            extra={"spider": spider},
        )
    elif file.unavailable is AccessResult.CHALLENGE:
        logger.warning(
            "%(origin)s has a challenge for browsers instead of its robots.txt (status %(status)s, "
            "%(url)s). All requests to the site are allowed, but probably get the same challenge. "
            "Ask the owner of the site to let your crawler read robots.txt.",
            values,
            extra={"spider": spider},
        )
    elif file.unavailable is AccessResult.REFUSED:
        logger.info(
            "%(origin)s refuses access to its robots.txt (status %(status)s, %(url)s). All "
            "requests to the site are allowed (RFC 9309 §2.3.1.3). To change that, set "
            "REP_DISALLOW_STATUSES.",
            values,
            extra={"spider": spider},
        )

"""The keys of ``Request.meta`` and the flag of ``Response.flags`` that the package reads or writes.

They are part of the interface for users. Keys that only one module uses are in that module.
"""

from __future__ import annotations

ROBOTSTXT = "robotstxt"
"""The :class:`~scrapy_rep.Verdict` on the request."""

PAGE_DIRECTIVES = "page_directives"
"""The :class:`~scrapy_rep.PageDirectives` of the response."""

USAGE = "robotstxt_usage"
"""The uses that the response grants (True) or refuses (False), by name."""

LINK_REL = "robotstxt_link_rel"
"""The ``rel`` values of the link from which the request was made, as a sorted tuple."""

OBEY_NOFOLLOW = "robotstxt_obey_nofollow"
"""False on a request that is sent although its page or its link says ``nofollow``."""

DONT_OBEY = "dont_obey_robotstxt"
"""True on a request that is exempt from robots.txt. The key is Scrapy's."""

DONT_RETRY = "dont_retry"
"""True on a request that is not retried. The key is Scrapy's."""

IS_ROBOTSTXT_REQUEST = "is_robotstxt_request"
"""True on a request for a robots.txt that a middleware makes. The key is Scrapy's."""

CACHED_FLAG = "cached"
"""The flag of a response that comes from a cache. Scrapy's HTTP cache also sets it."""

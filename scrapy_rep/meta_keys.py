"""The keys of ``Request.meta`` and the flag of ``Response.flags`` that the package reads or writes.

They are part of the interface for users. Other keys are in the module that uses them.
"""

from __future__ import annotations

ROBOTSTXT = "robotstxt"  # the Verdict on the request
PAGE_DIRECTIVES = "page_directives"  # the PageDirectives of the response
USAGE = "robotstxt_usage"  # the uses that the response grants (True) or refuses (False), by name
LINK_REL = "robotstxt_link_rel"  # the `rel` values of the request's link, as a sorted tuple
OBEY_NOFOLLOW = "robotstxt_obey_nofollow"  # False: sent although its page or link says nofollow

# The names of these are Scrapy's. Each is True or missing.
DONT_OBEY = "dont_obey_robotstxt"  # the request is exempt from robots.txt
DONT_RETRY = "dont_retry"  # the request is not retried
IS_ROBOTSTXT_REQUEST = "is_robotstxt_request"  # a middleware makes the request for a robots.txt

CACHED_FLAG = "cached"  # the response comes from a cache, such as Scrapy's HTTP cache

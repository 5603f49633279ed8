"""scrapy-fake-useragent, which gives each request a User-Agent at random.

Its ``RetryUserAgentMiddleware`` fails with every Scrapy that is supported here, so that Scrapy's
own stays. The provider that is used asks no server.
"""

from __future__ import annotations

from .random_agents import RandomAgents

REQUIREMENTS = ("scrapy-fake-useragent",)

SETTINGS = {"FAKEUSERAGENT_PROVIDERS": ["scrapy_fake_useragent.providers.FakerProvider"]}

CHECKS = RandomAgents("scrapy_fake_useragent.middleware.RandomUserAgentMiddleware", SETTINGS).checks

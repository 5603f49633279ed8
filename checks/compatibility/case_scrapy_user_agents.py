"""scrapy-user-agents, which gives each request a User-Agent at random."""

from __future__ import annotations

from .random_agents import RandomAgents

REQUIREMENTS = ("scrapy-user-agents",)

CHECKS = RandomAgents("scrapy_user_agents.middlewares.RandomUserAgentMiddleware", {}).checks

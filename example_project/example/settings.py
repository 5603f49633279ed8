"""The settings of the example project."""

BOT_NAME = "example"
SPIDER_MODULES = ["example.spiders"]
NEWSPIDER_MODULE = "example.spiders"
COMMANDS_MODULE = "example.commands"  # `scrapy crawl` with an exit status that tells of faults

# The one line that a project needs.
ADDONS = {"scrapy_rep.Addon": 500}

# The name of the crawler, and where its owner is found: what sites see in their logs.
USER_AGENT = "examplebot/1.0 (+https://example.com/bot)"

# The name to look for in robots.txt. Without this line it is read out of USER_AGENT.
ROBOTSTXT_USER_AGENT = "examplebot"

# Only warnings and errors, so that the tables can be read. "INFO" shows the crawl and its stats.
LOG_LEVEL = "WARNING"
TELNETCONSOLE_ENABLED = False

"""The settings of the example project."""

BOT_NAME = "example"
SPIDER_MODULES = ["example.spiders"]
NEWSPIDER_MODULE = "example.spiders"
COMMANDS_MODULE = "example.commands"

# The one line that a project needs.
ADDONS = {"scrapy_rep.Addon": 500}

# The name of the crawler, and a page about it: sites see both in their logs.
# Its product token, examplebot, is the name that robots.txt files use.
USER_AGENT = "examplebot/1.0 (+https://example.com/bot)"

# Only warnings and errors, so that the tables are easy to read. "INFO" shows the stats, too.
LOG_LEVEL = "WARNING"
TELNETCONSOLE_ENABLED = False

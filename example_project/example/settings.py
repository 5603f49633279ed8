"""The settings of the example project."""

BOT_NAME = "example"
SPIDER_MODULES = ["example.spiders"]
NEWSPIDER_MODULE = "example.spiders"
COMMANDS_MODULE = "example.commands"

# The one line that a project needs.
ADDONS = {"scrapy_rep.Addon": 500}

# The name of the crawler, and the URL of a page about it. Sites see both in their logs.
# In robots.txt files, the crawler has the name examplebot: its product token.
USER_AGENT = "examplebot/1.0 (+https://example.com/bot)"

# Log only warnings and errors, so that the tables are easy to read. "INFO" logs the stats, too.
LOG_LEVEL = "WARNING"
TELNETCONSOLE_ENABLED = False

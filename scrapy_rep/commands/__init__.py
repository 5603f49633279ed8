"""The command-line tools: ``scrapy robots SUBCOMMAND`` and ``scrapy-rep SUBCOMMAND``.

``main`` has the table of subcommands. ``robots`` is the command of Scrapy. Each subcommand is a
function that ``context.tool`` makes a command of Click. A crawl imports none of these.
"""

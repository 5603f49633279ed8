"""The command-line tools: ``scrapy robots SUBCOMMAND`` and ``scrapy-rep SUBCOMMAND``.

``main`` has their table, and ``context.tool`` makes a command of Click from the function of each. A
crawl imports none of these.
"""

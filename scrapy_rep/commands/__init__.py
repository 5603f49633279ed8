"""The command-line tools: ``scrapy robots SUBCOMMAND`` and ``scrapy-rep SUBCOMMAND``.

``main`` has the table of subcommands. ``robots`` is the command of Scrapy. Each subcommand is a
module with ``HELP``, ``EXAMPLES``, ``add_arguments`` and ``run``. A crawl imports none of these.
"""

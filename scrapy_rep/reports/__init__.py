"""The report of a crawl: what its sites said, and what the crawl did.

``recorder`` counts while a crawl runs, ``parts`` keeps the counts in a file, ``reading`` reads and
merges such files, and ``rendering`` writes a report in the form that a file name selects. The
records of a report are in ``model``.

A crawl without REP_REPORT does not import this package.
"""

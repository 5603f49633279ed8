"""What a crawl leaves behind as evidence: its report, and an archive of robots.txt files.

The report (REP_REPORT): ``recorder`` counts while a crawl runs, ``part_format`` keeps the counts in
a file, ``reading`` reads and merges such files, and ``rendering`` writes a report in the form that
a file name selects. The records of a report are in ``model``.

The archive (REP_ARCHIVE): ``archive`` keeps each request for a robots.txt and its response in a
WARC file, and ``archive_reader`` reads such files.

A crawl without these settings does not import this package.
"""

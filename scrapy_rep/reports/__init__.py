"""What a crawl leaves behind as evidence: its report, and an archive of robots.txt files.

The report (REP_REPORT): ``event_log`` appends the events of a crawl to a file, ``reading`` computes
a report from such files with SQL, and ``pages`` makes the HTML page of it. The events and the
records of a report are in ``records``, and ``answers`` has what a reader asks first.

The archive (REP_ARCHIVE): ``archive`` keeps each request for a robots.txt and its response in a
WARC file, and reads such files. ``recording`` opens both.

A crawl without these settings does not import this package.
"""

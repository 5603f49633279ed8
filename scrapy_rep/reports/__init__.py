"""What a crawl leaves behind as evidence.

``archive`` keeps each request for a robots.txt and its response in a WARC file (REP_ARCHIVE), and
reads such files.

A crawl without the setting does not import this package.
"""

"""What a crawl leaves behind as evidence: its report, and an archive of robots.txt files.

``recording`` opens both. A crawl without REP_REPORT and REP_ARCHIVE does not import this package.
"""

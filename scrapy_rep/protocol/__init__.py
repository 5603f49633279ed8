"""What the standards say: RFC 9309 and its extensions.

Pure: no Scrapy, no Twisted, no socket, no clock, no logging.
"""

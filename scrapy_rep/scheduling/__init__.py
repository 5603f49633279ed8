"""When a request may go on: everything that touches Scrapy's engine, scheduler and slots.

A request that cannot go on yet, because its robots.txt is being fetched or because its host has to
rest, waits in a queue of this package. It does not use up one of the crawl's CONCURRENT_REQUESTS.

==================  ================================================================
``clock``           the time and its timers
``engine``          every attribute of Scrapy's engine and downloader that is used
``hosts``           who waits for one host, in which order, and how fast it may go
``throttle``       one queue for each host; who may go on now
``scheduler``       stands between the engine and the crawl's scheduler
``fetch_limit``     how many robots.txt files are fetched at once
==================  ================================================================
"""

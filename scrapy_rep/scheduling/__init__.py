"""When a request may start: everything that touches Scrapy's engine, scheduler and slots.

A request cannot start while its robots.txt is being fetched, or before the delay of its host is
over. Then it waits in a queue of this package, and does not use up CONCURRENT_REQUESTS.

====================  ==============================================================
``clock``             the time and timers
``engine``            every attribute of Scrapy's engine and downloader that is used
``features``          the private attributes among them, and what is off without each
``slots``             the limits of hosts: download slots, or the scopes of a throttler
``handlers``          what is known of download handlers, and how a download is ended
``hosts``             one host: the order of its requests and its delay
``queues``            all requests that wait, and how many may
``overflow``          requests that wait beyond that number
``shared_overflow``   the same in the Redis server of scrapy-redis
``in_progress``       the requests that have started and have not ended
``blocks``            queues of which no request may start
``throttle``          when a request may start
``reservation``       hosts that are shared with other crawlers
``drop_pace``         how often requests start that are dropped then
``scheduler``         queues requests between the engine and the crawl's scheduler
``fetch_limit``       how many robots.txt files are fetched at once
``connection_limit``  the connections of download handlers with a pool
``rendering``         pages that a rendering service fetches
====================  ==============================================================
"""

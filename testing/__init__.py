"""What tests, checks, benchmarks and the fuzzer share; none of it is a test.

Servers on loopback:

- ``web`` is any number of web sites, ``faults`` responses that are broken on purpose.
- ``redis_server`` is a Redis of one's own.

Crawls:

- ``soak`` is a crawl of many faulty origins, ``simulation`` random crawls on a virtual clock.
- ``counters`` says what a crawl has left behind, ``measure`` how much memory it takes.

Files:

- ``corpus`` has robots.txt files, real ones or those of ``generated``.
- ``hostile`` has files that are made to be slow, ``reference`` a slow matcher to compare with.

``harness`` runs benchmarks and checks, and prints what they return.
"""

"""Shared by tests, checks, benchmarks and the fuzzer. Contains no tests.

Servers on loopback:

- ``web`` serves any number of web sites; ``faults`` has broken responses for them.
- ``redis_server`` starts a Redis server.

Crawls:

- ``simulation`` runs random crawls on a virtual clock; ``clock`` is one that a test moves.
- ``counters`` finds what a crawl did not release; ``measure`` measures its memory.
- ``report_samples`` has event logs without a crawl; ``archives`` reads the archive of one.

Files:

- ``corpus`` has robots.txt files: real ones, or those of ``generated``.
- ``hostile`` has files that are slow to read; ``reference`` is a slow matcher to compare with.

Pages of the documentation, written from the code:

- ``console_pages`` runs their sessions, ``crawlers_page`` and ``design_page`` have their tables.

``harness`` runs benchmarks and checks, and prints their results.
"""

"""Crawls with other plugins of Scrapy, each in an environment of its own.

``python -m checks.compatibility [NAME…] [--scrapy VERSION]``, or ``make compatibility``, makes a
virtual environment for each case below ``.venv-compatibility/``, installs this checkout and what
the case requires there, runs each of its checks in a process of its own, and prints a table. All
crawls stay on loopback. Only pip uses the network.

A case is a module ``case_NAME.py`` with

- ``REQUIREMENTS``: what pip installs, a tuple of strings. The first is the plugin.
- ``CHECKS``: a tuple of functions ``async def check(web: Web) -> None``. The name of a function
  says what holds. It raises AssertionError with a message if that does not hold, and
  :class:`~.crawling.CannotRunError` if the machine lacks something that the check needs.
- ``KNOWN_FAULTS``, if the plugin itself makes a check fail: the name of the check, and why. Such a
  check fails the run only when it begins to work.

The module is also imported without the plugin. So it names the plugin in settings, or imports it
within functions.
"""

"""Runs one check of a case, within the environment of the case (``python -m``, case, check).

The last line of stdout is the result, as JSON; the log goes to stderr.
"""

from __future__ import annotations

import json
import logging
import sys
import traceback
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from scrapy.utils.defer import deferred_from_coro
from scrapy.utils.reactor import install_reactor

from testing.web import Web

from .crawling import SETTINGS, CannotRunError, Check
from .table import FAILED, NOT_RUN, OK, distribution_of


def main(case: str, name: str) -> None:
    """Run the check and print its result."""
    logging.basicConfig(level=logging.INFO)
    install_reactor(SETTINGS["TWISTED_REACTOR"])
    from twisted.internet import task

    module = import_module(f"checks.compatibility.case_{case}")
    check = next(each for each in module.CHECKS if each.__name__ == name)
    result = {"plugin": _version(module.REQUIREMENTS), "scrapy": version("scrapy")}
    try:
        task.react(lambda _: deferred_from_coro(_run(check, result)))
    finally:
        sys.stdout.write("\n" + json.dumps(result) + "\n")


async def _run(check: Check, result: dict[str, Any]) -> None:
    web = Web()
    try:
        await check(web)
        result.update(status=OK, message="")
    except AssertionError as error:
        traceback.print_exc()
        result.update(status=FAILED, message=str(error))
    except CannotRunError as error:
        result.update(status=NOT_RUN, message=str(error))
    except Exception as error:
        traceback.print_exc()
        result.update(status=FAILED, message=f"{type(error).__name__}: {error}")
    finally:
        web.close()


def _version(requirements: tuple[str, ...]) -> str:
    if not requirements:
        return ""
    try:
        return version(distribution_of(requirements[0]))
    except PackageNotFoundError:
        return ""


if __name__ == "__main__":
    main(*sys.argv[1:])

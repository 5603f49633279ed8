"""The web's process: `python -m example.web` with `demo`, `workers` or `folder DIR`.

Prints one line of JSON once it listens, `{"port": N}` or `{"error": "…"}`, serves until its
standard input ends, and then prints the URLs of all requests that it received, in JSON, each with
the seconds at which it came. A parent that dies closes that input, so the web never outlives it.
"""

from __future__ import annotations

import contextlib
import json
import sys
import threading
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from example.web import server
from example.web.demo import demo_sites
from example.web.folder import folder_sites
from example.web.workers import worker_sites

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from example.web.sites import Site


def main(arguments: list[str]) -> int:
    sites_on: Callable[[int], Sequence[Site]]
    match arguments:
        case ["demo"]:
            sites_on = demo_sites
        case ["workers"]:
            sites_on = worker_sites
        case ["folder", folder]:
            sites_on = partial(folder_sites, Path(folder))
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    try:
        port, record = server.listen(sites_on)
    except server.WebError as error:
        print(json.dumps({"error": str(error)}), flush=True)
        return 1
    print(json.dumps({"port": port}), flush=True)
    threading.Thread(target=_stop_at_end_of_input, daemon=True).start()
    server.run()
    with contextlib.suppress(BrokenPipeError):  # nobody is left to read it
        print(json.dumps(record.received), flush=True)
    return 0


def _stop_at_end_of_input() -> None:
    while sys.stdin.buffer.read(4096):
        pass
    server.stop()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

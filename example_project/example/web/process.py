"""The web as a spider sees it: a process to start, and to end with its record."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
# A record of some ten thousand URLs is read in far less.
STOP_TIMEOUT = 30.0


class WebProcess:
    """A running `python -m example.web`, listening on `port`."""

    def __init__(self, *arguments: str) -> None:
        """Start it. Raises RuntimeError with its reason if it does not come up."""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "example.web", *arguments],
            cwd=PROJECT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # Ctrl-C is for the crawl, which ends the web after its last request.
            start_new_session=True,
        )
        assert self._process.stdout is not None
        ready = json.loads(self._process.stdout.readline() or '{"error": "it did not start"}')
        if "error" in ready:
            self._process.wait()
            raise RuntimeError(f"the example web: {ready['error']}")
        self.port: int = ready["port"]

    def stop(self) -> list[str]:
        """End it and return the URL of every request it received, in order."""
        return [url for url, _ in self.stop_with_times()]

    def stop_with_times(self) -> list[tuple[str, float]]:
        """The same with the seconds at which each came, on a clock of its own."""
        try:
            output, _ = self._process.communicate(timeout=STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()
            raise
        return [(url, at) for url, at in json.loads(output)]

"""Headless Chromium, controlled through its DevTools protocol over a pipe.

It needs no package, only a Chromium on the machine. Chromium reads commands from file descriptor 3
and writes answers and events to file descriptor 4. Each is JSON that ends in a NUL.
"""

from __future__ import annotations

import base64
import json
import os
import selectors
import shutil
import subprocess
import time
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
TIMEOUT = 120.0
"""Seconds for one command."""


def find() -> str | None:
    """Return the path of a Chromium, or None if there is none. CHROMIUM takes precedence."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


class Chromium:
    """A browser without a window. It is a context manager."""

    def __init__(self, path: str) -> None:
        self._folder = TemporaryDirectory(ignore_cleanup_errors=True)
        to_browser, self._commands = os.pipe()
        self._answers, from_browser = os.pipe()
        arguments = [
            path,
            "--headless=new",
            "--remote-debugging-pipe",
            f"--user-data-dir={self._folder.name}",
            "--no-first-run",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-background-networking",
            "--disable-component-update",
            "--hide-scrollbars",
            *(["--no-sandbox"] if os.geteuid() == 0 else []),
        ]
        # A shell moves the pipes to the descriptors 3 and 4, because Popen cannot.
        script = f'exec "$@" 3<&{to_browser} 4>&{from_browser}'
        self._process = subprocess.Popen(
            ["/bin/bash", "-c", script, "bash", *arguments],
            pass_fds=(to_browser, from_browser),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._answers, selectors.EVENT_READ)
        self._buffer = b""
        self._number = 0
        self.events: list[dict[str, Any]] = []
        """The events that no call has taken."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._selector.close()
        os.close(self._commands)
        os.close(self._answers)
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._folder.cleanup()

    def call(self, method: str, session: str | None = None, **parameters: object) -> dict[str, Any]:
        """Send a command, and return its result. Raises RuntimeError if it fails."""
        self._number += 1
        command: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if session is not None:
            command["sessionId"] = session
        octets = json.dumps(command).encode() + b"\0"
        while octets:
            octets = octets[os.write(self._commands, octets) :]
        deadline = time.monotonic() + TIMEOUT
        while True:
            message = self._message(deadline)
            if message.get("id") == self._number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                result: dict[str, Any] = message["result"]
                return result
            self.events.append(message)

    def wait(self, method: str, session: str) -> dict[str, Any]:
        """Return the next event with this name."""
        deadline = time.monotonic() + TIMEOUT
        while True:
            for event in self.events:
                if event.get("method") == method and event.get("sessionId") == session:
                    self.events.remove(event)
                    return event
            self.events.append(self._message(deadline))

    def _message(self, deadline: float) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            if not self._selector.select(max(deadline - time.monotonic(), 0)):
                raise RuntimeError("Chromium does not answer")
            octets = os.read(self._answers, 1 << 20)
            if not octets:
                raise RuntimeError("Chromium has ended")
            self._buffer += octets
        message, _, self._buffer = self._buffer.partition(b"\0")
        found: dict[str, Any] = json.loads(message)
        return found


class Tab:
    """A page in a tab of its own, without network."""

    def __init__(
        self,
        browser: Chromium,
        *,
        width: int,
        height: int,
        dark: bool = False,
        scripts: bool = True,
    ) -> None:
        self._browser = browser
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self._target = target
        attached = browser.call("Target.attachToTarget", targetId=target, flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "Performance"):
            self.call(f"{domain}.enable")
        offline = {"latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
        self.call("Network.emulateNetworkConditions", offline=True, **offline)
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 500,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media="", features=[scheme])
        self.call("Emulation.setScriptExecutionDisabled", value=not scripts)

    def call(self, method: str, **parameters: object) -> dict[str, Any]:
        """Send a command to this tab."""
        return self._browser.call(method, self.session, **parameters)

    def open(self, url: str) -> float:
        """Open a page, wait until it is loaded and drawn, and return the seconds that it took."""
        began = time.monotonic()
        self.call("Page.navigate", url=url)
        self._browser.wait("Page.loadEventFired", self.session)
        # Reading the height lays out the page.
        self.evaluate("document.documentElement.getBoundingClientRect().height")
        return time.monotonic() - began

    def evaluate(self, expression: str) -> Any:
        """Return the value of a JavaScript expression. It may be a promise."""
        found = self.call(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in found:
            details = found["exceptionDetails"]
            text = details.get("exception", {}).get("description", details["text"])
            raise RuntimeError(f"{expression[:80]}: {text}")
        return found["result"].get("value")

    def screenshot(self, top: float, height: float) -> bytes:
        """Return a PNG of a part of the page, in its whole width."""
        width = self.call("Page.getLayoutMetrics")["cssLayoutViewport"]["clientWidth"]
        clip = {"x": 0, "y": top, "width": width, "height": height, "scale": 1}
        image = self.call("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)
        return base64.b64decode(image["data"])

    def messages(self) -> list[str]:
        """Return what the console shows."""
        found = []
        for event in self._events():
            parameters = event["params"]
            match event["method"]:
                case "Log.entryAdded":
                    found.append(str(parameters["entry"]["text"]))
                case "Runtime.consoleAPICalled":
                    values = [str(each.get("value")) for each in parameters["args"]]
                    found.append(" ".join(values))
                case "Runtime.exceptionThrown":
                    found.append(str(parameters["exceptionDetails"]["text"]))
        return found

    def requests(self) -> list[str]:
        """Return the URLs that the page requested, its own included."""
        return [
            str(event["params"]["request"]["url"])
            for event in self._events()
            if event["method"] == "Network.requestWillBeSent"
        ]

    def close(self) -> None:
        """Close the tab."""
        self._browser.call("Target.closeTarget", targetId=self._target)

    def _events(self) -> list[dict[str, Any]]:
        events = self._browser.events
        return [event for event in events if event.get("sessionId") == self.session]

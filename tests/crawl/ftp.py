"""An FTP server on loopback, in a thread of its own, that records what it received."""

from __future__ import annotations

import logging
import threading
import time
import warnings
from pathlib import Path
from typing import TypeVar

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # asyncore, on Python 3.11 and earlier
    from pyftpdlib.authorizers import DummyAuthorizer  # type: ignore[import-untyped]
    from pyftpdlib.handlers import FTPHandler  # type: ignore[import-untyped]
    from pyftpdlib.ioloop import IOLoop  # type: ignore[import-untyped]
    from pyftpdlib.servers import FTPServer  # type: ignore[import-untyped]

from collections.abc import Mapping

T = TypeVar("T")


class FtpSite:
    """Serves a folder to anonymous users and to the user ``me``.

    Without ``anonymous`` every login fails. ``greeting`` is sent to each client that connects.
    """

    def __init__(
        self,
        folder: Path,
        files: Mapping[str, bytes],
        *,
        anonymous: bool = True,
        greeting: str = "Hello.",
    ) -> None:
        for name, body in files.items():
            (folder / name).write_bytes(body)
        received: list[tuple[str, str, str]] = []
        cut_off: list[str] = []
        self._received, self._cut_off = received, cut_off
        logging.getLogger("pyftpdlib").setLevel(logging.CRITICAL)
        authorizer = DummyAuthorizer()
        if anonymous:
            authorizer.add_anonymous(str(folder))
            authorizer.add_user("me", "secret", str(folder))

        class Handler(FTPHandler):  # type: ignore[misc]
            auth_failed_timeout = 0
            banner = greeting

            def on_file_sent(self, file: str) -> None:
                received.append((self.username, self.password, Path(file).name))

            def on_incomplete_file_sent(self, file: str) -> None:
                cut_off.append(Path(file).name)

        Handler.authorizer = authorizer
        self._loop = IOLoop()
        self._server = FTPServer(("127.0.0.1", 0), Handler, ioloop=self._loop)
        self.root = f"ftp://127.0.0.1:{self._server.address[1]}"
        self._running = True
        self._turns = 0
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def urls(self, *paths: str) -> list[str]:
        return [self.root + path for path in paths]

    @property
    def received(self) -> list[tuple[str, str, str]]:
        """The user, the password and the file name of each file that was sent."""
        return self._up_to_date(self._received)

    @property
    def cut_off(self) -> list[str]:
        """The names of the files whose transfer the client ended early."""
        return self._up_to_date(self._cut_off)

    @property
    def paths(self) -> list[str]:
        """The paths of the files that were sent, in order."""
        return ["/" + name for _, _, name in self.received]

    def close(self) -> None:
        """Close every connection."""
        self._running = False
        self._thread.join()

    def _up_to_date(self, record: list[T]) -> list[T]:
        """A copy of a record, after the server has recorded everything that it has sent."""
        turn = self._turns
        while self._thread.is_alive() and self._turns < turn + 2:
            time.sleep(0.005)
        return list(record)

    def _serve(self) -> None:
        while self._running:
            self._loop.loop(timeout=0.02, blocking=False)
            self._turns += 1
        self._server.close_all()

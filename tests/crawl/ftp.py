"""An FTP server on loopback, in a thread of its own, that keeps a record of who asked for what."""

from __future__ import annotations

import logging
import threading
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # asyncore, on Python 3.11 and earlier
    from pyftpdlib.authorizers import DummyAuthorizer  # type: ignore[import-untyped]
    from pyftpdlib.handlers import FTPHandler  # type: ignore[import-untyped]
    from pyftpdlib.ioloop import IOLoop  # type: ignore[import-untyped]
    from pyftpdlib.servers import FTPServer  # type: ignore[import-untyped]

if TYPE_CHECKING:
    from collections.abc import Mapping


class FtpSite:
    """Serves a folder to everybody and to ``me``, or to nobody where ``anonymous`` is false.

    ``received`` holds user, password and path of every file that was sent, ``cut_off`` the names
    of those that the client did not want to the end. ``greeting`` is said to whoever connects.
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
        self.received: list[tuple[str, str, str]] = []
        self.cut_off: list[str] = []
        logging.getLogger("pyftpdlib").setLevel(logging.CRITICAL)
        authorizer = DummyAuthorizer()
        if anonymous:
            authorizer.add_anonymous(str(folder))
            authorizer.add_user("me", "secret", str(folder))
        received, cut_off = self.received, self.cut_off

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
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def urls(self, *paths: str) -> list[str]:
        return [self.root + path for path in paths]

    @property
    def paths(self) -> list[str]:
        """The files that were sent, in their order."""
        return ["/" + name for _, _, name in self.received]

    def close(self) -> None:
        """Close every connection."""
        self._running = False
        self._thread.join()

    def _serve(self) -> None:
        while self._running:
            self._loop.loop(timeout=0.02, blocking=False)
        self._server.close_all()

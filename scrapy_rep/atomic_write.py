"""Replaces a file as a whole, so that no reader and no crash leaves a part of it."""

from __future__ import annotations

import os
from contextlib import suppress
from errno import EINVAL
from pathlib import Path
from secrets import token_hex
from stat import S_IMODE, S_ISREG


def write_atomically(path: Path, octets: bytes) -> None:
    """Replace a file. A reader finds the old file or the new one. Raises OSError.

    The new file has the permissions of the old one, and its owner where that is possible. If the
    path is a symbolic link, the file that it leads to is replaced.
    """
    path = Path(os.path.realpath(path))
    old = path.stat() if path.exists() else None
    if old is not None and not S_ISREG(old.st_mode):
        raise OSError(EINVAL, "it is not a regular file")
    temporary = path.with_name(f".{token_hex(8)}.tmp")
    try:
        with temporary.open("xb") as file:
            if old is not None:
                # Only root can give a file to another user. Windows has no such function.
                with suppress(OSError, AttributeError):
                    os.chown(temporary, old.st_uid, old.st_gid)
                temporary.chmod(S_IMODE(old.st_mode))
            file.write(octets)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise

from __future__ import annotations

import os
from pathlib import Path

import pytest

from scrapy_rep.reports.files import write_atomically


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o755])
def test_permissions_and_links_stay(tmp_path: Path, mode: int) -> None:
    path, link = tmp_path / "robots.txt", tmp_path / "link"
    path.write_bytes(b"old")
    path.chmod(mode)
    link.symlink_to(path)
    before = path.stat()
    write_atomically(link, b"new")
    assert (link.is_symlink(), path.read_bytes()) == (True, b"new")
    after = path.stat()
    for name in ("st_mode", "st_uid", "st_gid"):
        assert getattr(after, name) == getattr(before, name)
    assert after.st_ino != before.st_ino  # a reader of the old file still has all of it


def test_a_new_file_has_the_permissions_of_the_process(tmp_path: Path) -> None:
    write_atomically(tmp_path / "new", b"")
    (tmp_path / "other").touch()
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_what_is_no_regular_file_is_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="not a regular file"):
        write_atomically(tmp_path / "pipe", b"")
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]

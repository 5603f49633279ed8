from __future__ import annotations

import errno
import fcntl
import gzip
import multiprocessing
import os
import random
from typing import TYPE_CHECKING

import pytest

from scrapy_rep.reports import archive_file
from scrapy_rep.reports.archive_file import MAX_TAIL, ArchiveFile, ArchiveFileError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def member(text: str) -> bytes:
    return gzip.compress(b"WARC/1.1\r\n" + text.encode(), mtime=0)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "a.warc.gz"


def append(path: Path, *octets: bytes) -> ArchiveFile:
    file = ArchiveFile(str(path))
    for each in octets:
        file.append(each)
    file.close()
    return file


def test_members_are_appended_to_what_is_there(path: Path) -> None:
    append(path, member("one"), member("two"))
    append(path, member("three"))
    assert path.read_bytes() == member("one") + member("two") + member("three")


@pytest.mark.parametrize("cut", [1, 3, 9, 11, -8, -1])
def test_a_torn_end_is_moved_to_a_file_of_its_own(path: Path, cut: int) -> None:
    torn = member("x" * 100)[:cut]
    append(path, member("one"), torn)
    file = append(path, member("two"))
    assert path.read_bytes() == member("one") + member("two")
    [(name, size)] = file.moved
    assert (name.startswith(f"{path}.torn-"), size) == (True, len(torn))
    with open(name, "rb") as moved:
        assert moved.read() == torn


def test_a_file_that_has_only_a_torn_record_is_emptied(path: Path) -> None:
    append(path, member("one")[:-1])
    append(path, member("two"))
    assert path.read_bytes() == member("two")


def test_the_torn_end_of_another_process_is_moved_while_the_file_is_open(path: Path) -> None:
    file = ArchiveFile(str(path))
    file.append(member("one"))
    with path.open("ab") as other:
        other.write(member("two") + member("three")[:-2])
    file.append(member("four"))
    file.close()
    assert path.read_bytes() == member("one") + member("two") + member("four")
    assert [size for _, size in file.moved] == [len(member("three")) - 2]


def test_a_record_that_contains_members_is_whole(path: Path) -> None:
    # Octets that cannot be compressed are stored as they are, also if they look like a member.
    noise = random.Random(1).randbytes(200_000)
    inner = member("inner")
    content = b"WARC/1.1\r\n" + noise + inner * 3 + noise
    outer = gzip.compress(content, 0)
    assert inner in outer
    append(path, outer)
    file = append(path, member("two"))
    assert (file.moved, path.read_bytes()) == ([], outer + member("two"))


def test_many_places_that_look_like_a_member_are_no_torn_end(path: Path) -> None:
    outer = gzip.compress(b"WARC/1.1\r\n" + b"\x1f\x8b\x08" * 20_000, 0)
    append(path, outer)
    file = append(path, member("two"))
    assert (file.moved, path.read_bytes()) == ([], outer + member("two"))


@pytest.mark.parametrize(
    "content",
    [
        b"text",
        b"\x1f\x8b\x08 no gzip",
        gzip.compress(b"text"),
        gzip.compress(b"text")[:-1],
        member("one") + b"text",
        member("one") + gzip.compress(b"text"),
        member("one") + member("two")[:-1] + random.Random(1).randbytes(MAX_TAIL),
    ],
    ids=[
        "text",
        "almost gzip",
        "another gzip file",
        "another gzip file, torn",
        "text at the end",
        "another gzip member at the end",
        "damaged long before the end",
    ],
)
def test_any_other_file_stays_as_it_is(path: Path, content: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(content)
    with pytest.raises(ArchiveFileError, match=r"not a WARC file .*, at offset"):
        ArchiveFile(str(path))
    assert path.read_bytes() == content
    assert os.listdir(path.parent) == [path.name]


def test_a_full_disk_leaves_whole_members(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = ArchiveFile(str(path))
    file.append(member("one"))

    def write(descriptor: int, data: memoryview) -> int:
        if len(data) < 10:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return os.write(descriptor, data[:5])

    with monkeypatch.context() as patch:
        patch.setattr(archive_file, "_write", write)
        with pytest.raises(OSError, match="No space left"):
            file.append(member("two"))
    assert path.read_bytes() == member("one")
    file.append(member("three"))
    file.close()
    assert path.read_bytes() == member("one") + member("three")


def test_a_write_that_is_done_in_parts_is_completed(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive_file, "_write", lambda file, data: os.write(file, data[:7]))
    append(path, member("one"), member("two"))
    assert path.read_bytes() == member("one") + member("two")


def test_a_device_that_is_full(tmp_path: Path) -> None:
    path = tmp_path / "full.warc.gz"
    path.symlink_to("/dev/full")
    file = ArchiveFile(str(path))
    with pytest.raises(OSError, match="No space left"):
        file.append(member("one"))
    file.close()


def test_a_lock_that_does_not_end(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    append(path, member("one"))
    monkeypatch.setattr(archive_file, "LOCK_TIMEOUT", 0.05)
    with path.open("rb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(TimeoutError, match=r"another process has locked it for 0\.05 s"):
            ArchiveFile(str(path))


def fill(path: str, name: str) -> None:
    file = ArchiveFile(path)
    for number in range(200):
        file.append(member(f"{name} {number}") + member(f"{name} {number} again"))
    file.close()


def in_processes(*calls: tuple[Callable[..., None], tuple[str, ...]]) -> None:
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=call, args=arguments) for call, arguments in calls]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0


def test_processes_append_to_one_file(path: Path) -> None:
    in_processes((fill, (str(path), "a")), (fill, (str(path), "b")))
    texts = gzip.decompress(path.read_bytes()).split(b"WARC/1.1\r\n")[1:]
    for name in (b"a", b"b"):
        own = [text for text in texts if text.startswith(name)]
        expected = [b"%b %d%b" % (name, n, end) for n in range(200) for end in (b"", b" again")]
        assert own == expected
    assert all(texts[index] + b" again" == texts[index + 1] for index in range(0, len(texts), 2))

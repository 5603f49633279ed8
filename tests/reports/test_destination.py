from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from scrapy import Spider

from scrapy_rep.exceptions import SettingError
from scrapy_rep.reports.destination import destination_of, has_other_parts, new_run_id

if TYPE_CHECKING:
    from pathlib import Path

NOW = 1_700_000_000.5


def spider() -> Spider:
    return Spider("sample", region="eu/north", number=7)


def paths_of(*templates: str, jobdir: str | None = None) -> list[Path]:
    found = destination_of(templates, spider(), "run", NOW, jobdir)
    return [*(target.path for target in found.targets), found.part]


def test_the_parameters_of_a_path(tmp_path: Path) -> None:
    template = f"{tmp_path}/%(region)s/%(number)03d/%(name)s-%(time)s.json"
    name = "sample-2023-11-14T22-13-20+00-00"
    assert paths_of(template) == [
        tmp_path / f"eu/north/007/{name}.json",
        tmp_path / f"eu/north/007/{name}.run.part",
    ]
    assert (tmp_path / "eu/north/007").is_dir()
    assert list((tmp_path / "eu/north/007").iterdir()) == []


def test_several_files_have_one_part(tmp_path: Path) -> None:
    found = paths_of(f"{tmp_path}/a.json", f"{tmp_path}/b/c.JSON")
    assert found == [tmp_path / "a.json", tmp_path / "b/c.JSON", tmp_path / "a.run.part"]


def test_the_parts_of_a_job_are_in_its_folder(tmp_path: Path) -> None:
    found = paths_of(f"{tmp_path}/a.json", jobdir=f"{tmp_path}/job")
    assert found[-1] == tmp_path / "job/robots-report/run.part"


def test_a_long_name_leaves_room_for_the_run(tmp_path: Path) -> None:
    part = paths_of(f"{tmp_path}/{'x' * 240}.json")[-1]
    part.touch()


@pytest.mark.parametrize(
    ("name", "written_at", "expected"),
    [
        ("a.other.part", NOW, True),
        ("a.other.part", NOW - 1, False),
        ("a.run.part", NOW, False),
        ("b.other.part", NOW, False),
        ("a.json", NOW, False),
    ],
)
def test_the_parts_of_other_runs(
    tmp_path: Path, name: str, written_at: float, expected: bool
) -> None:
    path = tmp_path / name
    path.touch()
    os.utime(path, (written_at, written_at))
    assert has_other_parts(tmp_path / "a.run.part", NOW) is expected


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        ("report.txt", r"it must be a path that ends in \.json"),
        ("report", "it must be a path that ends in"),
        ("%(nome)s.json", "the spider has no attribute 'nome'"),
        ("%(name.json", "it is no template such as"),
        ("%s%s.json", "it is no template such as"),
        ("%(name)d.json", "it is no template such as"),
        ("100%.json", "it is no template such as"),
        ("file/report.json", "cannot be written: .*[Ff]ile exists|Not a directory"),
        ("folder.json", "folder.json cannot be written: it is a directory"),
        ("x" * 300 + ".json", "cannot be written: File name too long"),
        ("a\0b.json", "cannot be written: .*null"),
    ],
)
def test_a_path_that_cannot_be_used_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, template: str, problem: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(SettingError, match=f"^REP_REPORT is .*: .*({problem})"):
        paths_of(template)


def test_each_run_has_an_identifier_of_its_own() -> None:
    first, second = new_run_id(NOW), new_run_id(NOW)
    assert first != second
    assert first.startswith("20231114T221320-")

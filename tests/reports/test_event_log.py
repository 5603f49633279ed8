"""The paths of a report and of its event log."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from scrapy import Spider

from scrapy_rep.exceptions import SettingError
from scrapy_rep.reports.event_log import paths_of
from scrapy_rep.reports.recording import setting_errors

NOW = 1_700_000_000.5


def files_of(*templates: str) -> list[Path]:
    """The reports of a run, and its event log."""
    spider = Spider("sample", region="eu/north", number=7)
    with setting_errors("REP_REPORT", templates[0]):
        targets, log = paths_of(templates, spider, "run", NOW)
    return [*targets, log]


def test_the_parameters_of_a_path(tmp_path: Path) -> None:
    template = f"{tmp_path}/%(region)s/%(number)03d/%(name)s-%(time)s-%(pid)s-%%.json"
    name = f"sample-2023-11-14T22-13-20+00-00-{os.getpid()}-%"
    assert files_of(template) == [
        tmp_path / f"eu/north/007/{name}.json",
        tmp_path / f"eu/north/007/{name}.run.events.gz",
    ]
    assert list((tmp_path / "eu/north/007").iterdir()) == []
    # Several reports have one log.
    found = files_of(f"{tmp_path}/a.json", f"{tmp_path}/b/c.JSON")
    assert found == [tmp_path / "a.json", tmp_path / "b/c.JSON", tmp_path / "a.run.events.gz"]


@pytest.mark.parametrize("name", ["x" * 240, "語" * 80], ids=["one byte", "three bytes"])
def test_a_long_name_leaves_room_for_the_run(tmp_path: Path, name: str) -> None:
    log = files_of(f"{tmp_path}/{name}.json")[-1]
    assert len(os.fsencode(log.name)) == 150 + len(".run.events.gz")


def test_a_page_needs_jinja2_at_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    files_of(f"{tmp_path}/a.json")
    with pytest.raises(SettingError, match=r"REP_REPORT is .* the package jinja2: pip install"):
        files_of(f"{tmp_path}/a.html")


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        ("report.txt", r"it must be a path that ends in \.json"),
        ("%(nome)s.json", "the spider has no attribute 'nome'"),
        ("%(name.json", "it is not a template such as"),
        ("%s%s.json", "it is not a template such as"),
        ("file/report.json", "file cannot be written: .*[Ff]ile exists|Not a directory"),
        ("folder.json", "folder.json cannot be written: it is a directory"),
        ("a\0b/c.json", "it cannot be written: .*null"),
    ],
)
def test_a_path_that_cannot_be_used_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, template: str, problem: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(SettingError, match=f"^REP_REPORT is .*: .*({problem})"):
        files_of(template)

"""``report --html``: the page of one or more reports."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from scrapy_rep.reports.rendering import json_text
from testing import report_samples

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import Run


def sample(folder: Path) -> str:
    path = folder / "one.json"
    path.write_text(json_text(report_samples.report(3)), "utf-8")
    return str(path)


def test_the_page_is_written_beside_the_summary(run: Run, tmp_path: Path) -> None:
    done = run("report", sample(tmp_path), "--html", str(tmp_path / "page.html"))
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("Runs ")
    page = (tmp_path / "page.html").read_text("utf-8")
    assert page.startswith("<!DOCTYPE html>\n")
    assert "<title>Crawl report: catalog</title>" in page


def test_the_page_is_written_beside_json(run: Run, tmp_path: Path) -> None:
    done = run("report", sample(tmp_path), "--html", str(tmp_path / "page.html"), "--json")
    assert json.loads(done.out)["type"] == "report"
    assert (tmp_path / "page.html").exists()


def test_a_page_that_cannot_be_written(run: Run, tmp_path: Path) -> None:
    for path in (str(tmp_path / "no" / "page.html"), "a\0b"):
        done = run("report", sample(tmp_path), "--html", path)
        assert done.code == 2
        assert "cannot write " in done.err

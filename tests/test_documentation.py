"""The examples in the documentation run, and their types are right."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest
import scrapy
from mypy import api as mypy
from scrapy import signals

import scrapy_rep

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
PAGES = [README]
if hasattr(signals, "robots_parsed"):  # Scrapy 2.18, to which the pages refer
    PAGES += sorted((ROOT / "docs").rglob("*.md"))
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)

MODULES = sorted(each.name for each in pkgutil.walk_packages(scrapy_rep.__path__, "scrapy_rep."))


@pytest.mark.parametrize("name", [scrapy_rep.__name__, *MODULES])
def test_examples_in_docstrings(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.FAIL_FAST)
    assert result.failed == 0


@pytest.mark.no_cover
def test_python_in_the_pages_has_the_right_types(
    tmp_path: Path, pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = []
    for page in PAGES:
        name = re.sub(r"\W", "_", page.relative_to(ROOT).as_posix())
        for number, block in enumerate(BLOCK.findall(page.read_text(encoding="utf-8"))):
            paths.append(tmp_path / f"{name}_{number}.py")
            # Examples in the form of a session are text, with the statements after the prompts.
            code = re.findall(r"^(?:>>>|\.\.\.) ?(.*)$", block, re.MULTILINE)
            paths[-1].write_text("\n".join(code) + "\n" if code else block, encoding="utf-8")
    assert len(paths) > 2
    cache = pytestconfig.rootpath / ".mypy_cache" / f"readme-scrapy-{scrapy.__version__}"
    monkeypatch.chdir(ROOT)
    report, errors, status = mypy.run(
        [
            f"--cache-dir={cache}",
            "--strict",
            "--config-file=setup.cfg",
            "--disable-error-code=var-annotated",  # the value of a setting may be []
            *map(str, paths),
        ]
    )
    assert errors == ""
    assert status == 0, report


def test_sessions_in_the_pages() -> None:
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner()
    count = 0
    for page in [README, *(ROOT / "docs").rglob("*.md")]:
        for block in BLOCK.findall(page.read_text(encoding="utf-8")):
            if block.startswith(">>> "):
                count += 1
                runner.run(parser.get_doctest(block, {}, page.name, str(page), 0))
    assert count > 2
    assert runner.summarize(verbose=False).failed == 0

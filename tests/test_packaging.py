"""The metadata of a release, and the versions that are tested. `checks/packaging.py` builds it."""

from __future__ import annotations

import ast
import re
import runpy
import sys
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from checks import packaging

if sys.version_info < (3, 11):
    import tomli as tomllib
else:
    import tomllib

ROOT = Path(__file__).parent.parent
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
README = (ROOT / "README.md").read_text("utf-8")
LINK = re.compile(r"\]\(([^)]*)\)")


def versions(name: str) -> list[str]:
    """Return a list of noxfile.py, which cannot be imported without nox."""
    found = re.search(rf"\n{name} = (\[[^]]*\])", (ROOT / "noxfile.py").read_text("utf-8"))
    assert found is not None
    return list(ast.literal_eval(found[1]))


def test_the_python_versions_of_the_classifiers_are_tested() -> None:
    prefix = "Programming Language :: Python :: 3."
    named = [f"3.{each.removeprefix(prefix)}" for each in PROJECT["classifiers"] if prefix in each]
    tested = versions("PYTHONS")
    assert named == tested[: len(named)]
    supported = SpecifierSet(PROJECT["requires-python"])
    assert str(supported) == f">={named[0]}"
    assert all(version in supported for version in tested)


def minimum(requirement: Requirement) -> str:
    """Return the minimum version in the form of a constraint."""
    (only,) = requirement.specifier
    assert only.operator == ">=", f"{requirement} has no minimum"
    marker = f"; {requirement.marker}" if requirement.marker else ""
    return f"{requirement.name}=={only.version}{marker}"


def test_the_minimum_versions_are_tested() -> None:
    extras = PROJECT["optional-dependencies"]
    names = ("archive", "cli", "redis", "survey", "report")
    texts = [*PROJECT["dependencies"], *(text for name in names for text in extras[name])]
    texts = list(dict.fromkeys(text for text in texts if not text.startswith("scrapy-rep[")))
    lines = (ROOT / "tests/oldest.txt").read_text("utf-8").splitlines()
    pinned = [line for line in lines if not line.startswith("#")]
    assert pinned == [minimum(Requirement(text)) for text in texts]
    assert f"scrapy=={versions('SCRAPY')[0]}" in pinned


def test_each_package_that_is_imported_is_declared() -> None:
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    declared = text[text.index("\ndependencies") : text.index("\ntest = ")].lower()
    for path in (ROOT / "scrapy_rep").rglob("*.py"):
        tree = ast.parse(path.read_text("utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
                node.body = []
        imports = [ast.unparse(node).split() for node in ast.walk(tree)
                   if isinstance(node, (ast.Import, ast.ImportFrom))]  # fmt: skip
        others = {words[1].partition(".")[0] for words in imports} - sys.stdlib_module_names - {""}
        # A queue of scrapy-redis is for crawls that have it.
        assert all(name in declared for name in others - {"scrapy_redis"}), (path, others)


def test_each_extra_is_installed_alone() -> None:
    assert {*packaging.FEATURES, *packaging.TOOLS} == set(PROJECT["optional-dependencies"])


def test_no_link_of_the_description_is_relative() -> None:
    setup = runpy.run_path(str(ROOT / "setup.py"))
    description = setup["description"]()
    assert any(not link.startswith("https://") for link in LINK.findall(README))
    assert all(link.startswith("https://") for link in LINK.findall(description))
    assert re.findall("^```.*?^```", description, re.MULTILINE | re.DOTALL) == (
        re.findall("^```.*?^```", README, re.MULTILINE | re.DOTALL)
    )
    # As long as the project is not published, there is no URL that could be named.
    assert bool(setup["FILES"]) == ("urls" in PROJECT)

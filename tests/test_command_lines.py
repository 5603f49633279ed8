"""Each block on a page is checked by a test, and each command on a page exists with its options."""

from __future__ import annotations

import configparser
import importlib
import importlib.util
import json
import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import benchmarks
import checks
from scrapy_rep.commands.exits import CommandError
from scrapy_rep.commands.main import SUBCOMMANDS, _parser_of
from scrapy_rep.crawl.local_rules import LocalRulesFile
from testing import console_pages, harness

if sys.version_info < (3, 11):
    import tomli as tomllib
else:
    import tomllib

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent
PAGES = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "example_project" / "README.md"]
)
FENCE = re.compile(r"^( *)(`{3,}|~{3,})(.*)\n((?:.*\n)*?)\1\2$", re.MULTILINE)
INDENTED = re.compile(r"^(?:\n|\A)(?: {4}|\t)(?! *[-*] )\S", re.MULTILINE)

LANGUAGES = {
    "": "commands: test_commands_exist",
    "python": "test_documentation",
    "console": "commands/test_pages, which runs them",
    "json": "test_data_is_readable",
    "toml": "test_data_is_readable",
    "ini": "test_data_is_readable",
    "yaml": "test_commands_exist",
    "text": "files of the consoles, and excerpts",
    "html": "files of the consoles, and excerpts",
    "http": "files of the consoles, and excerpts",
    "{toctree}": "Sphinx",
    "{eval-rst}": "Sphinx",
    "{include} ../../CHANGELOG.md": "Sphinx",
}
"""The languages of blocks, each with what checks them."""

MAKE = re.findall(r"^([.\w/-]+):(?!=)", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"][
    "optional-dependencies"
]
SCRAPY = {"crawl", "fetch", "parse", "shell", "view", "workers", "version"}
"""The commands of Scrapy, and of the example project, that pages name."""
OTHER_PROGRAMS = {".", "warcio"}
PLACEHOLDERS = {"…", "NAME", "SUBCOMMAND"}


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path) -> list[tuple[str, str]]:
    """Return the language and the text of each block."""
    return [(match[3].strip(), match[4]) for match in FENCE.finditer(page.read_text("utf-8"))]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_each_block_is_checked(page: Path) -> None:
    text = page.read_text("utf-8")
    assert {language for language, _ in blocks(page)} <= LANGUAGES.keys()
    assert not INDENTED.findall(FENCE.sub("", text)), "an indented block"
    if any(language == "console" for language, _ in blocks(page)):
        assert page in console_pages.pages() or page.stem == "crawlers"


def test_the_pattern_for_indented_blocks() -> None:
    assert INDENTED.findall("a\n\n    scrapy crawl demo\n")
    assert not INDENTED.findall("10. a\n    and more\n\n- a\n")


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_data_is_readable(page: Path, tmp_path: Path) -> None:
    for language, text in blocks(page):
        if language == "json":
            json.loads(text)
        elif language == "ini":
            configparser.ConfigParser().read_string(text)
        elif language == "toml":
            path = tmp_path / "local-rules.toml"
            path.write_text(text, "utf-8")
            assert LocalRulesFile(str(path))


def commands(page: Path) -> Iterator[str]:
    """Yield the command lines that no test runs: in blocks, in workflows and within the text."""
    for language, text in blocks(page):
        if language == "":
            yield from text.splitlines()
        elif language == "yaml":
            yield from re.findall(r"^ *(?:- )?run: (.*)", text, re.MULTILINE)
    text = FENCE.sub("", page.read_text("utf-8"))
    for code in re.findall(r"(?<!`)`([^`\n]+)`(?!`)", text):
        if re.match(r"(\S*python -m|make|scrapy-rep|scrapy|pip install) (?!.*<)\S", code):
            yield code


def test_only_one_page_installs_a_release() -> None:
    """Without a release, these commands fail. The workflow on the page `test` says so."""
    release = re.compile(r"pip install '?scrapy-rep")
    found = {name_of(page) for page in PAGES if release.search(page.read_text("utf-8"))}
    assert found == {"docs/usage/installation.md", "docs/usage/commands/test.md"}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands_exist(page: Path) -> None:
    for line in commands(page):
        for command in line.split(" | "):
            assert not problem(command), command


def problem(command: str) -> str:
    """Return what is wrong with a command. It is not run."""
    program, *arguments = shlex.split(command.partition(" < ")[0], comments=True)
    if program == "make":
        return problem_of_make(arguments)
    if program.endswith(("python", "python3")) and arguments[0] == "-m":
        return problem_of_module(*arguments[1:])
    if program == "pip":
        return problem_of_pip(*arguments)
    if program == "scrapy" and arguments[0] == "robots":
        return problem_of_tool(*arguments[1:])
    if program == "scrapy":
        return "" if arguments[0] in SCRAPY else "no such command of Scrapy"
    if program == "scrapy-rep":
        return problem_of_tool(*arguments)
    if program == "ACL":
        contract = (ROOT / "tests/stores/test_contract.py").read_text("utf-8")
        return "" if " ".join(arguments[4:]) in contract else "other permissions than in the test"
    return "" if program in OTHER_PROGRAMS else "an unknown program"


def problem_of_make(arguments: list[str]) -> str:
    targets = [word for word in arguments if "=" not in word]
    problems = [f"no target {target}" for target in targets if target not in MAKE]
    given = [word.removeprefix("ARGUMENTS=") for word in arguments if word.startswith("ARGUMENTS=")]
    if targets in (["checks"], ["benchmark"]) and given:
        package = "checks" if targets == ["checks"] else "benchmarks"
        problems.append(problem_of_module(package, *shlex.split(given[0])))
    return "; ".join(filter(None, problems))


def problem_of_module(module: str, *arguments: str) -> str:
    if module in {"benchmarks", "checks"}:
        package = {"benchmarks": benchmarks, "checks": checks}[module]
        modules = harness._modules(package)
        try:
            parsed = harness._parser(package, modules).parse_args(arguments)
        except SystemExit as stop:
            return "wrong options" if stop.code else ""
        return "; ".join(f"no {name}" for name in parsed.names if name not in modules)
    if module == "checks.compatibility":
        cases = [word for word in arguments[:1] if not word.startswith("-")]
        files = [ROOT / "checks" / "compatibility" / f"case_{case}.py" for case in cases]
        return "" if all(file.exists() for file in files) else "no such case"
    if module == "pytest":
        paths = [word.partition("::")[0] for word in arguments if word.startswith("tests/")]
        return "; ".join(f"no {path}" for path in paths if not (ROOT / path).exists())
    if module == "example.web":
        return "" if (ROOT / "example_project/example/web.py").exists() else "no such module"
    return "" if importlib.util.find_spec(module) else "no such module"


def problem_of_pip(*arguments: str) -> str:
    named = {name for word in arguments for name in re.findall(r"\[([\w,]+)\]", word)}
    extras = {extra for names in named for extra in names.split(",")}
    return "" if extras <= EXTRAS.keys() else "no such extra"


def problem_of_tool(*arguments: str) -> str:
    if not arguments or arguments[0] in {*PLACEHOLDERS, "--help", "--version"}:
        return ""
    name, *rest = arguments
    if name not in SUBCOMMANDS:
        return "no such subcommand"
    module = importlib.import_module(f"scrapy_rep.commands.{SUBCOMMANDS[name].module}")
    parser = _parser_of(module, "scrapy-rep", name)
    if not rest or "…" in rest:  # the tool itself, or a part of a command
        return ""
    for action in parser._actions:
        action.required = False
        if not action.option_strings and action.nargs in (None, "+"):
            action.nargs = "*" if action.nargs else "?"
    try:
        parser.parse_args(rest)
    except CommandError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    "command",
    [
        "make nothing",
        "make checks ARGUMENTS='soak --fast'",
        "python -m benchmarks nothing",
        ".venv/bin/python -m checks soak --fast",
        "python -m checks.compatibility nothing",
        "python -m pytest tests/test_nothing.py",
        "python -m testing.nothing",
        "pip install '.[nothing]'",
        "scrapy robots nothing",
        "scrapy-rep lint --nothing robots.txt",
        "scrapy nothing",
        "nothing",
    ],
)
def test_a_wrong_command_is_found(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert problem(command)
    capsys.readouterr()  # what argparse prints

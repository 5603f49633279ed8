"""Each command on a page exists with its options, and data on a page is readable."""

from __future__ import annotations

import configparser
import importlib
import importlib.util
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import benchmarks
import checks
from scrapy_rep.commands.main import tools
from scrapy_rep.local_rules_file import LocalRulesFile
from testing import harness

ROOT = Path(__file__).parent.parent
PAGES = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "example_project" / "README.md"]
)
FENCE = re.compile(r"^( *)(`{3,}|~{3,})(.*)\n((?:.*\n)*?)\1\2$", re.MULTILINE)

MAKE = re.findall(r"^([.\w/-]+):(?!=)", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
SCRAPY = {"crawl", "fetch", "parse", "shell", "view", "workers", "version"}
"""The commands of Scrapy, and of the example project, that pages name."""
OTHER_PROGRAMS = {".", "ACL", "docker", "env", "eval", "pip", "source", "warcio"}
PLACEHOLDERS = {"…", "NAME", "TOOL"}


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path) -> list[tuple[str, str]]:
    """Return the language and the text of each block."""
    return [(match[3].strip(), match[4]) for match in FENCE.finditer(page.read_text("utf-8"))]


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
            yield from re.findall(r"^ *(?:- )?run: ([^|\n].*)", text, re.MULTILINE)
    text = FENCE.sub("", page.read_text("utf-8"))
    for code in re.findall(r"(?<!`)`([^`\n]+)`(?!`)", text):
        if re.match(r"(\S*python -m|make|scrapy-rep|scrapy|pip install) (?!.*<)\S", code):
            yield code


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
    if program == "scrapy" and arguments[0] == "robots":
        return problem_of_tool(*arguments[1:])
    if program == "scrapy":
        return "" if arguments[0] in SCRAPY else "no such command of Scrapy"
    if program == "scrapy-rep":
        return problem_of_tool(*arguments)
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
        modules = harness.modules_of(package)
        try:
            harness.parser_of(package, modules).parse_args(arguments)
        except SystemExit as stop:
            return "wrong options" if stop.code else ""
        return ""
    if module == "pytest":
        paths = [word.partition("::")[0] for word in arguments if word.startswith("tests/")]
        return "; ".join(f"no {path}" for path in paths if not (ROOT / path).exists())
    if module == "example.web":
        return "" if (ROOT / "example_project/example/web.py").exists() else "no such module"
    return "" if importlib.util.find_spec(module) else "no such module"


def problem_of_tool(*arguments: str) -> str:
    if not arguments or arguments[0] in {*PLACEHOLDERS, "--help", "--version"}:
        return ""
    name, *rest = arguments
    ctx = click.Context(tools)
    found = tools.get_command(ctx, name)
    if found is None:
        return "no such subcommand"
    if not rest or "…" in rest:  # the tool itself, or a part of a command
        return ""
    try:
        found.make_context(name, rest, resilient_parsing="--schema" in rest)
    except click.exceptions.MissingParameter:  # a part of a command, too
        return ""
    except click.UsageError as error:
        return error.format_message()
    return ""

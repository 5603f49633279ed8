"""The table of subcommands, and what all of them share."""

from __future__ import annotations

import argparse
import gc
import subprocess
import sys
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

import pytest
from scrapy.settings import Settings

from scrapy_rep.commands import check
from scrapy_rep.commands import main as main_module
from scrapy_rep.commands.main import TOOLS, console, main
from scrapy_rep.commands.output import EXIT_CODES, ExitCode
from scrapy_rep.scrapy_command import Command

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import Run


def test_entry_points() -> None:
    (script,) = entry_points(group="console_scripts", name="scrapy-rep")
    (command,) = entry_points(group="scrapy.commands", name="robots")
    assert script.load() is console
    assert command.load() is Command


def test_without_a_subcommand_all_are_listed(run: Run) -> None:
    done = run()
    assert done.code == 0
    rows = [(name, text) for group in TOOLS.values() for name, (_, text) in group.items()]
    assert all(f"  {name} " in done.out and text in done.out for name, text in rows)
    assert all(f"\n{group}:\n" in done.out for group in TOOLS)
    assert all(text in done.out for text in EXIT_CODES.values())


@pytest.mark.parametrize("name", [name for group in TOOLS.values() for name in group])
def test_help_has_examples_and_fits(run: Run, name: str) -> None:
    done = run(name, "--help")
    assert done.code == 0
    assert f"  scrapy-rep {name} " in done.out
    assert "Exit codes:" in done.out
    assert all(len(line) <= 80 for line in done.out.splitlines())


def test_version(run: Run) -> None:
    assert run("--version").out.startswith("scrapy-rep 0.")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing"], "No such command 'nothing'. (see scrapy-rep --help)"),
        (["chekc"], "No such command 'chekc'. Did you mean 'check'?"),
        (["--nothing"], "No such option '--nothing'"),
        (["check", "--nothing"], "No such option '--nothing'. (see scrapy-rep check --help)"),
        (
            ["check", "--robot", "robots.txt", "/"],
            "No such option '--robot'. (Did you mean one of: '--from',",
        ),
        (["check"], "give URLs, or a file with URLs: --from FILE"),
        (["check", "--robots", "-", "--from", "-"], "only one argument can be standard input"),
        (["check", "/x", "--field", "a"], "--from-format and --field belong to a file with URLs"),
        (
            ["check", "--robots", "missing.txt", "/", "-a", "x"],
            "cannot read missing.txt: No such file",
        ),
        (["check", "--robots", ".", "/", "-a", "x"], "cannot read .: Is a directory"),
        (
            ["check", "--from", "missing", "--robots", "robots.txt", "-a", "x"],
            "cannot read missing: No",
        ),
        (["diff", "", "robots.txt"], "an argument is empty (see scrapy-rep diff --help)"),
        (["check", " "], "an argument is empty"),
        (["check", "/", "--from", ""], "an argument is empty"),
        (["test", "robots.txt", "--robots", ""], "an argument is empty"),
        (["test", "robots.txt", "--robots", "robots.txt"], "line 1: 'User-agent:' is not one of"),
        (["check", "robots.txt"], "robots.txt is a file: --robots FILE uses it as a robots.txt"),
        (["check", "/", "--robots", "store:x.example", "-a", "x"], "store: needs a store"),
        (["show", "robots.txt", "--json", "--format", "text"], "exclude each other"),
        (["lint", "robots.txt", "--format", "xml"], "'xml' is not one of 'text', 'json',"),
        (["show", "robots.txt", "--archive", "x"], "--archive belongs to archive:SITE (see"),
        (["show", "robots.txt", "-s", "="], "-s takes NAME=VALUE"),
        (["show", "store:x.example"], "store: needs a store: set REP_STORE"),
        (["show", "."], "cannot read .: Is a directory"),
        (["show"], "Missing argument 'ROBOTS'"),
        (["show", "/no/such/file"], "cannot read /no/such/file: No such file"),
        (["show", "missing.txt"], "cannot read missing.txt: No such file"),
        (["diff", "folder/missing.txt", "robots.txt"], "cannot read folder/missing.txt: No such"),
        (["lint", "folder/missing.txt"], "cannot read folder/missing.txt: No such file"),
        (["show", "mailto:x"], "mailto:x is neither a file nor a site"),
        (["check", "/", "--robots", "robots.txt", "-s", "REP_TIMEOUT"], "-s takes NAME=VALUE"),
        (["show", "robots.txt", "-s", "ADDONS=x"], "ADDONS is 'x', which is not JSON: Expecting"),
        (
            ["show", "https://x.example", "-s", 'ADDONS={"no_such.Addon": 1}'],
            "Scrapy does not start with these settings: ModuleNotFoundError: No module named",
        ),
        (["show", "robots.txt", "-s", "REP_TIMEOUT=soon"], "REP_TIMEOUT is 'soon': it must be"),
        (["show", "robots.txt", "-L", "LOUD"], "Invalid value for '-L' / '--loglevel'"),
    ],
)
def test_wrong_usage_is_one_line_and_code_2(run: Run, arguments: list[str], message: str) -> None:
    done = run(*arguments)
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert done.err.count("\n") == 1
    assert done.err.startswith("scrapy-rep: ")


def test_an_error_of_ours_is_one_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(**_: Any) -> int:
        raise RuntimeError("one\ntwo \x1b[2J" + "x" * 5000)

    monkeypatch.setattr(check.check_tool, "callback", fail)
    done = run("check", "/")
    assert done.code == ExitCode.UNKNOWN
    assert done.err.startswith("scrapy-rep: internal error: RuntimeError: one two \\x1b[2Jxxx")
    assert done.err.count("\n") == 1
    assert len(done.err) < 1100
    monkeypatch.setenv("SCRAPY_REP_DEBUG", "1")
    with pytest.raises(RuntimeError):
        main(["check", "/"])


@pytest.mark.parametrize(
    ("error", "code"), [(KeyboardInterrupt, 130), (BrokenPipeError, 141)], ids=["Ctrl-C", "pipe"]
)
def test_interruptions(
    run: Run, monkeypatch: pytest.MonkeyPatch, error: type[BaseException], code: int
) -> None:
    def fail(**_: Any) -> int:
        raise error

    monkeypatch.setattr(check.check_tool, "callback", fail)
    done = run("check", "/")
    assert (done.code, done.out, done.err) == (code, "", "")


@pytest.mark.parametrize("name", ["click", "msgspec", "rich"])
def test_without_the_extra_it_says_so(name: str) -> None:
    code = f"import sys; sys.modules[{name!r}] = None; import scrapy_rep.commands.main"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"scrapy-rep: no module {name}: pip install 'scrapy-rep[cli]'\n"


def test_console_exits_with_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(main_module, "main", lambda: 3)
    monkeypatch.setattr(gc, "set_threshold", lambda _: None)
    with pytest.raises(SystemExit) as raised:
        console()
    assert raised.value.code == 3


def test_an_unknown_setting_is_warned_about(run: Run) -> None:
    done = run("show", "robots.txt", "-s", "REP_TIMOUT=3", "-s", "REP_QQQQ=1")
    assert done.code == 0
    assert done.err.splitlines() == [
        "warning: the setting REP_QQQQ does not exist and is ignored.",
        "warning: the setting REP_TIMOUT does not exist and is ignored. Do you mean REP_TIMEOUT?",
    ]


def test_the_command_of_scrapy_hands_over_all_arguments(run: Run) -> None:
    parser = argparse.ArgumentParser()
    command = Command()
    command.settings = Settings({"ROBOTSTXT_USER_AGENT": "otherbot"})
    command.add_options(parser)
    given = ["check", "-s", "REP_TIMEOUT=9", "--robots", "robots.txt", "/a", "--json", "--no"]
    for arguments, code in ((given[:-1], 1), (given, 2)):
        options, rest = parser.parse_known_args(arguments)
        command.process_options(rest, options)
        command.run(rest, options)
        assert (rest, command.exitcode) == ([], code)
    assert command.syntax()
    assert command.short_desc()
    assert command.requires_crawler_process is False


def test_a_project_whose_settings_fail(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCRAPY_SETTINGS_MODULE", "no_such_settings")
    done = run("show", "robots.txt")
    assert done.code == 2
    assert "the settings of the project cannot be loaded: ModuleNotFoundError" in done.err

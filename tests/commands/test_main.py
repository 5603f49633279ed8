"""The table of subcommands, and what all of them share."""

from __future__ import annotations

import argparse
import builtins
import gc
import sys
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

import pytest
from scrapy.settings import Settings

from scrapy_rep.commands import check
from scrapy_rep.commands import main as main_module
from scrapy_rep.commands.exits import EXIT_CODES, ExitCode
from scrapy_rep.commands.main import SUBCOMMANDS, console, main
from scrapy_rep.commands.robots import Command

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
    assert all(
        f"  {name} " in done.out and row.help in done.out for name, row in SUBCOMMANDS.items()
    )
    assert all(text in done.out for text in EXIT_CODES.values())


@pytest.mark.parametrize("name", SUBCOMMANDS)
def test_help_has_examples_and_fits(run: Run, name: str) -> None:
    done = run(name, "--help")
    assert done.code == 0
    assert f"  scrapy-rep {name} " in done.out
    assert "exit codes:" in done.out
    _, _, text = done.out.partition("\n\n")  # behind the usage, where argparse breaks no choices
    assert all(len(line) <= 80 for line in text.splitlines())


def test_version(run: Run) -> None:
    assert run("--version").out.startswith("scrapy-rep 0.")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing"], "no subcommand 'nothing': there are "),
        (["--nothing"], "unrecognized arguments: --nothing"),
        (["check", "--nothing"], "unrecognized arguments: --nothing (see scrapy-rep check --help)"),
        (["check", "--robot", "robots.txt", "/"], "unrecognized arguments: --robot"),
        (["check"], "give URLs, or a file with URLs: --from FILE"),
        (["check", "--robots", "-", "--from", "-"], "cannot both read standard input"),
        (["check", "/x", "--field", "a"], "--format and --field belong to --from FILE"),
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
        (["test", "robots.txt", "--robots", "robots.txt"], "line 1: 'User-agent:' is none of"),
        (["check", "robots.txt"], "robots.txt is a file: --robots FILE uses it as a robots.txt"),
        (
            ["check", "/", "--robots", "store:x.example", "-a", "x"],
            "only show and diff read a store",
        ),
        (["show", "robots.txt", "--archive", "x"], "--archive belongs to archive:SITE (see"),
        (["show", "robots.txt", "-s", "="], "-s takes NAME=VALUE"),
        (["lint", "robots.txt", "-a", "Googlebot"], "-a belongs to --pages FILE"),
        (["show", "store:x.example"], "store: needs a store: set REP_STORE"),
        (["show", "."], "cannot read .: Is a directory"),
        (["show"], "the following arguments are required: ORIGIN|FILE"),
        (["show", "/no/such/file"], "cannot read /no/such/file: no such file"),
        (["show", "missing.txt"], "cannot read missing.txt: no such file"),
        (["diff", "folder/missing.txt", "robots.txt"], "cannot read folder/missing.txt: no such"),
        (["lint", "folder/missing.txt"], "cannot read folder/missing.txt: No such file"),
        (["show", "mailto:x"], "mailto:x is neither a file nor a site"),
        (["check", "/", "--robots", "robots.txt", "-s", "REP_TIMEOUT"], "-s takes NAME=VALUE"),
        (["show", "robots.txt", "-s", "ADDONS=x"], "ADDONS is 'x', which is no JSON: Expecting"),
        (
            ["show", "https://x.example", "-s", 'ADDONS={"no_such.Addon": 1}'],
            "Scrapy does not start with these settings: ModuleNotFoundError: No module named",
        ),
        (["-s", "REP_TIMEOUT=soon", "show", "robots.txt"], "REP_TIMEOUT is 'soon': it must be"),
        (["show", "robots.txt", "-L", "LOUD"], "argument -L/--loglevel: invalid choice"),
    ],
)
def test_wrong_usage_is_one_line_and_code_2(run: Run, arguments: list[str], message: str) -> None:
    done = run(*arguments)
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert done.err.count("\n") == 1
    assert done.err.startswith("scrapy-rep: ")


def test_settings_before_and_behind_the_subcommand(run: Run) -> None:
    arguments = ["check", "--robots", "robots.txt", "/", "--json"]
    agents = [
        run(*before, *arguments, *behind).record["agent"]
        for before, behind in (
            (["-s", "USER_AGENT=one/1 (+x)"], []),
            ([], ["--set", "ROBOTSTXT_USER_AGENT=two"]),
            (["-s", "USER_AGENT=one", "--set=ROBOTSTXT_USER_AGENT=three"], []),
        )
    ]
    assert agents == ["one/1 (+x)", "two", "three"]


def test_an_error_of_ours_is_one_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> int:
        raise RuntimeError("one\ntwo \x1b[2J" + "x" * 5000)

    monkeypatch.setattr(check, "run", fail)
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
    def fail(*_: Any) -> int:
        raise error

    monkeypatch.setattr(check, "run", fail)
    done = run("check", "/")
    assert (done.code, done.out, done.err) == (code, "", "")


def test_text_needs_rich_and_json_does_not(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "rich"]:
        monkeypatch.delitem(sys.modules, name)
    load = builtins.__import__

    def without_rich(name: str, *arguments: Any) -> Any:
        if name.partition(".")[0] == "rich":
            raise ImportError(name)
        return load(name, *arguments)

    monkeypatch.setattr(builtins, "__import__", without_rich)
    done = run("check", "--robots", "robots.txt", "/", "-a", "x")
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        "scrapy-rep: text needs the package rich: pip install rich; --json works without it\n"
    )
    assert run("check", "--robots", "robots.txt", "/", "-a", "x", "--json").code == 0
    assert run("show", "robots.txt", "--json").code == 0


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
    given = ["-s", "REP_STRICT=1", "check", "--robots", "robots.txt", "/a", "--json", "--nothing"]
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

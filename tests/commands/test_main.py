"""The table of subcommands, and what all of them share."""

from __future__ import annotations

import argparse
import gzip
import os
import re
import sys
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from unittest.mock import Mock

import pytest
from scrapy.settings import Settings

from scrapy_rep.commands import check
from scrapy_rep.commands.context import EXIT_CODES, ExitCode
from scrapy_rep.commands.main import TOOLS, console, tools
from scrapy_rep.protocol.access import AccessResult
from scrapy_rep.scrapy_command import Command
from scrapy_rep.stores.entry import Entry
from testing.report_samples import log
from testing.web import Web

from .conftest import Cli, Done, Run, fill, tool, write


def test_entry_points() -> None:
    (script,) = entry_points(group="console_scripts", name="scrapy-rep")
    (command,) = entry_points(group="scrapy.commands", name="robots")
    assert script.load() is console
    assert command.load() is Command


def test_without_a_subcommand_all_are_listed(run: Run) -> None:
    assert run("--version").out.startswith("scrapy-rep 0.")
    assert run("-V") == run("--version")
    done = run()
    assert run("-h").out == run("--help").out == done.out
    assert done.code == 0
    rows = [(name, text) for group in TOOLS.values() for name, (_, text) in group.items()]
    assert all(f"  {name} " in done.out and text in done.out for name, text in rows)
    assert all(f"\n{group}:\n" in done.out for group in TOOLS)
    assert all(EXIT_CODES[code] in done.out for code in ExitCode)


@pytest.mark.parametrize("name", [name for group in TOOLS.values() for name in group])
def test_help_has_examples_and_fits(run: Run, name: str) -> None:
    done = run(name, "--help")
    assert run(name, "-h") == done
    assert run(name, "-V").out == run("-V").out
    assert done.code == 0
    assert f"  scrapy-rep {name} " in done.out
    assert "Exit codes:" in done.out
    assert "-q, --quiet" in done.out
    assert all(len(line) <= 80 for line in done.out.splitlines())


@pytest.fixture
def files(run: Run) -> Run:
    """Files that the arguments below name."""
    Path("empty/folder").mkdir(parents=True)
    cut, rows = gzip.compress(os.urandom(5000))[:4000], '{"site": "a", "result": "rules"}\n{"site"'
    write(latin_txt=b"\xff\xfe\0", none_txt="", cut_gz=cut, cut_tgz=cut)
    write(rows_jsonl=rows, rows_parquet=rows)
    entry = Entry(AccessResult.SUCCESSFUL, 1, 2, 2, b"", status=200)
    fill("a.sqlite", {"https://a.example": entry})
    return run


FILE = ("--robots", "robots.txt")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing"], "No such command 'nothing'. (see scrapy-rep --help)"),
        (["chekc"], "No such command 'chekc'. Did you mean 'check'?"),
        (["check", "--nothing"], "No such option '--nothing'. (see scrapy-rep check --help)"),
        (["check", "--robot", *FILE[1:], "/"], "'--robot'. (Did you mean one of: '--from',"),
        (["lint"], "Missing argument 'ROBOTS...'"),
        # Values of options
        (["lint", "robots.txt", "--format", "xml"], "'xml' is not one of 'text', 'json'"),
        (["lint", "robots.txt", "--select", "R999"], "'R999' is not a code of a finding"),
        (["lint", "robots.txt", "--ignore", "R1,"], "'' is not a code of a finding"),
        (["show", "robots.txt", "-s", "="], "-s takes NAME=VALUE"),
        (["show", "robots.txt", "-s", "ADDONS=x"], "ADDONS is 'x', which is not JSON: Expecting"),
        (["show", "robots.txt", "-s", "REP_TIMEOUT=soon"], "REP_TIMEOUT is 'soon': it must be"),
        (["show", "https://x.example", "-s", 'ADDONS={"no_such.Addon": 1}'],
         "Scrapy does not start with these settings: ModuleNotFoundError: No module named"),
        # Options and arguments that exclude each other
        (["show", "robots.txt", "--json", "--format", "text"], "exclude each other"),
        (["check", "/x", "--url-field", "a"], "--from-format and --url-field belong to a"),
        (["check", "--robots", "-", "--from", "-"], "only one argument can be standard input"),
        (["diff", "-", "-"], "only one argument can be standard input"),
        (["lint", "https://h/", "--fix"], "--fix corrects files, and https://h/ is not a file"),
        (["lint", "-", "--fix"], "--fix corrects files, and - is not a file"),
        (["show", ""], "cannot read : Is a directory"),
        (["lint", "robots.txt", "--fix", "--diff"], "--fix and --diff exclude each other"),
        (["lint", "robots.txt", "--unsafe-fixes"], "--unsafe-fixes belongs to --fix or --diff"),
        (["lint", "robots.txt", "--diff", "--json"], "--diff and --format json exclude each other"),
        (["check", "/", "--plan", "--only", "refused"], "--plan asks the sites"),
        (["check", "/", "--plan", *FILE], "--plan asks the sites"),
        (["check", "/", "--plan", "-a", "a", "-a", "b"], "--plan is for one crawler"),
        (["check", "/", "--only", "a"], "takes disallowed, refused, or disallowed,refused"),
        (["check", "/", "--archive", "a.warc"], "--archive belongs to --only"),
        (["check", "/", "--archive", "x", "--only", "refused", *FILE], "excludes --robots"),
        # What is to be read
        (["check"], "give URLs, or a file with URLs: --from FILE"),
        (["check", "robots.txt"], "robots.txt is a file: --robots FILE uses it as a robots.txt"),
        (["check", "--robots", "missing.txt", "/"], "cannot read missing.txt: No such file"),
        (["check", "--from", "missing", *FILE], "cannot read missing: No"),
        (["show", "."], "cannot read .: Is a directory"),
        (["show", "/no/such/file"], "cannot read /no/such/file: No such file"),
        (["show", "mailto:x"], "mailto:x is neither a file nor a site"),
        (["diff", "folder/missing.txt", "robots.txt"], "cannot read folder/missing.txt: No such"),
        (["lint", "empty"], "the folder empty has no robots.txt"),
        (["test", "missing.txt", *FILE], "cannot read missing.txt: No such file"),
        (["test", "none.txt", *FILE], "none.txt has no expectations"),
        (["test", "latin.txt", *FILE], "cannot read latin.txt: it is not UTF-8 text"),
        (["test", "none.txt"], "none.txt has no expectations"),
        (["view", "mailto:x"], "not a URL with a robots.txt: mailto:x"),
        (["view", "https://["], "not a URL with a robots.txt: https://["),
        (["view", "https://x.example/" + "a" * 9000], "not a URL with a robots.txt"),
        (["view", "https://x.example", "-a", "ai-training"], "name one"),
        # Stores
        (["export", "x"], "x is not the URL of a store: write sqlite:///x, or redis://"),
        (["import", "x.db", "none.txt"], "x.db is not the URL of a store: write sqlite:///x.db,"),
        (["export", "sqlite:///none.sqlite"], "there is no store at none.sqlite"),
        (["export", "sqlite:///none/x.sqlite"], "there is no folder none"),
        (["export", "sqlite:///robots.txt"], "file is not a database"),
        (["export", "sqlite:///none.txt"], "there is no store at none.txt"),
        (["export", "memory://x"], "only SQLite and Redis can be exported"),
        (["export", "package.Store"], "package.Store is not the URL of a store: write sqlite:///pa"),
        (["export", "ftp://x"], "it must be 'sqlite:///path'"),
        (["view", "robots.txt"], "robots.txt is a file, and view shows pages of sites: use show"),
        (["export", "redis+cluster://:secret@127.0.0.1:1"], "cannot be connected"),
        (["export", "redis://:secret@127.0.0.1:1/0"], "redis://:***@127.0.0.1:1/0"),
        (["export", "sqlite:///a.sqlite", "none/x"], "cannot write none/x"),
        (["export", "sqlite:///a.sqlite", "/dev/full"], "/dev/full: No space left on device"),
        (["import", "sqlite:///b.sqlite", "none"], "cannot read none: No such file"),
        (["import", "sqlite:///robots.txt", "none.txt"], "file is not a database"),
        (["import", "sqlite:///b.sqlite", "cut.gz"], "cannot read cut.gz"),
        # Queues
        (["queue"], "needs the URL of a Redis in REDIS_URL, such as 'redis://localhost:6379'"),
        (["queue", "lift"], "'lift' is not one of 'hold', 'release', 'drop'"),
        (["queue", "hold"], "hold needs a host"),
        (["queue", "hold", "example.com"], "hold needs a time, such as --for 1h; no other"),
        (["queue", "drop", "example.com", "--for", "1h"], "--for 1h; no other action has one"),
        (["queue", "hold", "example.com", "--for", "0m"], "'0m' is not a time such as 30s"),
        (["queue", "hold", "example.com", "--for", "1 h"], "'1 h' is not a time such as 30s"),
        # Reports and surveys
        (["report", "robots.txt"], "cannot read robots.txt: it is not an event log of a crawl"),
        (["report", "none"], "cannot read none: No such file"),
        (["survey", "none"], "cannot read none: No such file or directory"),
        (["survey", "cut.tgz"], "cannot read cut.tgz as a tar file"),
        (["survey", "https://example.com"], "https://example.com is not the URL of a store"),
        (["survey", "empty"], "there is no file in empty: name a list of domains, a folder"),
        (["survey", "none.jsonl"], "cannot read none.jsonl: No such file"),
        (["survey", ".", "--compare", "no.jsonl"], "cannot read no.jsonl"),
        (["survey", ".", "--compare", "rows.parquet"], "rows.parquet as rows of a survey"),
        (["survey", ".", "--compare", "robots.txt"], "must end in .jsonl, .jsonl.gz, .parquet"),
        (["survey", ".", "--rows", "none/x.jsonl"], "cannot write none/x.jsonl"),
        (["survey", ".", "--html", "none/x.html"], "cannot write none/x.html"),
    ],
)  # fmt: skip
def test_wrong_usage_is_one_line_and_code_2(files: Run, arguments: list[str], message: str) -> None:
    done = files(*arguments)
    error = done.err.splitlines()[-1]
    assert (done.code, done.out) == (2, "")
    assert message in error
    assert error.startswith("scrapy-rep: ")
    assert [line for line in done.err.splitlines()[:-1] if "warning: Scrapy is" not in line] == []
    assert "secret" not in done.err


OURS = RuntimeError("one\ntwo \x1b[2J" + "x" * 5000)


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (OSError(28, "No space"), 3, "scrapy-rep: OSError: [Errno 28] No space\n"),
        (MemoryError("x"), 3, "scrapy-rep: MemoryError: x\n"),
        (RuntimeError("x"), 3,
         "scrapy-rep: internal error: RuntimeError: x. Please report it.\n"),
        (OURS, 3, "scrapy-rep: internal error: RuntimeError: one two \\x1b[2Jxxx"),
        (KeyboardInterrupt(), 130, ""),
        (BrokenPipeError(), 141, ""),
    ],
)  # fmt: skip
def test_errors_of_a_tool(
    run: Run, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, text: str
) -> None:
    """Each is one line. Only our own are to be reported."""
    monkeypatch.setattr(check.check_tool, "callback", Mock(side_effect=error))
    done = run("check", "/")
    assert (done.code, done.out, done.err[: len(text)]) == (code, "", text)
    assert done.err == text or (error is OURS and done.err.count("\n") == 1)
    assert len(done.err) < 1100


def test_without_the_extra_it_says_so() -> None:
    code = "import sys; {} = None; import scrapy_rep.commands.main"
    for missing in (["rich"], ["click", "msgspec", "rich"]):
        names = " = ".join(f"sys.modules['{each}']" for each in missing)
        message = f"scrapy-rep: the tools need other packages: pip install {' '.join(missing)}\n"
        assert tool(python=("-c", code.format(names))) == Done(2, "", message)


@pytest.mark.parametrize(
    ("package", "arguments"),
    [
        ("duckdb", ["survey", "empty"]),
        ("jinja2", ["survey", "empty", "--html", "x.html"]),
        ("jinja2", ["report", "one.events.gz"]),
        ("redis", ["export", "redis://127.0.0.1:1/0"]),
        ("redis", ["queue", "-s", "REDIS_URL=redis://127.0.0.1:1"]),
        ("warcio", ["check", "/", "--only", "disallowed", "--archive", "a.warc.gz"]),
    ],
)
def test_a_command_without_its_package_says_so(
    files: Run, monkeypatch: pytest.MonkeyPatch, package: str, arguments: list[str]
) -> None:
    log().write(Path("one.events.gz"))
    assert find_spec(package) is not None
    # Other tests may have loaded the package, and the modules that need it.
    monkeypatch.delattr("scrapy_rep.reports.pages", raising=False)
    modules = rf"{package}\b|scrapy_rep\.(reports\.(archive|pages)|stores\.redis(_url)?)$"
    for name in filter(re.compile(modules).match, list(sys.modules)):
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    done = files(*arguments)
    assert (done.code, done.out) == (2, "")
    assert f"the package {package}: pip install {package}\n" in done.err
    assert arguments[0] != "report" or files(*arguments, "--json").code == 0


def test_all_missing_packages_are_named(files: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for each in ("duckdb", "jinja2"):
        monkeypatch.setitem(sys.modules, each, None)
    message = "survey needs the packages duckdb and jinja2: pip install duckdb jinja2\n"
    assert files("survey", "empty") == Done(2, "", f"scrapy-rep: {message}")


def test_an_unknown_setting_is_warned_about(run: Run) -> None:
    done = run("show", "robots.txt", "-s", "REP_TIMOUT=3", "-s", "REP_QQQQ=1")
    assert done.code == 0
    assert done.err.splitlines() == [
        "warning: the setting REP_QQQQ does not exist and is ignored.",
        "warning: the setting REP_TIMOUT does not exist and is ignored. Do you mean REP_TIMEOUT?",
    ]


@pytest.mark.usefixtures("run")
def test_the_command_of_scrapy_hands_over_all_arguments(capsys: pytest.CaptureFixture[str]) -> None:
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
    assert capsys.readouterr().err.startswith("scrapy robots: No such option '--no'")
    assert command.syntax()
    assert command.short_desc()
    assert command.requires_crawler_process is False


def test_a_project_whose_settings_fail(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCRAPY_SETTINGS_MODULE", "no_such_settings")
    assert run("show", "robots.txt").code == 0  # it needs none
    done = run("check", "/")
    assert done.code == 2
    assert "the settings of the project cannot be loaded: ModuleNotFoundError" in done.err


def test_quiet(run: Run) -> None:
    assert run("check", "/", "-q").err == ""
    assert "warning: the setting REP_X does not" in run("check", "/", "-q", "-s", "REP_X=1").err


def test_a_robots_txt_of_this_folder(run: Run) -> None:
    note = "note: the robots.txt of this folder is used; --robots names another one\n"
    write(x_txt="disallow * /private\nallow * /\n")
    done = run("test", "x.txt")
    assert (done.out, done.err, done.code) == ("2 expectations hold.\n", note, 0)
    done = run("check", "/private", "/", "-a", "x")
    assert (done.code, done.err.startswith(note)) == (1, True)
    assert done.out.startswith("disallowed /private  line 2, ")
    Path("robots.txt").unlink()
    for arguments in (("check", "/"), ("test", "x.txt")):
        done = run(*arguments)
        assert (done.code, done.out) == (2, "")
        assert "there is no robots.txt in this folder: name one with --robots, or write" in done.err


async def test_expectations_of_urls_ask_their_sites(web: Web, cli: Cli) -> None:
    closed, opened = web.site("User-agent: *\nDisallow: /"), web.site()
    write(x_txt=f"disallow * {closed.url('/a')}\nallow * {opened.url('/a')}\ndisallow * /private\n")
    done = await cli("test", "x.txt")
    assert (done.code, done.out) == (0, "3 expectations hold.\n")
    assert (closed.paths, opened.paths) == (["/robots.txt"], ["/robots.txt"])


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("check -a gptb", ["plain,GPTBot"]),
        ("view -a ai-t", ["plain,ai-training"]),
        ("crawlers ccb", ["plain,CCBot"]),
        ("lint --select R4,R60", [f"plain,R4,R60{number}" for number in (1, 3, 5, 7, 8, 9)]),
        ("rule missing-", ["plain,missing-colon", "plain,missing-slash"]),
        ("show -s REP_TI", ["plain,REP_TIMEOUT="]),
        ("show -s ROBOTSTXT_O", ["plain,ROBOTSTXT_OBEY="]),
        ("lint rob", ["file,rob"]),
        ("check --robots rob", ["file,rob"]),
        ("survey x", ["file,x"]),
    ],
)  # fmt: skip
def test_completion(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: str,
    found: list[str],
) -> None:
    monkeypatch.setenv("_SCRAPY_REP_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", f"scrapy-rep {words}")
    monkeypatch.setenv("COMP_CWORD", str(len(words.split())))
    with pytest.raises(SystemExit):
        tools.main(prog_name="scrapy-rep")
    assert capsys.readouterr().out.splitlines() == found


def test_tools_without_a_crawl_do_not_import_scrapy(run: Run) -> None:
    """Scrapy takes half of the time of these tools."""
    assert run("show", "robots.txt").code == 0
    write(x_txt="allow * /\nallow Googlebot /private/press/", urls_txt="/a\n/b")
    given = (
        "check /a", "check --robots robots.txt /a", "check --robots robots.txt /a /b -a Googlebot",
        "check --robots robots.txt --from urls.txt", "check --robots - /a",
        "check --robots robots.txt /a --only disallowed,refused", "check /a -a ai-training --json",
        "lint robots.txt", "lint robots.txt --diff", "lint .", "lint robots.txt --fix",
        "show robots.txt", "show robots.txt --json", "diff robots.txt robots.txt", "rule",
        "rule R202", "crawlers", "crawlers google", "test x.txt", "test x.txt --robots robots.txt",
        "check --help", "--version",
    )  # fmt: skip
    code = (
        "import sys; from scrapy_rep.commands.main import main\n"
        "for each in sys.argv[1:]:\n"
        "    code = main(each.split())\n"
        "    found = sys.modules.keys() & {'scrapy', 'twisted'}\n"
        "    if code > 1 or found: sys.exit(f'{each}: {code}, {found}')"
    )
    done = tool(*given, python=("-c", code))
    assert done.code == 0, done.err

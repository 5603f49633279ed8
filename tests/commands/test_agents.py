"""``agents``: the list of the well-known crawlers, as the installed command prints it."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import jsonschema
import pytest

from scrapy_rep.commands.crawlers import Compliance, Purpose, crawlers_for, well_known_crawlers
from scrapy_rep.commands.main import main

if TYPE_CHECKING:
    from .conftest import Run

ROOT = Path(__file__).parent.parent.parent
SCHEMA = json.loads(
    files("scrapy_rep.commands").joinpath("schemas", "agents.schema.json").read_text()
)


def process(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a tool in a process of its own, which takes half a second."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name not in {"NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE"}
    }
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    own = {"PYTHONPATH": os.pathsep.join(paths), "COLUMNS": "80", "PYTHONUTF8": "1"}
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", "scrapy_rep.commands", *arguments],
        check=False,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
        env=inherited | own,
    )


def names_of(text: str) -> list[str]:
    """Return the first column of a table. A folded name is two lines of it."""
    body = text.split("\n\n")[0].splitlines()[2:]
    return [match[1] for line in body if (match := re.match(r"(\S+(?: \S+)*)", line))]


def test_all_crawlers_as_text() -> None:
    found = process("agents")
    assert (found.returncode, found.stderr) == (0, "")
    assert "".join(names_of(found.stdout)) == "".join(each.name for each in well_known_crawlers())
    assert max(map(len, found.stdout.splitlines())) <= 80
    assert "\x1b" not in found.stdout


@pytest.mark.parametrize("arguments", [["--purpose", "ads"], ["ADS"], ["ads", "--purpose", "ads"]])
def test_one_purpose_as_text(
    arguments: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["agents", *arguments]) == 0
    text = capsys.readouterr().out
    assert names_of(text) == [each.name for each in crawlers_for(Purpose.ADS)]
    assert re.search(r"^AdsBot-Google  +Google  +ads  +no other  +follows *$", text, re.MULTILINE)
    assert re.search(
        r"^YandexDirect  +Yandex  +ads  +Yandex, \*  +may-ignore *$", text, re.MULTILINE
    )
    assert "agents NAME" in text


def test_one_crawler_as_text(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    lines = [line.rstrip() for line in run("agents", "applebot").out.splitlines()]
    assert lines[:7] == [
        "Name                Applebot",
        "Operator            Apple",
        "Purposes            search, ai-use",
        "Groups              Applebot, Googlebot, *: the first that a robots.txt has",
        "Follows robots.txt  follows",
        "Source              https://support.apple.com/en-us/119829",
        "                    of the operator, seen 2026-09-22",
    ]
    assert lines[7].startswith("Note ")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("GPTBot", "Groups GPTBot, * Follows"),
        ("AdsBot-Google", "Groups AdsBot-Google: it ignores the group for * Follows"),
        ("Google-Safety", "Groups none: it ignores every robots.txt Follows"),
        ("Mozilla/5.0 (compatible; bingbot/2.0)", "Name bingbot Operator Microsoft"),
        ("ChatGPT-User", "Requests each is the direct result of what a person does Source"),
        ("FacebookBot", "of a list of others, seen 2026-08-22"),
    ],
)
def test_exceptions_as_text(
    name: str, expected: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["agents", name]) == 0
    assert expected in " ".join(capsys.readouterr().out.split())


def test_colors_of_a_terminal_say_who_may_ignore_the_file(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    out = run("agents", "ads", "other").out
    assert re.search(r"\x1b\[31mignores", out)
    assert re.search(r"\x1b\[33mmay-ignore", out)


def test_json_has_all_crawlers_and_matches_the_schema() -> None:
    found = process("agents", "--json")
    assert (found.returncode, found.stderr) == (0, "")
    records = [json.loads(line) for line in found.stdout.splitlines()]
    assert [record["name"] for record in records] == [each.name for each in well_known_crawlers()]
    validator = jsonschema.Draft202012Validator(SCHEMA)
    validator.check_schema(SCHEMA)
    for record in records:
        validator.validate(record)
    assert records[0] | {"note": None} == {
        "type": "agent",
        "version": 1,
        "name": "Googlebot",
        "operator": "Google",
        "tokens": ["Googlebot"],
        "purposes": ["search"],
        "robots_txt": "follows",
        "ignores_wildcard": False,
        "user_triggered": False,
        "note": None,
        "source": {
            "url": "https://developers.google.com/crawling/docs/crawlers-fetchers/"
            "google-common-crawlers",
            "seen": "2026-09-22",
            "kind": "operator",
        },
    }


def test_the_schema_knows_every_purpose_and_value() -> None:
    properties = SCHEMA["properties"]
    assert properties["purposes"]["items"]["enum"] == [each.value for each in Purpose]
    assert properties["robots_txt"]["enum"] == [each.value for each in Compliance]


def json_names(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    assert main(["agents", "--json", *arguments]) == 0
    return [json.loads(line)["name"] for line in capsys.readouterr().out.splitlines()]


def test_names_and_purposes_select(capsys: pytest.CaptureFixture[str]) -> None:
    assert json_names(capsys, "bingbot", "GOOGLEBOT", "BingBot") == ["bingbot", "Googlebot"]
    training = [each.name for each in crawlers_for(Purpose.AI_TRAINING)]
    assert json_names(capsys, "--purpose", "ai-training") == training
    assert json_names(capsys, "archive", "--purpose", "ai-training") == ["CCBot"]
    both = json_names(capsys, "--purpose", "ai-training", "--purpose", "archive")
    assert set(both) == {*training, *(each.name for each in crawlers_for(Purpose.ARCHIVE))}
    assert len(both) == len(set(both))


def test_a_name_without_the_purpose_selects_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert json_names(capsys, "Googlebot", "--purpose", "seo") == []
    assert main(["agents", "Googlebot", "--purpose", "seo"]) == 0
    out, err = capsys.readouterr()
    assert (out, err) == ("", "note: no crawler has this name and this purpose\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["gogglebot"], "gogglebot is no well-known crawler: do you mean Googlebot?"),
        (["ai-trainning"], "ai-trainning is no well-known crawler: do you mean ai-training?"),
        (["mybot"], "mybot is no well-known crawler: -a takes it for a product token"),
        (["bingbot", ""], "an argument is empty (see scrapy-rep agents --help)"),
        (["\x1b[2J"], r"\x1b[2J is no well-known crawler: -a takes it for a product token"),
    ],
)
def test_an_unknown_name(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["agents", *arguments]) == 2
    out, err = capsys.readouterr()
    assert (out, err.strip()) == ("", f"scrapy-rep: {message.strip()}")


def test_an_unknown_name_has_the_exit_code_of_a_wrong_argument() -> None:
    found = process("agents", "gogglebot")
    assert (found.returncode, found.stdout) == (2, "")
    assert len(found.stderr.splitlines()) == 1


@pytest.mark.parametrize("arguments", [["--purpose", "ai"], ["--purposes", "ads"], ["--purpose"]])
def test_wrong_options_are_refused(run: Run, arguments: list[str]) -> None:
    found = run("agents", *arguments)
    assert (found.code, found.out) == (2, "")
    assert len(found.err.splitlines()) == 1


def test_a_reader_that_ends_early_is_no_error() -> None:
    # 120 records are more than the pipe's reader takes.
    command = f"{sys.executable} -m scrapy_rep.commands agents --json | head -n 1"
    found = subprocess.run(
        ["bash", "-c", command],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
        cwd=ROOT,
    )
    assert json.loads(found.stdout)["name"] == "Googlebot"
    assert found.stderr == ""


EXAMPLES = re.findall(
    r"```console\n\$ scrapy-rep (.*)\n([^`]*)```",
    (ROOT / "docs" / "reference" / "crawlers.md").read_text("utf-8"),
)


@pytest.mark.parametrize(("command", "output"), EXAMPLES, ids=[command for command, _ in EXAMPLES])
def test_the_page_has_the_real_output(run: Run, command: str, output: str) -> None:
    found = run(*shlex.split(command))
    assert [line.rstrip() for line in found.out.splitlines()] == output.splitlines()


def test_the_page_has_examples() -> None:
    assert len(EXAMPLES) == 3


def test_help_has_examples(run: Run) -> None:
    found = run("agents", "--help")
    assert found.code == 0
    assert "agents --purpose ai-training" in found.out
    assert "exit codes:" in found.out

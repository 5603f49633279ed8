"""Scrapy's own tests, with the add-on in Scrapy's default settings.

Downloads the source distribution of the Scrapy that is installed here, and makes an environment
with what its tests need. It runs them with the add-on. Those that fail and are not in EXPECTED run
again, first without the add-on, then with it: one that only fails with it is a fault. With
``--quick``, only the tests of the scheduler, the engine and the middlewares run.

The check needs a package index. Tests that need other sites are left out.
"""

from __future__ import annotations

import os
import re
import subprocess
import tarfile
import venv
from collections.abc import Iterable
from configparser import ConfigParser
from contextlib import nullcontext
from fnmatch import fnmatchcase
from pathlib import Path
from subprocess import CompletedProcess
from tempfile import TemporaryDirectory

import scrapy

from testing.harness import ROOT, Duration, Options, Parameter, Result, Row

QUICK = (
    "test_scheduler*.py test_crawler.py test_engine*.py test_downloadermiddleware*.py"
    " test_spidermiddleware*.py"
)
DURATION = Duration(1800, 600)
PARAMETERS = {
    "workers": Parameter(2, 2, "processes that run tests side by side"),
    "tests": Parameter("test_*", QUICK, "which files of its folder tests"),
    "environment": Parameter("", "", "a folder that keeps the environment for the next time"),
}
ADDON = '\nADDONS = {"scrapy_rep.Addon": 500}\n'

TIMEOUT = 7200
"""Seconds for one command."""
PYTEST = (
    *("-m", "pytest", "-q", "--tb=no", "-rfE", "-p", "no:cacheprovider", "--timeout=120"),
    *("-m", "not requires_internet"),
    # A pytest that is newer than this Scrapy warns about the fixtures of its tests.
    *("-W", "ignore::pytest.PytestDeprecationWarning", "-W", "ignore:fixture:pytest.PytestWarning"),
)
FAILURE = re.compile(r"^(?:FAILED|ERROR) (tests/[^\s\[]+(?:\[.*?\])?)(?: - (.*))?$", re.MULTILINE)
COUNT = re.compile(r"(\d+) (?:passed|failed|errors?|xfailed)\b(?=.* in [\d.]+s)")

EXPECTED = {
    "assumes that robots.txt is not obeyed: also fails with Scrapy's own middleware": (
        "test_command_fetch.py::TestFetchCommand::test_redirect_disabled",
        "test_crawl.py::TestCrawl::test_retry_conn_failed",
        "test_crawl.py::TestCrawl::test_retry_dns_error",
        "test_crawler_subprocess.py::*::test_ipv6_default_name_resolver",
        "test_engine.py::TestEngine::test_crawler",
        "test_engine.py::TestEngine::test_crawler_dupefilter",
        "test_engine_stop_download_*.py::*::test_crawler",
        "test_pipeline_crawl.py::TestFileDownloadCrawl::test_download_media_redirected_default_*",
        "test_pipeline_crawl.py::TestFileDownloadCrawl::test_download_media_wrong_urls",
        "test_request_left.py::test_*",
        "test_scheduler.py::TestIntegrationWithDownloaderAwareInMemory::*",
    ),
    "the site's robots.txt is unreachable, as RFC 9309 §2.3.1.4 says: without Internet example.com,"
    " an unknown host, or a middleware that raises on all requests": (
        "test_command_shell.py::TestShellCommand::test_dns_failures",
        "test_downloadermiddleware.py::TestDefaults::*",
        "test_downloadermiddleware.py::TestDownloadDeprecated::test_mwman_download",
        "test_downloadermiddleware.py::TestInvalidOutput::test_invalid_process_re*",
        "test_downloadermiddleware.py::TestMiddlewareUsing*::*",
        "test_downloadermiddleware.py::TestResponseFromProcessRequest::*",
        "test_request_attribute_binding.py::TestCrawl::test_downloader_middleware_raise_exception",
    ),
    "a signal handler stops all downloads, also that of the robots.txt, which is unreachable": (
        "*.py::*::test_headers_received_stop_download_*",
    ),
    "the first request waits in the queue for the robots.txt, and those after it come first": (
        "test_engine_loop.py::TestRequestSendOrder::test_default",
        "test_engine_loop.py::TestRequestSendOrder::test_lifo_start",
        "test_engine_loop.py::TestRequestSendOrder::test_shared_queues",
    ),
    "counts warnings: scrapy-rep also warns about the default USER_AGENT": (
        "test_crawler.py::TestCrawlerLogging::test_spider_custom_settings_log_level",
        "test_crawler_subprocess.py::*::test_reactorless_datauri",
        "test_crawler_subprocess.py::*::test_reactorless_simple",
    ),
}
"""Tests of Scrapy that fail with the add-on, by the reason. Parameters are left out."""


class Suite:
    """Copies of Scrapy's source distribution, and an environment for their tests."""

    def __init__(self, folder: Path, workers: int) -> None:
        self._folder = folder
        self._workers = str(workers)
        self._python = folder / "environment/bin/python"

    def install(self) -> None:
        """Make the environment, unless the folder has it. Raises CalledProcessError."""
        name = f"scrapy=={scrapy.__version__}"
        if not self._python.exists():
            venv.create(self._python.parents[1], with_pip=True)
        pip = ("-m", "pip", "--quiet", "--disable-pip-version-check")
        if not list(self._folder.glob("scrapy-*.tar.gz")):
            source = ("--no-deps", "--no-binary", "scrapy", "--dest", self._folder, name)
            self._run(*pip, "download", *source).check_returncode()
        needed = requirements((self.copy("plain", "") / "tox.ini").read_text("utf-8"))
        self._run(*pip, "install", name, "-e", ROOT, *needed).check_returncode()

    def copy(self, name: str, settings: str) -> Path:
        """Unpack Scrapy, and add lines to its default settings."""
        [archive] = self._folder.glob("scrapy-*.tar.gz")
        root = self._folder / name / archive.name.removesuffix(".tar.gz")
        with tarfile.open(archive) as file:
            file.extractall(root.parent, filter="data")
        with (root / "scrapy/settings/default_settings.py").open("a", encoding="utf-8") as file:
            file.write(settings)
        return root

    def run(self, root: Path, tests: Iterable[str]) -> tuple[int, dict[str, str]]:
        """Run tests of a copy. Returns their number, and the errors of those that failed."""
        done = self._run(*PYTEST, "-n", self._workers, *tests, root=root)
        if done.returncode != 1:  # some tests failed
            done.check_returncode()
        return outcome(done.stdout)

    def _run(self, *command: str | Path, root: Path | None = None) -> CompletedProcess[str]:
        return subprocess.run(
            [self._python, *command],
            cwd=root,
            env={
                **os.environ,
                "COLUMNS": "300",  # for the errors
                "PATH": f"{self._python.parent}{os.pathsep}{os.environ['PATH']}",
                "PYTHONPATH": str(root or ""),
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=TIMEOUT,
            check=False,
        )


def run(options: Options) -> Result:
    """Return the number of tests that fail only with the add-on. Each of them is a detail."""
    place = options.text("environment")
    with nullcontext(place) if place else TemporaryDirectory() as folder:
        suite = Suite(Path(folder).resolve(), options.number("workers"))
        try:
            suite.install()
            return _compared(suite, options)
        except subprocess.CalledProcessError as error:
            output = ["pip needs a package index.", str(error), *error.output.splitlines()[-20:]]
            return Result([Row("commands of pip or pytest that failed", 1, "", 0)], output)


def _compared(suite: Suite, options: Options) -> Result:
    plain, changed = suite.copy("plain", ""), suite.copy("changed", ADDON)
    patterns = options.text("tests").split()
    chosen = {f"tests/{path.name}" for each in patterns for path in plain.glob(f"tests/{each}")}
    number, failures = suite.run(changed, sorted(chosen))
    unexpected = [test for test in failures if not expected(test)]
    without = suite.run(plain, unexpected)[1] if unexpected else {}
    only = [test for test in unexpected if test not in without]
    again = suite.run(changed, only)[1] if only else {}
    rows = [
        Row("tests", number, "tests"),
        Row("tests that fail as expected", len(failures) - len(unexpected), "tests"),
        Row("tests that also fail without the add-on", len(without), "tests"),
        Row("tests that pass when repeated", len(only) - len(again), "tests"),
        Row("tests that fail only with the add-on", len(again), "tests", 0),
    ]
    return Result(rows, [f"{test}: {error}" for test, error in sorted(again.items())])


def outcome(output: str) -> tuple[int, dict[str, str]]:
    """Return the number of tests that ran, and the errors of those that failed."""
    return sum(map(int, COUNT.findall(output))), dict(FAILURE.findall(output))


def expected(test: str) -> bool:
    """Return whether a test is in EXPECTED."""
    name = test.partition("[")[0].removeprefix("tests/")
    return any(fnmatchcase(name, each) for patterns in EXPECTED.values() for each in patterns)


def requirements(tox: str) -> list[str]:
    """Return what the tests need, from the text of tox.ini."""
    parser = ConfigParser(interpolation=None)
    parser.read_string(tox)
    lines = parser["test-requirements"]["deps"].splitlines()
    named = [line.partition(" #")[0].strip() for line in lines if line.strip()]
    return [*named, "pytest-timeout", "pytest-xdist"]

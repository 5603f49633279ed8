"""Reports and surveys in headless Chromium, after their scripts have run.

Hostile texts must not become elements or attributes, and nothing may be on the console: neither an
error, nor what the Content-Security-Policy has stopped. ``--set images=FOLDER`` also writes the
screenshots of the documentation.

The check needs Chromium: that of CHROMIUM, or one on the PATH (on Debian, "apt-get install
chromium").
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from parsel import Selector

from scrapy_rep.reports.pages import report_page, survey_page
from testing import report_samples
from testing.harness import Duration, Options, Parameter, Result, Row
from testing.hostile_texts import ATTACKS

DURATION = Duration(10, 10)
PARAMETERS = {"images": Parameter("", "", "the folder of the screenshots; none if empty")}

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
IMAGES = {
    "report-light": ["--window-size=1280,1140"],
    "report-dark": ["--window-size=1280,1140", "--blink-settings=preferredColorScheme=0"],
    "report-phone": ["--window-size=500,800"],
}

_CONTROL = "<p>probe</p><script>document.body.append('ran')</script>"
"""It must be stopped: else this check would miss the scripts of a hostile site."""
_CONSOLE = re.compile(r":CONSOLE[:(]\d+\)?\] (.*)")


def run(options: Options) -> Result:
    """Open the pages, and count the problems."""
    browser = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        return Result([], ["not run: there is no Chromium (set CHROMIUM, or install chromium)"])
    problems = []
    names: dict[str, set[str]] = {}
    usual = report_page(report_samples.report())
    with TemporaryDirectory() as folder:
        path = Path(folder, "page.html")
        for name, page in {
            "usual": usual,
            "troubled": report_page(report_samples.troubled()),
            "survey": survey_page(report_samples.survey("a", "b", "c")),
            "hostile": report_page(report_samples.hostile(ATTACKS)),
            "hostile survey": survey_page(report_samples.survey(*ATTACKS)),
        }.items():
            path.write_text(page, "utf-8")
            names[name], console = _open(browser, path)
            problems += [f"{name}: on the console: {line}" for line in console]
        names["hostile"] -= names["troubled"]
        for name, other in (("hostile", "usual"), ("hostile survey", "survey")):
            more = sorted(names[name] - names[other])
            problems += [f"{name}: a text became {each}" for each in more]
        path.write_text(usual.replace("</body>", f"{_CONTROL}</body>"), "utf-8")
        if not _open(browser, path)[1]:
            problems.append("the Content-Security-Policy does not stop a script")
        path.write_text(usual, "utf-8")
        if images := options.text("images"):
            Path(images).mkdir(parents=True, exist_ok=True)
            for name, arguments in IMAGES.items():
                image = Path(images, f"{name}.png").resolve()
                _chromium(browser, path, "--hide-scrollbars", *arguments, f"--screenshot={image}")
    rows = [Row("pages", len(names), "pages"), Row("problems", len(problems), "problems", 0)]
    return Result(rows, problems)


def _open(browser: str, path: Path) -> tuple[set[str], list[str]]:
    """Return the names of the elements and attributes of a page, and the lines of its console."""
    done = _chromium(browser, path, "--dump-dom", "--enable-logging=stderr")
    elements = Selector(done.stdout).xpath("//*")
    names = {each.root.tag for each in elements}
    return names | {f"@{key}" for each in elements for key in each.attrib}, _CONSOLE.findall(
        done.stderr
    )


def _chromium(browser: str, path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", *arguments, path.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)

"""Reports and surveys in headless Chromium.

Opens pages at the widths of a phone and of a desktop, light and dark, with and without scripts, and
without network. There must be no message on the console, no request, no horizontal scroll bar, no
chart without a size, no link to nowhere, and no finding of axe-core. Hostile texts must not become
elements or run anything. Sorting and filtering a report must work.

The check needs Chromium: that of CHROMIUM, or one on the PATH (on Debian, "apt-get install
chromium"). npm installs axe-core. ``--set images=FOLDER`` also writes screenshots.
"""

from __future__ import annotations

import shutil
import subprocess
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from scrapy_rep.reports import survey_html
from scrapy_rep.reports.html import render
from testing import report_samples, survey_samples
from testing.chromium import Chromium, Tab, find
from testing.harness import Duration, Parameter, Result, Row
from testing.hostile_texts import ATTACKS

if TYPE_CHECKING:
    from scrapy_rep.reports.model import Report
    from testing.harness import Options

DURATION = Duration(80, 40)
PARAMETERS = {
    "origins": Parameter(10_000, 2_000, "origins of the large page"),
    "images": Parameter("", "", "the folder of the screenshots; none if empty"),
}

AXE = "axe-core@4.14.1"
DEMO = Path(__file__).parents[1] / "example_project" / "reports" / "demo.html"
"""The report that the example project writes."""
WIDTHS = {"phone": 375, "desktop": 1280}
_NOW = report_samples.START + 3_000

_OPEN_ALL = "for (const each of document.querySelectorAll('details')) each.open = true"
_OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
_DEAD_LINKS = """
[...document.querySelectorAll("a[href^='#']")]
  .filter((link) => !document.getElementById(link.hash.slice(1))).map((link) => link.hash)
"""
_FLAT_CHARTS = """
[...document.querySelectorAll("figure svg, figure svg path[d^=M], figure svg rect, figure circle")]
  .filter((shape) => {
    const box = shape.getBoundingClientRect();
    return !(box.width > 0 && box.height > 0) || getComputedStyle(shape).visibility !== "visible";
  }).map((shape) => shape.outerHTML.slice(0, 80))
"""
_OPEN_ONE = """
(() => {
  const row = [...document.querySelectorAll("table.origins > tbody")]
    .find((body) => body.textContent.includes("news.example"));
  row.parentElement.tHead.after(row);
  row.querySelector("details").open = true;
  const section = document.getElementById("origins").getBoundingClientRect();
  return [section.top + scrollY, row.getBoundingClientRect().bottom + scrollY + 90];
})()
"""
_AXE = """
axe.run(document, {resultTypes: ["violations"]}).then((found) => found.violations.map((each) =>
  `${each.impact}: ${each.id}: ${each.nodes[0].target} (${each.nodes.length})`))
"""
_SORT = """
(() => {
  const head = (column) => document.querySelectorAll("table.origins thead button")[column];
  const values = (column) => [...document.querySelectorAll("table.origins > tbody")]
    .map((body) => body.rows[0].cells[column].textContent);
  head(6).click();
  const dropped = values(6).map((text) => Number(text.replaceAll(",", "")));
  const sorted = dropped.every((value, index) => !index || dropped[index - 1] >= value);
  const input = document.querySelector(".tools input");
  input.value = "SHOP";
  input.dispatchEvent(new Event("input"));
  const left = values(0);
  return sorted && left.length > 0 && left.every((name) => name.includes("shop"));
})()
"""

_NAMES = """
[...new Set([...document.querySelectorAll("*")].flatMap((element) =>
  [element.localName, ...element.getAttributeNames().map((name) => `@${name}`)]))]
"""
_POLICY = """
(() => {
  const script = document.createElement("script");
  script.textContent = "window.ran = true";
  const image = document.createElement("img");
  image.setAttribute("onerror", "window.ran = true");
  image.src = "file:///nowhere.png";
  document.body.append(script, image);
  return new Promise((resolve) => setTimeout(() => resolve(window.ran === undefined), 200));
})()
"""


def run(options: Options) -> Result:
    """Open the pages, and count the problems."""
    path = find()
    if path is None:
        return Result([], ["not run: there is no Chromium (set CHROMIUM, or install chromium)"])
    with TemporaryDirectory() as name, Chromium(path) as browser:
        axe = _axe(Path(name))
        check = _Check(browser, Path(name), axe)
        check.views("usual", _page(report_samples.report()))
        check.views("troubled", _page(report_samples.troubled()))
        check.views("hostile", _page(report_samples.hostile(ATTACKS)))
        check.names("hostile", "usual", "troubled")
        check.views("survey", survey_html.render(survey_samples.usual()))
        check.views("hostile survey", survey_html.render(survey_samples.hostile(ATTACKS)))
        check.names("hostile survey", "survey")
        if DEMO.exists():
            check.views("demo", DEMO.read_text("utf-8"))
        check.sorting(report_samples.report(450))
        size, slowest = check.large(options.number("origins"))
        if folder := options.text("images"):
            check.images(Path(folder))
    notes = [] if axe else [f"{AXE} was not used: npm cannot get it"]
    if not DEMO.exists():
        notes.append("the report of the example was not opened: `make example` writes it")
    return Result(
        [
            Row("views of pages", check.number, "views"),
            Row("problems", len(check.problems), "problems", 0),
            Row("a large page", size / 1e6, "MB", 10),
            Row("  opens within", slowest, "s"),
        ],
        [*notes, *check.problems],
    )


def _page(report: Report) -> str:
    return render(report, _NOW)


def _axe(folder: Path) -> str | None:
    """Return the script of axe-core, or None if it cannot be had."""
    npm = shutil.which("npm")
    if npm is None:
        return None
    command = [npm, "install", "--silent", "--ignore-scripts", "--no-audit", "--no-fund"]
    done = subprocess.run([*command, "--prefix", folder, AXE], check=False, timeout=300)
    script = folder / "node_modules" / "axe-core" / "axe.min.js"
    return script.read_text("utf-8") if done.returncode == 0 and script.exists() else None


class _Check:
    def __init__(self, browser: Chromium, folder: Path, axe: str | None) -> None:
        self._browser = browser
        self._folder = folder
        self._axe = axe
        self.number = 0
        self.problems: list[str] = []

    def views(self, name: str, page: str) -> None:
        """Open a page in each way, and look for problems."""
        url = self._write(name, page)
        for (width_name, width), dark, scripts in product(
            WIDTHS.items(), (False, True), (False, True)
        ):
            view = f"{name}, {width_name}, {'dark' if dark else 'light'}"
            if not scripts:
                view += ", no scripts"
            tab = Tab(self._browser, width=width, height=900, dark=dark, scripts=scripts)
            tab.open(url)
            self._look(tab, view, url)
            tab.evaluate(_OPEN_ALL)
            self._look(tab, f"{view}, all open", url)
            # axe-core waits for timers, which do not run without scripts.
            if self._axe is not None and scripts:
                tab.evaluate(self._axe + ";0")
                self.problems += [f"{view}: axe: {each}" for each in tab.evaluate(_AXE)]
            tab.close()
            self.number += 1

    def _look(self, tab: Tab, view: str, url: str) -> None:
        found = [f"on the console: {message}" for message in tab.messages()]
        found += [f"requests {each[:80]}" for each in tab.requests() if each != url]
        if overflow := tab.evaluate(_OVERFLOW):
            found.append(f"{overflow} px too wide")
        found += [f"leads to nowhere: {link}" for link in tab.evaluate(_DEAD_LINKS)]
        found += [f"is not visible: {shape}" for shape in tab.evaluate(_FLAT_CHARTS)]
        self.problems += [f"{view}: {each}" for each in found]

    def names(self, hostile: str, *others: str) -> None:
        """Compare the elements and attributes of a hostile page with those of others."""
        found: dict[str, set[str]] = {}
        for name in (hostile, *others):
            tab = Tab(self._browser, width=1280, height=900, scripts=False)
            tab.open((self._folder / f"{name}.html").as_uri())
            found[name] = set(tab.evaluate(_NAMES))
            tab.close()
        more = found[hostile].difference(*(found[name] for name in others))
        self.problems += [f"{hostile}: a text became {name}" for name in sorted(more)]

    def sorting(self, report: Report) -> None:
        """Sort and filter the table of origins."""
        tab = Tab(self._browser, width=1280, height=900)
        tab.open(self._write("sorted", _page(report)))
        if not tab.evaluate(_SORT):
            self.problems.append("the table is not sorted or filtered")
        self.problems += [f"sorted: {message}" for message in tab.messages()]
        if not tab.evaluate(_POLICY):
            self.problems.append("the Content-Security-Policy does not stop a script")
        tab.close()

    def large(self, origins: int) -> tuple[int, float]:
        """Return the size of a large page, and how long it takes to open it."""
        url = self._write("large", _page(report_samples.large(origins)))
        slowest = 0.0
        for width in WIDTHS.values():
            tab = Tab(self._browser, width=width, height=900)
            slowest = max(slowest, tab.open(url))
            tab.close()
        return (self._folder / "large.html").stat().st_size, slowest

    def images(self, folder: Path) -> None:
        """Write the screenshots of the documentation."""
        folder.mkdir(parents=True, exist_ok=True)
        url = self._write("usual", _page(report_samples.report()))
        for name, width, height, dark in (
            ("report-light", 1280, 1140, False),
            ("report-dark", 1280, 1140, True),
            ("report-phone", 375, 800, False),
        ):
            tab = Tab(self._browser, width=width, height=height, dark=dark)
            tab.open(url)
            (folder / f"{name}.png").write_bytes(tab.screenshot(0, height))
            tab.close()
        if DEMO.exists():
            tab = Tab(self._browser, width=1060, height=760)
            tab.open(DEMO.as_uri())
            (folder / "report-example.png").write_bytes(tab.screenshot(0, 760))
            tab.close()
        tab = Tab(self._browser, width=1280, height=1000)
        tab.open(url)
        top, bottom = tab.evaluate(_OPEN_ONE)
        (folder / "report-origin.png").write_bytes(tab.screenshot(top, bottom - top))
        tab.close()

    def _write(self, name: str, page: str) -> str:
        path = self._folder / f"{name}.html"
        path.write_text(page, "utf-8")
        return path.as_uri()

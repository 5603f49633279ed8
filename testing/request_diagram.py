"""The way of a request on `docs/about/design.md`: a list and a drawing, made from the functions.

Each step is a function of the package, and names the function that calls it. A test compares the
calls with the code. ``python -m testing.request_diagram`` writes list and drawing anew.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from xml.sax.saxutils import escape

from testing import svg

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

DOCS = Path(__file__).parent.parent / "docs"
PAGE = DOCS / "about" / "design.md"
IMAGE = DOCS / "images" / "request.svg"
START, END = "<!-- The list: python -m testing.request_diagram -->\n", "<!-- End of the list -->\n"

WIDTH, HEIGHT = 880, 540
BOX = (270, 48)
LEFT, RIGHT = 190, 690
TOP, ROW = 40, 92

MIDDLEWARE = "scrapy_rep.crawl.middleware.RobotsTxtMiddleware"
CACHE = "scrapy_rep.crawl.policy_cache.PolicyCache"
THROTTLE = "scrapy_rep.scheduling.throttle.Throttle"


class Step(NamedTuple):
    """A function that processes a request. ``callers`` are functions that call it, else Scrapy."""

    name: str
    short: str
    """What it does, in the drawing."""
    text: str
    """What it does, in the list."""
    place: tuple[int, int]
    """Its column and its row."""
    callers: tuple[str, ...] = ()


STEPS = {
    "process": Step(
        f"{MIDDLEWARE}.process_request",
        "gets each request",
        "A request with `dont_obey_robotstxt`, and a URL whose scheme has no robots.txt, pass.",
        (LEFT, 1),
    ),
    "fresh": Step(
        f"{CACHE}.get_fresh",
        "looks into memory",
        "If the policy of the origin is in memory and fresh, and its site sets no delay, it "
        "decides at once. Nothing is awaited.",
        (LEFT, 2),
        (f"{MIDDLEWARE}.process_request",),
    ),
    "join": Step(
        f"{CACHE}.get_or_fetch",
        "starts one fetch, or joins it",
        "Otherwise, all requests to the origin share one fetch.",
        (RIGHT, 1),
        (f"{MIDDLEWARE}._process_when_ready",),
    ),
    "load": Step(
        "scrapy_rep.crawl.policy_store.PolicyStore.load",
        "looks into the store",
        "The fetch looks into the store first, and claims the origin if the store has no usable "
        "entry.",
        (RIGHT, 2),
        (f"{CACHE}._fetch",),
    ),
    "fetch": Step(
        "scrapy_rep.fetch.fetcher.Fetcher.fetch",
        "requests the robots.txt",
        "Then it requests the robots.txt through Scrapy's engine, hop by hop. "
        "`scrapy_rep.protocol.access.access_result` says what a status means.",
        (RIGHT, 3),
        (f"{CACHE}._fetch",),
    ),
    "apply": Step(
        "scrapy_rep.origin.OriginFile.apply",
        "changes the state of the origin",
        "The result changes the state of the origin.",
        (RIGHT, 4),
        (f"{CACHE}._fetch",),
    ),
    "wait": Step(
        f"{THROTTLE}.wait",
        "the request waits",
        "Meanwhile, the request waits here. It does not count in `CONCURRENT_REQUESTS`. The result "
        "releases the requests of the origin in their order.",
        (RIGHT, 5),
        (f"{MIDDLEWARE}._process_when_ready",),
    ),
    "check": Step(
        f"{MIDDLEWARE}.process_request_2",
        "checks the request",
        "The request is checked against the policy of that time.",
        (LEFT, 3),
        (f"{MIDDLEWARE}.process_request", f"{MIDDLEWARE}._try_start"),
    ),
    "verdict": Step(
        "scrapy_rep.origin.Origin.verdict",
        "allowed or disallowed, and why",
        'The origin answers for the URL. The verdict is in `request.meta["robotstxt"]`.',
        (LEFT, 4),
        (f"{MIDDLEWARE}.process_request_2",),
    ),
    "drop": Step(
        "scrapy_rep.crawl.drops.record_drop",
        "the errback gets the verdict",
        "If it is negative, the drop is counted and logged, and the errback gets a "
        "`RobotsTxtDisallowed`.",
        (RIGHT, 6),
        (f"{MIDDLEWARE}._disallow",),
    ),
    "start": Step(
        f"{THROTTLE}.try_start",
        "keeps the delay of the site",
        "If it is positive, the request starts when the delay of its site has passed. Until then, "
        "it waits again.",
        (LEFT, 5),
        (f"{MIDDLEWARE}._try_start",),
    ),
    "response": Step(
        f"{MIDDLEWARE}.process_response",
        "checks a URL that has changed",
        "The response passes this method, which checks a URL that has changed, and "
        "`scrapy_rep.pages.middleware.PageDirectivesMiddleware`, which reads what the page says "
        "about itself.",
        (LEFT, 6),
    ),
}
ARROWS = (
    ("process", "fresh", ""),
    ("process", "join", "otherwise"),
    ("fresh", "check", "fresh"),
    ("join", "load", "one fetch"),
    ("load", "fetch", "no usable entry"),
    ("fetch", "apply", "a result"),
    ("apply", "wait", "releases"),
    ("wait", "check", "one after the other"),
    ("check", "verdict", ""),
    ("verdict", "drop", "disallowed"),
    ("verdict", "start", "allowed"),
    ("start", "response", "downloaded"),
)
STYLE = """\
rect.step { fill: #eef4fb; stroke: #2a5b8c; stroke-width: 1.5 }
path { fill: none; stroke: #555; stroke-width: 1.3; marker-end: url(#head) }
text { font: 13px sans-serif; fill: #222; text-anchor: middle }
text.name { font: 11px monospace; fill: #444 }
text.label { font-size: 11px; fill: #444; paint-order: stroke; stroke: #fff; stroke-width: 4px }
"""


def function(name: str) -> Callable[..., object]:
    """Return a function or a method by its qualified name. Raises if there is none."""
    module, _, attribute = name.rpartition(".")
    try:
        owner: object = importlib.import_module(module)
    except ModuleNotFoundError:
        module, _, cls = module.rpartition(".")
        owner = getattr(importlib.import_module(module), cls)
    found: Callable[..., object] = getattr(owner, attribute)
    return found


def calls(name: str) -> list[str]:
    """Return the names of the functions and methods that a function calls, in their order."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function(name))))
    found = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    found.sort(key=lambda node: (node.lineno, node.col_offset))
    return [getattr(node, "attr", getattr(node, "id", "")) for node in found]


def listing() -> Iterator[str]:
    """Yield the steps as a numbered list in Markdown."""
    for number, step in enumerate(STEPS.values(), 1):
        prefix = f"{number}. "
        yield textwrap.fill(
            f"{prefix}`{step.name}`: {step.text}",
            width=132,
            subsequent_indent=" " * len(prefix),
            break_long_words=False,
            break_on_hyphens=False,
        )


def page(text: str) -> str:
    """Return the page with the list of today."""
    before, _, rest = text.partition(START)
    _, end, after = rest.partition(END)
    return before + START + "\n" + "\n".join(listing()) + "\n\n" + (end or END) + after


def drawing() -> str:
    """Return the steps and their order as an SVG image."""
    shapes, labels = [svg.ARROWHEAD], []
    numbers = {key: number for number, key in enumerate(STEPS, 1)}
    for start, end, label in ARROWS:
        arrow = svg.arrow(_middle(start), _middle(end), BOX, bend=0, label=0.5)
        x, y = arrow.label
        shapes.append(f'<path d="{arrow.path}"/>')
        labels.append(f'<text class="label" x="{x}" y="{y}">{escape(label)}</text>')
    width, height = BOX
    for key, step in STEPS.items():
        x, y = _middle(key)
        name = ".".join(step.name.rsplit(".", 2)[-2:])
        shapes.append(
            f'<rect class="step" x="{x - width // 2}" y="{y - height // 2}" width="{width}" '
            f'height="{height}" rx="8"/><text x="{x}" y="{y - 4}">{numbers[key]}. '
            f'{escape(step.short)}</text><text class="name" x="{x}" y="{y + 13}">{name}</text>'
        )
    return svg.document(WIDTH, HEIGHT, "The way of a request", STYLE, [*shapes, *labels])


def _middle(key: str) -> tuple[int, int]:
    column, row = STEPS[key].place
    return column, TOP + (row - 1) * ROW


def main() -> None:
    """Write the drawing and the list anew."""
    IMAGE.write_text(drawing(), "utf-8")
    PAGE.write_text(page(PAGE.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main()

"""How many small changes to the code the tests notice.

A mutant is the package with one change in a function: a statement is removed, a condition negated,
``<`` becomes ``<=``, and so on. The check runs the tests of the changed module and the simulation
for a random sample, and prints the mutants that no test notices. ``--set run=0`` prints the sample.
No library is used: cosmic-ray removes no statements, and a fifth of its mutants of this package are
in annotations, which never run.
"""

from __future__ import annotations

import ast
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from operator import setitem
from pathlib import Path
from typing import NamedTuple

from testing.harness import ROOT, Duration, Options, Parameter, Result, Row

DURATION = Duration(1200, 150)
PARAMETERS = {
    "number": Parameter(50, 5, "mutants; 300 take about two hours"),
    "seed": Parameter(1, 1, "chooses the sample; a smaller one is its beginning"),
    "processes": Parameter(2, 2, "mutants at once"),
    "run": Parameter(1, 1, "0: prints the sample, and runs nothing"),
}
PARTS = ("frontier", "fetch", "policies", "middleware.py", "origin.py", "stores", "pages")
CRAWLS = {
    "fetch": ("fetch", "redirects", "policy_store", "tdm_files", "archive"),
    "frontier": ("pace", "backoff", "scheduler", "redis_scheduler"),
    "middleware.py": ("middleware", "closing", "report", "pace"),
    "origin.py": ("policy_store", "freshness", "outages"),
    "pages": ("page_middleware", "log"),
    "policies": ("origins", "local_rules", "tdm_files"),
    "stores": ("stores", "policy_store"),
}
"""The tests of crawls that belong to a part."""
SECONDS = 900
"""A mutant whose tests take longer is noticed: most of these never end."""

PAIRS: list[tuple[type, type]] = [
    (ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq), (ast.Is, ast.IsNot),
    (ast.In, ast.NotIn), (ast.And, ast.Or), (ast.Add, ast.Sub), (ast.Mult, ast.Div),
]  # fmt: skip
SWAPPED = {**dict(PAIRS), **{second: first for first, second in PAIRS}}
NOT_RUN = {"annotation", "returns", "decorator_list"}


class Mutant(NamedTuple):
    """A node of the tree of a module, and what replaces it."""

    path: str
    tree: ast.Module
    node: ast.stmt | ast.expr
    other: ast.AST
    put: Callable[[ast.AST], None]
    """Puts a node where the one that is replaced is."""

    def __str__(self) -> str:
        before, after = (ast.unparse(each)[:80] for each in (self.node, self.other))
        return f"{self.path}:{self.node.lineno}: {before} -> {after}".replace("\n", " ")

    def source(self) -> str:
        """Return the module with the change."""
        self.put(self.other)
        source = ast.unparse(self.tree)
        self.put(self.node)
        return source

    def tests(self) -> list[str]:
        """Return the tests of the module. The fastest ones come first."""
        part = self.path.split("/")[1]
        name = f"test_{part}" if part.endswith(".py") else part
        crawls = [f"crawl/test_{each}.py" for each in CRAWLS[part]]
        tests = [f"tests/{each}" for each in (name, "test_simulation.py", *crawls)]
        return [each for each in tests if (ROOT / each).exists()]


def others(node: ast.AST, name: str) -> Iterator[ast.AST]:
    """Yield what may replace a node, which is the field ``name`` of its parent."""
    match node:
        case ast.expr() if name in ("test", "ifs"):
            yield ast.UnaryOp(ast.Not(), node)
        case ast.Expr(ast.Call(ast.Attribute(ast.Attribute(attr="_logger") | ast.Name("logger")))):
            return  # the text of the log has tests of its own
        case ast.Expr(ast.Call() | ast.Await()) | ast.AugAssign() | ast.Delete():
            yield ast.Pass()
        case ast.Assign([ast.Attribute() | ast.Subscript()]):
            yield ast.Pass()
    match node:
        case ast.Compare(left, [operator], right) if type(operator) in SWAPPED:
            yield ast.Compare(left, [SWAPPED[type(operator)]()], right)
        case ast.BoolOp(operator, values):
            yield ast.BoolOp(SWAPPED[type(operator)](), values)
        case ast.BinOp(left, operator, right) if type(operator) in SWAPPED:
            yield ast.BinOp(left, SWAPPED[type(operator)](), right)
        case ast.Constant(bool() as value):
            yield ast.Constant(not value)
        case ast.Constant(int() | float() as value):
            yield ast.Constant(value + 1)
        case ast.Name("max" | "min" as function):
            yield ast.Name("min" if function == "max" else "max")


def mutants_of(path: Path) -> Iterator[Mutant]:
    """Yield all mutants of a module, in the order of its tree."""
    tree = ast.parse(path.read_text("utf-8"))
    defined = (ast.FunctionDef, ast.AsyncFunctionDef)
    functions = [each for each in ast.walk(tree) if isinstance(each, defined)]
    for parent in dict.fromkeys(node for function in functions for node in ast.walk(function)):
        for name, value in ast.iter_fields(parent):
            put = partial(setitem, value) if isinstance(value, list) else partial(setattr, parent)
            for key, node in enumerate(value) if isinstance(value, list) else [(name, value)]:
                if isinstance(node, (ast.stmt, ast.expr)) and name not in NOT_RUN:
                    for other in others(node, name):
                        place = path.relative_to(ROOT).as_posix()
                        yield Mutant(place, tree, node, other, partial(put, key))


def sample(number: int, seed: int) -> list[Mutant]:
    """Return a random sample of the mutants."""
    parts = [ROOT / "scrapy_rep" / part for part in PARTS]
    paths = [path for part in parts for path in sorted(part.glob("*.py")) or [part]]
    found = [mutant for path in paths for mutant in mutants_of(path)]
    random.Random(seed).shuffle(found)
    return found[:number]


def is_noticed(mutant: Mutant, source: str) -> bool:
    """Run the tests of a mutant in a copy of the tree. Returns whether one fails, or never ends."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "copy")
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".git", ".venv*", "build"))
        (copy / mutant.path).write_text(source, "utf-8")
        tests = subprocess.Popen(
            [sys.executable, "-m", "pytest", "-n0", "-qx", "--reactor=asyncio", *mutant.tests()],
            cwd=copy,
            env={**os.environ, "PYTHONPATH": str(copy)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            found = tests.wait(SECONDS) != 0
        except subprocess.TimeoutExpired:
            os.killpg(tests.pid, signal.SIGKILL)
            found = tests.wait() != 0
    sys.stderr.write(f"{'noticed' if found else 'SURVIVES'}: {mutant}\n")
    return found


def run(options: Options) -> Result:
    """Run the tests of each mutant. The details are those that no test notices."""
    mutants = sample(options.number("number"), options.number("seed"))
    rows = [Row("mutants", len(mutants), "changes")]
    if not options.number("run"):
        return Result(rows, [*map(str, mutants)])
    sources = [mutant.source() for mutant in mutants]  # here, as mutants share trees
    with ThreadPoolExecutor(options.number("processes")) as threads:
        found = [*threads.map(is_noticed, mutants, sources)]
    alive = [str(mutant) for mutant, noticed in zip(mutants, found, strict=True) if not noticed]
    rows.append(Row("mutants that no test notices", 100 * len(alive) / len(mutants), "%", 10))
    return Result(rows, alive)

"""The public names: each has a docstring, and `public_names.txt` has its signature.

A change of that file is a change for users: see `docs/about/versioning.md`. To write it again, run
``python -m tests.test_public_names``.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

import scrapy_rep
from scrapy_rep import stores, testing

FILE = Path(__file__).with_name("public_names.txt")
THINGS = {
    f"{module.__name__}.{name}": getattr(module, name)
    for module in (scrapy_rep, stores, testing)
    for name in module.__all__
}


def parameters(function: Any) -> str:
    """Return the parameters of a function, without types, and with the text of plain defaults."""
    signature = inspect.signature(function)
    plain = [each.replace(annotation=each.empty) for each in signature.parameters.values()]
    return str(inspect.Signature(plain))


def members(cls: type) -> Iterator[tuple[str, object]]:
    """Yield the public members of a class that this package defines."""
    found = {
        name: value
        for base in reversed(cls.__mro__)
        if base.__module__.startswith("scrapy_rep")
        for name, value in vars(base).items()
        if not name.startswith(("_", "test_"))
    }
    yield from sorted(found.items())


def lines() -> Iterator[str]:
    for name, thing in THINGS.items():
        if not inspect.isclass(thing):
            yield f"{name}{parameters(thing)}"
            continue
        if issubclass(thing, Enum):
            yield f"{name}: {', '.join(str(each.value) for each in thing)}"
        else:
            is_called = "__init__" in vars(thing) or not issubclass(thing, Exception)
            is_called = is_called and thing is not stores.Store
            yield f"{name}{parameters(thing) if is_called else ''}"
        for member, value in members(thing):
            if isinstance(thing.__dict__.get(member), Enum):
                continue
            function = getattr(value, "__func__", value)
            is_call = inspect.isfunction(function)
            yield f"    {member}{parameters(function) if is_call else ''}"


def test_a_change_of_a_signature_is_noticed() -> None:
    assert list(lines()) == FILE.read_text("utf-8").splitlines()


def test_the_reference_has_each_public_name() -> None:
    page = FILE.parents[1].joinpath("docs", "reference", "api.md").read_text("utf-8")
    documented, module = [], ""
    for found in re.finditer(r"^\.\. (?:currentmodule:: (.*)|auto\w+:: (\w+))", page, re.MULTILINE):
        module = found[1] or module
        documented += [f"{module}.{found[2]}"] * bool(found[2])
    assert sorted(documented) == sorted(THINGS)


@pytest.mark.parametrize("name", THINGS)
def test_each_public_name_has_a_docstring(name: str) -> None:
    thing = THINGS[name]
    assert inspect.getdoc(thing)
    assert thing.__doc__ is not None
    for member, value in members(thing) if inspect.isclass(thing) else ():
        if inspect.isfunction(value) or isinstance(value, property):
            documented = value if value.__doc__ else getattr(stores.Store, member)
            assert documented.__doc__, member


if __name__ == "__main__":
    FILE.write_text("".join(f"{line}\n" for line in lines()), "utf-8")

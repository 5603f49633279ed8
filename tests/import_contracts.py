"""A contract of import-linter for attributes of Scrapy that one module alone may use."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

from importlinter import Contract, ContractCheck, fields, output

ROOT = Path(__file__).parent.parent


class OwnedAttributes(Contract):  # type: ignore[misc, unused-ignore]
    """Attributes that only the modules ``owners`` use, by a dot or as a text.

    A name may be written with the object that it is an attribute of: ``crawler.settings``.
    """

    owners = fields.SetField(subfield=fields.StringField())
    attributes = fields.SetField(subfield=fields.StringField())

    def check(self, graph: Any, verbose: bool) -> ContractCheck:
        owned = {str(name) for name in self.attributes}  # type: ignore[attr-defined]
        used_by: dict[str, list[str]] = {}
        for module in sorted(graph.modules):
            path = ROOT.joinpath(*module.split(".")).with_suffix(".py")
            if path.is_file():
                names = attributes_used_in(path) & owned
                if names:
                    used_by[module] = sorted(names)
        owners = {str(owner) for owner in self.owners}  # type: ignore[attr-defined]
        wrong = used_by.keys() ^ owners  # an owner that uses none: the list is out of date
        return ContractCheck(kept=not wrong, metadata={each: used_by.get(each) for each in wrong})

    def render_broken_contract(self, check: ContractCheck) -> None:
        for module, names in check.metadata.items():
            output.print_error(f"{module} uses {', '.join(names or ['none of them'])}")
        output.new_line()


def attributes_used_in(path: Path) -> set[str]:
    """The attributes and texts of a module. Attributes are also there with the name before them."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Attribute(value=ast.Name(id=name) | ast.Attribute(attr=name), attr=attr):
                found |= {attr, f"{name.lstrip('_')}.{attr}"}
            case ast.Attribute(attr=attr):
                found.add(attr)
            case ast.Constant(value=str(attr)):  # of getattr(), or a key
                found.add(attr)
    return found

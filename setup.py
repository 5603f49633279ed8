"""Makes the description on a package index from README.md. pyproject.toml has all other metadata.

Relative links and pictures of the README lead nowhere on an index.
"""

import re
from pathlib import Path

from setuptools import setup

FILES = ""
"""The URL of the files of the published repository, with "/" at its end. Empty: not published."""

README = Path(__file__).parent / "README.md"
_CODE = re.compile(r"^(```.*?^```$)", re.MULTILINE | re.DOTALL)
_RELATIVE = re.compile(r"(!?)\[([^\]]*)\]\((?![a-z]+:|#)([^)]*)\)")


def description() -> str:
    """Return the README with absolute links, or without links if there is no repository."""
    parts = _CODE.split(README.read_text(encoding="utf-8"))
    parts[::2] = [_RELATIVE.sub(_absolute, text) for text in parts[::2]]
    return "".join(parts)


def _absolute(link: re.Match[str]) -> str:
    picture, text, path = link.groups()
    if FILES:
        return f"{picture}[{text}]({FILES}{path})"
    return "" if picture else text


if __name__ == "__main__":
    setup(long_description=description(), long_description_content_type="text/markdown")

"""``python -m scrapy_rep.commands`` is the console script ``scrapy-rep``."""

from __future__ import annotations

from .main import console

if __name__ == "__main__":
    console()

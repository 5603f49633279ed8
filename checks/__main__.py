"""``python -m checks [NAME ...]``: :mod:`testing.harness` describes the arguments."""

from __future__ import annotations

import sys

import checks
from testing.harness import main

if __name__ == "__main__":
    sys.exit(main(checks))

"""``python -m benchmarks [NAME ...]``: :mod:`testing.harness` describes the arguments."""

from __future__ import annotations

import sys

import benchmarks
from testing.harness import main

if __name__ == "__main__":
    sys.exit(main(benchmarks))

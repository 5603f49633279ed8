# `make example` and `make test` need only make and Python 3.10 or later. They install the rest.

PYTHON ?= python3
OLDEST_SCRAPY := 2.14.0
# The minor releases between the oldest and the newest.
MINOR_SCRAPY := 2.15 2.16 2.17 2.18
UNRELEASED_SCRAPY ?= git+https://github.com/scrapy/scrapy

BIN := .venv/bin
OLDEST := .venv-oldest/bin
UNRELEASED := .venv-scrapy-unreleased/bin
MINOR_TESTS := $(MINOR_SCRAPY:%=scrapy-%)

# More processes than cores: most tests of crawls wait for a server.
SIDE_BY_SIDE := -n 10
PYTEST := $(BIN)/python -m pytest $(SIDE_BY_SIDE)
WITHOUT_TOPOLOGIES := --ignore=tests/crawl/test_redis_topologies.py

.PHONY: example test lint types contracts tests loops oldest versions scrapy-unreleased
.PHONY: $(MINOR_TESTS) benchmark checks compatibility format fuzz clean

example: .venv/example
	cd example_project && ../$(BIN)/scrapy crawl demo

test: lint types contracts tests loops oldest
	@echo "All checks and tests passed."

lint: .venv/test
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: .venv/test
	$(BIN)/mypy

contracts: .venv/test
	$(BIN)/lint-imports

# All tests, on Scrapy's default reactor. Fails below the coverage given here, in percent.
tests: .venv/test
	$(PYTEST) --reactor=asyncio --cov --cov-report=
	$(BIN)/coverage report --include='scrapy_rep/protocol/*' --fail-under=100
	$(BIN)/coverage report --omit='scrapy_rep/protocol/*' --fail-under=95

# The tests of crawls and stores, on Twisted's default reactor and without a reactor. The topologies
# of Redis do not depend on either.
loops: .venv/test
	$(PYTEST) --reactor=default tests/crawl tests/stores $(WITHOUT_TOPOLOGIES)
	$(PYTEST) -p no:twisted tests/crawl tests/stores $(WITHOUT_TOPOLOGIES)

# With the oldest supported Scrapy, all tests of what depends on its version, and those of crawls and
# stores on both reactors.
oldest: .venv-oldest/test
	$(OLDEST)/python -m pytest $(SIDE_BY_SIDE) --reactor=asyncio --ignore=tests/protocol \
		--ignore=tests/reports --ignore=tests/commands
	$(OLDEST)/python -m pytest $(SIDE_BY_SIDE) --reactor=asyncio \
		tests/commands/test_session.py tests/commands/test_check.py tests/commands/test_view.py
	$(OLDEST)/python -m pytest $(SIDE_BY_SIDE) --reactor=default tests/crawl tests/stores \
		$(WITHOUT_TOPOLOGIES)

# The crawls on the last patch of each minor release of Scrapy, and on its newest commit: not part
# of `test`. `make scrapy-2.17` runs one of them.
versions: $(MINOR_TESTS) scrapy-unreleased

$(MINOR_TESTS): scrapy-%: .venv-scrapy-%/test
	.venv-scrapy-$*/bin/python -m pytest $(SIDE_BY_SIDE) --reactor=asyncio tests/crawl

# Without access to the repository, this says so and succeeds.
scrapy-unreleased:
	$(PYTHON) -m venv .venv-scrapy-unreleased
	@if GIT_TERMINAL_PROMPT=0 $(UNRELEASED)/pip install --quiet --disable-pip-version-check \
		-e '.[test]' 'scrapy @ $(UNRELEASED_SCRAPY)'; \
	then $(UNRELEASED)/python -m pytest $(SIDE_BY_SIDE) --reactor=asyncio tests/crawl; \
	else echo "Skipped: Scrapy cannot be installed from $(UNRELEASED_SCRAPY)."; \
	fi

# Measures speed and memory. `make benchmark ARGUMENTS="parsers --quick"` runs a part of it.
benchmark: .venv/test
	$(BIN)/python -m benchmarks $(ARGUMENTS)

# Checks that take longer than tests. `make checks ARGUMENTS=--quick` runs less of each.
checks: .venv/test
	$(BIN)/python -m checks $(ARGUMENTS)

format: .venv/test
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

fuzz: .venv/test
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[fuzz]'
	$(BIN)/python -m fuzz.fuzz_robotstxt -max_total_time=600

# Crawls with other plugins, each in its own environment. Not part of `test`.
compatibility: .venv/test
	$(BIN)/python -m checks.compatibility

clean:
	rm -rf .venv .venv-oldest .venv-compatibility .venv-scrapy-*

.venv/example: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -e .
	touch $@

.venv/test: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[test]'
	touch $@

.venv-scrapy-%/test: pyproject.toml
	$(PYTHON) -m venv .venv-scrapy-$*
	.venv-scrapy-$*/bin/pip install --quiet --disable-pip-version-check -e '.[test]' 'scrapy==$*.*'
	touch $@

.venv-oldest/test: pyproject.toml
	$(PYTHON) -m venv .venv-oldest
	$(OLDEST)/pip install --quiet --disable-pip-version-check -e '.[test]' 'scrapy==$(OLDEST_SCRAPY)'
	touch $@

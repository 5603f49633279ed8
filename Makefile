# `make example` and `make test` need only make and Python 3.10 or later. They install the rest.
# The times below are those of a machine with two cores.

PYTHON ?= python3

BIN := .venv/bin
OLDEST := .venv-oldest/bin

INSTALL := -m pip install --quiet --disable-pip-version-check

# More processes than cores: most tests of crawls wait for a server. Each process needs about six
# seconds of CPU time before its first test.
PROCESSES := 6
# $(call pytest,FOLDER OF PYTHON)
pytest = $(1)/python -m pytest -n $(PROCESSES) --dist worksteal
# What depends on Scrapy and on the reactor: crawls and stores, without tests that use no event loop.
CRAWLS := tests/crawl tests/stores --only-event-loop
EACH_LOOP := tests/crawl tests/stores -m each_loop
# What does not depend on the version of Scrapy.
PURE := tests/protocol tests/reports tests/stores/test_entry.py \
	$(patsubst %,tests/test_%.py,command_lines documentation origin \
	packaging reference_pages) $(filter-out \
	$(patsubst %,tests/commands/test_%.py,session check view), $(wildcard tests/commands/test_*.py))

MYPY := $(BIN)/mypy
# Pages that are not published have no address.
SPHINX := $(BIN)/sphinx-build -W --keep-going --quiet --jobs auto --builder html docs build/docs/html \
	&& ! grep -l 'rel="canonical"' build/docs/html/index.html

# Compiles the tests once, not in each of the processes.
COMPILED := .venv/compiled
COMPILE := touch $(COMPILED); \
	$(BIN)/python -m pytest -q --collect-only --reactor=asyncio > /dev/null 2>&1 || true

say = @printf '\n== %s\n' "$(1)"

# Each of the many processes of the tests would compile all modules again.
unexport PYTHONDONTWRITEBYTECODE

.NOTPARALLEL:
.PHONY: example test test-all lint types contracts docs types-and-docs tests each-loop loops oldest
.PHONY: matrix dist
.PHONY: linkcheck benchmark checks compatibility format fuzz clean

example: .venv/example
	$(call say,Crawl 13 small sites on this machine)
	@cd example_project && ../$(BIN)/scrapy crawl demo

test: lint contracts types-and-docs tests each-loop

# All crawls on each event loop with the newest Scrapy, and on asyncio with the oldest.
test-all: loops oldest

lint: .venv/test
	$(call say,Style and format: about 1 second)
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: .venv/test
	$(call say,Types: about 1 minute the first time)
	$(MYPY)

contracts: .venv/test
	$(call say,Which part imports which: about 5 seconds)
	@# The newest version that Python 3.10 has prints no logo, and does not know the option.
	$(BIN)/lint-imports $$($(BIN)/lint-imports --help | grep -o -e --no-logo)

# Needs no network. Warnings are errors, such as links that lead nowhere.
docs: .venv/test
	$(call say,The documentation: about 15 seconds)
	$(SPHINX)

# mypy uses one core.
types-and-docs: .venv/test
	$(call say,Types and the documentation side by side: about 45 seconds the first time)
	@$(MYPY) & types=$$!; trap 'kill $$types; exit 1' INT TERM; \
		$(SPHINX); docs=$$?; $(COMPILE); wait $$types && exit $$docs

$(COMPILED): .venv/test
	$(call say,Compile the tests: about 10 seconds the first time)
	@$(COMPILE)

# Fails below the coverage given here, in percent.
tests: .venv/test $(COMPILED)
	$(call say,All tests on asyncio with branch coverage: about 4 minutes)
	$(call pytest,$(BIN)) --reactor=asyncio --cov --cov-report=
	$(call say,Coverage: all of the protocol and 95 % of the rest)
	$(BIN)/coverage report --include='scrapy_rep/protocol/*' --fail-under=100
	$(BIN)/coverage report --omit='scrapy_rep/protocol/*' --fail-under=95

# A part of the crawls: `make test-all` has the rest.
each-loop: .venv/test .venv-oldest/test
	$(call say,Some crawls on the default reactor of Twisted: about 30 seconds)
	$(call pytest,$(BIN)) --reactor=default $(EACH_LOOP)
	$(call say,The same without a reactor: about 30 seconds)
	$(call pytest,$(BIN)) -p no:twisted $(EACH_LOOP)
	$(call say,The same with the oldest Scrapy: about 30 seconds)
	$(call pytest,$(OLDEST)) --reactor=asyncio $(EACH_LOOP)

loops: .venv/test
	$(call say,Crawls and stores on the default reactor of Twisted: about 1 minute)
	$(call pytest,$(BIN)) --reactor=default $(CRAWLS)
	$(call say,Crawls and stores without a reactor: about 1 minute)
	$(call pytest,$(BIN)) -p no:twisted $(CRAWLS)

# Minimum versions of Scrapy and of the packages of the extras.
oldest: .venv-oldest/test
	$(call say,All that depends on Scrapy with the oldest Scrapy: about 2 minutes)
	$(call pytest,$(OLDEST)) --reactor=asyncio $(PURE:%=--ignore=%)
	$(call say,Some crawls with the oldest Scrapy on the default reactor of Twisted: about 30 seconds)
	$(call pytest,$(OLDEST)) --reactor=default $(EACH_LOOP)

# Other versions: not part of `test-all`. `make matrix ARGUMENTS=--list` shows the sessions,
# `make matrix ARGUMENTS="--session pythons-3.12"` runs one of them.
matrix: .venv/test
	$(BIN)/python $(INSTALL) -e '.[matrix]'
	$(BIN)/nox $(ARGUMENTS)

# The archives of a release, in dist/. `python -m checks packaging` tests them.
dist: .venv/test
	$(BIN)/python $(INSTALL) -e '.[release]'
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/twine check --strict dist/*

# Measures speed and memory. `make benchmark ARGUMENTS="parsers --quick"` runs a part of it.
benchmark: .venv/test
	$(BIN)/python -m benchmarks $(ARGUMENTS)

# Checks that take longer than tests. `make checks ARGUMENTS=--quick` runs less of each.
checks: .venv/test
	$(BIN)/python $(INSTALL) -e '.[release]'
	$(BIN)/python -m checks $(ARGUMENTS)

format: .venv/test
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

# Requests every external link of the documentation: not part of `test`.
linkcheck: .venv/test
	$(BIN)/sphinx-build --quiet --builder linkcheck docs build/docs/linkcheck

fuzz: .venv/test
	$(BIN)/python $(INSTALL) -e '.[fuzz]'
	$(BIN)/python -m fuzz.fuzz_robotstxt -max_total_time=600

# Crawls with other plugins, each in its own environment. Not part of `test`.
compatibility: .venv/test
	$(BIN)/python -m checks.compatibility

clean:
	rm -rf .venv .venv-oldest .venv-compatibility .nox build dist

.venv/example: pyproject.toml
	$(call say,Install Scrapy and scrapy-rep into .venv: about 30 seconds)
	@$(PYTHON) -m venv .venv
	@$(BIN)/python $(INSTALL) -e ".[report]"
	@touch $@

.venv/test: pyproject.toml
	$(call say,Install the tools of the tests into .venv: about 1 minute)
	@$(PYTHON) -m venv .venv
	@$(BIN)/python $(INSTALL) -e '.[docs,test]'
	@touch $@

.venv-oldest/test: pyproject.toml tests/oldest.txt
	$(call say,Install the oldest supported versions into .venv-oldest: about 1 minute)
	@$(PYTHON) -m venv .venv-oldest
	@$(OLDEST)/python $(INSTALL) -e '.[test]' -c tests/oldest.txt
	@touch $@

# Everything a contributor runs. `make test ARGS="-k crash"` passes arguments on.
# Needs only Python 3.11 or newer: PYTHON=python3.12 make test

PYTHON ?= python3
KILLS ?= 300
OUTAGES ?= 60,300
ARGS ?=

BIN := .venv/bin
RUNTIME := .venv/.runtime-installed
DEV := .venv/.dev-installed
CODE := $(wildcard src tests bench examples)

export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help up demo test check fix bench chaos clean

help:
	@echo "make up      install and start everything: gateway, worker and a sample flow"
	@echo "make demo    install and show what a kill -9 does to a run"
	@echo "make test    all tests, in parallel"
	@echo "make check   formatting, lint, types, layers"
	@echo "make fix     format, and fix what the linter can"
	@echo "make bench   measure, and print the ratios"
	@echo "make chaos   the crash tests with KILLS=$(KILLS) kills and OUTAGES=$(OUTAGES) seconds without NATS"
	@echo "make clean   remove the environment and all caches"

up: $(RUNTIME)
	@$(BIN)/tsuzuki up $(ARGS)

demo: $(RUNTIME)
	@$(BIN)/python -m tsuzuki.demo

test: $(DEV)
	$(BIN)/python -m pytest -n auto --dist loadgroup $(ARGS)

check: $(DEV)
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/ruff check $(CODE)
	$(BIN)/mypy $(CODE)
	$(BIN)/lint-imports --no-logo

fix: $(DEV)
	$(BIN)/ruff check --fix $(CODE)
	$(BIN)/ruff format $(CODE)

bench: $(DEV)
	$(BIN)/python -m bench $(ARGS)

chaos: $(DEV)
	$(BIN)/python -m pytest tests/acceptance -k chaos --chaos-kills=$(KILLS) --chaos-outages=$(OUTAGES) --timeout=3600 $(ARGS)

clean:
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamps are written last, so that an interrupted installation is done again.
$(RUNTIME): pyproject.toml
	@echo "installing into .venv: this takes a minute, and happens once"
	@test -x $(BIN)/python || $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Python 3.11 or newer is needed: PYTHON=python3.12 make up"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install -qq --upgrade 'pip>=25.1'
	@$(BIN)/python -m pip install -qq --editable '.[all]'
	@touch $@

$(DEV): $(RUNTIME)
	@echo "installing what tests and checks need into .venv"
	@$(BIN)/python -m pip install -qq --group dev
	@touch $@

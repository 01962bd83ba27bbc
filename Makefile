# The commands of this repository; `make help` lists them. All of them may be repeated: what is there is not made again.

PYTHON  ?= python3
CARGO   ?= cargo
SECONDS ?= 60
NAME    ?= static
SUITES  ?=
PYTHONS ?=
# What is built: `release`; `ci`, which takes less time; `dev`, whose crates the tests of Rust have built already.
PROFILE ?= release
# Where cargo builds, if the environment or its configuration says another folder.
TARGET   = $(or $(shell $(CARGO) metadata --format-version 1 --no-deps 2>/dev/null | sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p'),target)

VENV   := .venv
TOOLS  := .build/tools
STAMPS := $(VENV)/stamps
DEMO   := $(VENV)/bin/maitred examples/demo/app.py --mount /live=examples/demo/live.py --static /static=examples/demo/static --server-timing --admin 127.0.0.1:8001

# What the extension module is built from: a change of any of these builds it again.
ENGINE_SOURCES = Cargo.toml Cargo.lock pyproject.toml $(shell find crates -type f \
                 \( -name '*.rs' -o -name Cargo.toml \) -not -path '*/tests/*')

.PHONY: help build run test test-all versions wheel wheel-test container-test dist dist-test setup packages binary deny fuzz bench bench-smoke pictures docs clean
.DEFAULT_GOAL := help

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' Makefile

build: $(STAMPS)/engine-$(PROFILE) binary ## .venv/bin/maitred (Python package) and target/release/maitred

run: build ## the demo site on http://127.0.0.1:8000, its dashboard on http://127.0.0.1:8001/dashboard/
	exec $(DEMO)

test: ## all suites with their times, or some of them: make test SUITES="rust python"
	@$(PYTHON) scripts/test $(SUITES)

test-all: ## what takes longer, too: all benches in short, every shuttle schedule, minutes of load on workers that are replaced and killed, all sizes of Autobahn's cases of WebSocket and thousands of WebSockets, the tests of Rust and Python by TLS and those of Python by HTTP/2, peers' own tests, those of httpx and requests over our transports, applications of others, fuzzing, all versions of Python, wheels for each of them, the image, the age of the results behind README.md
	@sh scripts/h2spec $(TOOLS)
	@sh scripts/pebble $(TOOLS)
	@sh scripts/autobahn $(TOOLS)
	@sh scripts/dashboard $(TOOLS)
	@$(PYTHON) scripts/test
	@$(MAKE) --no-print-directory bench-smoke
	@MAITRED_LONG=1 $(PYTHON) scripts/test shuttle deploys websockets
	@$(PYTHON) scripts/test python-tls rust-tls python-h2
	@$(PYTHON) scripts/test peers-tests client-suites applications
	@$(MAKE) --no-print-directory fuzz SECONDS=10
	@$(MAKE) --no-print-directory versions
	@$(MAKE) --no-print-directory docs
	@$(MAKE) --no-print-directory deny
	@$(MAKE) --no-print-directory wheel wheel-test container-test
	@$(PYTHON) scripts/test claims

versions: ## the Python tests under every Python from 3.10 on that is there
	@$(PYTHON) scripts/versions
	@$(PYTHON) scripts/versions --stacks

wheel: ## wheels for old and new Linux systems, for every Python that is there or PYTHONS="3.11 3.13", and the source package: dist/
	@$(PYTHON) scripts/wheel $(PYTHONS)

wheel-test: ## installs the wheels of dist/ where no compiler is found, and serves hello, Django, Flask and FastAPI
	@$(PYTHON) scripts/wheel-test

container-test: ## does what Containerfile says, as root without a container engine, and tries the result
	@$(PYTHON) scripts/container-test

dist: ## everything of a release with check sums, signed if MINISIGN_KEY names a key: dist/
	@$(PYTHON) scripts/dist $(PYTHONS)

dist-test: ## makes a release twice, in two folders, and compares the sums
	@$(PYTHON) scripts/dist-test $(PYTHONS)

setup: packages $(STAMPS)/requirements ## what `make test` needs: Debian packages (as root), virtual environment, h2spec and Pebble if Go is there, what looks at the dashboard if npm is there
	@sh scripts/h2spec $(TOOLS) optional
	@sh scripts/pebble $(TOOLS) optional
	@sh scripts/dashboard $(TOOLS) optional
	@echo "setup: complete, $$($(VENV)/bin/python --version), $$($(CARGO) --version)"

packages:
	@PYTHON="$(PYTHON)" sh scripts/packages

binary:
	$(CARGO) build --profile $(PROFILE) --package maitred-cli
	@sh scripts/split-debug $(TARGET)/$(PROFILE:dev=debug)/maitred

$(STAMPS)/venv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { echo "maitred needs Python 3.10 or newer; set PYTHON=" >&2; exit 2; }
	@$(PYTHON) -c 'import ensurepip' || { echo "$(PYTHON) makes no virtual environments; on Debian: apt-get install python3-venv" >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --no-compile 'maturin>=1.16,<2'
	@mkdir -p $(@D) && touch $@

# Python compiles of the packages what the tests use; pip would compile all of them.
$(STAMPS)/requirements: $(STAMPS)/venv python/requirements-dev.txt python/requirements-bench.txt python/requirements-bench-alone.txt
	$(VENV)/bin/python -m pip install --quiet --no-compile --requirement python/requirements-dev.txt --requirement python/requirements-bench.txt
	$(VENV)/bin/python -m pip install --quiet --no-compile --upgrade --target $(VENV)/alone --requirement python/requirements-bench-alone.txt
	@touch $@

# Editable: the Python files are used where they stand, only the extension module is built and copied.
$(STAMPS)/engine-$(PROFILE): $(STAMPS)/venv $(ENGINE_SOURCES)
	VIRTUAL_ENV=$(CURDIR)/$(VENV) $(VENV)/bin/maturin develop --profile $(PROFILE) $(if $(filter dev,$(PROFILE)),--features as-tests)
	@sh scripts/split-debug python/maitred/_engine.*.so
	@rm -f $(STAMPS)/engine-*
	@touch $@

deny: ## licences, advisories, banned and duplicate crates (cargo-deny); OFFLINE=1 leaves the advisories out
	@sh scripts/deny $(TOOLS)

fuzz: ## every fuzz target for SECONDS (60) each, on a nightly toolchain
	@sh scripts/fuzz $(TOOLS) $(SECONDS)

pictures: build ## takes the pictures of the dashboard in docs/pictures again: a minute and a half of load
	MAITRED_TEST_PICTURES=1 $(VENV)/bin/python -m pytest -q python/tests/test_pictures.py

bench-smoke: ## all benches in short: that they work, not how fast (make test has one of them)
	@$(PYTHON) scripts/test benches

bench: build ## one measurement: make bench NAME=static
	CARGO_TARGET_DIR="$(TARGET)" bench/run $(NAME)

docs: ## API documentation of all crates in target/doc, warnings are errors
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps

clean: ## removes everything that was built, the virtual environment included
	$(CARGO) clean
	rm -rf $(VENV) .build python/maitred/*.so python/maitred/*.so.debug

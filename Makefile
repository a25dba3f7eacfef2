# What a person types. Everything goes into this folder: the Python environment into .venv, what is compiled into
# target (or $CARGO_TARGET_DIR), what the demo makes into out. Needs Rust (cargo) and Python 3.11 or later.

.DEFAULT_GOAL := help
# One after the other: an up-to-date release build serves the tests too.
.NOTPARALLEL:
.PHONY: help demo test test-rust test-python lint bench clean

VENV := .venv
BIN := $(VENV)/bin
TARGET := $(or $(CARGO_TARGET_DIR),target)
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet install
WHEEL = $(TARGET)/wheels/$(1)

# The Python to make the environment with: PYTHON=... on the command line, or the first that is new enough.
PYTHON ?= $(firstword $(foreach p,python3 python3.14 python3.13 python3.12 python3.11,\
	$(shell $(p) -c 'import sys; sys.version_info >= (3, 11) and print("$(p)")' 2>/dev/null)))

# One interpreter for every cargo call: pyo3 is built anew when it changes.
export PYO3_PYTHON := $(CURDIR)/$(BIN)/python

SOURCES := $(shell find crates $(wildcard python) -type f \( -name '*.rs' -o -name '*.py' -o -name '*.pyi' -o -name '*.typed' \
	-o -name Cargo.toml \) -not -path 'crates/*/tests/*' -not -path 'crates/*/examples/*' -not -path 'crates/*/benches/*') \
	Cargo.toml Cargo.lock pyproject.toml

help:
	@echo "make demo    build and install flambeau here, then train a small GPT on English text for some minutes"
	@echo "make test    set up and run all tests, Rust's and Python's"
	@echo "make lint    formatting, clippy and the repository's own checks"
	@echo "make bench   the demo's training speed on one thread and on all, and the time that an import takes"
	@echo "make clean   remove .venv and what was compiled; what the demo made in out stays"

# Setting up

$(VENV)/made:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or later is needed: install it, or say make PYTHON=/path/to/python"; exit 1; }
	@command -v cargo >/dev/null || { echo "Rust is needed: no cargo found; https://rustup.rs has an installer"; exit 1; }
	@echo "Setting up in this folder, and nowhere else (pip and cargo keep their usual caches in your home):"
	@echo "  .venv   a Python environment, with maturin (builds the package), NumPy, and what demo or test need"
	@echo "  target  the compiled Rust; the crates that it needs come from crates.io, at the first time only"
	@$(PYTHON) -m venv $(VENV) || { echo "Python's venv module is needed; on Debian: apt install python3-venv"; exit 1; }
	@$(PIP) "maturin>=1.9.4,<2" "numpy>=1.26"
	@touch $@

# Two builds of the package. Either will do for tests, so the one for daily work is made only where there is none that
# is up to date. $(call install,PROFILE) builds and installs it.
define install
	@echo "Building the Python package with cargo's profile $(1) (minutes at the first time) ..."
	@rm -rf $(call WHEEL,$(1))
	@$(BIN)/maturin build --quiet --locked --profile $(1) --interpreter $(BIN)/python --out $(call WHEEL,$(1))
	@$(PIP) --no-deps --force-reinstall $(call WHEEL,$(1))/*.whl
endef

$(VENV)/release: $(VENV)/made $(SOURCES)
	$(call install,wheel)
	@touch $(VENV)/release $(VENV)/installed

$(VENV)/installed: $(VENV)/made $(SOURCES)
	$(call install,fast)
	@rm -f $(VENV)/release
	@touch $(VENV)/installed

# The extras, as pyproject.toml names them.
$(VENV)/extra-%: pyproject.toml | $(VENV)/installed
	@echo "Installing into .venv what flambeau[$*] names in pyproject.toml ..."
	@$(PIP) "$$(ls $(TARGET)/wheels/*/*.whl | head -n 1)[$*]"
	@touch $@

# What there is to do

demo: $(VENV)/release $(VENV)/extra-demo
	@echo "Training: a few minutes. Ctrl-C stops and keeps what is done; make demo goes on from there."
	@trap : INT; $(BIN)/python -m flambeau examples/train_gpt.py --out out $(ARGS) || $(STOPPED)

# Ctrl-C is no failure: the program has said what it kept (its exit status is 130 then).
STOPPED = { code=$$?; test $$code -eq 130 || exit $$code; }

test: test-rust test-python

# The crate `python` is a library for Python to load; its tests are the Python ones.
test-rust:
	cargo test --locked --workspace --exclude flambeau-python --profile fast --no-fail-fast

test-python: $(VENV)/installed $(VENV)/extra-test
	$(BIN)/python -m pytest

lint: $(VENV)/made
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets --profile fast -- -D warnings
	cargo xtask tidy

bench: $(VENV)/release
	@for threads in 1 $$(nproc 2>/dev/null || echo 2); do \
	  echo "training, $$threads thread(s):"; \
	  $(BIN)/python -m flambeau examples/train_gpt.py --out $(TARGET)/bench --fresh --steps 200 --threads $$threads \
	    2>&1 | grep 'step 200/'; \
	done
	@echo "import:"; $(BIN)/python -X importtime -c 'import flambeau' 2>&1 | grep -E '\| (numpy|flambeau)$$'

clean:
	rm -rf $(VENV) $(TARGET)

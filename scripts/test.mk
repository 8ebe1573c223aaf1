#!/usr/bin/make -f
# What `make test` does side by side:  make -j4 -f scripts/test.mk
#
# Tests need what is built and what is fetched. Fetching begins in the first second, one after the other, since apt works for one at a
# time. What cargo builds into target/ waits for each other, too.

CARGO := scripts/with-rust cargo
STEP := scripts/step

# Our own crates are compiled by clippy's driver, which is rustc with lints: a pass of its own would look at all crates again, those of
# others within. Warnings are errors.
export RUSTC_WORKSPACE_WRAPPER := $(CURDIR)/scripts/linted-rustc
export CLIPPY_ARGS := -D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__

# The Python package is built for every interpreter alike, here and by scripts/wheel-cargo.
export PYO3_NO_PYTHON := 1
export PYO3_BUILD_EXTENSION_MODULE := 1

# On a slow machine what takes long would say so, among what tests look at.
export FAIRLAB_PROGRESS := off

.PHONY: all peers browser venv book build test pages python
all: book test pages python

peers:
	@$(STEP) peers scripts/with-peers true
browser: peers
	@$(STEP) browser scripts/with-browser true
venv: browser
	@$(STEP) venv scripts/with-python none true

book: venv
	@$(STEP) book scripts/book
build:
	@$(STEP) build sh -c '$(CARGO) test --workspace --all-targets --no-run --locked && $(CARGO) build --workspace --bin fairlab-guest --locked'

test: build peers
	@$(STEP) test scripts/with-rust scripts/with-peers scripts/run-tests
pages: build browser
	@$(STEP) pages scripts/with-browser scripts/test-pages target/debug/fairlab
python: build venv
	@$(STEP) python scripts/with-rust scripts/with-python dev python -m pytest -q --durations=10 python

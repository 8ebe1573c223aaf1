# Fairlab: `make help` lists what can be asked for.
#
# Every target brings what it needs on a fresh machine: scripts/with-rust finds or fetches the toolchain,
# scripts/with-peers the programs that tests compare with, scripts/book what builds docs/ as a book. There is no
# rust-toolchain.toml on purpose: it would make every machine fetch one more toolchain, while any from Cargo.toml's
# rust-version on will do.

CARGO := scripts/with-rust cargo
STEP := scripts/step
START := $(shell date +%s)

FAIRLAB := target/release/fairlab

# What is built for the first time is not built again soon: keeping what later builds could use would take longer.
ifeq ($(wildcard target/debug/incremental/*),)
export CARGO_INCREMENTAL := 0
endif

# What `make run` runs instead of its example: make run ARGS="kernels list"
ARGS ?=

# Where `make install` puts the program, and below which folder a packager wants that.
PREFIX ?= /usr/local
DESTDIR ?=

# The collection of recordings that `make fidelity` walks.
TRACES ?=

# The release that `make oracle` follows; without, all.
RELEASE ?=

.PHONY: help run install deb book python wheel test lint bench fidelity oracle guest-arm64 web pictures instructions

help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "make %-12s %s\n", $$1, $$2}' Makefile

run: ## build the program and show it at work; or run it with ARGS="…"
	@$(STEP) release $(CARGO) build --release --locked -p fairlab-cli
	@$(if $(ARGS),$(FAIRLAB) $(ARGS),scripts/example $(FAIRLAB))

install: ## the program without libraries, manual pages and completions into PREFIX, by default /usr/local
	@$(STEP) static scripts/static
	@scripts/install "$$(tail -n 1 target/log/static.log)" "$(PREFIX)" "$(DESTDIR)"
	@echo "installed: $(DESTDIR)$(PREFIX)/bin/fairlab"

deb: ## a Debian package with what `make install` installs, in target/deb
	@$(STEP) static scripts/static
	@mkdir -p target/deb
	@scripts/deb "$$(tail -n 1 target/log/static.log)" target/deb

book: ## build docs/ as a book into target/book/html, and follow each of its links
	@$(STEP) book scripts/book
	@ls target/book/html/docs/index.html

python: ## build the Python package in a short time and install it into target/python, which `target/python/bin/python` imports
	@$(STEP) python scripts/with-rust scripts/with-python wheel python -c 'import fairlab; print(fairlab.__version__)'
	@ls target/wheels/wheel/*.whl

wheel: ## the Python package as users get it, optimised across crates, in target/wheels/dist
	@$(STEP) wheel scripts/with-rust scripts/with-python dist python -c 'import fairlab; print(fairlab.__version__)'
	@ls target/wheels/dist/*.whl

test: ## what CI runs: lint, build, all tests; ends with one summary line
	@$(STEP) fmt $(CARGO) fmt --all --check
	@$(MAKE) --no-print-directory -j4 -f scripts/test.mk
	@awk -v seconds=$$(($$(date +%s) - $(START))) '/^test result:/ {passed += $$4; ignored += $$8} \
	  /^ *[0-9]+ passed/ {passed += $$1} \
	  END {if (!passed) {print "test: FAILED, no test ran"; exit 1} \
	  printf "all ok: formatting, clippy, build, %d tests passed, %d ignored, %d s\n", passed, ignored, seconds}' \
	  target/log/test.log target/log/pages.log target/log/python.log

lint: ## formatting and clippy, warnings are errors
	@$(STEP) fmt $(CARGO) fmt --all --check
	@$(STEP) clippy $(CARGO) clippy --workspace --all-targets --locked -- -D warnings

fidelity: ## agreement with real kernels: of testdata, or of TRACES=DIR, whose figures go into docs/fidelity.md; and runs in QEMU
	@$(STEP) release $(CARGO) build --release --locked -p fairlab-cli
	@$(FAIRLAB) fidelity --sums $(if $(TRACES),"$(TRACES)" --page docs/fidelity.md,testdata/recordings)
	@$(FAIRLAB) fidelity --booted --boots testdata/booted $(if $(TRACES),--page docs/fidelity.md --part booted)

oracle: ## models beside the code of Debian's releases, call by call, for an hour; figures go into docs/fidelity.md; RELEASE=6.1 for one
	@$(STEP) release $(CARGO) build --release --locked -p fairlab-cli
	@$(FAIRLAB) fidelity --oracle $(RELEASE) --seeds 20 --cases 1000 $(if $(RELEASE),,--page docs/fidelity.md --part oracle)

guest-arm64: ## build the program so that it boots kernels for arm64, too; fetches Rust's target for them
	@scripts/with-rust rustup target add aarch64-unknown-linux-musl
	@mkdir -p target/guest && echo "amd64 arm64" > target/guest/carried
	@$(STEP) release $(CARGO) build --release --locked -p fairlab-cli

web: ## build the scripts and styles of pages, from web/ into crates/page/bundle
	@$(STEP) web scripts/with-browser npm --prefix web run build

pictures: ## draw the pictures of docs/reports from the data that scenarios leave there
	@$(STEP) pictures scripts/with-browser node web/scripts/pictures.mjs

instructions: ## instructions of fixed pieces of work, held within 2 % of testdata/instructions.tsv; scripts/instructions bless writes it
	@$(STEP) speed $(CARGO) build --release --locked -p fairlab-speed
	@$(STEP) instructions scripts/with-peers scripts/instructions check
	@tail -n 1 target/log/instructions.log

bench: ## benchmarks of every crate, optimised as users get the program, by the recorded profile where it can be had
	@RUSTFLAGS="$$(scripts/recorded-profile)" $(CARGO) bench --workspace --bench '*' --locked

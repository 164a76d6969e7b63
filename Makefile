# Everything that is done with rustgrad, from a bare clone. `make help` lists the targets.
#
# One virtual environment, .venv. Set-up steps leave stamps in it, so that each runs once and again only
# when what it depends on has changed; each says what it does, and how long that takes, before it starts.
# Three profiles of Cargo.toml: tests use `dev`, the demo `quick`, the benches and `make wheel` `dist`. For tests the module
# is a crate of its own, which shares the library with the Rust tests (docs/decisions/building.md).

.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMPS := $(VENV)/stamps
DEMO   := examples/demo.py
JOBS   ?= 2
# What the tests run on: `dev` checks overflow and debug assertions; `dist` is what ships.
TEST_PROFILE ?= dev
# What the demo runs on: `quick` takes some two thirds of the CPU time of `dist` to build, and both cores.
DEMO_PROFILE ?= quick
# A Python that can import torch, for `make parity` and for the peer's column of `make bench`.
TORCH_PYTHON ?=
CONFORMANCE ?=

SOURCES := $(shell find src shaders python -type f \( -name '*.rs' -o -name '*.wgsl' -o -name '*.py' -o -name '*.pyi' -o -name py.typed -o -name Cargo.toml \)) \
           Cargo.toml Cargo.lock pyproject.toml $(wildcard README.md)
PYTEST  := $(BIN)/python -m pytest

.PHONY: help demo test packages dev test-op parity golden bench docs wheel lint clean test-rust test-python sanitize sanitize-rust \
        sanitize-threads sanitize-python model

help: ## List the targets.
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# --- set-up ------------------------------------------------------------------------------------------

$(STAMPS)/tools: Makefile
	@command -v cargo >/dev/null || { echo "rustgrad needs Rust 1.95 or newer: https://rustup.rs"; exit 1; }
	@echo "== .venv: a virtual environment with maturin and ruff (20 s)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install --quiet --disable-pip-version-check 'maturin>=1.16,<2' 'ruff==0.17.*'
	@mkdir -p $(STAMPS) && touch $@

# The wheel of a profile, built and installed; the other profile's stamp goes, because there is one .venv.
$(STAMPS)/wheel-dev $(STAMPS)/wheel-quick $(STAMPS)/wheel-dist: $(STAMPS)/wheel-%: $(STAMPS)/tools $(SOURCES)
	@tools/build_note.sh $*
	@rm -rf target/wheels-$*
	@$(BIN)/maturin build --locked --profile $* --interpreter $(BIN)/python --out target/wheels-$* \
	  $(if $(filter dev,$*),--manifest-path src/python/Cargo.toml)
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --force-reinstall target/wheels-$*/*.whl
	@rm -f $(STAMPS)/wheel-* && touch $@

# What an extra of pyproject.toml names, without building anything.
$(STAMPS)/extra-%: $(STAMPS)/tools pyproject.toml
	@$(BIN)/python tools/extras.py $* > $(STAMPS)/$*.txt
	@echo "== .venv: packages of the extra '$*': $$(tr '\n' ' ' < $(STAMPS)/$*.txt)(30 to 60 s)"
	@$(BIN)/pip install --quiet --disable-pip-version-check -r $(STAMPS)/$*.txt
	@touch $@

# --- targets -----------------------------------------------------------------------------------------

demo: $(STAMPS)/extra-demo $(STAMPS)/wheel-$(DEMO_PROFILE) ## Train on handwritten digits; DEVICE=gpu, DATA=DIR (MNIST .gz) and COMPILE=1 if you like.
	@if [ "$(DEVICE)" = gpu ]; then . tools/vulkan.sh; fi; \
	 $(BIN)/python $(DEMO) --device $(or $(DEVICE),cpu) $(if $(DATA),--data "$(DATA)") $(if $(filter-out 0,$(COMPILE)),--compile)

# Each part runs whatever became of the others; one that failed fails the whole.
test: $(STAMPS)/tools ## Everything that CI runs: format, lint, Rust tests, stubs, Python tests on CPU and GPU.
	@$(MAKE) --no-print-directory packages & failed=; for part in lint test-rust test-python; do \
	   [ $$part = lint ] || wait; $(MAKE) --no-print-directory $$part || failed="$$failed $$part"; \
	 done; [ -z "$$failed" ] || { echo "make test: failed:$$failed"; exit 1; }

# What the tests need from elsewhere, which arrives while the lints compile; a part that misses it asks for it again. Nobody can be asked
# whether to install a driver here.
packages: $(STAMPS)/extra-test $(STAMPS)/extra-demo
	@[ -z "$${CI:-}$${APT:-}" ] || . tools/vulkan.sh

dev: $(STAMPS)/wheel-dev ## Build what changed and install it in .venv (some 20 to 40 s after an edit).

test-op: $(STAMPS)/extra-test $(STAMPS)/wheel-$(TEST_PROFILE) ## Build what changed, then the table's tests of one op: OP=softsign.
	@test -n "$(OP)" || { echo "test-op: say which op: make test-op OP=softsign"; exit 1; }
	@. tools/vulkan.sh; $(PYTEST) -q tests/test_ops.py -k "$(OP)"

lint: $(STAMPS)/tools ## cargo fmt, clippy, ruff; changes nothing.
	cargo fmt --all --check
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	cargo clippy --locked --all-targets -- -D warnings
	PYO3_PYTHON=$(abspath $(BIN)/python) cargo clippy --locked --no-default-features --features python -- -D warnings # what ships, without a GPU

test-rust: $(STAMPS)/tools ## Rust tests; no interpreter needed.
	@echo "== Rust tests (a first build takes some 4 minutes on two cores)"
	@. tools/vulkan.sh; cargo test --locked --quiet --no-fail-fast

test-python: $(STAMPS)/extra-test $(STAMPS)/extra-demo $(STAMPS)/wheel-$(TEST_PROFILE) ## Stubs and generated pages, then pytest on CPU and, through Vulkan, on the GPU device.
	$(BIN)/python tools/generate.py --check
	@. tools/vulkan.sh; $(PYTEST) -n $(JOBS) --dist worksteal

golden: $(STAMPS)/extra-test $(STAMPS)/wheel-$(TEST_PROFILE) ## Record PyTorch's answers again, after samples changed: TORCH_PYTHON=python-with-torch.
	@test -n "$(TORCH_PYTHON)" || { echo "golden: say which Python has torch: make golden TORCH_PYTHON=~/torch/bin/python"; exit 1; }
	$(BIN)/python tests/golden/record_ops.py --list > target/op_samples.json
	$(TORCH_PYTHON) tests/golden/record_ops.py target/op_samples.json > target/ops.json
	$(TORCH_PYTHON) tests/golden/record_printing.py > target/printing.json
	$(TORCH_PYTHON) tests/golden/record_graph.py > target/graph.json
	mv target/ops.json target/printing.json target/graph.json tests/golden/
	RUSTGRAD_TEST_MODULE=torch $(TORCH_PYTHON) tests/golden/record_tables.py
	$(TORCH_PYTHON) tests/golden/record_names.py > target/names.json && mv target/names.json tests/golden/
	$(TORCH_PYTHON) tests/golden/record_checkpoint.py
	$(TORCH_PYTHON) tests/golden/record_torchscript.py tests/golden/torchscript.zip
	$(TORCH_PYTHON) tests/golden/record_zoo.py write tests/golden/checkpoint_zoo.pt.gz
	RUSTGRAD_TEST_MODULE=rustgrad $(BIN)/python tests/golden/record_zoo.py write tests/golden/checkpoint_zoo_own.pt.gz
	$(TORCH_PYTHON) tests/golden/record_zoo.py read tests/golden/checkpoint_zoo_own.pt.gz

parity: $(STAMPS)/extra-test $(STAMPS)/wheel-$(TEST_PROFILE) ## Compare with PyTorch live: TORCH_PYTHON=python-with-torch.
	@test -n "$(TORCH_PYTHON)" || { echo "parity: say which Python has torch, as in: make parity TORCH_PYTHON=~/torch/bin/python"; exit 1; }
	$(BIN)/python tests/golden/record_ops.py --list > target/op_samples.json
	$(TORCH_PYTHON) tests/golden/record_ops.py target/op_samples.json > target/ops_live.json
	RUSTGRAD_GOLDEN=target/ops_live.json $(PYTEST) -n $(JOBS) tests/test_ops.py
	$(TORCH_PYTHON) tests/golden/record_zoo.py write target/zoo.pt.gz
	RUSTGRAD_TEST_MODULE=rustgrad $(BIN)/python tests/golden/record_zoo.py read target/zoo.pt.gz
	RUSTGRAD_TEST_MODULE=rustgrad $(BIN)/python tests/golden/record_zoo.py write target/zoo_own.pt.gz
	$(TORCH_PYTHON) tests/golden/record_zoo.py read target/zoo_own.pt.gz
	@if test -n "$(CONFORMANCE)"; then \
	   PYTHONPATH=$$($(BIN)/python -c 'import os, rustgrad; print(os.path.dirname(os.path.dirname(rustgrad.__file__)))') \
	   $(TORCH_PYTHON) $(CONFORMANCE)/run_opinfo.py --target rustgrad --out target/opinfo.json; \
	 else echo "parity: no OpInfo runner at CONFORMANCE=$(CONFORMANCE); skipped"; fi

bench: $(STAMPS)/extra-test $(STAMPS)/wheel-dist ## Time the rows of benches/RESULTS.md; TORCH_PYTHON adds the peer's column.
	$(BIN)/python benches/run.py $(if $(TORCH_PYTHON),--peer-python $(TORCH_PYTHON))

docs: $(STAMPS)/wheel-$(TEST_PROFILE) ## Write docs/ops.md, docs/absent.md and the type stubs.
	$(BIN)/python tools/generate.py

wheel: $(STAMPS)/extra-wheel ## The release wheel, in dist/.
	$(BIN)/maturin build --locked --profile dist --interpreter $(BIN)/python --out dist
	@echo "== compressing it once more (a minute and a half)"
	@$(BIN)/python tools/recompress.py $$(ls -t dist/*.whl | head -n 1)

# What is proved how: docs/decisions/soundness.md. Nothing is cached or rounded up, so that each wrong byte is seen.
HOST = $(shell rustc -vV | sed -n 's/^host: //p')
PLAIN_MEMORY = RUSTGRAD_PLAIN_MEMORY=1
# Tests of the Rust suite that are about time or take half an hour under a sanitizer.
SANITIZE_SKIP ?= --skip deep_graphs --skip agrees_with --skip accuracy
# Those whose subject is memory and threads.
SANITIZE_TESTS = --lib --test core --test indexing --test ops_map --test ops_nn
# Python tests that valgrind runs: those of memory that moves, is shared, or is freed by others.
VALGRIND_TESTS ?= tests/test_storage.py tests/test_interchange.py tests/test_indexing.py tests/test_overlap.py

sanitize: ## Rust tests under the address and thread sanitizers, models of the lock-free parts, Python tests under valgrind.
	@failed=; for part in sanitize-rust sanitize-threads model sanitize-python; do \
	   $(MAKE) --no-print-directory $$part || failed="$$failed $$part"; \
	 done; [ -z "$$failed" ] || { echo "make sanitize: failed:$$failed"; exit 1; }

# RUSTC_BOOTSTRAP: the sanitizers of a stable compiler are there but behind a flag of nightly's. Some tests ask for more memory
# than there is: that is an error to handle, not one to report.
sanitize-rust: ## Rust tests under AddressSanitizer, without the GPU.
	@ls "$$(rustc --print sysroot)/lib/rustlib/$(HOST)/lib/"*_rt.asan.a >/dev/null 2>&1 \
	  || { echo "sanitize-rust: this toolchain has no AddressSanitizer for $(HOST); x86-64 and AArch64 Linux have"; exit 1; }
	@echo "== Rust tests under AddressSanitizer (a first build takes some 6 minutes on two cores)"
	@RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=address ASAN_OPTIONS=allocator_may_return_null=1 $(PLAIN_MEMORY) cargo test --locked --quiet --no-default-features \
	  --target $(HOST) --target-dir target/sanitize $(SANITIZE_TESTS) -- $(SANITIZE_SKIP)

# Without a standard library built in the same way, every `Arc` is reported as a race. A child of `fork` starts threads of its own.
sanitize-threads: ## Rust tests under ThreadSanitizer, without the GPU.
	@ls "$$(rustc +nightly --print sysroot)/lib/rustlib/src/rust/library/Cargo.lock" >/dev/null 2>&1 \
	  || { echo "sanitize-threads: no source of the standard library (rustup component add rust-src --toolchain nightly)"; exit 1; }
	@echo "== Rust tests under ThreadSanitizer (a first build takes some 15 minutes on two cores)"
	@RUSTFLAGS=-Zsanitizer=thread TSAN_OPTIONS="allocator_may_return_null=1 die_after_fork=0" $(PLAIN_MEMORY) cargo +nightly test \
	  -Zbuild-std --locked --quiet --no-default-features --target $(HOST) --target-dir target/sanitize-threads \
	  $(SANITIZE_TESTS) -- --skip deep_graphs --skip accuracy

model: ## Every order of the steps of the pool's hand-off and of edges to leaves, by loom.
	@echo "== models (a first build takes some 4 minutes on two cores)"
	@RUSTFLAGS="--cfg loom" cargo test --locked --quiet --no-default-features --target-dir target/model --lib model_of

sanitize-python: $(STAMPS)/extra-test ## Python tests under valgrind's memcheck: VALGRIND_TESTS="tests/test_storage.py -k resize".
	@command -v valgrind >/dev/null || { echo "sanitize-python: valgrind is not installed (apt-get install valgrind)"; exit 1; }
	@echo "== a wheel without caches of memory, then tests under valgrind (some 20 minutes)"
	@rm -rf target/wheels-plain && $(PLAIN_MEMORY) $(BIN)/maturin build --locked --profile dev --interpreter $(BIN)/python \
	  --target-dir target/plain --out target/wheels-plain -q
	@rm -rf target/plain-site && $(BIN)/pip install -q --disable-pip-version-check --no-deps --target target/plain-site target/wheels-plain/*.whl
	@$(BIN)/python tools/memcheck.py target/plain-site $(VALGRIND_TESTS)

clean: ## Remove everything that was built or installed here.
	rm -rf target $(VENV) dist demo_out .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

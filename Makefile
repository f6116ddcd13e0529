# Everything a newcomer needs is a target here; `make` alone lists them.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

CARGO ?= cargo
# Rounds of `make soak`.
N ?= 100

.PHONY: help demo bench bench-faults bench-throughput test soak test-tools test-build fmt fmt-check lint doc deny clean-tools

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

demo: ## the gateway over four simulated shards, on 127.0.0.1:15306; ARGS="--shards 2" for others
	$(CARGO) run --release --bin shardgate -- demo $(ARGS)

bench: bench-faults bench-throughput ## everything that `shardgate-bench` measures: faults, then throughput

bench-throughput: ## the gateway beside HAProxy and no proxy at all; needs mariadb-server, and haproxy for its column
	$(CARGO) build --release -p shardgate -p shardgate-bench
	target/release/shardgate-bench throughput

bench-faults: ## a slow shard, a slow query, a retry storm, failovers, a crowd without a primary; pages in target/bench
	$(CARGO) build --release -p shardgate -p shardgate-bench
	mkdir -p target/bench
	failed=0; for scenario in slow-shard slow-query metastable; do \
	  target/release/shardgate-bench $$scenario --html target/bench/$$scenario.html --json target/bench/$$scenario.json \
	    || failed=1; \
	done; \
	for how in planned emergency; do \
	  target/release/shardgate-bench reparent --how $$how --html target/bench/reparent-$$how.html \
	    --json target/bench/reparent-$$how.json || failed=1; \
	done; \
	target/release/shardgate-bench crowd || failed=1; \
	exit $$failed

test: test-tools test-build ## install what the tests need (as root), build, run every test
	tests/run

soak: test-tools test-build ## N planned promotions and N killed primaries of real servers; make soak N=100
	SHARDGATE_SOAK=$(N) tests/run -p shardgate-tests --test e2e -- --nocapture failovers::repeated_failovers

test-tools: ## only install, or name, what the tests need
	tests/tools

# Binaries and tests are built by one command, so that they share one set of features and nothing is built twice.
test-build: ## only build the binaries and the tests
	$(CARGO) build --workspace --bins --tests

fmt: ## format the sources
	$(CARGO) fmt --all

fmt-check: ## fail if a source is not formatted
	$(CARGO) fmt --all --check

lint: ## clippy with warnings as errors, on everything
	$(CARGO) clippy --workspace --all-targets -- -D warnings

doc: ## the API documentation, with warnings as errors
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps

deny: ## licences, duplicate and banned crates, sources of crates
	.ci/deny

clean-tools: ## remove the tests' Python environment and server template
	rm -rf target/venv target/harness

# Two commands matter: `make up` runs the platform, `make test` proves it. Both do their own set-up.
SHELL := /bin/bash
PYTHON ?= python3
BIN := .venv/bin
UV := .cache/tools/bin/uv

# Where it is set, every one of the platform's processes would compile what it imports at each start.
unexport PYTHONDONTWRITEBYTECODE

# Three at a time on two cores: much of their time is waiting. Which of the dear ones stay together: tests/distribution.py.
JOBS ?= 3
PLAIN := not spark and not kafka and not whole
LOCK := $(UV) pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	--no-annotate --custom-compile-command "make lock"

.DEFAULT_GOAL := help
.PHONY: help up down status logs test test-plain check bench lock clean run-environment dev-environment set-up

help: ## show this
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

up: run-environment ## set up what is missing, and run the whole platform on this machine
	@$(BIN)/penstock up

down: set-up ## stop it, in order; what it has written stays
	@$(BIN)/penstock down

status: set-up ## show what runs
	@$(BIN)/penstock status

logs: set-up ## show the ends of the logs
	@$(BIN)/penstock logs

test: dev-environment ## run every test: plain Python first, then Spark, Kafka and the whole platform
	@status=0; \
	$(BIN)/python -m pytest -n $(JOBS) -m "$(PLAIN)" || status=$$?; \
	$(BIN)/python -m pytest -n $(JOBS) --dist loadgroup -m "not ($(PLAIN))" || status=$$?; \
	exit $$status

test-plain: dev-environment ## run the tests that need neither Java nor long; EXAMPLES=20 tries properties longer
	@$(BIN)/python -m pytest -n $(JOBS) -m "$(PLAIN)"

check: dev-environment ## format, lint, types, import rules
	@status=0; \
	$(BIN)/ruff format --check . || status=1; \
	$(BIN)/ruff check . || status=1; \
	$(BIN)/mypy || status=1; \
	$(BIN)/lint-imports || status=1; \
	exit $$status

bench: dev-environment ## measure; prints figures, judges nothing
	@for bench in tests/benchmarks/bench_*.py; do echo "== $$bench"; $(BIN)/python -m tests.benchmarks.$$(basename $$bench .py) || exit 1; done

lock: dev-environment ## make every lock again: packages, installer, jars
	@export UV_SYSTEM_CERTS=1; \
	$(LOCK) --group build pyproject.toml -c requirements.lock -o requirements.lock && \
	$(LOCK) --group build --group dev pyproject.toml -c requirements.lock -o requirements-dev.lock && \
	$(LOCK) infra/bootstrap.in -o infra/bootstrap.lock && \
	$(LOCK) docker/kafka.in -c requirements.lock -o docker/kafka.lock && \
	$(LOCK) docker/dagster.in -c requirements.lock -o docker/dagster.lock && \
	$(LOCK) platform/penstock/platform/demo/comparisons/beam/beam.in -o platform/penstock/platform/demo/comparisons/beam/beam.lock && \
	$(BIN)/python -m penstock.infra.jar_lock

clean: ## remove what set-up made; what the platform has written (.penstock) stays
	@rm -rf .venv .cache .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis

run-environment:
	@$(PYTHON) infra/bootstrap.py run

dev-environment:
	@$(PYTHON) infra/bootstrap.py dev

set-up:
	@test -x $(BIN)/penstock || { echo "Nothing is set up in this checkout yet: make up" >&2; exit 1; }

# The two main commands: `make up` runs the platform, `make test` tests it. Both set up the checkout first.
SHELL := /bin/bash
PYTHON ?= python3
BIN := .venv/bin
UV := .cache/tools/bin/uv

# If it is set, each process of the platform compiles its imports at every start.
unexport PYTHONDONTWRITEBYTECODE

# Three workers on two cores, because tests mostly wait. With four, the stacks of two workers starve each other.
# tests/distribution.py groups the expensive ones.
JOBS ?= 3
PLAIN := not spark and not kafka and not whole
LOCK := $(UV) pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	--no-annotate --custom-compile-command "make lock"

.DEFAULT_GOAL := help
.PHONY: help up down status logs test test-plain test-again check golden power-cuts bench jvm lock clean run-environment dev-environment set-up

help: ## show this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

up: run-environment ## set up the checkout, and run the whole platform on this machine
	@$(BIN)/penstock up

down: set-up ## stop the platform; its data stays
	@$(BIN)/penstock down

status: set-up ## show programs and streams
	@$(BIN)/penstock status

logs: set-up ## show the end of each log
	@$(BIN)/penstock logs

test: dev-environment ## run every test: plain Python first, then Spark, Kafka and the whole platform
	@status=0; \
	$(BIN)/python -m pytest -n $(JOBS) -m "$(PLAIN)" || status=$$?; \
	$(BIN)/python -m pytest -n $(JOBS) --dist loadgroup -m "not ($(PLAIN))" || status=$$?; \
	exit $$status

test-plain: dev-environment ## run the fast tests without Java; EXAMPLES=20 tries more examples of properties
	@$(BIN)/python -m pytest -n $(JOBS) -m "$(PLAIN)"

test-again: dev-environment ## run the files of the tests that failed last once more, one test at a time
	@$(BIN)/python -m pytest -n 0 $$(grep -oE '^  "[^":]+' .pytest_cache/v/cache/lastfailed | tr -d ' "' | sort -u)

check: dev-environment ## format, lint, types, import rules, licences, vulnerabilities
	@status=0; \
	$(BIN)/ruff format --check . || status=1; \
	$(BIN)/ruff check . || status=1; \
	$(BIN)/mypy || status=1; \
	$(BIN)/lint-imports || status=1; \
	$(BIN)/python -m penstock.infra.licences > /dev/null || status=1; \
	$(BIN)/python -m penstock.infra.vulnerabilities || status=1; \
	exit $$status

golden: dev-environment ## make the golden home of the version in pyproject.toml
	@$(BIN)/python -m tests.golden.create

power-cuts: dev-environment ## cut the power in recorded runs, for an hour; MINUTES=600 for a night
	@$(BIN)/python -m tests.pipelines.engine.power --minutes $(or $(MINUTES),60)

bench: dev-environment ## run the benchmarks and print their figures
	@for bench in tests/benchmarks/bench_*.py; do echo "== $$bench"; $(BIN)/python -m tests.benchmarks.$$(basename $$bench .py) || exit 1; done

jvm: dev-environment ## build the jar of the engine's Java classes; needs a JDK 17
	@$(BIN)/python -m tests.reference.spark_classes

lock: dev-environment ## update every lock: packages, installer, jars
	@export UV_SYSTEM_CERTS=1; \
	$(LOCK) --group build pyproject.toml -c requirements.lock -o requirements.lock && \
	$(LOCK) --group build --group dev pyproject.toml -c requirements.lock -o requirements-dev.lock && \
	$(LOCK) infra/build.in -c requirements.lock -o infra/build.lock && \
	$(LOCK) infra/bootstrap.in -o infra/bootstrap.lock && \
	$(LOCK) docker/kafka.in -c requirements.lock -o docker/kafka.lock && \
	$(LOCK) docker/dagster.in -c requirements.lock -o docker/dagster.lock && \
	$(LOCK) tests/comparisons/beam/beam.in -o tests/comparisons/beam/beam.lock && \
	$(BIN)/python -m penstock.infra.jar_lock

clean: ## remove what set-up created; the platform's data (.penstock) stays
	@rm -rf .venv .cache .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis

run-environment:
	@$(PYTHON) infra/bootstrap.py run

dev-environment:
	@$(PYTHON) infra/bootstrap.py dev

set-up:
	@test -x $(BIN)/penstock || { echo "This checkout is not set up. Run: make up" >&2; exit 1; }

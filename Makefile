PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: help run bench test quick lint fix types build check speed gpu-check readme clean
.DEFAULT_GOAL := help

help: ## list what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/'

# One stamp per set of packages: a target installs what it needs and no more.
$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.light: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet -e .
	@touch $@

$(VENV)/.bench: $(VENV)/.light
	$(BIN)/python -c "import torch" 2>/dev/null || $(BIN)/python -m pip install --quiet -e '.[bench]'
	@touch $@

$(VENV)/.dev: $(VENV)/.light
	$(BIN)/python -m pip install --quiet -e '.[dev]'
	@touch $@

run: $(VENV)/.light ## answer the first question
	$(BIN)/napkin train-time --params 70e9 --tokens 15e12 --gpus 1024

bench: $(VENV)/.bench ## install torch and measure this machine
	$(BIN)/napkin bench --dtype bf16

test: $(VENV)/.dev ## run the tests
	$(BIN)/python -m pytest

quick: $(VENV)/.dev ## run the tests that need no torch, on all cores
	$(BIN)/python -m pytest --quick --numprocesses auto

lint: $(VENV)/.dev ## check style
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

fix: $(VENV)/.dev ## mend style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(VENV)/.dev ## check types
	$(BIN)/mypy

build: $(VENV)/.dev ## build sdist and wheel
	$(BIN)/python -m build --outdir dist .

check: lint types test build ## all that CI runs

speed: $(VENV)/.dev ## start-up as ratios to importing the libraries, answers to a loop
	$(BIN)/python tests/speed.py

gpu-check: $(VENV)/.bench ## bench against other timers on this GPU, a minute
	$(BIN)/python tests/gpu_check.py

readme: $(VENV)/.dev ## rewrite README's console blocks with real output
	$(BIN)/python tests/readme.py

clean: ## remove what was built
	rm -rf $(VENV) dist build .mypy_cache .pytest_cache .ruff_cache .hypothesis

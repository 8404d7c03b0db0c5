# Every target sets up what it needs; `make help` lists them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

$(VENV)/.ready: requirements/dev.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Poolwise needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version). Set PYTHON=/path/to/python3"; exit 1; }
	@echo "==> creating $(VENV) and installing the locked packages (about a minute)"
	@$(PYTHON) -m venv $(VENV) || { echo "python3 -m venv failed: on Debian and Ubuntu, install python3-venv"; exit 1; }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps --editable .
	@touch $@

.PHONY: setup
setup: $(VENV)/.ready ## create .venv with the locked packages

# Every target sets up what it needs. `make help` lists them.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
CLUSTER ?= dev
NODES ?= demo
WORKERS ?= 3 # of pytest: most of the time two wait for an API server
.DEFAULT_GOAL := help
.PHONY: help setup demo test histories check verify generate bench-model bench-placement bench-autoscale live-autoscale check-chart image e2e cluster-up cluster-down lock

help: ## list the targets
	@grep -E '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(READY): requirements/dev.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Poolwise needs Python 3.11 or newer, $(PYTHON) is older: make PYTHON=/path/to/python3"; exit 1; }
	@echo "==> .venv: installing the locked packages (about a minute)"
	@$(PYTHON) -m venv .venv || { echo "python3 -m venv failed; on Debian and Ubuntu: apt install python3-venv"; exit 1; }
	@$(BIN)/pip install --disable-pip-version-check --require-hashes -r requirements/dev.txt > .venv/install.log 2>&1 & \
	  pip=$$!; while sleep 5; kill -0 $$pip 2> /dev/null; do \
	    now="$$(grep -c -E '^(Collecting|Requirement already)' .venv/install.log) packages found so far"; \
	    ! grep -q '^Installing' .venv/install.log || now="installing them"; \
	    [ "$$now" = "$$before" ] || echo "    $$now"; before=$$now; done; \
	  wait $$pip || { tail -n 20 .venv/install.log; exit 1; }
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps --editable .
	@touch $@

setup: $(READY) ## create .venv with the locked packages

demo: $(READY) ## place seven workloads on a real control plane and explain them (KEEP=1 leaves it up)
	@$(BIN)/python -m e2e.demo $(if $(KEEP),--keep)

test: check ## run every check and test, the real API server included (ARGS="-k name" to choose)
	@echo "==> tests (their tools are built once: 10 to 20 minutes the first time)"
	@$(BIN)/python -m e2e.tools controlplane chart
	@$(BIN)/python -m pytest -n $(WORKERS) --dist loadscope --no-loadscope-reorder $(ARGS)

histories: $(READY) ## play random histories of a cluster to the operator, drawn anew (COUNT=1000)
	@HYPOTHESIS_PROFILE=random HISTORIES=$(or $(COUNT),1000) $(BIN)/python -m pytest -q --timeout 0 tests/handlers/histories

check: $(READY) verify ## lint, types, layers, and the model's accuracy on a fixed sample
	@echo "==> ruff"
	@$(BIN)/ruff format --quiet --check . && $(BIN)/ruff check --quiet .
	@echo "==> mypy (about a minute the first time)"
	@$(BIN)/mypy
	@echo "==> import-linter"
	@$(BIN)/lint-imports --no-cache > .venv/lint-imports.log || { cat .venv/lint-imports.log; exit 1; }
	@echo "==> accuracy"
	@$(BIN)/python -m bench.model.regression

GENERATORS := poolwise.api.crd poolwise.api.docs poolwise.cluster.metrics_docs e2e.chart observability bench.pictures
verify: $(READY) ## fail when a generated file differs from its source
	@echo "==> generated files"
	@for generator in $(GENERATORS); do $(BIN)/python -m $$generator --check || exit 1; done
	@$(BIN)/python -m e2e.profiles demo | cmp - examples/nodes/demo.yaml \
	  || { echo "examples/nodes/demo.yaml is not what e2e/profiles renders: make generate"; exit 1; }

generate: $(READY) ## write CRDs, references, charts' files, dashboards, pictures and examples/nodes from their sources
	@for generator in $(GENERATORS); do $(BIN)/python -m $$generator || exit 1; done
	@mkdir -p examples/nodes && $(BIN)/python -m e2e.profiles demo > examples/nodes/demo.yaml

bench-model: $(READY) ## score the performance model on measured tables, refits included, and write docs/accuracy.md (DATA=folder)
	@$(BIN)/python -m bench.model.page $(if $(DATA),--data $(DATA))

bench-placement: $(READY) ## replay queues of work under our planner and its rivals, and write docs/placement-replay.md (DATA=folder)
	@$(BIN)/python -m bench.placement.page $(if $(DATA),--data $(DATA))

bench-autoscale: $(READY) ## replay request traces under our controller and its rivals, and write docs/autoscaling-replay.md (DATA=folder, ARGS; hours, taken up again)
	@$(BIN)/python -m bench.autoscale.page $(if $(DATA),--data $(DATA)) $(ARGS)

live-autoscale: $(READY) ## scale engine processes for real under a load, and compare with the simulator (ARGS="--trace FILE --repeat 3")
	@$(BIN)/python -m e2e.tools controlplane
	@$(BIN)/python -m e2e.autoscale $(ARGS)

check-chart: $(READY) ## lint and render the charts, check manifests, dashboards and alerts
	@$(BIN)/python -m e2e.tools controlplane chart
	@$(BIN)/python -m pytest tests/chart tests/observability $(ARGS)

image: $(READY) ## build the operator's image (BASE=python:3.13-slim TAG=poolwise:dev)
	@$(BIN)/python -m e2e.image $(if $(BASE),--base $(BASE)) $(if $(TAG),--tag $(TAG))

e2e: $(READY) ## use Poolwise on a kind cluster (CORE=1: the short part, KEEP=1: leave it up, DOCS=1: play the quick start)
	@$(BIN)/python -m $(if $(DOCS),e2e.docs,e2e.kind $(if $(CORE),--core) $(if $(KEEP),--keep) $(ARGS))

cluster-up: $(READY) ## start a control plane in the background (CLUSTER=dev NODES=demo)
	@$(BIN)/python -m e2e.controlplane up --detach --name "$(CLUSTER)" --nodes "$(NODES)"

cluster-down: $(READY) ## stop it
	@$(BIN)/python -m e2e.controlplane down --name "$(CLUSTER)"

lock: $(READY) ## lock the newest versions that pyproject.toml allows, with hashes
	@$(BIN)/pip install --quiet --disable-pip-version-check uv
	@for set in runtime dev; do $(BIN)/uv pip compile --quiet --upgrade pyproject.toml \
	  $$([ $$set = dev ] && echo --group test --group check --group bench --group build) --universal --python-version 3.11 \
	  --generate-hashes --no-emit-index-url --custom-compile-command "make lock" -o requirements/$$set.txt; done

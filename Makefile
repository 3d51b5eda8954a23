# One recipe for each thing that people and the build server do; `make help` lists them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DJANGO := 5.2.19
DJANGO_TREE := .demo/django-$(DJANGO)
SIZE ?= small

.PHONY: help venv demo test test-fast lint format bench docs soak verify-model smoke interop clean

help: ## list the recipes
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  \1\t\2/' | expand -t 18

venv: $(READY) ## make the virtual environment with all development tools

$(READY): pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Commonplace needs Python 3.11 or newer: make PYTHON=python3.12 …" >&2; exit 1; }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable . --group dev
	@touch $@

demo: $(READY) ## index this repository and Django, ask five questions, remember a week of work, let a fact change
	@test -d $(DJANGO_TREE) || $(BIN)/python scripts/fetch_django.py $(DJANGO) $(DJANGO_TREE)
	@$(BIN)/commonplace demo --store .demo/store --questions examples/demo.questions \
		. $$(test -d $(DJANGO_TREE) && echo $(DJANGO_TREE))
	@echo && echo "And memories (examples/a_week_of_work.py):"
	@rm -rf .demo/week
	@$(BIN)/python examples/a_week_of_work.py .demo/week
	@echo && echo "And what was true when (examples/a_fact_changes.py):"
	@$(BIN)/python examples/a_fact_changes.py .demo/graph.svg
	@echo && echo "And facts that people change in ordinary words (examples/what_people_say.py):"
	@$(BIN)/python examples/what_people_say.py
	@echo && echo "And memories that are merged, and come back (examples/a_merge_and_back.py):"
	@$(BIN)/python examples/a_merge_and_back.py
	@echo && echo "And one memory in PostgreSQL behind two machines (examples/two_machines.py):"
	@$(BIN)/python examples/two_machines.py $$COMMONPLACE_TEST_POSTGRES
	@echo && echo "And for your agent:"
	@$(BIN)/commonplace mcp --print-config claude-code
	@echo && echo "And to look at that week in a browser:"
	@echo "    $(BIN)/commonplace ui --store .demo/week/store"

test: $(READY) ## run the tests, but for the long ones
	@$(BIN)/python scripts/fetch_browser.py
	$(BIN)/python -m pytest -m "not soak" -n auto --dist worksteal --hypothesis-profile=ci

test-fast: $(READY) ## run the tests without property tests and those that kill processes or open a browser: half the time
	$(BIN)/python -m pytest -m "not soak" -n auto --dist worksteal --ignore=tests/faults --ignore=tests/property --ignore=tests/browser

soak: $(READY) ## run the long form of the fault tests
	$(BIN)/python -m pytest -m soak

lint: $(READY) ## check style, types, layers, budgets and the generated manual
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python scripts/check_budget.py
	$(BIN)/python scripts/generate_docs.py --check

format: $(READY) ## put the source into its form
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(READY) ## measure all figures to reach (SIZE=full: at full size; COMMONPLACE_DATA=DIR: on labelled sets too)
	$(BIN)/commonplace benchmark figures --size $(SIZE)

docs: $(READY) ## write the generated pages of the manual
	$(BIN)/python scripts/generate_docs.py

verify-model: $(READY) ## rebuild the token table and the transformer's weights from their source and compare them
	PYTHONPATH=scripts $(BIN)/python -m model.verify --work build/model
	PYTHONPATH=scripts $(BIN)/python -m minilm.build --work build/model --verify

smoke: $(READY) ## install the bare wheel elsewhere and run a five-line example
	$(BIN)/python scripts/smoke.py

interop: $(READY) ## try the MCP server, by streams and HTTP, with the older SDK, MCP Inspector, the conformance suite; Graphiti
	$(BIN)/python scripts/interop.py

clean: ## remove what the recipes made
	rm -rf $(VENV) .demo dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

# Every task of the project.  `make` alone lists them; each does the set-up that it needs.

BIN := .venv/bin
PYTEST := $(BIN)/python -m pytest

.PHONY: help demo test test-quick check generated links lint format types generate docs docs-check bench bench-quick integrations-latest lock clean

help:  ## list the tasks
	@echo "Holdfast: conversation memory for chatbots."
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-19s %s\n", $$1, $$2 }' Makefile
	@echo
	@echo "New here? Start with 'make demo'. Changing something? 'make test' says whether it still holds."

demo:  ## show Holdfast at work on bundled conversations
	@scripts/setup run
	@$(BIN)/holdfast demo

test: check  ## everything that must hold before a change is merged
	@test -n "$$HOLDFAST_CHROMIUM" || command -v chromium chromium-browser google-chrome >/dev/null || \
		echo "no Chromium here: the tests of the pages are skipped; on Debian and Ubuntu: apt-get install chromium"
	@command -v npm >/dev/null || echo "no npm here: the tests of its clients are skipped; on Debian and Ubuntu: apt-get install nodejs npm"
	@echo "tests"
	@$(PYTEST) -q -n auto --dist worksteal

test-quick:  ## the tests without the slow ones
	@scripts/setup dev
	@$(PYTEST) -q -n auto --dist worksteal -m "not slow"

check:  ## all checks but the tests, two at a time
	@scripts/setup dev
	@$(MAKE) --no-print-directory -j 2 types lint generated links

generated:
	@scripts/setup dev
	@echo "generated files"
	@$(BIN)/python scripts/make_aio.py --check
	@$(BIN)/python scripts/make_client.py --check
	@$(BIN)/python scripts/make_docs.py --check
	@$(BIN)/python scripts/make_architecture.py --check
	@$(BIN)/python scripts/integrations_latest.py --check

links:
	@scripts/setup dev
	@echo "links between the pages"
	@$(BIN)/sphinx-build -q -W --keep-going -c docs/site -b html docs build/site

lint:  ## style and common mistakes
	@scripts/setup dev
	@echo "lint"
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --quiet --check . || { echo "not formatted; run: make format"; exit 1; }

format:  ## lay out the code
	@scripts/setup dev
	@$(BIN)/ruff check --quiet --fix .
	@$(BIN)/ruff format .

types:  ## mypy, strict
	@scripts/setup dev
	@echo "types"
	@$(BIN)/mypy
	@$(BIN)/mypy examples

generate:  ## rewrite the generated files: aio.py, the client, the reference pages, the picture of the rooms
	@scripts/setup dev
	@$(BIN)/python scripts/make_aio.py
	@$(BIN)/python scripts/make_client.py
	@$(BIN)/python scripts/make_docs.py
	@$(BIN)/python scripts/make_architecture.py

docs:  ## build the documentation as a searchable site in build/site; a broken link fails
	@scripts/setup dev
	@$(BIN)/sphinx-build -q -W --keep-going -E -c docs/site -b html docs build/site
	@echo "open build/site/index.html"

docs-check:  ## run every example in README.md and docs/
	@scripts/setup dev
	@$(BIN)/python scripts/make_docs.py --check
	@$(PYTEST) -q tests/project/test_docs.py

# recall_dev.py wants a corpus: see its first lines.
bench:  ## measure speed, each figure beside a yardstick from the same run
	@scripts/setup dev
	@for file in $(filter-out benchmarks/recall_dev.py benchmarks/quick.py,$(wildcard benchmarks/*.py)); do \
		echo "$$file"; $(BIN)/python "$$file" || exit 1; done

bench-quick:  ## measure the ratios that count, in two minutes, and say which moved
	@scripts/setup dev
	@$(BIN)/python benchmarks/quick.py

integrations-latest:  ## test each adapter with the newest release of its framework, and write docs/integrations/index.md
	@python3 scripts/integrations_latest.py $(ONLY)

# --no-emit-index-url and --no-header: where the packages came from is the user's affair, not the lock's.
LOCK := uv pip compile --quiet --universal --python-version 3.11 --upgrade --generate-hashes \
	--no-emit-index-url --no-header --no-annotate

lock:  ## resolve the dependencies again, to the newest that fit
	@python3 -m.venv build/lock
	@build/lock/bin/pip install --quiet --disable-pip-version-check uv
	@build/lock/bin/$(LOCK) --group build pyproject.toml -o requirements/run.lock
	@build/lock/bin/$(LOCK) --group dev pyproject.toml -o requirements/dev.lock
	@build/lock/bin/$(LOCK) --group build --extra server --extra postgres --extra llm --extra telemetry \
		-c requirements/dev.lock pyproject.toml -o requirements/serve.lock
	@git diff --stat -- requirements

clean:  ## remove what tasks have made, .venv included
	@rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find src tests scripts benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

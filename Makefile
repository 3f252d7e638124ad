# Aliases. `bootstrap.py` sets everything up first, so each works on a fresh machine.
PYTHON ?= python3
NAME ?= overhead compile import

.PHONY: help demo test check docs docs-check bench format clean

help:  ## this list
	@grep -E '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed -E 's/: .*## /\t/' | expand -t 14

demo: ## the main job, on recorded model replies
	$(PYTHON) bootstrap.py demo

test: ## every test
	$(PYTHON) bootstrap.py test

check: ## format, lint, types, import contracts, docs, fast tests
	$(PYTHON) bootstrap.py check

docs: ## write the generated pages of docs/reference
	$(PYTHON) bootstrap.py docs

docs-check: ## fail where a generated page is out of date
	$(PYTHON) bootstrap.py docs --check

bench: ## figures beside their floors: make bench NAME="overhead import"
	$(PYTHON) bootstrap.py bench $(NAME)

format: ## write the house format, fix what can be fixed
	$(PYTHON) bootstrap.py setup
	.venv/bin/ruff format .
	.venv/bin/ruff check --fix .

clean: ## forget everything that was built or installed here
	rm -rf .venv .pytest_cache .ruff_cache .hypothesis .import_linter_cache dist build

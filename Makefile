# make serve: the server.  make test: everything that is checked.  make help: the rest.
# PYTHON=python3.12 names the interpreter; HERMES_HOME the folder with settings and sessions.
SHELL := /bin/bash
export PYTHON
.DEFAULT_GOAL := help
.PHONY: help serve test check bench constraints clean

help: ## show this list
	@sed -nE 's/^([a-z]+):.*## (.*)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 22

serve: ## install into .venv what is missing, then start the server
	@scripts/venv local
	@exec .venv/bin/hermes serve

test: ## install into .venv what is missing, then run all checks and tests
	@scripts/needs
	@scripts/venv dev
	@VIRTUAL_ENV="$$PWD/.venv" PATH="$$PWD/.venv/bin:$$PATH" scripts/check

check: ## the checks without the tests
	@scripts/venv dev
	@VIRTUAL_ENV="$$PWD/.venv" PATH="$$PWD/.venv/bin:$$PATH" scripts/check --quick

bench: ## measure the server against a scripted provider (HERMES_BENCH_KIT names the tools)
	@scripts/venv dev
	@exec .venv/bin/python bench/run.py

constraints: ## resolve the newest allowed versions into constraints.txt
	@scripts/constraints

clean: ## remove .venv and what the tools left
	@rm -rf .venv .coverage* .pytest_cache .ruff_cache .hypothesis build dist

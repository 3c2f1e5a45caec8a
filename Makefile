# `make demo` and `make test` work on a fresh machine with Python 3.11 and make: they create .venv, install the
# versions in requirements.lock (whose opening lines say how to make it again), and run. Set-up happens again only when
# the lock, pyproject.toml or the version changes.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
READY := $(VENV)/.ready
RUN := $(VENV)/bin
DOCS := .venv-docs

# Compiled functions are kept between runs: most of the time of a test is compilation.
export JAX_COMPILATION_CACHE_DIR := $(CURDIR)/.cache/jax
export JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS := 0.3

.PHONY: demo test test-long test-slow lint docs bench clean help

demo: $(READY)  ## an unseen stream, our posterior beside the truth and beside SMC, one page
	$(RUN)/pfbr demo

test: $(READY)  ## the quick tests, a process for each of two cores
	$(RUN)/python -m pytest -n 2 --dist loadfile

test-long: $(READY)  ## the tests of a few seconds each, and the code of every page of the documents
	$(RUN)/python -m pytest -n 2 --dist loadscope -m "long and not slow"

test-slow: $(READY)  ## the tests that train for minutes
	$(RUN)/python -m pytest -m slow

lint: $(READY)  ## style and types
	$(RUN)/ruff check .
	$(RUN)/ruff format --check .
	$(RUN)/mypy

docs: $(DOCS)/.ready  ## the site, into site/; a warning or a broken link is an error
	NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs build --quiet
	@echo "open site/index.html"

bench: $(READY)  ## ratios against rivals, in one run
	$(RUN)/pfbr bench

clean:  ## everything that can be made again
	rm -rf $(VENV) $(DOCS) site .cache .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist pfbr-demo

help:
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 12

$(READY): requirements.lock pyproject.toml src/pfbr/version.py
	test -x $(RUN)/python || $(PYTHON) -m venv $(VENV)
	$(RUN)/python -m pip install --quiet --require-hashes -r requirements.lock
	$(RUN)/python -m pip install --quiet --no-deps --no-build-isolation -e .
	touch $@

$(DOCS)/.ready: requirements-docs.lock
	test -x $(DOCS)/bin/python || $(PYTHON) -m venv $(DOCS)
	$(DOCS)/bin/python -m pip install --quiet --require-hashes -r requirements-docs.lock
	touch $@

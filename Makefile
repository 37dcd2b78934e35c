# Every target sets up what it needs, from nothing but python3, a C compiler, git and make.
# PYTHON chooses the interpreter: `make test PYTHON=python3.13`. ARGS goes to pytest, the benchmarks or compat.

PYTHON ?= python3
ARGS ?=

# The default python3 lives in .venv, any other in .venv-<tag>; <tag> also names its debug build.
chosen := $(shell $(PYTHON) tools/venv.py where)
ifeq ($(chosen),)
$(error $(PYTHON) can not be used: choose another with PYTHON=...)
endif
venv := $(firstword $(chosen))
tag := $(lastword $(chosen))
python := $(venv)/bin/python
debug_package := $(CURDIR)/build/debug-$(tag)

# -P keeps the folder we stand in out of sys.path: a test sees exactly the build it is run on.
release_run = PYTHONSAFEPATH=1 PYTHONPATH=$(CURDIR) $(python)
debug_run = PYTHONSAFEPATH=1 PYTHONPATH=$(debug_package) $(python)
# pytest's exit 5, "no test collected", is no failure
pytest = -m pytest $(ARGS) || test $$? -eq 5

.PHONY: help venv build debug demo test test-release test-debug test-strict next-python switches plain stress bench counts performance compat integrations check format rooms
.PHONY: docs dist clean
.NOTPARALLEL:

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 16

venv:
	@$(PYTHON) tools/venv.py $(venv) build-system test liburing? inspect-test?

build: venv  ## the release build, in place
	@$(python) setup.py --quiet build_ext --inplace

debug: venv  ## the debug build, a package of its own in build/debug-<tag>
	@URINGLOOP_BUILD=debug $(python) setup.py --quiet build

demo: build  ## a real echo server under load, on uringloop, asyncio and uvloop: half a minute
	@$(PYTHON) tools/venv.py $(venv) bench?
	@$(release_run) tools/demo.py $(ARGS)

test: test-release test-debug  ## the test suite, on the release build and on the debug build

test-release: build
	@echo "== $(tag), release build"
	@$(release_run) $(pytest)

test-debug: debug
	@echo "== $(tag), debug build"
	@$(debug_run) $(pytest)

# Programs that a test starts inherit it, but for those that it starts with warnings of its own.
test-strict: build  ## the test suite on the release build, with each warning an error in the programs that tests start, too
	@echo "== $(tag), release build, warnings are errors"
	@PYTHONWARNINGS=error $(release_run) $(pytest)

# A folder whose sitecustomize.py hides them, in the programs that tests start, too.
next-python: build  ## the test suite on the release build, with all hidden that Python 3.16 removes from asyncio
	@echo "== $(tag), release build, without what Python 3.16 removes"
	@PYTHONSAFEPATH=1 PYTHONPATH=$(CURDIR)/tests/next_python:$(CURDIR) $(python) $(pytest)

# Not the tests of programs and tools. Where DEFER_TASKRUN is used, COOP_TASKRUN is not: both go. The last run restricts the
# rings, but for one operation that the tests of uringloop.ops submit.
switches: build  ## the tests of the library on io_uring with each probed kernel feature turned off, one after the other
	@failed=; for name in $$($(release_run) -c "from uringloop._core.kernel.probe import offered; print(*offered())"); do \
		[ $$name != coop_taskrun ] || name=defer_taskrun,coop_taskrun; \
		echo "== $(tag), without $$name"; \
		URINGLOOP_DISABLE=$$name URINGLOOP_TEST_ENGINES=uring $(release_run) -m pytest -q \
			$(patsubst %,--ignore=tests/%,benchmarks commands examples integrations meta tools) $(ARGS) || failed="$$failed $$name"; \
	done; \
	echo "== $(tag), restricted"; \
	URINGLOOP_RESTRICT=readv URINGLOOP_TEST_ENGINES=uring $(release_run) -m pytest -q \
		$(patsubst %,--ignore=tests/%,benchmarks commands examples integrations meta tools) $(ARGS) || failed="$$failed restrictions"; \
	test -z "$$failed" || { echo "failed without:$$failed"; exit 1; }

plain: build  ## the tests of the library with each piece that relies on CPython's insides on its plain path, one after the other
	@failed=; for name in $$($(release_run) -c "from uringloop._core.cpython.canaries import PIECES; print(*PIECES)"); do \
		echo "== $(tag), $$name by its plain path"; \
		URINGLOOP_PLAIN=$$name $(release_run) -m pytest -q \
			$(patsubst %,--ignore=tests/%,benchmarks examples integrations meta tools) $(ARGS) || failed="$$failed $$name"; \
	done; test -z "$$failed" || { echo "failed on the plain path of:$$failed"; exit 1; }

stress: build debug  ## the long tests, on both builds, and all tests on the fake engine with another seed
	@$(release_run) -m pytest -m stress --timeout=1800 $(ARGS) || test $$? -eq 5
	@$(debug_run) -m pytest -m stress --timeout=1800 $(ARGS) || test $$? -eq 5
	@URINGLOOP_TEST_ENGINES=fake URINGLOOP_SEED=random $(debug_run) $(pytest)

bench: build  ## every loop that can be installed here, interleaved: ARGS=--help
	@$(PYTHON) tools/venv.py $(venv) bench?
	@$(release_run) -m benchmarks $(ARGS)

counts: build  ## instructions of the hot paths, against the table's commit and BASE=...: ARGS=--help
	@$(release_run) -m tools.counts $(if $(BASE),--base $(BASE)) $(ARGS)

performance: build  ## measures, and makes docs/performance.md, its data and its pictures of it: ARGS=--full
	@$(PYTHON) tools/venv.py $(venv) bench?
	@$(release_run) -m benchmarks --json docs/performance.json $(ARGS)
	@$(release_run) -m benchmarks.page

integrations: build  ## uvicorn, gunicorn, FastAPI, Dask, Jupyter and the others of docs/integrations.md, each run for real
	@$(PYTHON) tools/venv.py $(venv) integrations
	@$(release_run) -m pytest tests/integrations tests/examples $(ARGS)

compat: build  ## CPython's own suite, the peers' suites, real applications
	@$(PYTHON) tools/venv.py $(venv) compat
	@$(release_run) -m compat $(ARGS)

check: build  ## style, types (mypy, pyright), stubs, news fragments, layers and sizes
	@$(PYTHON) tools/venv.py $(venv) dev pyright?
	@failed=; try() { echo "== $$*" >&2; "$$@" || failed="$$failed $${1##*/}"; }; \
	export PYTHONSAFEPATH=1 PYTHONPATH=$(CURDIR); \
	try $(venv)/bin/ruff check; \
	try $(venv)/bin/ruff format --check; \
	try $(venv)/bin/mypy; \
	try $(venv)/bin/mypy examples; \
	if timeout 120 $(venv)/bin/pyright --version > /dev/null 2>&1; then try $(venv)/bin/pyright --pythonpath $(python); \
	else echo "== left out: pyright, which can not be fetched here" >&2; fi; \
	try $(python) tools/stubtest.py; \
	try $(venv)/bin/towncrier build --draft --version next > /dev/null; \
	try $(python) -m pytest -q tests/meta; \
	test -z "$$failed" || { echo "check failed:$$failed"; exit 1; }

rooms:  ## writes the table of rooms in docs/design.md from the headers of the files
	@$(PYTHON) tools/rooms.py

format: venv  ## lets ruff rewrite what it can
	@$(PYTHON) tools/venv.py $(venv) dev
	$(venv)/bin/ruff check --fix-only
	$(venv)/bin/ruff format

docs: build  ## the documentation as a site in site/; links, commands and code blocks are right
	@$(PYTHON) tools/venv.py $(venv) docs
	@$(release_run) -m pytest -q tests/meta/test_docs.py
	@NO_MKDOCS_2_WARNING=1 $(release_run) -m mkdocs build --quiet --strict
	@echo "made site/index.html"

dist: venv  ## a source distribution, and a wheel made from it and tried in an environment of its own
	@$(PYTHON) tools/venv.py $(venv) dev
	@rm -rf dist && $(python) -m build
	@$(PYTHON) -m venv --clear build/dist-$(tag)
	@build/dist-$(tag)/bin/python -m pip -qq install dist/*.whl
	@cd build && env -u PYTHONPATH dist-$(tag)/bin/python -P ../tools/wheel_test.py

clean:  ## removes builds and environments
	rm -rf build dist site *.egg-info .venv .venv-* .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find uringloop tests -name '*.so' -delete -o -name __pycache__ -prune -exec rm -rf {} +

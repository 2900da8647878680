# make test | test-long | test-cpus | test-oldest | test-browser | test-wheel | demo | app | bench | docs | format | soak | mutants | clean
# Each target first creates .venv (Python 3.11 or newer) with the versions in constraints.txt.

# Matrices here are small: threads inside BLAS cost more than they give.
export OPENBLAS_NUM_THREADS := 1
export OMP_NUM_THREADS := 1
export MKL_NUM_THREADS := 1
export MPLBACKEND := Agg
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export NO_MKDOCS_2_WARNING := 1
# Where this is set, every process of every run compiles all tests anew.
unexport PYTHONDONTWRITEBYTECODE

BIN := .venv/bin
READY := .venv/.ready
BENCH_READY := .venv/.bench-ready
BROWSER_READY := .venv/.browser-ready
# Modules are compiled when they are first used: of all that are installed, most never are.
PIP_INSTALL := $(BIN)/python -m pip install --quiet --no-compile -c constraints.txt

# The first interpreter that runs and is new enough; a name on the path need not work.
PYTHON ?= $(shell for p in python3.11 python3 python3.12 python3.13 python; do \
    $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)

# The stamp holds the folder it was made for: a moved folder or a vanished interpreter means a new environment.
ifneq ($(shell $(BIN)/python -c 'print(open("$(READY)").read().strip())' 2>/dev/null),$(CURDIR))
$(shell rm -f $(READY) $(BENCH_READY) $(BROWSER_READY))
endif

.PHONY: test test-long suite types pages test-cpus test-oldest test-browser test-wheel demo app bench docs format soak mutants clean
.DELETE_ON_ERROR:
.DEFAULT_GOAL := test

$(READY): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "No Python 3.11 or newer found; install one or run make PYTHON=/path/to/python"; exit 1; }
	@grep -qsF "$(CURDIR)/.venv" $(BIN)/activate && $(BIN)/python -m pip --version >/dev/null 2>&1 || { \
	    echo "Creating .venv with $(PYTHON)"; \
	    $(PYTHON) -m venv --clear .venv 2>/dev/null || { \
	        $(PYTHON) -m venv --clear --without-pip .venv && $(PYTHON) -m pip --python .venv install --quiet pip; }; }
	@echo "Installing sumgp and its dependencies into .venv (once; takes a minute or two)"
	@$(PIP_INSTALL) --upgrade pip
	@$(PIP_INSTALL) -e ".[test,docs,dask,app]"
	@$(BIN)/python -m compileall -q src  # pip compiles what it copies; an editable install would compile at every first call
	@printf '%s\n' "$(CURDIR)" > $@

$(BENCH_READY): $(READY)
	$(PIP_INSTALL) -e ".[bench]"
	@touch $@

$(BROWSER_READY): $(READY)
	@$(PIP_INSTALL) -e ".[browser]"
	@touch $@

test: $(READY)
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	@$(MAKE) --no-print-directory -j 3 types pages suite  # side by side: what waits leaves its core to the others

suite: $(READY)
	$(BIN)/python -m pytest -q -m "not long" --cov --cov-report=term:skip-covered

# Whole fits that are judged by their numbers: random problems, calibration, many periods, families, orders and units.
test-long: $(READY)
	$(BIN)/python -m pytest -q -m long

types: $(READY)
	$(BIN)/python -m mypy

# Examples in docstrings, and the documentation without a broken link.
pages: $(READY)
	$(BIN)/python -m pytest -q -n 0 --doctest-modules src
	$(BIN)/python -m mkdocs build --strict --quiet

# Other CPUs round otherwise: the sensitive tests with each kind of kernels. CPUS=--short: a few of them.
test-cpus: $(READY)
	$(BIN)/python tools/other_cpus.py $(CPUS)

# The suite with the oldest versions that pyproject.toml allows, in an environment of its own (httpx: what a page of that
# age is tested with).
OLDEST := build/oldest
test-oldest: $(READY)
	@$(PYTHON) -m venv --clear $(OLDEST) 2>/dev/null || { \
	    $(PYTHON) -m venv --clear --without-pip $(OLDEST) && $(PYTHON) -m pip --python $(OLDEST) install --quiet pip; }
	@$(OLDEST)/bin/python -m pip install --quiet --no-compile -c constraints-oldest.txt -e ".[test,dask,app]" httpx
	$(OLDEST)/bin/python -m pytest -q -m "not long"

# Drives the page in a real browser; pictures of it at two widths and in both themes go to browser-output.
test-browser: $(BROWSER_READY)
	@for p in chromedriver chromium:chromium-browser:google-chrome; do \
	    found=; for n in $$(echo $$p | tr : ' '); do command -v $$n >/dev/null && found=yes; done; \
	    test -n "$$found" || { echo "make test-browser needs Chromium and its driver, but $$p is not on the path."; \
	        echo "Debian and Ubuntu: apt-get install chromium chromium-driver; Fedora: dnf install chromium chromedriver;"; \
	        echo "macOS: brew install --cask chromium chromedriver"; exit 1; }; done
	$(BIN)/python -m pytest -q -n 0 -o python_files='browser_*.py' tests/browser

# The built wheel in an environment that holds nothing else.
WHEEL := build/wheel
test-wheel: $(READY)
	@rm -rf $(WHEEL) && $(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir $(WHEEL) .
	@$(PYTHON) -m venv $(WHEEL)/empty 2>/dev/null || { \
	    $(PYTHON) -m venv --clear --without-pip $(WHEEL)/empty && $(PYTHON) -m pip --python $(WHEEL)/empty install --quiet pip; }
	@$(WHEEL)/empty/bin/python -m pip install --quiet --no-compile -c constraints.txt $(WHEEL)/*.whl
	cd $(WHEEL) && empty/bin/python -I $(CURDIR)/tools/smoke.py

demo: $(READY)
	$(BIN)/sumgp demo --out demo-output

# Prints the address of the page, and opens it where there is a browser.
app: $(READY)
	$(BIN)/sumgp app

bench: $(BENCH_READY)
	$(BIN)/sumgp bench

docs: $(READY)
	$(BIN)/python -m mkdocs build --strict

format: $(READY)
	$(BIN)/python -m ruff format .
	$(BIN)/python -m ruff check --fix .

soak: $(READY)
	$(BIN)/python tests/soak.py

mutants: $(READY)
	$(BIN)/python tools/mutate.py

# Keeps .venv, which is slow to make; remove that folder by hand to start from nothing.
clean:
	rm -rf site demo-output bench-output soak-output browser-output build dist htmlcov .coverage
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests tools -name __pycache__ -type d -prune -exec rm -rf {} +

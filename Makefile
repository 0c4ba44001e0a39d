# make reproduce   the whole paper: results, figures, claims and both reports
# make test        the tests
# make benchmark   speed of the engines, side by side
PYTHON ?= $(shell command -v python3.11 || command -v python3)
CORES ?= all
VENV := .venv
READY := $(VENV)/ready
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)
RESULTS = $(shell python -c 'import yaml; print(yaml.safe_load(open("config.yaml"))["results"])')

.PHONY: reproduce report test format benchmark environment clean

reproduce: $(READY)
	snakemake --cores $(CORES)
	@$(MAKE) --no-print-directory report

report: $(READY)
	@snakemake --report $(RESULTS)/snakemake-report.html > $(RESULTS)/logs/snakemake-report.log 2>&1 \
	    || { cat $(RESULTS)/logs/snakemake-report.log; exit 1; }
	@echo "Results are in $(RESULTS)/. Open in a browser:"
	@echo "  $(RESULTS)/report.html             claims, figures, tables"
	@echo "  $(RESULTS)/snakemake-report.html   the same by rule, with provenance"

test: $(READY)
	ruff check src tests
	ruff format --check src tests
	snakefmt --check Snakefile workflow
	snakemake --lint
	python -m pytest

format: $(READY)
	ruff check --fix src tests
	ruff format src tests
	snakefmt Snakefile workflow

benchmark: $(READY)
	python tests/benchmark.py

environment: $(READY)

$(READY): envs/requirements.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' \
	    || { echo "$(PYTHON) is not Python 3.11; name one that is: make PYTHON=/path/to/python3.11"; exit 1; }
	@echo "Making $(VENV) with the pinned packages; this takes a minute or two."
	@$(PYTHON) -m venv --clear $(VENV)
	@$(VENV)/bin/pip install --quiet --disable-pip-version-check --requirement envs/requirements.txt
	@$(VENV)/bin/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

clean:
	rm -rf results results-smoke .snakemake

# `make` prints these lines. Times are on two cores.
## make reproduce    run all of the paper: results, figures, claims and both reports; 1 to 3 minutes
## make NAME         run the study in studies/NAME; 6 to 15 minutes
## make report       write Snakemake's report of a finished run; 5 seconds
## make verify       compare a finished run with the reference numbers; seconds
## make crate        write crate.zip, a finished run and its workflow as an RO-Crate; 10 seconds
## make weights      write the weights of a finished run into pretrained/, for publication; seconds
## make reference    write the reference numbers from a finished run; seconds
## make images       write the images of the documentation from a finished run; seconds
## make test         run the linters and the tests; 4 minutes
## make test-all     run the slow tests too: conda environments, interrupted runs, browsers, no JIT compiler
## make test-interruptions KILLS=60   stop a smoke run KILLS times and compare its results
## make test-slurm   install Slurm on one node and run the smoke workflow on it (as root); 4 minutes
## make test-container   build the image on Debian's packages and make a smoke run in it (as root); 5 minutes
## make test-apptainer   do the same with Apptainer from Debian unstable (as root)
## make test-many-cores   simulate a full run on 150 cores with jobs that only sleep; 6 minutes
## make test-crate   validate crate.zip; installs the validator of RO-Crates, needs the network; seconds
## make test-fresh   run reproduce and test in an empty Debian system (as root); a quarter of an hour
## make test-devcontainer   run the commands of .devcontainer and .binder in an empty Debian system (as root)
## make format       format the code; seconds
## make benchmark    compare the speed of the engines
## make benchmark-peers   compare the speed of a TD update with C and JAX; installs JAX and needs a C compiler
## make api          build the API page, docs/api/html/index.html, from the docstrings; installs Sphinx; 30 seconds
## make environment  install .venv, which the other commands also do if needed; ten seconds to 2 minutes
## make lock         resolve all environments from envs/requirements.in and envs/groups.yaml; seconds
## make container    build an image with the environment and the workflow; 2 to 3 minutes
## make reproduce-container   run all of the paper in this image; 2 minutes
## make apptainer    build the same image for Apptainer, ictd.sif
## make clean        remove the results and Snakemake's records of them
PYTHON ?= $(shell command -v python3.11 || command -v python3)
CORES ?= all
VENV := .venv
READY := $(VENV)/ready
# The index of torch's CPU build. Leave it empty if pip is configured to find that build.
TORCH_INDEX ?= https://download.pytorch.org/whl/cpu
IMAGE ?= ictd
COMMIT = $(shell git describe --always --dirty --abbrev=40 --exclude='*' 2> /dev/null)
KILLS ?= 60
BASE ?= docker.io/library/python:3.11-slim-bookworm
BUILDER ?= $(shell for tool in docker podman buildah; do $$tool info > /dev/null 2>&1 && { echo $$tool; break; }; done)
# Let Python store compiled modules in .venv; otherwise every process compiles them again.
unexport PYTHONDONTWRITEBYTECODE
# pip refuses to install into a virtual environment if it is configured for the user site.
export PIP_USER := 0
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)
# Each folder in studies/ that has a rules.smk is a study.
STUDIES := $(notdir $(patsubst %/,%,$(dir $(wildcard studies/*/rules.smk))))
RESULTS = $(shell $(VENV)/bin/python -P -c 'import yaml; print(yaml.safe_load(open("config.yaml"))["results"])')

.PHONY: help reproduce $(STUDIES) report verify crate weights reference images lint test test-all test-interruptions test-slurm test-container test-apptainer test-many-cores test-crate test-fresh test-devcontainer format api benchmark benchmark-peers environment lock builder container reproduce-container apptainer clean

help:
	@sed -n 's/^## make/make/p' Makefile

reproduce: $(READY)
	snakemake --cores $(CORES)
	@$(MAKE) --no-print-directory report

$(STUDIES): $(READY)
	snakemake $@ --cores $(CORES)
	@test ! -e $(RESULTS)/$@/$@.html || echo "Open $(RESULTS)/$@/$@.html in a browser."

report: $(READY)
	@test -e $(RESULTS)/manifest.json \
	    || { echo "There is no finished run in $(RESULTS)/; run make reproduce, which also writes the report."; exit 1; }
	@snakemake --report $(RESULTS)/snakemake-report.html > $(RESULTS)/logs/snakemake-report.log 2>&1 \
	    || { cat $(RESULTS)/logs/snakemake-report.log; exit 1; }
	@echo "Results are in $(RESULTS)/. Open in a browser:"
	@echo "  $(RESULTS)/report.html             claims, figures, tables"
	@echo "  $(RESULTS)/snakemake-report.html   the same results by rule, with provenance"

verify: $(READY)
	@python -P -m ictd.pipeline.runner ictd.report.verify --results $(RESULTS) --reference reference

# Snakemake's summary has the rule, command, inputs and log of each output.
crate: $(READY)
	@test -e $(RESULTS)/manifest.json || { echo "$(RESULTS) holds no finished run; run make reproduce first."; exit 1; }
	@snakemake --detailed-summary > $(RESULTS)/logs/summary.tsv 2> $(RESULTS)/logs/summary.log \
	    || { cat $(RESULTS)/logs/summary.log; exit 1; }
	@python -P -m ictd.pipeline.runner ictd.report.crate --summary $(RESULTS)/logs/summary.tsv --output crate.zip

weights: $(READY)
	@python -P -m ictd.pipeline.runner ictd.report.weights --results $(RESULTS) --output pretrained

reference: $(READY)
	python -P -m ictd.pipeline.runner ictd.report.reference --results $(RESULTS) --output reference

# Studies that were not run keep their images.
images: $(READY)
	@for image in $(wildcard docs/images/*.png); do \
	    cp $(RESULTS)/figures/$${image##*/} docs/images/ || exit 1; done
	@for study in $(STUDIES); do for image in studies/$$study/images/*.png; do \
	    made=$(RESULTS)/$$study/figures/$${image##*/}; test ! -e $$made || cp $$made $$image || exit 1; done; done

test: lint
	python -P -m pytest -m "not slow" --numprocesses auto --dist loadfile --no-loadscope-reorder

test-all: lint
	python -P -m pytest --numprocesses auto --dist loadfile --no-loadscope-reorder

lint: $(READY)
	ruff check .
	ruff format --check .
	pyrefly check
	snakefmt --check Snakefile workflow studies
	snakemake --lint

format: $(READY)
	ruff check --fix .
	ruff format .
	snakefmt Snakefile workflow studies

benchmark: $(READY)
	for file in $(wildcard tests/benchmark.py studies/*/tests/benchmark.py); do PYTHONPATH=.:tests python -P $$file; done

PEERS := .venv-peers
benchmark-peers: $(READY)
	$(VENV)/bin/python -P -m venv $(PEERS)
	$(PEERS)/bin/pip install --quiet --disable-pip-version-check jax==0.10.2 jaxlib==0.10.2 $(shell grep -E '^num(ba|py)==' envs/requirements.in)
	PYTHONPATH=src $(PEERS)/bin/python -P tests/peers/benchmark.py

DOCS := .venv-docs
api: $(READY)
	$(VENV)/bin/python -P -m venv $(DOCS)
	$(DOCS)/bin/pip install --quiet --disable-pip-version-check sphinx==9.0.4
	PYTHONPATH=src:$$($(VENV)/bin/python -P -c 'import sysconfig; print(sysconfig.get_path("purelib"))') \
	    $(DOCS)/bin/python -P -m sphinx -q -W -b html docs/api docs/api/html

test-interruptions: $(READY)
	KILLS=$(KILLS) python -P -m pytest tests/test_interruptions.py -k same_bytes

test-slurm: $(READY)
	tests/slurm/run --configfile tests/smoke.yaml

test-container test-apptainer: test-%: $(READY)
	tests/$*/run

test-many-cores: $(READY)
	tests/many_cores/run 150 seeds_per_job=1

CRATE_TOOLS := .venv-crate
test-crate: $(READY)
	$(VENV)/bin/python -P -m venv $(CRATE_TOOLS)
	$(CRATE_TOOLS)/bin/pip install --quiet --disable-pip-version-check roc-validator==0.13.0
	$(CRATE_TOOLS)/bin/rocrate-validator --no-interactive validate --no-paging --verbose \
	    --profile-identifier provenance-run-crate-0.5 crate.zip

test-fresh:
	tests/fresh/run

test-devcontainer:
	tests/devcontainer/run

environment: $(READY)

lock: $(READY)
	python envs/lock.py

# buildah can build an image, but not run it.
builder:
	@test -n "$(BUILDER)" \
	    || { echo "Install and start docker or podman; no program to build images was found."; exit 1; }

container: builder
	$(BUILDER) $(BUILDER_OPTIONS) build $(BUILD_OPTIONS) --build-arg BASE="$(BASE)" \
	    --build-arg TORCH_INDEX="$(TORCH_INDEX)" --build-arg COMMIT="$(COMMIT)" --tag $(IMAGE) .

reproduce-container: builder
	mkdir -p results-container
	$(BUILDER) $(BUILDER_OPTIONS) run --rm --network=none --user $(shell id -u):$(shell id -g) $(RUN_OPTIONS) \
	    --volume "$$PWD/results-container":/work $(IMAGE)
	@echo "Results are in results-container/results/; open report.html in a browser."

apptainer:
	apptainer build --force $(BUILD_OPTIONS) --build-arg BASE="$(BASE)" --build-arg TORCH_INDEX="$(TORCH_INDEX)" \
	    --build-arg COMMIT="$(COMMIT)" ictd.sif ictd.def

# The file `ready` says what $(VENV) was made for: this folder, because a virtual environment works only in the folder
# where it was made, and the content of these files.
MADE_FOR = $(CURDIR) $(shell cat envs/install envs/installer.txt envs/requirements.txt envs/torch.txt pyproject.toml | cksum)
ifneq ($(shell cat $(READY) 2> /dev/null),$(MADE_FOR))
.PHONY: $(READY)
endif
# The packages are installed beside $(VENV), which is replaced at the end.  Whatever fails leaves a working $(VENV) as it is.
$(READY):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' \
	    || { echo "$(PYTHON) is not Python 3.11; install one (apt install python3.11-venv, brew install python@3.11" \
	    "or uv python install 3.11) and name it: make PYTHON=/path/to/python3.11"; exit 1; }
	@echo "Making $(VENV) with the pinned packages; this takes ten seconds to two minutes."
	@# Do not compile all modules, because most are never imported. For pip, "false" switches no-compile on.
	@PIP_NO_COMPILE=false TORCH_INDEX="$(TORCH_INDEX)" envs/install "$(PYTHON)" $(VENV).new
	@$(VENV).new/bin/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@echo "$(MADE_FOR)" > $(VENV).new/ready
	@$(VENV).new/bin/python envs/move.py $(VENV).new $(VENV)

clean:
	rm -rf results results-smoke .snakemake

# `make` prints these lines. Times are on two cores.
## make reproduce    run all of the paper: results, figures, claims and both reports; 1 to 3 minutes
## make NAME         run the study in studies/NAME; 4 to 10 minutes
## make report       write Snakemake's report of a finished run; 5 seconds
## make article    run all studies, and write the article, results/article.pdf; half an hour
## make verify       compare a finished run with the reference numbers; seconds
## make weights      write the weights of a finished run into pretrained/, for publication; seconds
## make reference    write the reference numbers from a finished run; seconds
## make pages        write the reference numbers into README.md, docs/ and the studies' pages; seconds
## make test         run the linters and the tests; 2 minutes
## make test-all     run the slow tests too: interrupted runs, browsers, the wheel, no JIT compiler
## make test-NAME    run tests/NAME/run, NAME being slurm, many-cores, container, apptainer, fresh or devcontainer
## make format       format the code; seconds
## make benchmark    compare the speed of the engines
## make docs         build the site: pages, API and the results that there are, site/index.html; installs Sphinx; 30 seconds
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
BASE ?= docker.io/library/python:3.11-slim-bookworm
BUILDER ?= $(shell for tool in docker podman buildah; do $$tool info > /dev/null 2>&1 && { echo $$tool; break; }; done)
# Let Python store compiled modules in .venv; otherwise every process compiles them again.
unexport PYTHONDONTWRITEBYTECODE
# The modules of a cluster set these for another Python; without docstrings, titles and captions are missing.
unexport PYTHONHOME PYTHONOPTIMIZE PYTHONPATH
# pip refuses to install into a virtual environment if it is configured for the user site.
export PIP_USER := 0
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)
# Each folder in studies/ that has a rules.smk is a study.
STUDIES := $(notdir $(patsubst %/,%,$(dir $(wildcard studies/*/rules.smk))))
RESULTS = $(shell $(VENV)/bin/python -P -c 'import yaml; print(yaml.safe_load(open("config.yaml"))["results"])')

.PHONY: help reproduce $(STUDIES) report article verify weights reference pages lint test test-all test-slurm test-container test-apptainer test-many-cores test-fresh test-devcontainer format docs benchmark environment lock builder container reproduce-container apptainer clean

help:
	@sed -n 's/^## make/make/p' Makefile

# Run Snakemake with targets. If it fails, the end of its output, the errors of jobs, and where all output is are printed.
OUTPUT := .snakemake/output.log
define run
@echo "Running the workflow; \`tail -f $(OUTPUT)\` shows the progress."
@mkdir -p $(dir $(OUTPUT))
@snakemake $(1) --cores $(CORES) > $(OUTPUT) 2>&1 || { tail -n 20 $(OUTPUT) | cut -c -300; grep '^error: ' $(OUTPUT); \
    echo "The run failed; $(OUTPUT) has all output. Run the same command again: finished jobs are kept."; exit 1; }
endef

# Snakemake's report shows the present rules and settings beside the results, so these must be those of the results.
define write_report
@python -P -m ictd.pipeline.runner ictd.steps.report.check --results $(RESULTS) 2> $(RESULTS)/logs/report.log \
    || { tail -n 1 $(RESULTS)/logs/report.log; exit 1; }
@snakemake --report $(RESULTS)/snakemake-report.html > $(RESULTS)/logs/report.log 2>&1 \
    || { cat $(RESULTS)/logs/report.log; exit 1; }
@python -P -c 'import json, sys; from ictd.report.paper.sentences import counted, in_one_sentence; \
    print(in_one_sentence(counted(json.load(open(sys.argv[1])))))' $(RESULTS)/sentences.json
@echo "$(RESULTS)/report.html has all claims, figures and tables. Open it in a browser."
@echo "$(RESULTS)/snakemake-report.html has the same results by rule, with their provenance."
@echo "make verify compares the results with the reference."
endef

reproduce: $(READY)
	$(call run)
	$(write_report)

$(STUDIES): $(READY)
	$(call run,$@)
	@test ! -e $(RESULTS)/$@/$@.html || echo "Open $(RESULTS)/$@/$@.html in a browser."

report: $(READY)
	@test -e $(RESULTS)/manifest.json \
	    || { echo "There is no finished run in $(RESULTS)/; run make reproduce, which also writes the report."; exit 1; }
	@snakemake --dry-run --cores 1 2>&1 | grep -q "Nothing to be done" \
	    || { echo "Settings, code or files have changed since the run in $(RESULTS)/; run make reproduce."; exit 1; }
	$(write_report)

article: $(READY)
	$(call run,article)
	@echo "Open $(RESULTS)/article.pdf."

verify: $(READY)
	@python -P -m ictd.pipeline.runner ictd.steps.report.verify --results $(RESULTS) --reference reference

weights: $(READY)
	@python -P -m ictd.pipeline.runner ictd.steps.report.publish --results $(RESULTS) --output pretrained

reference: $(READY)
	python -P -m ictd.pipeline.runner ictd.steps.report.reference --results $(RESULTS) --output reference

pages: $(READY)
	@python -P -m ictd.pipeline.runner ictd.steps.report.pages --reference reference \
	    --pages README.md $(wildcard docs/*.md studies/*/README.md)

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
	PYTHONPATH=.:tests python -P tests/benchmark.py

DOCS := .venv-docs
docs: $(READY)
	$(VENV)/bin/python -P -m venv $(DOCS)
	$(DOCS)/bin/pip install --quiet --disable-pip-version-check --requirement docs/site/requirements.txt
	RESULTS=$(RESULTS) \
	    PYTHONPATH=src:$$($(VENV)/bin/python -P -c 'import sysconfig; print(sysconfig.get_path("purelib"))') \
	    $(DOCS)/bin/python -P -m sphinx -q -W -b html -c docs/site . site
	cp site/README.html site/index.html
	@echo "Open site/index.html in a browser."

# Each script says what it does and needs.
test-slurm test-many-cores test-container test-apptainer test-fresh test-devcontainer: test-%: $(READY)
	tests/$*/run

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
	@# Do not compile all modules, because most are never imported. For pip, "false" switches no-compile on.
	@python=$$(envs/python "$(PYTHON)" $(VENV).new) \
	    && echo "Making $(VENV) with the pinned packages; this takes ten seconds to two minutes." \
	    && PIP_NO_COMPILE=false TORCH_INDEX="$(TORCH_INDEX)" envs/install "$$python" $(VENV).new
	@$(VENV).new/bin/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@echo "$(MADE_FOR)" > $(VENV).new/ready
	@$(VENV).new/bin/python -P envs/move.py $(VENV).new $(VENV)

clean:
	rm -rf results results-smoke .snakemake

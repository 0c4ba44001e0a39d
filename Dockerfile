# The locked environment and the workflow.  Build with `make container`; run with `make reproduce-container`.
# Any image with Python 3.11 and its venv module will do as the base.  ictd.def says the same to Apptainer.
ARG BASE=docker.io/library/python:3.11-slim-bookworm
FROM ${BASE}

# Where torch's CPU build comes from; empty where pip's own configuration knows.
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu

COPY envs/install envs/installer.txt envs/requirements.txt envs/torch.txt /opt/ictd/envs/
RUN PIP_NO_CACHE_DIR=1 /opt/ictd/envs/install python3 /opt/ictd/.venv && chmod -R a+rX /opt/ictd

COPY Snakefile config.yaml /opt/ictd/
COPY workflow /opt/ictd/workflow
COPY profiles /opt/ictd/profiles
COPY report /opt/ictd/report
COPY docs /opt/ictd/docs
COPY envs /opt/ictd/envs
COPY src /opt/ictd/src
COPY studies /opt/ictd/studies
RUN cd /opt/ictd && chmod -R a+rX Snakefile config.yaml workflow profiles report docs envs src studies

# Whoever runs it, by themselves or with --user, can write to the results only, and to /tmp.
RUN useradd --uid 1000 --no-create-home ictd && install --directory --owner ictd /work
USER 1000
ENV PATH=/opt/ictd/.venv/bin:$PATH HOME=/tmp
WORKDIR /work
CMD ["snakemake", "--cores", "all", "--snakefile", "/opt/ictd/Snakefile"]

# The locked environment and the workflow.  Build with `make container`; run with `make reproduce-container`.
# Any image with Python 3.11 and its venv module will do as the base.
ARG BASE=docker.io/library/python:3.11-slim-bookworm
FROM ${BASE}

# Where torch's CPU build comes from; empty where pip's own configuration knows.
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu

COPY envs/requirements.txt envs/torch.txt /opt/ictd/envs/
RUN python3 -m venv /opt/ictd/.venv \
    && /opt/ictd/.venv/bin/pip install --quiet --no-cache-dir --disable-pip-version-check --no-deps --require-hashes \
        ${TORCH_INDEX:+--extra-index-url ${TORCH_INDEX}} --requirement /opt/ictd/envs/torch.txt \
    && /opt/ictd/.venv/bin/pip install --quiet --no-cache-dir --disable-pip-version-check --no-deps --require-hashes \
        --requirement /opt/ictd/envs/requirements.txt

ENV PATH=/opt/ictd/.venv/bin:$PATH
COPY Snakefile config.yaml /opt/ictd/
COPY workflow /opt/ictd/workflow
COPY profiles /opt/ictd/profiles
COPY report /opt/ictd/report
COPY envs /opt/ictd/envs
COPY src /opt/ictd/src

# Compile the kernels once, so that a container that can write nowhere but to its results starts at full speed.
ENV PYTHONPATH=/opt/ictd/src NUMBA_CACHE_DIR=/opt/ictd/numba
RUN python -c "from ictd.compile import main; main()" && chmod -R a+rX /opt/ictd

WORKDIR /work
ENV HOME=/tmp XDG_CACHE_HOME=/tmp/cache MPLCONFIGDIR=/tmp/matplotlib
CMD ["snakemake", "--cores", "all", "--snakefile", "/opt/ictd/Snakefile", "--configfile", "/opt/ictd/config.yaml"]

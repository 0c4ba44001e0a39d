# The locked environment, the workflow and its package.  Build with `make container`; run with `make reproduce-container`.
# Any image with Python 3.11 and its venv module will do as the base.  ictd.def says the same to Apptainer.
ARG BASE=docker.io/library/python:3.11-slim-bookworm
FROM ${BASE}

# Where torch's CPU build comes from; empty where pip's own configuration knows.
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu

COPY envs/install envs/installer.txt envs/requirements.txt envs/torch.txt /opt/ictd/envs/
# Modules are compiled here, because jobs cannot write into the image.
RUN PIP_NO_CACHE_DIR=1 UV_COMPILE_BYTECODE=1 /opt/ictd/envs/install python3 /opt/ictd/.venv

# What .dockerignore lets through.
COPY . /opt/ictd
# The commit of these files, for the manifest and the label: the image has no git.
ARG COMMIT=
RUN /opt/ictd/envs/image finish "$COMMIT"

# Whoever runs it, by themselves or with --user, can write to the results only, and to /tmp.
RUN useradd --uid 1000 --no-create-home ictd && install --directory --owner ictd /work
USER 1000
ARG BASE
LABEL org.opencontainers.image.revision=${COMMIT} org.opencontainers.image.base.name=${BASE}
ENV PATH=/opt/ictd/.venv/bin:$PATH HOME=/tmp
WORKDIR /work
ENTRYPOINT ["/opt/ictd/envs/image"]
CMD ["snakemake", "--cores", "all", "--snakefile", "/opt/ictd/Snakefile"]

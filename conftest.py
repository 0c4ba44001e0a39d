"""Finished smoke runs of the whole workflow, shared by the tests that look at their results."""

import os
from pathlib import Path

import pytest
from filelock import FileLock
from projects import finished_run

from ictd import statistics


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Files with tests of a finished run come first: they take longest."""
    first = {item.path for item in items if "smoke" in item.fixturenames}
    items.sort(key=lambda item: item.path not in first)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call():
    """Where torch is not installed, skip the tests that need it."""
    try:
        return (yield)
    except ModuleNotFoundError as error:
        if error.name == "torch":
            pytest.skip("torch is not installed")
        raise


@pytest.fixture(scope="session")
def smoke(tmp_path_factory) -> Path:
    """Folder of a finished smoke run, which the first process that asks for it makes; tests only read it."""
    base = tmp_path_factory.getbasetemp()
    base = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder = base / "smoke"
    with FileLock(base / "smoke.lock"):
        if not (base / "smoke.made").exists():
            finished_run(folder)
            (base / "smoke.made").touch()
    return folder


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Write files of a package "ours" in the current folder; what was read from them before is forgotten."""
    from ictd.pipeline.provenance import PACKAGES, code_digest
    from ictd.pipeline.rules import import_graph, main_parameters

    monkeypatch.setitem(PACKAGES, "ours", tmp_path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ours").mkdir()

    def forget():
        for read in (code_digest, import_graph, main_parameters):
            read.cache_clear()

    def write(name: str, text: str) -> None:
        (tmp_path / "ours" / name).write_text(text)
        forget()

    yield write
    forget()


@pytest.fixture
def few_resamples(monkeypatch):
    """A tenth of the bootstrap resamples, for tests that do not depend on their number."""
    monkeypatch.setattr(statistics, "RESAMPLES", 1000)
    statistics._shares.cache_clear()
    yield
    statistics._shares.cache_clear()

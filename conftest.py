"""Finished smoke runs of the whole workflow, shared by the tests that look at their results."""

from pathlib import Path

import pytest
from projects import finished_run, finished_run_under_conda

RUNS = {"smoke", "under_conda"}


def pytest_collection_modifyitems(items):
    """Tests that need a finished run go to one process, where there are several, and are the last where not."""
    for item in items:
        if RUNS.intersection(item.fixturenames):
            item.add_marker(pytest.mark.xdist_group("runs"))
    items.sort(key=lambda item: RUNS.intersection(item.fixturenames) != set())


@pytest.fixture(scope="session")
def smoke(tmp_path_factory) -> Path:
    """Folder of a finished smoke run."""
    return finished_run(tmp_path_factory.mktemp("smoke"))


@pytest.fixture(scope="session")
def under_conda(smoke, tmp_path_factory) -> Path:
    """Folder of a smoke run with the studies, in environments made from exactly their pins.

    Cells and seeds are fewer than in ``smoke``: results do not depend on that either.
    """
    return finished_run_under_conda(tmp_path_factory.mktemp("conda"), smoke)

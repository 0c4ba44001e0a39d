"""Finished smoke runs of the whole workflow, shared by the tests that look at their results."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from projects import finished_run, finished_run_under_conda

RUNS = {"smoke", "under_conda"}


def pytest_collection_modifyitems(items):
    """Put last what needs a finished run."""
    items.sort(key=lambda item: RUNS.intersection(item.fixturenames) != set())


@pytest.fixture(scope="session", autouse=True)
def runs(request, tmp_path_factory):
    """Runs of the workflow that tests ask for, one after the other, while tests that need none are under way."""
    asked = {name for item in request.session.items for name in RUNS.intersection(item.fixturenames)}
    pool, found = ThreadPoolExecutor(1), {}
    if asked:
        found["smoke"] = pool.submit(finished_run, tmp_path_factory.mktemp("smoke"))
    if "under_conda" in asked:
        folder = tmp_path_factory.mktemp("conda")
        found["under_conda"] = pool.submit(finished_run_under_conda, folder, found["smoke"])
    yield found
    pool.shutdown(cancel_futures=True)


@pytest.fixture(scope="session")
def smoke(runs) -> Path:
    """Folder of a finished smoke run."""
    return runs["smoke"].result()


@pytest.fixture(scope="session")
def under_conda(runs) -> Path:
    """Folder of a smoke run with the studies, in environments made from exactly their pins.

    Cells and seeds are fewer than in ``smoke``: results do not depend on that either.
    """
    return runs["under_conda"].result()

"""Examples in the documentation, in docstrings and in the notebook."""

import doctest
import io
import json
import re
from importlib import import_module
from unittest.mock import patch

import naive
import numpy as np
import pages
import pandas as pd
import papermill
import pytest
from projects import ROOT

from ictd.algorithms import ALGORITHMS
from ictd.mrp import ENVIRONMENTS
from ictd.storage import save_arrays

PAGES = [pytest.param(ROOT / "docs/python.md", marks=pytest.mark.slow, id="python.md"), ROOT / "README.md"]
# Modules with examples in docstrings.
MODULES = [path.stem for path in sorted((ROOT / "src/ictd").glob("*.py")) if ">>>" in path.read_text(encoding="utf-8")]


@pytest.fixture(autouse=True)
def registries():
    """Forget what an example registers."""
    with patch.dict(ENVIRONMENTS), patch.dict(ALGORITHMS):
        yield


@pytest.fixture
def project(tmp_path):
    """A folder with the weights of a run, which are not those of a full run."""
    given = {"depth": np.array(30), "discount": np.array(0.9), "scaled": np.array(True)}
    weights, zeros = naive.several_weights(5, count=1), np.zeros(1, int)
    path = tmp_path / "results/weights/td-boyan-5-30.npz"
    save_arrays(path, seeds=zeros, u=weights.u, A=weights.A, diverged_at=zeros, **given)
    return tmp_path


@pytest.mark.parametrize("module", MODULES)
def test_examples_of_docstrings_have_the_documented_output(module):
    outcome = doctest.testmod(import_module(f"ictd.{module}"))
    assert outcome.attempted > 0 == outcome.failed


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_of_pages_have_the_documented_output(page, project, monkeypatch):
    """Numbers that depend on the weights of a full run differ here; all others agree but for the last digit."""
    monkeypatch.chdir(project)
    examples = pages.examples(page)
    found = pages.printed_by([code for code, _ in examples])
    for (code, said), printed in zip(examples, found, strict=True):
        if said is not None:
            assert pages.without_numbers(printed) == pages.without_numbers(said), code
            if "model." not in code:
                np.testing.assert_allclose(pages.numbers(printed), pages.numbers(said), atol=0.011)
    assert page.name == "README.md" or all(said for _, said in examples)


def test_recipes_have_the_right_values():
    """Solved by hand: v(1) = v(2) / 2 and v(2) = 1/2 + v(1) / 2 on the lake, and so on."""
    codes = [code for code, _ in pages.examples(ROOT / "docs/python.md")]
    first = next(i for i, code in enumerate(codes) if code.startswith("lake ="))
    _, *found = pages.printed_by([codes[0], *codes[first : first + 3]])
    a, b, c, d = (1 - 0.95 * 0.9081, 0.95 * 0.0833, 0.95 * 0.0227, 1 - 0.95 * 0.8693)
    ratings = np.array([d * 0.0086 + b * 0.108, c * 0.0086 + a * 0.108, 0]) / (a * d - b * c)
    expected = [
        [[0, 1 / 3, 2 / 3, 0]],
        # Three visits of state 1 lead to 2, the end and 2, those of 2 to the end and 1; with traces, to the solution of
        # 3 w(1) = 3/2 w(2) + 1/2 and 2 w(2) = 1/2 w(1) + 1.
        [[0, 1 / 2, 3 / 4, 0], [0, 10 / 21, 13 / 21, 0]],
        [ratings],
    ]
    for printed, lines in zip(found, expected, strict=True):
        for line, values in zip(re.findall(r"\[(.*)\]", printed), lines, strict=True):
            np.testing.assert_allclose(pages.numbers(line), values, atol=0.0006)


def test_the_notebook_on_an_own_chain(tmp_path):
    """With rewards that depend on the next state, and one transition on two lines with different rewards."""
    notebook, chain = ROOT / "examples/own-chain.ipynb", tmp_path / "chain.csv"
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    assert all(cell["cell_type"] == "markdown" or not cell["outputs"] for cell in cells)
    lines = pd.read_csv(ROOT / "examples/own-chain.csv")
    lines["reward"] = 0.3 - 0.2 * lines["from"] + 0.5 * lines["reward"]
    parts = lines.iloc[[0, 0]].assign(probability=[0.15, 0.45], reward=[3.0, -1.0])
    pd.concat([lines[1:], parts]).to_csv(chain, index=False)
    lines.loc[0, "reward"] = 0.0  # 0.15 * 3 - 0.45, with the probability 0.6.
    given = {"chain": str(chain), "steps": 60, "updates": 300}
    done = papermill.execute_notebook(notebook, tmp_path / "done.ipynb", given, progress_bar=False)
    outputs = [output["data"] for cell in done.cells for output in cell.get("outputs", []) if "data" in output]
    assert any("image/png" in data for data in outputs)
    table = next(data["text/plain"] for data in outputs if "text/html" in data)
    *_, truth = np.loadtxt(io.StringIO(table), skiprows=2).T
    p, reward = np.zeros((2, 5, 5))
    for line in lines.itertuples():
        p[line[1], line[2]], reward[line[1], line[2]] = line.probability, line.reward
    np.testing.assert_allclose(truth, naive.truncated_value(p, (p * reward).sum(axis=1), 0.9, 400), atol=0.006)

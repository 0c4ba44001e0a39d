"""The recipes in docs/development.md, followed in a copy of the project."""

import re
from pathlib import Path

import pytest
from html_page import Page
from projects import FEW, ROOT, copy_project, snakemake

from ictd.report.tables import load_table

TEXT = (ROOT / "docs/development.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(python|diff) (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
RECIPES = ("figure", "baseline", "algorithm")
# The smallest run with two numbers of layers.
SMALL = [*FEW[:2], "depths=[3, 2]", "tasks=20", "snapshots=3", "seeds=2"]
SMALL += ["extensions=[residual.py]", "algos=[td, mc, residual_gradient]"]


def follow(recipe: str, folder: Path) -> None:
    """Add the recipe's code at the ends of files, and make its changes in them."""
    section = re.search(rf"^### An? {recipe}\b.*?\n(.*?)(?=^##)", TEXT, re.MULTILINE | re.DOTALL)[1]
    blocks = BLOCK.findall(section)
    assert blocks
    for kind, name, text in blocks:
        path = folder / name
        content = path.read_text(encoding="utf-8") if path.exists() else ""
        if kind == "python":
            content = f"{content}\n\n{text}".lstrip()
        else:
            lines = text.splitlines(keepends=True)
            before, after = ("".join(line[1:] for line in lines if line[0] in signs) for signs in (" -", " +"))
            assert content.count(before) == 1, before
            content = content.replace(before, after)
        path.write_text(content, encoding="utf-8")


@pytest.fixture(scope="module")
def followed(tmp_path_factory) -> Path:
    """A copy of the project in which all recipes were followed."""
    folder = copy_project(tmp_path_factory.mktemp("followed"), without=("studies",))
    for recipe in RECIPES:
        follow(recipe, folder)
    return folder


def test_the_code_of_recipes_has_its_place(followed):
    for path in (followed / "src").rglob("*.py"):
        compile(path.read_text(encoding="utf-8"), path, "exec")


@pytest.fixture(scope="module")
def results(followed) -> Path:
    """The results of a small run."""
    done = snakemake(followed, "--cores", "2", "--config", *SMALL)
    assert done.returncode == 0, done.stdout[-5000:]
    return followed / "results-smoke"


@pytest.mark.slow
def test_a_new_figure_and_claim_are_in_the_report_and_in_snakemakes(followed, results):
    assert (results / "figures/step_sizes.svg").stat().st_size > 5000
    caption = "Step sizes. Error of theta^TD on tuning tasks, by its step size."
    report = Page(results / "report.html").text
    assert caption.replace("theta^TD", "θTD") in report and "LSTD has a lower MSVE than θTD." in report
    assert '"lstd_is_better/5-3"' in (results / "claims.json").read_text()
    assert "figures/step_sizes.png" in (results / "manifest.json").read_text()
    done = snakemake(followed, "--report", "report.html", "--config", *SMALL)
    assert done.returncode == 0, done.stdout
    text = (followed / "report.html").read_text()
    assert "step_sizes.png" in text and "Error of theta^TD on tuning tasks" in text


@pytest.mark.slow
def test_a_new_baseline_is_in_every_table_and_curve(results):
    for table in ("baselines", "unseen_baselines", "over_tasks"):
        assert "smoothed" in set(load_table(results / f"metrics/{table}.csv")["method"]), table
    rows = [row[0] for row in Page(results / "report.html").rows()]
    assert rows.count("LSTD with pseudo-counts") == 2
    for figure in ("figure_01", "figure_05"):
        assert (results / f"figures/{figure}.svg").read_text().count("#56b4e9") >= 1, figure

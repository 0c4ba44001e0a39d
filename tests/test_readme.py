"""README and the pages in docs/: links lead somewhere, names and numbers are right, examples run."""

import re
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pages import broken_formulas, code_blocks
from projects import ROOT, STUDIES, rules_of_paper

import ictd
from ictd.pipeline.config import load_yaml
from ictd.pipeline.provenance import module_path
from ictd.report.markdown import as_html

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), ROOT / "studies/README.md"]
# All documents of the repository; hidden folders and results are not part of it.
FOLDERS = [
    path for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith((".", "results", "pretrained"))
]
LINKED = [*sorted(ROOT.glob("*.md")), *sorted(page for folder in FOLDERS for page in folder.rglob("*.md"))]
CODE = [ROOT, ROOT / "src/ictd", ROOT / "tests"]


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


@cache
def anchors(page: Path) -> list[str]:
    """Names that the headings of a page have on GitHub."""
    return re.findall(r'<h\d id="(.*?)"', as_html(page.read_text(encoding="utf-8")))


@pytest.mark.parametrize("page", LINKED, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_have_existing_targets(page):
    """The code host shows every formula, too."""
    assert broken_formulas(page.read_text(encoding="utf-8")) == []
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        # The text of the report shows figures of the results.
        if not re.match(r"\w+:|figures/", target):
            path, _, anchor = target.partition("#")
            file = page.parent / path if path else page
            assert file.exists(), target
            assert not anchor or anchor in anchors(file), target


@pytest.mark.parametrize(
    "broken",
    [
        r"$\|x\|$",
        r"$\mathrm{T}_l=\sum_{l}x$",
        "$a<b$",
        "the $n$-th",
        "*$x$ is*",
        "| a |\n|---|\n| $x|y$ |",
    ],
)
def test_formulas_that_the_code_host_breaks(broken):
    assert broken_formulas(broken) and not broken_formulas("In ($x_l$), $y < 1$ and `$z`:\n\n$$\nx,y\n$$\n")


def targets_of_make() -> set[str]:
    """Targets of the Makefile, those with a pattern by their names, and NAME, which stands for a study."""
    named = re.findall(r"^([\w -]+): ", text_of("Makefile").replace(": test-%:", ":"), re.MULTILINE)
    named += re.findall(r"^([\w -]+):$", text_of("Makefile"), re.MULTILINE)
    return {*" ".join(named).split(), *STUDIES, "NAME"}


def test_targets_that_hosted_services_call_exist():
    services = [*(ROOT / ".github/workflows").glob("*.yml"), ROOT / ".devcontainer/devcontainer.json"]
    called = {name for file in services for name in re.findall(r"\bmake ([a-z][\w-]*)", file.read_text())}
    assert {"container", "verify", "weights", "environment"} <= called <= targets_of_make()


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=lambda page: page.name)
def test_targets_and_modules_that_pages_name_exist(page):
    """Targets of make, modules and files of Python."""
    text = page.read_text(encoding="utf-8")
    assert {*re.findall(r"(?:^|`)make ([a-z][\w-]*)", text, re.MULTILINE)} <= targets_of_make()
    modules = re.findall(r"`(ictd\.\w+(?:\.\w+)*)`", text)
    assert not [name for name in modules if not (module_path(name) or module_path(name.rpartition(".")[0]))]
    files = re.findall(r"`((?:\w+/)*\w+\.py)`", text) * (page.name == "development.md")
    assert not [name for name in files if not any((folder / name).exists() for folder in CODE)]


def test_the_page_on_the_code_names_rules():
    cells = re.findall(r"^\|[^|]*\|[^|]*\|([^|]*)\|[^|]*\|$", text_of("docs/development.md"), re.MULTILINE)
    named = set(re.findall(r"`(\w+)`", " ".join(cells)))
    assert len(named) > 8 and named <= rules_of_paper().keys()


def test_the_page_on_the_workflow_names_all_results(smoke):
    files = text_of("docs/workflow.md").split("## Files")[1]
    found = {path.name for path in (smoke / "results-smoke").iterdir()} - {"report.ipynb"}
    assert {name for name in found if not re.search(rf"`{re.escape(name)}[`/]", files)} == set()


def test_files_that_a_checker_compares_exist(smoke):
    """Those of codecheck.yml and docs/results.md."""
    checked = [item["file"] for item in load_yaml(ROOT / "codecheck.yml")["manifest"]]
    shown = set(re.findall(r"`results/([\w/]+\.\w+)`", text_of("docs/results.md")))
    assert len(checked) == len(set(checked)) > 10 and shown
    for name in {*(shown - {"NAME/NAME.html", "article.pdf"}), *(file.removeprefix("results/") for file in checked)}:
        assert (smoke / "results-smoke" / name).exists(), name


def test_the_api_page_has_every_public_name():
    listed = re.findall(r"^\.\. auto(?:class|function):: ictd\.(\w+)$", text_of("docs/site/api.rst"), re.MULTILINE)
    assert sorted(listed) == sorted(set(ictd.__all__) - {"ENVIRONMENTS"})


def test_the_example_of_a_step_works(smoke, tmp_path):
    (step,) = code_blocks(ROOT / "docs/development.md", "python")
    names, weights = {}, smoke / "results-smoke/weights/td-boyan-5-6.npz"
    exec(step, names)
    names["main"](weights, 2.0, tmp_path / "norms.csv")
    norms = np.linalg.norm(np.load(weights)["A"], axis=(1, 2))
    np.testing.assert_allclose(pd.read_csv(tmp_path / "norms.csv")["norm"], norms)

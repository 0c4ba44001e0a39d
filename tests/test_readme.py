"""README and the pages in docs/: links lead somewhere, names and numbers are right, examples run."""

import re
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pages import code_blocks
from projects import ROOT, STUDIES, rules_of_paper

import ictd
from ictd import mrp
from ictd.pipeline.config import load_yaml
from ictd.pipeline.provenance import module_path

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), ROOT / "studies/README.md"]
# All documents of the repository; hidden folders and results are not part of it.
FOLDERS = [
    path for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith((".", "results", "pretrained"))
]
LINKED = [*sorted(ROOT.glob("*.md")), *sorted(page for folder in FOLDERS for page in folder.rglob("*.md"))]
CODE = [ROOT, ROOT / "src/ictd", ROOT / "tests"]
CLAIMS = pd.read_csv(ROOT / "reference/claims.csv")
STATEMENTS = tomllib.loads((ROOT / "report/claims.toml").read_text(encoding="utf-8"))
CLAIMS["kind"] = CLAIMS["id"].str.split("/").str[0]


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def rows(text: str) -> list[list[str]]:
    """Cells of the rows of all tables in a text."""
    return [[cell.strip() for cell in line.strip("| ").split("|")] for line in text.splitlines() if line[:1] == "|"]


def anchors(page: Path) -> set[str]:
    """Names that the headings of a page have on GitHub."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    plain = (re.sub(r"<[^>]*>|[^\w\s-]", "", heading) for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE))
    return {heading.lower().replace(" ", "-") for heading in plain}


@pytest.mark.parametrize("page", LINKED, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_have_existing_targets(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if not re.match(r"\w+:", target):
            path, _, anchor = target.partition("#")
            file = page.parent / path if path else page
            assert file.exists(), target
            assert not anchor or anchor in anchors(file), target


def test_the_readme_links_to_every_page():
    assert {f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md")} <= set(
        re.findall(r"\]\((docs/[\w-]+\.md)[)#]", text_of("README.md"))
    )


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
    files = re.findall(r"`((?:\w+/)*\w+\.py)`", text) * (page.name == "code.md")
    assert not [name for name in files if not any((folder / name).exists() for folder in CODE)]


def test_every_rule_of_the_paper_is_named_with_its_step():
    text = text_of("docs/code.md")
    named = {name for row in rows(text) for cell in row for name in re.findall(r"`(\w+)`", cell)}
    assert rules_of_paper().keys() - named == set()
    for row in rows(text):
        rules, steps = ([re.findall(r"`([\w.]+)`", cell) for cell in row[2:4]] + [[], []])[:2]
        assert [step for rule, step in zip(rules, steps, strict=False) if rules_of_paper()[rule][0] != step] == []


def holding(kind: str) -> str:
    verdicts = CLAIMS[CLAIMS["kind"] == kind]["verdict"]
    return f"{(verdicts == 'holds').sum()} of {len(verdicts)}"


def test_tables_of_claims_are_those_of_the_reference():
    """Rows with the statement of a claim in the report's words, its name, and how many settings it holds in."""
    found = {}
    for statement, name, holds in (row for row in rows(text_of("docs/results.md")) if len(row) == 3):
        kind = name.strip("`")
        if kind in set(CLAIMS["kind"]):
            found[kind] = holds
            words = STATEMENTS[kind]["statement"].format(longest=100, fifth=20).replace("theta^TD", "θ<sup>TD</sup>")
            assert statement == words, kind
    assert len(found) > 10 and found == {kind: holding(kind) for kind in found}


def test_claims_and_commands_have_the_verdicts_of_the_reference():
    shown = 0
    for _, evidence, verdict in (row for row in rows(text_of("docs/claims.md")) if len(row) == 3):
        kinds = [kind for kind in re.findall(r"`(\w+)`", evidence) if kind in set(CLAIMS["kind"])]
        assert re.findall(r"\d+ of \d+", verdict)[: len(kinds)] == [holding(kind) for kind in kinds]
        shown += len(kinds)
    assert shown == 8


def test_files_that_a_checker_compares_exist(smoke):
    """Those of codecheck.yml and docs/claims.md; pages of studies are named after the studies."""
    checked = [item["file"] for item in load_yaml(ROOT / "codecheck.yml")["manifest"]]
    shown = set(re.findall(r"`results/([\w/]+\.\w+)`", text_of("docs/claims.md")))
    studies = {f"{name}/{name}.html" for name in STUDIES}
    assert len(checked) == len(set(checked)) and studies <= shown
    for name in {*(shown - studies), *(file.removeprefix("results/") for file in checked)}:
        assert (smoke / "results-smoke" / name).exists(), name


def test_numbers_in_the_readmes_tables_are_on_the_pages_behind_them():
    pages = ["docs/results.md", "docs/theory.md", *(f"studies/{name}/README.md" for name in STUDIES)]
    known = {number for page in pages for number in re.findall(r"\d+\.\d+", text_of(page))}
    for row in rows(text_of("README.md")):
        if not any("`" in cell for cell in row):
            assert {number for cell in row[1:] for number in re.findall(r"\d+\.\d+", cell)} <= known, row


def test_the_readme_counts_the_verdicts_on_the_papers_sentences():
    experiments = text_of("docs/results.md").split("## The experiments")[1].split("## The theory")[0]
    verdicts = [row[3] for row in rows(experiments) if row[0].startswith('"') and len(row) == 5]
    holds, not_shown, refuted = (verdicts.count(verdict) for verdict in ("holds", "not shown", "refuted"))
    counts = f"Of the {len(verdicts)} sentences .* {holds} hold, {not_shown} are not shown and {refuted} is refuted"
    for page in ("README.md", "docs/results.md"):
        assert re.search(counts, " ".join(text_of(page).replace("of the", "Of the").split())), page


def test_the_api_page_has_every_public_name():
    listed = re.findall(r"^\.\. auto(?:class|function):: ictd\.(\w+)$", text_of("docs/api/index.rst"), re.MULTILINE)
    assert sorted(listed) == sorted(set(ictd.__all__) - {"ENVIRONMENTS"})


def test_the_example_of_a_step_works(smoke, tmp_path):
    (step,) = code_blocks(ROOT / "docs/development.md", "python")
    names, weights = {}, smoke / "results-smoke/weights/td-boyan-4-6.npz"
    exec(step, names)
    names["main"](weights, 2.0, tmp_path / "norms.csv")
    norms = np.linalg.norm(np.load(weights)["A"], axis=(1, 2))
    np.testing.assert_allclose(pd.read_csv(tmp_path / "norms.csv")["norm"], norms)


def test_the_example_of_an_environment_works(monkeypatch):
    monkeypatch.setattr(mrp, "ENVIRONMENTS", dict(mrp.ENVIRONMENTS))
    names = {}
    for example in code_blocks(ROOT / "docs/environments.md", "python"):
        exec(example, names)
    assert "ring" in mrp.ENVIRONMENTS and names["tasks"].states == 5
    transition, reward = names["ring"](5, 3, np.random.default_rng(0))
    assert transition.shape == (3, 5, 5) and reward.shape == (3, 5)
    np.testing.assert_allclose(transition.sum(axis=-1), 1)

"""README and the pages in docs/: their numbers are the reference's, their links lead somewhere, their code runs."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from projects import ROOT, STUDIES

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
LINKED = [*PAGES, ROOT / "CHANGELOG.md", ROOT / "config/README.md", *sorted((ROOT / "studies").rglob("*.md"))]
README = PAGES[0].read_text(encoding="utf-8")
RESULTS, THEORY = ((ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("results.md", "theory.md"))
CLAIMS = pd.read_csv(ROOT / "reference/claims.csv").set_index("id")
CLAIMS["kind"] = CLAIMS.index.str.split("/").str[0]
TABLES = pd.read_csv(ROOT / "reference/tables.csv").set_index(["table", "column", "group"])["mean"].sort_index()
CELLS = TABLES["metrics/weights", "cosine"].index


def rows(text: str, first: str) -> list[list[str]]:
    """Cells of the rows of the tables in a text whose first cell is, or begins with, some words."""
    tables = [line.strip("| ").split("|") for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in tables if row[0].startswith(first)]


def holding(kind: str) -> str:
    verdicts = CLAIMS[CLAIMS["kind"] == kind]["verdict"]
    return f"{(verdicts == 'holds').sum()} of {len(verdicts)}"


def test_the_table_of_claims_is_that_of_the_reference():
    table = [row for row in rows(RESULTS, "`") if re.fullmatch(r"\d+ of \d+", row[-1])]
    assert len(table) == 15
    for names, _, holds in table:
        for kind in re.findall(r"`(\w+)`", names):
            assert holding(kind) == holds, kind
    of_paper = {kind for names, *_ in table for kind in re.findall(r"`(\w+)`", names)}
    everywhere = sum((CLAIMS[CLAIMS["kind"] == kind]["verdict"] == "holds").all() for kind in of_paper)
    for text, words in ((RESULTS, r"makes (\d+) claims .* and (\d+) of"), (README, r"Of (\d+) claims .* (\d+) hold")):
        assert re.search(words, text).groups() == (str(len(of_paper)), str(everywhere))


def test_the_readme_has_some_of_these_claims():
    table = [row for row in rows(README, "") if re.fullmatch(r"\d+ of \d+ (cells|settings)", row[-1])]
    kinds = ["msve_falls", "same_pattern", "pattern", "consistent", "converged"]
    assert [row[-1].rsplit(" ", 1)[0] for row in table] == [holding(kind) for kind in kinds]


def test_numbers_of_cells_settings_and_trials():
    settings = {cell.split("-", 1)[1] for cell in CELLS}
    seeds = json.loads((ROOT / "reference/run.json").read_text())["settings"]["seeds"]
    for text, words in ((README, r"there are (\d+)\)"), (RESULTS, r"There are (\d+)")):
        assert [int(number) for number in re.findall(words, text)] == [len(settings), len(CELLS)] + [seeds] * (
            text is RESULTS
        )
    assert f"there are {seeds} each" in README and f"{seeds * len(CELLS)} in all" in RESULTS


def test_what_fails_is_said_with_its_value():
    """Each cell that fails, but of claims that other tables give by number of trials or over cells."""
    cells = {"TD, 3": "td-boyan-3-30", "MC, 3": "mc-boyan-3-30", "MC, 10": "mc-boyan-10-30", "3": "boyan-3-30"}
    said = {}
    for claim, where, value, _ in (row for row in rows(RESULTS, "`") if len(row) == 4):
        if number := re.search(r"(?:ends|begins) at ([\d.]+)$", value):
            said[f"{claim.strip('`')}/{cells[where.removesuffix(' states')]}"] = number[1]
    kinds = CLAIMS["kind"].isin(["msve_falls", "msve_lower", "beats_zero", "pattern", "signs", "same_noise"])
    fails = CLAIMS[kinds & (CLAIMS["verdict"] != "holds")]["value"]
    assert {name: f"{value:.3f}" for name, value in fails.items()} == said
    assert f"{CLAIMS['value']['msve_lower/mc-boyan-3-30']:.4f}".replace("-", "−") in RESULTS


def test_trials_that_lost_the_pattern():
    every = CLAIMS[CLAIMS["kind"].isin(["consistent", "consistent_at_depth"])]["value"]
    lost = {name.split("/")[1]: int(value) for name, value in every.items() if value}
    said = {}
    for where, *numbers in rows(RESULTS, ""):
        if found := re.match(r"(\d+) states, (\d+) layers", where):
            said |= {
                f"{algo}-boyan-{found[1]}-{found[2]}": int(n) for algo, n in zip(("td", "mc"), numbers, strict=True)
            }
    assert {cell: n for cell, n in said.items() if n} == lost


def test_numbers_on_the_weights():
    """Ranges over cells of what the reference has means of."""
    apart = TABLES["metrics/agreement", "apart"]
    assert f"is {apart.min():.2f} to {apart.max():.2f} over the {len(apart)} settings" in RESULTS
    change = CLAIMS[CLAIMS["kind"] == "converged"]["value"]
    assert rows(RESULTS, "A, norm of its change")[0][1] == f"{change.min():.0%} to {change.max():.0%}".replace(
        "%", "", 1
    )
    raw = TABLES["metrics/mean_weights", "raw_cosine"]
    assert f"is there in {(raw**2 > 0.5).sum()} of the {len(raw)} cells" in RESULTS


def test_numbers_on_in_context_evaluation():
    of_main = TABLES["metrics/weights", "enumerated_msve"]
    td, mc = (f"{of_main[f'{algo}-boyan-5-30']:.3f}" for algo in ("td", "mc"))
    assert re.search(r"their MSVE is ([\d.]+) \(TD\) and\s([\d.]+) \(MC\)", RESULTS).groups() == (td, mc)
    assert rows(README, "enumerated prompts, ")[0][2:4] == [mc, td]
    zero = f"{TABLES['metrics/baselines', 'msve', 'zero-5-30']:.1f}"
    assert rows(RESULTS, "predicting zero")[0][1:] == [zero] * 3
    # The reference has no MSVE by length of prompt: the two pages have to agree.
    methods = ("predicting zero", "pretrained by MC", "pretrained by TD", "θ<sup>TD</sup>, best", "LSTD")
    assert rows(README, "sampled prompts of 100")[0][1:] == [rows(RESULTS, method)[-1][-1] for method in methods]


def test_the_readme_has_its_numbers_on_studies_from_their_pages():
    found = re.findall(r"\]\((studies/\w+/README\.md)\)\)\.\n\n((?:\|.*\n)+)", README)
    assert sorted(page for page, _ in found) == [f"studies/{name}/README.md" for name in STUDIES]
    for page, table in found:
        text = (ROOT / page).read_text(encoding="utf-8")
        for number in re.findall(r"(?<=\| )\d+\.\d+(?= )|\d+ to \d+%", table):
            assert re.search(rf"(?<![\d.]){re.escape(number)}(?![\d.]*\d)", text), (page, number)
    (theta,), (whole,) = rows(README, "their part along"), rows(README, "all of A")
    ratios = [float(part) / float(all_) for part, all_ in zip(theta[1:], whole[1:], strict=True)]
    assert f"{ratios[0]:.0f} (TD) and {round(ratios[1], -1):.0f} (MC) times" in re.sub(r"\s+", " ", README)


def test_numbers_on_the_theory():
    value = CLAIMS["value"]
    for kind in ("theorem_2_rate", "family_limit", "family_update_td"):
        assert value[CLAIMS["kind"] == kind].max() < {"theorem_2_rate": 1e-9}.get(kind, 1e-6), kind
    assert "10⁻⁹ of it" in THEORY and value[CLAIMS["kind"] == "family_limit"].max() < 1e-13
    assert value[CLAIMS["kind"] == "beyond_family"].min() > 0.03 and "stays at 3% and more" in THEORY
    assert {holding(f"lemma_{name}") for name in ("1", "2_query", "2_context", "2_step_corrected", "4")} == {"10 of 10"}
    assert {holding(kind) for kind in ("lemma_3", "theorem_2", "corollary_1", "bounded_gradient", "family")} == {
        "4 of 4"
    }
    assert holding("lemma_2_step") == "0 of 10"
    assert {holding(kind) for kind in ("pretrained_lower", "pretrained_repeated")} == {"14 of 14"}


def anchors(page: Path) -> set[str]:
    """Names that the headings of a page have on GitHub."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    plain = (re.sub(r"<[^>]*>|[^\w\s-]", "", heading) for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE))
    return {heading.lower().replace(" ", "-") for heading in plain}


@pytest.mark.parametrize("page", LINKED, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if not re.match(r"\w+:", target):
            path, _, anchor = target.partition("#")
            file = page.parent / path if path else page
            assert file.exists(), target
            assert not anchor or anchor in anchors(file), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_begins_with_its_purpose(page):
    lines = page.read_text(encoding="utf-8").splitlines()
    assert re.match(r"# \w", lines[0]) and not lines[1] and re.match(r"[A-Z]", lines[2])


def test_the_readme_links_to_every_page():
    assert {f"docs/{page.name}" for page in PAGES[1:]} <= set(re.findall(r"\]\((docs/[\w-]+\.md)[)#]", README))


def test_the_example_prints_what_it_says():
    """On a finished full run, if there is one in results/."""
    manifest = ROOT / "results/manifest.json"
    settings = json.loads((ROOT / "reference/run.json").read_text())["settings"]
    if not manifest.exists() or json.loads(manifest.read_text())["settings"] != settings:
        pytest.skip("results/ holds no full run")
    ((code, printed),) = re.findall(r"```python\n(.*?)```\n```text\n(.*?)```", README, re.DOTALL)
    done = subprocess.run([sys.executable, "-P", "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == printed, done.stderr

"""Each study has its own folder and can be added or removed; errors of a broken study name the file and line."""

import re
from importlib import import_module
from pathlib import Path

import pytest
from pages import code_blocks
from projects import ROOT, STUDIES, copy_project, planned_rules, plans, rules_of_paper, snakemake, with_results

from ictd.pipeline.records import load_records
from ictd.pipeline.rules import modules_of
from ictd.report.part import statements_in
from ictd.storage import load_json

# A minimal study; a new study needs only its folder.
MINE = {
    "config.yaml": "numbers: [3, 1]\ninner: {a: 1}\n",
    "README.md": "# Mine\n\nThe sum is <!--=mine.sum-->0<!---->.\n\n![Bars](images/bars.png)\n",
    "total.py": '''"""Add numbers."""
from pathlib import Path


def main(numbers: list[int], discount: float, output: Path) -> None:
    """Write their sum."""
    output.write_text(f"{sum(numbers)} {discount}")
''',
    "results.py": '''"""Results."""
from ictd.report.part import claim, figure, numbers, table


def load(folder, settings):
    """Read the sum."""
    return int((folder / "total.txt").read_text().split()[0])


@claim(">", 5, exact=True)
def large(total):
    """The sum is large.

    The sum.
    """
    yield "all", total


@numbers
def quoted(total):
    """Numbers in the README."""
    return {"sum": total}


@table
def sums(total):
    """All sums."""
    import pandas as pd

    return pd.DataFrame({"sum": [total]})


@figure
def bars(total):
    """Bars.

    Each bar is a sum.
    """
    from matplotlib.figure import Figure

    made = Figure(figsize=(3, 2))
    made.add_subplot().bar([0], [total])
    return made
''',
    "rules.smk": """
use rule step as mine_total with:
    input:
        options=step("studies.mine.total", config["mine"]),
    output:
        "<results>/mine/total.txt",
    pathvars:
        job="mine_total",


use rule step as mine_results with:
    input:
        files=["<results>/mine/total.txt"],
        options=study_step("mine"),
    output:
        **study_output("mine"),
    pathvars:
        job="mine_results",


rule mine:
    input:
        rules.mine_results.output,
""",
}
# Edits of a file of the study, and the expected messages; a file may also be empty or missing.
BROKEN = [
    ("README.md", None, None, "studies/mine/README.md cannot be read: No such file or directory."),
    ("rules.smk", "rule mine:", "rule mine", 'studies/mine/rules.smk", line '),
    ("rules.smk", "mine.total", "mine.totals", "There is no step studies.mine.totals."),
    ("total.py", "discount: float", "discount", "studies/mine/total.py, line 5: give discount a type, int, float"),
]
SETTINGS = ["--config", "mine={numbers: [4, 5]}"]


def with_study(folder: Path, **changes: str | None) -> Path:
    """A copy of the project with this study as the only study; files may be changed or omitted."""
    copy_project(folder, without=("studies",))
    (folder / "studies/mine").mkdir(parents=True)
    for name, text in (MINE | changes).items():
        if text is not None:
            (folder / "studies/mine" / name).write_text(text)
    return folder


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """A project whose study was run."""
    folder = with_study(tmp_path_factory.mktemp("made"))
    done = snakemake(folder, "mine", "--cores", "1", *SETTINGS)
    assert done.returncode == 0, done.stdout[-5000:]
    return folder


def documented(folder: Path) -> Path:
    """A project with the rules and the study that the documentation has as examples."""
    (step,) = code_blocks(ROOT / "docs/development.md", "python")
    (rule,) = (block for block in code_blocks(ROOT / "docs/development.md") if block.startswith("use rule"))
    (rules,) = (block for block in code_blocks(ROOT / "studies/README.md") if "use rule" in block)
    (results,) = code_blocks(ROOT / "studies/README.md", "python")
    settings = {"config.yaml": "order: 2\n", "results.py": results}
    with_study(folder, **{"norms.py": step, "rules.smk": rules.replace("NAME", "mine")}, **settings)
    (folder / "src/ictd/steps/norms.py").write_text(step)
    with open(folder / "Snakefile", "a") as file:
        file.write(f"\n\n{rule}")
    return folder


@pytest.fixture(scope="module")
def said(made, smoke, tmp_path_factory) -> dict[str | int, tuple[int | str, str]]:
    """Exit codes and messages of dry runs, by their name or index in the table."""
    base = tmp_path_factory.mktemp("said")
    whole = with_results(smoke, copy_project(base / "whole"))
    runs = {"same settings": (made, ["mine", *SETTINGS]), "other settings": (made, ["mine"])}
    for i, (name, old, new, _) in enumerate(BROKEN):
        runs[i] = with_study(base / f"{i}", **{name: old and MINE[name].replace(old, new)}), []
    (made / "twice.yaml").write_text("seeds: 2\nseeds: 3\n")
    runs |= {"twice": (made, ["--configfile", "twice.yaml"])}
    runs |= {"documented": (documented(base / "documented"), ["results-smoke/norms/td-boyan-5-6.csv", "mine"])}
    runs |= {"all": (whole, ["all", *STUDIES])}
    return dict(zip(runs, plans([*runs.values()]), strict=True))


def test_a_new_study_needs_no_edit_outside_its_folder(made, said):
    assert (made / "results-smoke/mine/total.txt").read_text() == "9 0.9"
    log = (made / "results-smoke/logs/mine_total.log").read_text()
    assert "ictd.pipeline.runner studies.mine.total --numbers 4 5 --discount 0.9 --output" in log
    assert "Nothing to be done" in said["same settings"][1]
    assert planned_rules(said["other settings"][1]) == {"mine_total", "mine_results", "mine"}


def test_the_page_of_a_study_shows_the_numbers_of_the_run(made):
    folder = made / "results-smoke/mine"
    page = (folder / "mine.html").read_text()
    assert re.search(r"The sum is <!--=mine.sum-->9<!--.*?-->\.", page) and "holds" in page and "mine.numbers" in page
    assert page.count("<img ") == 1 and "Each bar is a sum." in page
    assert (folder / "tables/sums.csv").read_text() == "sum\n9\n"
    assert {path.name for path in (folder / "figures").glob("bars.*")} == {"bars.png", "bars.svg"}
    record = load_records(made / "results-smoke")["mine/mine.html"]
    assert {"mine/tables/sums.csv", "mine/figures/bars.png"} < record["outputs"].keys()
    (options,) = record["options"]
    assert {"studies.mine.results", "ictd.report.page"} < load_json(made / "results-smoke" / options)["code"].keys()


@pytest.mark.parametrize("i", range(len(BROKEN)))
def test_a_broken_study_is_an_error_with_its_place(said, i):
    ended, text = said[i]
    assert ended and BROKEN[i][-1] in f"{ended}\n{text}"


def test_a_file_that_has_a_key_twice_is_one_sentence(said):
    ended, text = said["twice"]
    assert f"{ended}".endswith("twice.yaml, line 2: key 'seeds' is there twice.") and "Traceback" not in text


def test_studies_do_not_change_the_paper(said):
    ended, text = said["all"]
    assert ended == 0 and not planned_rules(text) & rules_of_paper().keys() and {*STUDIES} <= planned_rules(text)


def test_examples_of_a_rule_and_a_study_work(said):
    """The examples are in docs/development.md and studies/README.md."""
    ended, text = said["documented"]
    assert ended == 0 and {"norms", "mine_norms"} <= planned_rules(text), text


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_is_complete_and_uses_no_other(name):
    folder = ROOT / "studies" / name
    assert {"README.md", "config.yaml", "smoke.yaml", "results.py", "tests"} <= {path.name for path in folder.iterdir()}
    rules = re.findall(r"^(?:use rule \w+ as|rule) (\w+)(?: with)?:$", (folder / "rules.smk").read_text(), re.MULTILINE)
    assert name in rules and all(rule == name or rule.startswith(f"{name}_") for rule in rules)
    for path in folder.glob("*.py"):
        modules = modules_of(f"studies.{name}.{path.stem}")
        assert {module.split(".")[1] for module in modules if module.startswith("studies.")} <= {name}
    statements = statements_in(import_module(f"studies.{name}.results"))
    assert 0 < len(statements) <= 14

"""Nothing foreign, half-written or changed is taken as done."""

import json
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import zipfile

import fuzz.files
import numpy as np
import pandas as pd
import pytest
import yaml
from fuzz.__main__ import tried
from projects import ROOT, SMOKE

import ictd
from ictd.pipeline import storage
from ictd.pipeline.grid import Cell, cells
from ictd.pipeline.labels import Work
from ictd.pipeline.storage import file_digest, join_arrays, load_arrays, load_json, load_text, save_arrays, save_json
from ictd.pipeline.table_files import check_rows, load_table, save_table
from ictd.pipeline.training_data import save_material, stored_runs
from ictd.report import paper_claims, reference
from ictd.steps import verify
from ictd.theory import claims as theory_claims

CONFIG = yaml.safe_load((ROOT / "config.yaml").read_text()) | yaml.safe_load((ROOT / SMOKE).read_text())


@pytest.fixture
def at_work(monkeypatch):
    """Reads and writes as a step with some options does."""
    return lambda step, **values: monkeypatch.setattr(storage, "work", Work(step, values))


def test_damaged_and_swapped_files_are_answered_in_a_sentence(smoke, monkeypatch):
    monkeypatch.setattr(fuzz.files, "finished", lambda: smoke)
    counts, faults = tried("files", 40, seed=0)
    assert faults == [] and counts["refused"] > 20


def test_an_archive_at_another_place_is_refused(tmp_path):
    for algo in ("td", "mc"):
        save_arrays(tmp_path / f"runs/{algo}-boyan-5-30/0-1.npz", u=np.zeros(3))
    shutil.copy(tmp_path / "runs/mc-boyan-5-30/0-1.npz", tmp_path / "runs/td-boyan-5-30/0-1.npz")
    with pytest.raises(
        ValueError, match=r"td-boyan-5-30/0-1\.npz cannot be used: it says that it is mc-boyan-5-30/0-1"
    ):
        load_arrays(tmp_path / "runs/td-boyan-5-30/0-1.npz", "u")
    shutil.copytree(tmp_path / "runs", tmp_path / "carried/runs")
    load_arrays(tmp_path / "carried/runs/mc-boyan-5-30/0-1.npz", "u")


def test_what_was_made_by_hand_is_not_taken_by_the_workflow(tmp_path, monkeypatch):
    monkeypatch.setattr(storage, "work", Work("baselines", {"lstd_ridge": 5.0}))
    save_arrays(tmp_path / "results/baselines/4-6.npz", lstd=np.zeros(3))
    config = {"results": str(tmp_path / "results"), "readings": {}}
    for step in ("", "report.result_tables"):
        monkeypatch.setattr(storage, "work", Work(step, config=config))
        with pytest.raises(ValueError, match="step baselines was carried out by hand, with settings that none has"):
            load_arrays(tmp_path / "results/baselines/4-6.npz", "lstd")


def test_claims_of_other_cells_are_refused(tmp_path, at_work):
    at_work("theory.claims", cells=["td-boyan-4-6"])
    save_json(tmp_path / "claims.json", [])
    at_work("report.paper_claims", cells=["td-boyan-4-6"])
    assert load_json(tmp_path / "claims.json") == []
    at_work("report.paper_claims", cells=["td-boyan-4-6", "mc-boyan-4-6"])
    with pytest.raises(ValueError, match="it was made for the cells td-boyan-4-6, not td-boyan-4-6 mc-boyan-4-6"):
        load_json(tmp_path / "claims.json")


def test_unrolls_of_other_seeds_are_refused(tmp_path):
    tasks = ictd.sample_tasks("boyan", 3, 2, np.random.default_rng(0))
    batches = ictd.unroll(tasks, 4, 0.9, 3, np.random.default_rng(0))
    for seed in (0, 5):
        for name, one in (("tasks", tasks), ("unrolls", batches)):
            save_material(tmp_path / f"{name}/{seed}.npz", [seed], [one])
    assert next(stored_runs("boyan", 3, 0.1, tmp_path / "tasks/5.npz", tmp_path / "unrolls/5.npz"))[0] == 5
    with pytest.raises(ValueError, match=r"unrolls/5\.npz has other seeds than .*tasks/0\.npz"):
        next(stored_runs("boyan", 3, 0.1, tmp_path / "tasks/0.npz", tmp_path / "unrolls/5.npz"))
    arrays = dict(np.load(tmp_path / "unrolls/5.npz"))
    save_arrays(tmp_path / "unrolls/5.npz", **arrays | {"returns": arrays["returns"][:0]})
    with pytest.raises(ValueError, match=r"unrolls/5\.npz cannot be used"):
        next(stored_runs("boyan", 3, 0.1, tmp_path / "tasks/5.npz", tmp_path / "unrolls/5.npz"))
    loops = ictd.sample_tasks("loop", 3, 2, np.random.default_rng(0))
    zeros = np.zeros(6), np.zeros((6, 6))
    with pytest.raises(ValueError, match=r"unrolls\.transitions\[\d, \d, \d\] counts steps that cannot be"):
        ictd.pretrain(loops, batches, "td", 2, 0.9, 0.1, *zeros)


def test_only_files_are_replaced(tmp_path):
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name in ("folder", "pipe"):
        with pytest.raises(ValueError, match=f"{name} is there and is no file"):
            save_json(tmp_path / name, 1)


def test_what_needs_too_much_memory_ends_in_a_sentence(tmp_path):
    options = "--env boyan --states 4 --env-options {} --tasks 2147483647 --seeds 0-9 --output".split()
    command = [sys.executable, "-P", "-m", "ictd.steps", "tasks", *options, str(tmp_path / "a.npz")]
    limited = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_AS, (3 * 10**9,) * 2), "cwd": ROOT}
    done = subprocess.run(command, env=os.environ | {"PYTHONPATH": "src"}, capture_output=True, text=True, **limited)
    assert done.stderr.splitlines()[-1].startswith("error: this needs more memory than there is"), done.stderr


def test_an_archive_of_other_settings_is_refused(tmp_path, at_work):
    at_work("tasks", env="boyan", states=5, discount=0.8, seeds="0-1")
    save_arrays(tmp_path / "tasks.npz", value=np.zeros(3))
    at_work("pretrain", env="boyan", states=5, discount=0.8)
    load_arrays(tmp_path / "tasks.npz")
    save_arrays(tmp_path / "run.npz", u=np.zeros(3))
    at_work("pretrain", env="boyan", states=5, discount=0.9)
    with pytest.raises(
        ValueError, match=r"tasks\.npz cannot be used: it was made with discount 0\.8, not 0\.9; make it"
    ):
        load_arrays(tmp_path / "tasks.npz")
    at_work("evaluate", states=4)
    with pytest.raises(ValueError, match=r"run\.npz cannot be used: it was made with states 5, not 4"):
        load_arrays(tmp_path / "run.npz")
    at_work("")
    save_arrays(tmp_path / "by_hand.npz", u=np.zeros(3))
    at_work("evaluate")
    with pytest.raises(ValueError, match="no step wrote it"):
        load_arrays(tmp_path / "by_hand.npz")


def test_labels_do_not_tell_how_seeds_were_cut(tmp_path, at_work):
    for cut in (["0-3"], ["0-1", "2-3"]):
        folder = tmp_path / str(len(cut))
        for seeds in cut:
            at_work("pretrain", states=5, seeds=seeds)
            first, last = map(int, seeds.split("-"))
            save_arrays(folder / f"runs/{seeds}.npz", seeds=np.arange(first, last + 1))
        at_work("evaluate", states=5)
        (seeds,) = join_arrays([folder / f"runs/{seeds}.npz" for seeds in cut], "seeds")
        save_arrays(folder / "weights/x.npz", seeds=seeds)
    assert (tmp_path / "1/weights/x.npz").read_bytes() == (tmp_path / "2/weights/x.npz").read_bytes()
    with pytest.raises(ValueError, match="have seeds in common"):
        join_arrays([tmp_path / "1/runs/0-3.npz", tmp_path / "2/runs/0-1.npz"], "seeds")


@pytest.mark.parametrize("label", [False, True])
def test_an_archive_with_other_arrays_is_refused(tmp_path, label):
    path = tmp_path / "weights/x.npz"
    save_arrays(path, seeds=np.arange(3), u=np.ones((3, 2)))
    with zipfile.ZipFile(path) as archive:
        kept = archive.read("label.json")
    np.savez(path, seeds=np.zeros(3, int), u=np.ones((3, 2)))
    if label:
        with zipfile.ZipFile(path, "a") as archive:
            archive.writestr("label.json", kept)
    with pytest.raises(ValueError, match="not what was written there" if label else "does not say what it is"):
        load_arrays(path, "u")


def test_a_changed_text_is_refused(tmp_path):
    table = pd.DataFrame({"a": [1.5, np.nan], "b": ["x", "y"]})
    save_table(tmp_path / "t.csv", table)
    pd.testing.assert_frame_equal(load_table(tmp_path / "t.csv"), table)
    save_json(tmp_path / "t.json", [1, 2])
    assert load_json(tmp_path / "t.json") == [1, 2]
    for name in ("t.csv", "t.json"):
        (tmp_path / name).write_text((tmp_path / name).read_text().replace("1", "2"))
        with pytest.raises(ValueError, match=rf"{name} cannot be used: it is not what was written there; make it anew"):
            load_text(tmp_path / name)


def test_a_missing_row_is_named(tmp_path):
    products = [{"algo": "td", "seed": [0, 1], "layer": [0, 1]}, {"algo": "mc", "seed": [0], "layer": 7}]
    rows = [("td", 0, 0), ("td", 0, 1), ("td", 1, 0), ("td", 1, 1), ("mc", 0, 7)]
    whole = pd.DataFrame(rows, columns=["algo", "seed", "layer"]).assign(norm=1.0)
    path = tmp_path / "x.csv"
    check_rows(path, whole, products)
    check_rows(path, whole.sample(frac=1, random_state=0), products)
    for table, words in (
        (whole.drop(index=2), "lacks the row algo td, seed 1, layer 0"),
        (whole[:0], "lacks the row algo td, seed 0, layer 0"),
        (pd.concat([whole, whole[3:4]]), "has twice algo td, seed 1, layer 1"),
        (pd.concat([whole, whole[4:].assign(seed=5)]), "has unasked algo mc, seed 5, layer 7"),
    ):
        with pytest.raises(ValueError, match=rf"x\.csv cannot be used: it {words}; make it anew: rm "):
            check_rows(path, table, products)


def copied(smoke, tmp_path):
    results = tmp_path / "results"
    for part in ("metrics", "theory"):
        shutil.copytree(smoke / "results-smoke" / part, results / part)
    return results


def rewritten(path, change):
    """A table as its step would have written it, had it been another."""
    save_table(path, change(pd.read_csv(path)))


@pytest.mark.parametrize("name", "msve baselines weights mean_weights agreement learning truncation".split())
@pytest.mark.parametrize("rows", [0, 0.5])
def test_claims_miss_no_row(smoke, tmp_path, name, rows):
    results = copied(smoke, tmp_path)
    tables = [results / f"metrics/{one}.csv" for one in paper_claims.spanned([], [], [])]
    given = dict(
        statements=ROOT / "report/claims.toml", tables=tables, theory=results / "theory/claims.json", env="boyan",
        states=4, depth=6, cells=sorted(map(str, cells(CONFIG))), seeds=3, context_lengths=[5, 10, 20],
        pretraining_tasks=300, snapshots=8, output=tmp_path / "claims.json",
    )  # fmt: skip
    paper_claims.main(**given)
    assert load_json(tmp_path / "claims.json") == json.loads((smoke / "results-smoke/claims.json").read_text())
    rewritten(results / f"metrics/{name}.csv", lambda table: table[: int(rows * len(table))])
    with pytest.raises(ValueError, match=rf"{name}\.csv cannot be used: it lacks the row .*states"):
        paper_claims.main(**given)


@pytest.mark.parametrize("name", "statements neu pretrained repeated agreement precision family family_updates".split())
@pytest.mark.parametrize("rows", [0, 0.5])
def test_theory_claims_miss_no_row(smoke, tmp_path, name, rows):
    results = copied(smoke, tmp_path)
    grid = [Cell.parse(str(cell)) for cell in cells(CONFIG)]
    names = theory_claims.spanned(grid, [3], 1, 20, 20)
    rewritten(results / f"theory/{name}.csv", lambda table: table[: int(rows * len(table))])
    with pytest.raises(ValueError, match=rf"{name}\.csv cannot be used: it lacks the row .*states"):
        theory_claims.main(
            statements=ROOT / "report/theory_claims.toml", tables=[results / f"theory/{one}.csv" for one in names],
            cells=sorted(map(str, grid)), states=[3, 4, 6], seeds=3, depth=40, update_depth=30, discount=0.9,
            claims=tmp_path / "claims.json", page=tmp_path / "theory.html",
        )  # fmt: skip


def test_the_number_of_claims_is_checked(smoke, tmp_path, monkeypatch):
    results = copied(smoke, tmp_path)
    monkeypatch.setattr(paper_claims, "_truncation_claims", lambda *tables: [])
    with pytest.raises(ValueError, match=r"there are \d+ claims, where the configuration spans \d+; make the tables"):
        paper_claims.main(
            statements=ROOT / "report/claims.toml",
            tables=[results / f"metrics/{one}.csv" for one in paper_claims.spanned([], [], [])],
            theory=results / "theory/claims.json", env="boyan", states=4, depth=6,
            cells=sorted(map(str, cells(CONFIG))), seeds=3, context_lengths=[5, 10, 20], pretraining_tasks=300,
            snapshots=8, output=tmp_path / "claims.json",
        )  # fmt: skip


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("learning_rate", 0.01, "step pretrain made it with learning_rate 0.001, not 0.01"),
        ("tasks", 301, "step tasks made it with tasks 300, not 301"),
        ("rollout_steps", 100, "step unrolls made it with rollout_steps 200, not 100"),
        (
            "readings.env_options",
            {"loop": {"threshold": 0.2}},
            "step tasks made it with env_options {'threshold': 0.5}",
        ),
        ("theory.pretrained_tasks", 40, "step theory.pretrained made it with pretrained_tasks 20, not 40"),
        ("evaluation.step_sizes", {"smallest": 1}, "step baselines made it with step_sizes"),
    ],
)
def test_what_was_made_with_other_settings_is_refused(smoke, monkeypatch, key, value, words):
    """Also where it is a table, and where the settings are of what it was made from."""
    results = smoke / "results-smoke"
    settings = json.loads((results / "manifest.json").read_text())["settings"]
    readers = {
        "evaluation/td-loop-4-6.npz": load_arrays, "baselines/4-6.npz": load_arrays,
        "theory/pretrained/td-loop-4-6.npz": load_arrays, "metrics/msve.csv": load_table, "claims.json": load_json,
    }  # fmt: skip

    def refused() -> str:
        said = []
        for name, load in readers.items():
            monkeypatch.setattr(storage, "work", Work("evaluate", config=settings))
            try:
                load(results / name)
            except ValueError as error:
                said.append(str(error))
        return "\n".join(said)

    assert refused() == ""
    *sections, last = key.split(".")
    inner = settings
    for section in sections:
        inner = inner[section]
    inner[last] = value
    assert words in refused() and "claims.json cannot be used" in refused()


def test_verification_misses_no_file_and_no_change(smoke, tmp_path):
    results = tmp_path / "results"
    shutil.copytree(smoke / "results-smoke", results)
    reference.main(results, tmp_path / "reference")
    whole = load_json(results / "manifest.json")

    def verified(change=lambda made: made) -> str:
        save_json(results / "manifest.json", change(json.loads(json.dumps(whole))))
        try:
            verify.main(results, tmp_path / "reference")
        except ValueError as error:
            return str(error)
        return ""

    def blessed(name) -> str:
        """What is said when the manifest was changed too."""
        digest = {name: file_digest(results / name)}
        return verified(lambda made: made | {"files": made["files"] | digest})

    assert verified() == ""
    for bad in (None, {}, [], {"files": {}}):
        assert "manifest.json cannot be used: it lacks settings, files, pages" in verified(lambda _, bad=bad: bad)
    assert "does not list audit.json" in verified(lambda made: made | {"files": {}})
    assert "lists, unlike the reference, x" in verified(lambda made: made | {"pages": made["pages"] | {"x": ""}})
    rng = random.Random(0)
    for name in [
        *(f"{table}.csv" for table in reference.TABLES),
        "report.html",
        "figures/figure_01.svg",
        "claims.json",
    ]:
        path = results / name
        kept = path.read_text()
        if path.suffix == ".csv":
            table = pd.read_csv(path)
            column = table.columns[-1]
            row = rng.choice(table.index[table[column].notna()])
            # By more than what counts as rounding.
            table[column] = table[column].astype(float)
            table.loc[row, column] = 1.01 * table.loc[row, column] + 1e-6
            save_table(path, table)
        else:
            storage.save_text(path, re.sub(r"holds|#[0-9a-f]{6}|TD", "another", kept, count=1))
        assert path.read_text() != kept
        assert f"{name} is not the file that the manifest lists" in verified()
        if path.suffix in (".csv", ".json"):
            assert "differs from the reference in" in blessed(name), name
        storage.save_text(path, kept)
    assert verified() == ""


def test_every_table_of_the_paper_is_in_the_reference(smoke):
    results = smoke / "results-smoke"
    made = [path.relative_to(results) for part in ("metrics", "theory") for path in (results / part).glob("*.csv")]
    assert set(reference.TABLES) == {str(path)[:-4] for path in made} - {"metrics/compute"}


def test_a_summary_sees_any_entry_and_any_order():
    table = pd.DataFrame({"algo": "td", "layer": range(300), "norm": np.geomspace(1e-5, 1e50, 300)})

    def check_of(table):
        return reference.summary(table, ["algo"]).set_index("column").loc["norm", "check"]

    whole = reference.summary(table, ["algo"]).set_index("column")
    assert whole.loc["norm", "rows"] == 300 and whole.loc["layer", "mean"] == 149.5
    for row in (0, 150, 299):
        changed = table.assign(norm=table["norm"].where(table.index != row, 1.001 * table["norm"]))
        assert check_of(changed) > check_of(table) + reference.CHECK_TOLERANCE
    swapped = table.assign(norm=table["norm"].to_numpy()[[1, 0, *range(2, 300)]])
    assert check_of(swapped) < check_of(table) - reference.CHECK_TOLERANCE

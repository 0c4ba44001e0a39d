"""Divergence, the audit, the manifest and verification, on the smoke run and by hand."""

import hashlib
import json
import re
import shutil
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import yaml
from projects import ROOT, copy_project, snakemake
from tolerances import ENGINES

import ictd
from ictd.pipeline import storage
from ictd.pipeline.labels import Work
from ictd.pipeline.storage import file_digest, load_arrays, load_json, save_arrays, save_json
from ictd.pipeline.table_files import load_table, save_table
from ictd.pretraining import Divergence
from ictd.report.reference import TOLERANCE, differences
from ictd.steps import audit


def material(states=4, seed=0, tasks=60):
    made = ictd.sample_tasks("boyan", states, tasks, ictd.generator(seed, "boyan", states, "tasks"))
    unrolls = ictd.unroll(made, 64, 0.9, 20, ictd.generator(seed, "boyan", states, "unrolls"))
    return made, unrolls, ictd.initial_weights(states, 0.1, ictd.generator(seed, "boyan", states, "weights"))


@pytest.mark.parametrize("engine", ["fused", "autograd"])
@pytest.mark.parametrize("algo", ["td", "mc"])
def test_divergence_names_the_first_task_and_keeps_what_is_finite(algo, engine):
    tasks, unrolls, start = material()
    seen = np.array([1, 2, 5, 60])
    settings = (algo, 6, 0.9, 1e24, start.u, start.A, engine)
    with pytest.raises(Divergence, match=r"finite at task \d+ of 60") as caught:
        ictd.pretrain_history(tasks, unrolls, *settings, seen)
    number, history = caught.value.task, caught.value.history
    # Everything before that task is as without it, and that task is where it ends.
    before = ictd.pretrain_history(tasks[: number - 1], unrolls[: number - 1], *settings)
    assert np.isfinite(before.weights.A).all()
    np.testing.assert_array_equal(history.estimates[: number - 1], before.estimates)
    with pytest.raises(Divergence):
        ictd.pretrain_history(tasks[:number], unrolls[:number], *settings)
    finite = np.isfinite(history.weights.A).all(axis=(1, 2))
    assert finite.tolist() == (seen < number).tolist()


def test_diverged_runs_are_recorded_and_counted(smoke, tmp_path):
    folder = copy_project(tmp_path, smoke)
    # Some of these runs diverge and some do not; at such values the engines soon differ by more than rounding.
    changes = ["learning_rate=1e22", "on_divergence=record", "audit={tasks: 1}"]
    changes += ["algos=[td]", "envs=[boyan]", "depths=[6]"]
    shown = ["claims.json", "tables/msve.html", *(f"figures/figure_{name}.svg" for name in ("01", "02", "06"))]
    targets = [f"results-smoke/{name}" for name in (*shown, "figures/learning.png")]
    done = snakemake(folder, *targets, "--cores", "2", "--config", *changes)
    assert done.returncode == 0, done.stderr
    results = folder / "results-smoke"
    weights = pd.read_csv(results / "metrics/weights.csv")
    lost = weights["diverged_at"] > 0
    assert 0 < lost.sum() < len(weights)
    assert (weights["cosine"].isna() == lost).all() and (weights["enumerated_msve"].isna() == lost).all()
    claims = {claim["id"]: claim for claim in json.loads((results / "claims.json").read_text())}
    shown = (results / "figures/figure_06.svg").read_text() + (results / "figures/figure_02.svg").read_text()
    for cell, runs in weights.groupby(["algo", "env", "states", "depth"]):
        count = int((runs["diverged_at"] > 0).sum())
        claim = claims[f"finite/{'-'.join(map(str, cell))}"]
        assert claim["value"] == count and claim["verdict"] == ("fails" if count else "holds")
        if count and cell[1] == "boyan" and cell[3] == 6:
            assert f"<!-- {count} of {len(runs)} diverged -->" in shown
    table = (results / "tables/msve.html").read_text()
    assert re.search(r"[1-3] of 3", table)


def test_audit_compares_the_stored_run_with_the_other_engine(smoke, tmp_path):
    table = pd.read_csv(smoke / "results-smoke/metrics/audit.csv")
    assert len(table) == 8 and (table["difference"] < ENGINES).all() and (table["tasks"] > 5).all()
    results, runs = smoke / "results-smoke", [tmp_path / f"mc-{env}-4-6/0-2.npz" for env in ("boyan", "loop")]
    names = ("seeds", "tasks_seen", "u", "A", "online_msve", "diverged_at")

    def audited(engine, change):
        for run, added in zip(runs, (0, change), strict=True):
            arrays = dict(zip(names, load_arrays(results / "runs" / run.relative_to(tmp_path), *names), strict=True))
            arrays["A"][0, 2, 1, 3] += added
            save_arrays(run, **arrays)
        audit.main(
            discount=0.9, learning_rate=0.001, initial_gain=0.1, attention_scale="context_length", engine=engine,
            tasks=20, tolerance=1e-10, task_sets=[results / f"tasks/{env}-4/0-2.npz" for env in ("boyan", "loop")],
            unrolls=[results / f"unrolls/{env}-4/0-2.npz" for env in ("boyan", "loop")], trained=runs,
            evaluation_env="boyan", env_options={}, unseen_tasks=3, context_lengths=[5, 9],
            output=tmp_path / "audit.json",
        )  # fmt: skip
        return load_json(tmp_path / "audit.json")

    for engine in ("fused", "autograd"):
        rows = audited(engine, 0)
        assert [row["env"] for row in rows] == ["boyan", "loop"]
        assert all(row["difference"] < ENGINES and row["tasks"] > 5 for row in rows)
        assert all(row["evaluation_difference"] < ENGINES for row in rows)
    with pytest.raises(ValueError, match=r"audit\.tolerance, 1e-10: mc-loop-4-6, seed 0, weights after \d+ tasks by"):
        audited("fused", 1e-8)
    with pytest.raises(ValueError, match="by inf of the largest"):
        audited("autograd", np.nan)


def test_manifest_has_the_digest_of_each_result(smoke):
    results = smoke / "results-smoke"
    manifest = json.loads((results / "manifest.json").read_text())
    for name, digest in manifest["files"].items():
        assert hashlib.sha256((results / name).read_bytes()).hexdigest() == digest
    wanted = {
        str(path.relative_to(results)) for kind in ("weights", "evaluation", "baselines", "metrics")
        for path in (results / kind).glob("[!.]*")
    }  # fmt: skip
    wanted |= {f"theory/{path.name}" for path in (results / "theory").glob("*.csv")}
    wanted |= {"claims.json", "audit.json", "theory/claims.json"}
    assert set(manifest["files"]) == wanted - {"metrics/compute.csv"}
    assert manifest["settings"]["tasks"] == 300 and "seeds_per_job" not in manifest["settings"]
    assert manifest["versions"]["numpy"] == np.__version__


def test_verify_accepts_the_run_that_made_the_reference_and_lists_what_differs(smoke, tmp_path, monkeypatch):
    results = tmp_path / "results"
    shutil.copytree(smoke / "results-smoke", results)

    def step(*words):
        return subprocess.run(
            [sys.executable, "-m", "ictd.steps", *words], capture_output=True, text=True, cwd=tmp_path
        )

    def verify(reference="reference"):
        return step("verify", "--results", "results", "--reference", reference)

    assert step("report.reference", "--results", "results", "--output", "reference").returncode == 0
    assert verify().stdout.startswith("results agrees with the reference in all of its ")
    assert "holds no reference; `make reference`" in verify("nothing").stderr
    # What is edited here is edited as a step would have made it.
    monkeypatch.setattr(storage, "work", Work("manifest"))
    table = load_table(results / "metrics/weights.csv")
    table.loc[3, "cosine"] *= 1 + 1000 * TOLERANCE
    table.loc[4, "alpha"] *= 1 + TOLERANCE / 10
    save_table(results / "metrics/weights.csv", table)
    assert "weights.csv is not the file that the manifest lists" in verify().stderr
    manifest = load_json(results / "manifest.json")
    manifest["files"]["metrics/weights.csv"] = file_digest(results / "metrics/weights.csv")
    save_json(results / "manifest.json", manifest)
    done, cell = verify(), "-".join(map(str, table.loc[3, ["algo", "env", "states", "depth"]]))
    assert done.returncode != 0 and "in 2 places" in done.stderr
    assert all(f"metrics/weights-{cell}-cosine: {what} is" in done.stderr for what in ("mean", "check"))
    table[["cosine", "alpha"]] = -2.0
    save_table(results / "metrics/weights.csv", table)
    manifest["files"]["metrics/weights.csv"] = file_digest(results / "metrics/weights.csv")
    save_json(results / "manifest.json", manifest)
    (found,) = re.findall(r"in (\d+) places:", said := verify().stderr)
    assert said.count("\n  ") == 21 and said.endswith(f"\n  and {int(found) - 20} more\n")
    save_json(results / "manifest.json", manifest | {"settings": manifest["settings"] | {"discount": 0.8}})
    assert "of other settings than the reference: discount." in verify().stderr


def test_differences_name_rows_that_are_missing_or_new():
    reference = pd.DataFrame({"id": ["a", "b"], "value": [1.0, np.nan], "verdict": ["holds", "fails"]})
    noise = pd.DataFrame({"id": ["a"], "value": [4e-16]})
    assert differences(noise, noise.assign(value=7e-16), ["id"]) == []
    found = pd.DataFrame({"id": ["b", "c"], "value": [np.nan, 1.0], "verdict": ["holds", "holds"]})
    assert differences(found, reference, ["id"]) == [
        "a is missing",
        "c is not in the reference",
        "b: verdict is holds, in the reference fails",
    ]
    assert differences(reference, reference, ["id"]) == []


def test_the_reference_is_that_of_the_configuration():
    config = yaml.safe_load((ROOT / "config.yaml").read_text())
    settings = load_json(ROOT / "reference/run.json")["settings"]
    assert settings == {key: value for key, value in config.items() if key not in ("seeds_per_job", "results")}

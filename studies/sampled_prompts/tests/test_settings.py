"""The study's settings, and their runs."""

from pathlib import Path

import pytest

from ictd.pipeline.config import load_config
from ictd.pipeline.provenance import PROJECT
from studies.sampled_prompts.attention_engine import KINDS, Attention
from studies.sampled_prompts.grid import Grid, Run, Setting


def grid(given, folder=Path("nowhere"), cores=1, **paper):
    return Grid(load_config({"sampled_prompts": given, **paper}, PROJECT), folder, cores)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"task": 3}, "sampled_prompts has an unknown key 'task'"),
        ({"lengths": [100, 5]}, "sampled_prompts.lengths is [100, 5]; give them in ascending order"),
        ({"main_tasks": 9}, "sampled_prompts.tasks is 100000; give at most the main_tasks, 9"),
        ({"depths": [3, 3]}, "sampled_prompts.depths is [3, 3]; give each value once"),
        ({"ridges": {"smallest": 99}}, "sampled_prompts.ridges.smallest is 99; give at most the largest, 30"),
        ({"attentions": [{"name": "a", "kind": "relu"}]}, "begin with one that has a name only and changes nothing"),
        ({"attentions": [{"name": "a"}, {"name": "b", "kind": "cosine"}]}, "attentions.kind is 'cosine'; choose from"),
        ({"discounts": [1e-5]}, "there is a discount of 1e-05; give 0, or at least 0.0001."),
    ],
)
def test_bad_settings_are_named_in_one_sentence(given, message):
    with pytest.raises(ValueError) as raised:
        grid(given)
    assert message in str(raised.value) and "\n" not in str(raised.value)


def test_the_studys_grid():
    found = grid({})
    assert found.main == Setting("boyan", 5, 30, 0.9)
    names = ["boyan-5-30-0.9", "boyan-5-1-0.9", "boyan-5-3-0.9", "boyan-5-10-0.9", "boyan-5-60-0.9"]
    names += ["boyan-3-30-0.9", "boyan-10-30-0.9", "boyan-20-30-0.9", "loop-5-30-0.9"]
    names += ["boyan-5-30-0.5", "boyan-5-30-0.95"]
    runs = [f"{algo}-{name}" for algo in ("td", "mc") for name in names]
    assert [str(run) for run in found.tasks] == [
        *runs,
        *(
            f"{prefix}_{algo}-boyan-5-30-0.9"
            for prefix in ("expected", "grouped", "enumerated")
            for algo in ("td", "mc")
        ),
    ]
    long = {"td-boyan-5-30-0.9", "mc-boyan-5-30-0.9"}
    assert found.tasks == {run: 1_000_000 if str(run) in long else 100_000 for run in found.tasks}
    assert [Run.parse(str(run)) for run in found.tasks] == list(found.tasks)
    main_runs = [run for run in found.tasks if run[1:3] == ("boyan", 5) and run.discount == 0.9]
    assert found.main_runs == main_runs and len(main_runs) == 16
    # Four settings with five states and 30 layers at six places, the other seven settings only at home.
    assert len(set(found.values)) == len(found.values) == 2 * (4 * 6 + 7) + 2
    assert {"td-boyan-20-30-0.9/boyan-0.9", "expected_mc-boyan-5-30-0.9/boyan-0.9"} < set(found.values)
    assert not {"td-boyan-20-30-0.9/loop-0.9", "expected_mc-boyan-5-30-0.9/loop-0.9"} & set(found.values)
    assert found.paper == ["td-boyan-5-30/boyan-0.9", "mc-boyan-5-30/boyan-0.9"]
    # Every value has its baselines.
    for name in found.values:
        run, place = name.split("/")
        assert f"{place.split('-')[0]}-{Run.parse(run).states}-{place.split('-')[1]}" in found.baselines
    assert len(found.baselines) == len(set(found.baselines)) == 9
    targets = ("td", "expected_td", "mc", "expected_mc")
    assert found.shown_by_tasks == [f"{target}-boyan-5-30-0.9/boyan-0.9" for target in targets]
    assert len(found.evaluated) == 24 and not [name for name in found.evaluated if name.target.startswith(("gr", "en"))]
    assert {Attention(**parameters).kind for parameters in found.attentions.values()} == {*KINDS}


def test_values_that_the_main_setting_has_too_are_no_runs_of_their_own():
    found = grid({"depths": [30], "states": [5], "discounts": [0.9]}, envs=["boyan"])
    runs = ["td-boyan-5-30-0.9", "mc-boyan-5-30-0.9"]
    assert [str(run) for run in found.tasks] == [
        f"{prefix}{run}" for prefix in ("", "expected_", "grouped_", "enumerated_") for run in runs
    ]
    assert found.values == [f"{run}/boyan-0.9" for run in list(found.tasks)[:4]]
    # The paper's cells have 3 and 10 states too.
    assert found.baselines == found.format_baselines == ["boyan-3-0.9", "boyan-5-0.9", "boyan-10-0.9"]


def test_seeds_are_cut_into_jobs_that_keep_finished_runs(tmp_path):
    (tmp_path / "runs/td-boyan-5-30-0.9").mkdir(parents=True)
    (tmp_path / "runs/td-boyan-5-30-0.9/0-4.npz").touch()
    found = grid({"seeds": 20}, tmp_path, seeds_per_job=8)
    assert found.seeds == ["0-4", "5-12", "13-19"]
    assert found.attention_seeds == ["0-7", "8-15", "16-19"]
    assert found.attention_runs == ["contexts-td", "contexts-mc", "enumerated-td", "enumerated-mc"]

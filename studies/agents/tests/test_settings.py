"""The study's settings, and the runs that they span."""

from pathlib import Path

import pytest
import yaml
from ictd.pipeline.needs import checked_needs
from projects import Study, in_megabytes
from studies.agents.needs import needs

from studies.agents.attention_engine import KINDS, Attention
from studies.agents.grid import Grid, Setting

STUDY = Study("agents")


def grid(given, folder=Path("nowhere"), cores=1, **paper):
    return Grid(STUDY.whole(given, **paper), folder, cores)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"task": 3}, "agents has an unknown key 'task'"),
        ({"seeds": 0}, "agents.seeds is 0; give at least 1"),
        ({"snapshots": 1}, "agents.snapshots is 1; give at least 2"),
        ({"lengths": [100, 5]}, "agents.lengths is [100, 5]; give them in ascending order"),
        ({"lengths": [5]}, "agents.lengths is [5]; give at least 2 value"),
        ({"context_lengths": [9, 5]}, "agents.context_lengths is [9, 5]; give them in ascending order"),
        ({"main_tasks": 9}, "agents.tasks is 100000; give at most the main_tasks, 9"),
        ({"step_sizes": {"smallest": 2}}, "agents.step_sizes.smallest is 2; give at most 1"),
        ({"step_sizes": {"smallest": 0.5, "largest": 0.2}}, "smallest is 0.5; give at most the largest, 0.2"),
        ({"ridges": {"smallest": 99}}, "agents.ridges.smallest is 99; give at most the largest, 30"),
        ({"clip": -1}, "agents.clip is -1; give at least 0"),
        ({"depths": [3, 3]}, "agents.depths is [3, 3]; give each value once"),
        ({"states": [300]}, "value 1 of agents.states is 300; give at most 256"),
        ({"discounts": [1]}, "value 1 of agents.discounts is 1; give less than 1"),
        ({"attentions": []}, "agents.attentions is []; give at least 1 value"),
        ({"attentions": [{"name": "a", "kind": "relu"}]}, "begin with one that has a name only and changes nothing"),
        ({"attentions": [{"name": "a"}, {"name": "a"}]}, "name is 'a'; give each a name of its own"),
        ({"attentions": [{"name": "a/b"}]}, "value 1 of agents.attentions.name is 'a/b'; give letters, digits and _"),
        ({"attentions": [{"name": "a"}, {"kind": "relu"}]}, "agents.attentions lacks key 'name'"),
        (
            {"attentions": [{"name": "a"}, {"name": "b", "kind": "cosine"}]},
            "value 2 of agents.attentions.kind is 'cosine'; choose from linear, relu, softmax, softmax_with_query",
        ),
    ],
)
def test_bad_settings_are_named_in_one_sentence(given, message):
    STUDY.check_refusal(given, message)


@pytest.mark.parametrize(("given", "paper"), [({"discounts": [1e-5]}, {}), ({}, {"discount": 1e-5})])
def test_discounts_that_files_cannot_be_named_after_are_refused(given, paper):
    with pytest.raises(ValueError, match=r"^Config: there is a discount of 1e-05; give 0, or at least 0\.0001\.$"):
        grid(given, **paper)
    assert "td-boyan-5-30-0.0001" in grid({"discounts": [0, 1e-4]}).tasks


def test_names_are_texts_of_one_line():
    assert STUDY.settings({"attentions": [{"name": "007"}]})["attentions"] == [{"name": "007"}]
    for name in ("a\n", "a" * 101):
        with pytest.raises(ValueError, match=r"^Config: value 1 of agents\.attentions\.name is 'a"):
            STUDY.settings({"attentions": [{"name": name}]})


@pytest.mark.parametrize(
    ("given", "paper", "message"),
    [
        ({"test_tasks": 10**9}, {}, "agents.test_tasks is 1000000000, with which a job of rule agents_"),
        ({"seeds": 10**6, "snapshots": 2}, {"seeds_per_job": 1}, "agents.seeds is 1000000, which makes about"),
        ({"bayes_samples": 10**9}, {}, "agents.bayes_samples is 1000000000, with which a job of rule agents_"),
    ],
)
def test_what_cannot_be_is_refused_by_its_key(given, paper, message):
    STUDY.check_need(needs, given, message, **paper)
    assert checked_needs(needs, STUDY.whole({}), STUDY.schema["properties"], 2).jobs > 100


def test_every_key_is_described():
    assert STUDY.undescribed() == []
    kinds = yaml.safe_load((STUDY.folder / "schema.yaml").read_text())
    kinds = kinds["properties"]["attentions"]["items"]["properties"]
    assert tuple(kinds["kind"]["enum"]) == KINDS and set(kinds) - {"name"} == set(Attention.__dataclass_fields__)


def test_the_studys_grid():
    found = grid({})
    assert found.main == Setting("boyan", 5, 30, 0.9)
    names = ["boyan-5-30-0.9", "boyan-5-1-0.9", "boyan-5-3-0.9", "boyan-5-10-0.9", "boyan-5-60-0.9"]
    names += ["boyan-3-30-0.9", "boyan-10-30-0.9", "boyan-20-30-0.9", "loop-5-30-0.9"]
    names += ["boyan-5-30-0.5", "boyan-5-30-0.95"]
    runs = [f"{algo}-{name}" for algo in ("td", "mc") for name in names]
    assert list(found.tasks) == [*runs, "expected_td-boyan-5-30-0.9", "expected_mc-boyan-5-30-0.9"]
    long = {"td-boyan-5-30-0.9", "mc-boyan-5-30-0.9"}
    assert found.tasks == {name: 1_000_000 if name in long else 100_000 for name in found.tasks}
    # Four settings of five states and 30 layers on six places, the other seven at home.
    assert len(set(found.values)) == len(found.values) == 2 * (4 * 6 + 7) + 2
    assert found.values[:6] == [
        f"td-boyan-5-30-0.9/{place}"
        for place in ("boyan-0.9", "boyan-0.5", "boyan-0.95", "loop-0.9", "loop-0.5", "loop-0.95")
    ]
    assert {"td-boyan-20-30-0.9/boyan-0.9", "expected_mc-boyan-5-30-0.9/boyan-0.9"} < set(found.values)
    assert not {"td-boyan-20-30-0.9/loop-0.9", "expected_mc-boyan-5-30-0.9/loop-0.9"} & set(found.values)
    assert found.paper == ["td-boyan-5-30/boyan-0.9", "mc-boyan-5-30/boyan-0.9"]
    assert len(found.baselines) == 9 and found.baselines == sorted(set(found.baselines), key=found.baselines.index)
    # Every value has its baselines.
    for name in found.values:
        run, place = name.split("/")
        assert f"{place.split('-')[0]}-{run.split('-')[2]}-{place.split('-')[1]}" in found.baselines
    assert found.attentions["linear"] == {} and found.attentions["relu"] == {"kind": "relu", "corner": -1}
    assert all(Attention(**parameters) for parameters in found.attentions.values())


def test_values_that_the_main_setting_has_too_are_no_runs_of_their_own():
    found = grid({"depths": [30], "states": [5], "discounts": [0.9]}, envs=["boyan"])
    runs = ["td-boyan-5-30-0.9", "mc-boyan-5-30-0.9"]
    assert list(found.tasks) == [*runs, *(f"expected_{run}" for run in runs)]
    assert found.values == [f"{run}/boyan-0.9" for run in found.tasks] and found.baselines == ["boyan-5-0.9"]


def test_seeds_are_cut_into_jobs_that_keep_finished_runs(tmp_path):
    (tmp_path / "runs/td-boyan-5-30-0.9").mkdir(parents=True)
    (tmp_path / "runs/td-boyan-5-30-0.9/0-4.npz").touch()
    found = grid({"seeds": 20}, tmp_path, seeds_per_job=8)
    assert found.seeds == ["0-4", "5-12", "13-19"]
    kinds = ["contexts-td", "contexts-mc", "enumerated-td", "enumerated-mc"]
    assert found.attention_runs == [f"{kind}/{seeds}" for kind in kinds for seeds in ("0-7", "8-15", "16-19")]
    # 24 runs and 28 of seven kinds of attention, two kinds of prompts and two algorithms.
    busy = grid({"seeds": 20}, cores=26)
    assert len(busy.seeds) == 2 and len(busy.attention_runs) == 4


# Jobs, MB of results, and MB of memory beside Python's, so that no estimate changes unseen.
AT_FULL_SIZE = 143, 167.9, {
    "agents_pretrain": 838.5, "agents_pretrain_attention": 874.9, "agents_evaluate": 182.3,
    "agents_evaluate_attention": 152.1, "agents_baselines": 1442,
}  # fmt: skip


def test_estimates_are_what_they_were():
    assert in_megabytes(needs(STUDY.whole({}), 2)) == AT_FULL_SIZE

"""Claims on pretraining on sampled contexts, and the study's page."""

import itertools
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from drawn import where
from html_page import Page

from ictd.pipeline.table_files import save_table
from ictd.report.claim import Statements
from ictd.statistics import bootstrap_interval
from studies.agents import claims
from studies.agents.claims import check_agents
from studies.agents.grid import SETTING, Setting
from studies.agents.selection import BASELINES, at_home, latest, over_baseline, sampled_updates, with_baselines

STUDY = Path(__file__).parents[1]
STATEMENTS = Statements(STUDY / "claims.toml")
MAIN = Setting("boyan", 5, 30, 0.9)
SETTINGS = [MAIN, MAIN._replace(depth=3), MAIN._replace(env="loop")]
LENGTHS = [5, 100, 1000]
# Claims on pairs of runs, which fail where all runs are alike.
PAIRED = {"deeper_is_better", "more_tasks_help", "mc_teaches_better", "mc_targets_are_better", "noise_costs"}


@pytest.fixture
def tables():
    """Tables on which all claims hold: 4 trials, snapshots at 10, 100 and, in the main setting, 1,000 tasks.

    Errors fall with layers, tasks and context length; those of expected updates are half as large.
    """
    rows = []
    places = [("boyan", 0.9), ("loop", 0.9)]
    for algo, setting, seed, length in itertools.product(["td", "mc"], SETTINGS, range(4), LENGTHS):
        named = dict(zip(SETTING, setting, strict=True)) | {"algo": algo, "seed": seed, "context_length": length}
        error = (1 + 0.01 * seed) * (5 if algo == "td" else 4) / length * (1 + 1 / setting[2])
        for (env, discount), seen in itertools.product(places, [10, 100, *([1000] if setting == MAIN else [])]):
            where = {"on_env": env, "on_discount": discount, "tasks_seen": seen, "prompts": "contexts"}
            rows.append({**named, **where, "mean": error * 100 / seen, "median": error})
        if setting == MAIN:
            where = {"on_env": "boyan", "on_discount": 0.9, "tasks_seen": 100, "prompts": "contexts"}
            rows.append({**named, **where, "algo": f"expected_{algo}", "mean": error / 2, "median": error / 2})
            where = {"on_env": "boyan", "on_discount": 0.9, "tasks_seen": 20, "prompts": "enumerated"}
            rows.append({**named, **where, "mean": 30.0, "median": 30.0})
    baselines = [
        {
            "env": env,
            "states": 5,
            "discount": 0.9,
            "method": method,
            "context_length": length,
            "mean": value / length,
            "median": value / length,
        }
        for env, length, (method, value) in itertools.product(
            ["boyan", "loop"],
            LENGTHS,
            [("zero", 9000), ("lstd", 20), ("ce_uniform", 15), ("lstd_prior", 12), ("bayes", 2)],
        )
        if (env, method) != ("loop", "bayes")
    ]
    shapes = [
        {**dict(zip(SETTING, setting, strict=True)), "algo": "td", "seed": s, "tasks_seen": seen, "outside": 1 / seen,
         "alpha": 0.2 + 0.01 * s, "predecessors": 0.5 + 0.1 * s, "successors": -0.2}
        for setting, s, seen in itertools.product(SETTINGS, range(4), [10, 100])
    ]  # fmt: skip
    chosen = [
        {"env": "boyan", "states": 5, "discount": 0.9, "context_length": length, "theta_td_step": 1.0}
        for length in LENGTHS
    ]
    attention = [
        {"attention": kind, "prompts": prompts, "algo": "td", "seed": seed, "context_length": length,
         "mean": (1 + 0.01 * seed) * factor / (length + 1), "of_one": of_one, "least_of_one": 8.0, "most_of_one": 8.0}
        for (kind, factor, of_one), prompts, seed, length in itertools.product(
            [("linear", 6, np.nan), ("softmax", 5, 8.0)], ["contexts", "enumerated"], range(4), [0, *LENGTHS])
    ]  # fmt: skip
    over_tasks = [
        {**dict(zip(SETTING, setting, strict=True)), "algo": algo, "on_env": setting[0], "on_discount": 0.9,
         "tasks_seen": 100, "context_length": length, "baseline": baseline, "high": high}
        for algo, setting, length, (baseline, high) in itertools.product(
            ["td", "mc", "expected_td", "expected_mc"], SETTINGS, LENGTHS,
            {"lstd": 0.3, "ce_uniform": 0.6, "best": 0.9, "td": 0.95}.items())
        if baseline != "td" or "mc" in algo
    ]  # fmt: skip
    made = {
        "over_tasks": over_tasks,
        "values": rows,
        "baselines": baselines,
        "shapes": shapes,
        "chosen": chosen,
        "attention": attention,
    }
    return {name: pd.DataFrame(table) for name, table in made.items()}


def failing(tables):
    return {
        claim.id.split("/")[0] for claim in check_agents(STATEMENTS, tables, MAIN, 100, 100) if claim.verdict == "fails"
    }  # fmt: skip


def test_claims_that_hold(tables):
    assert failing(tables) == set()
    claims = check_agents(STATEMENTS, tables, MAIN, 100, 100)
    counts = pd.Series([claim.id.split("/")[0] for claim in claims]).value_counts().to_dict()
    assert counts == {
        "beats_lstd, mean": 12, "beats_lstd, median": 12, "beats_lstd_over_tasks": 12,
        "beats_uniform, mean": 12, "beats_uniform, median": 12, "beats_uniform_over_tasks": 12,
        "beats_best, mean": 12, "beats_best, median": 12, "beats_best_over_tasks": 12,
        "above_the_floor": 8, "beats_enumerated": 4,
        "deeper_is_better": 4, "more_tasks_help": 4, "mc_teaches_better": 4, "mc_targets_are_better": 2,
        "mc_teaches_better_over_tasks": 4,
        "noise_costs": 4, "still_falls": 2, "transfers, mean": 6,
        "transfers, median": 6, "structure": 3, "traces": 3, "step_is_near": 2,
        "emerges": 6, "attention_beats_uniform": 2, "beats_linear": 3, "constant_rewards": 1,
    }  # fmt: skip
    best = next(claim for claim in claims if claim.id == "beats_best, mean/td-boyan-5-30-0.9-5 steps")
    # Errors of trials lie between 5 and 5.15, times 31 / 30.
    assert np.log10(5 * 31 / 30 / 12) < best.value < np.log10(5.15 * 31 / 30 / 12)


@pytest.mark.parametrize(
    ("table", "change", "expected"),
    [
        ("values", lambda t: t.assign(mean=17 / t["context_length"]), {
            "beats_uniform, mean", "beats_best, mean", "transfers, mean", *PAIRED, "beats_enumerated"}),
        ("values", lambda t: t.assign(mean=t["mean"].mask(t["context_length"] == 1000, 1.0)), {"still_falls"}),
        ("values", lambda t: t.assign(mean=t["mean"].mask(t["prompts"] == "enumerated", 0.01)), {"beats_enumerated"}),
        ("values", lambda t: t.assign(mean=t["mean"].mask(t["on_env"] != t["env"], 5.0)), {"transfers, mean"}),
        ("values", lambda t: t.assign(mean=1 / t["context_length"]), {
            "above_the_floor", *PAIRED, "beats_enumerated"}),
        ("values", lambda t: t.assign(mean=t["mean"].mask(t["algo"] == "expected_mc", 9 / t["context_length"])), {
            "mc_targets_are_better", "noise_costs"}),
        ("values", lambda t: t.assign(mean=t["mean"].mask(t["tasks_seen"] == 1000, 5.0)), {
            "more_tasks_help", "mc_teaches_better"}),
        ("values", lambda t: t.assign(mean=t["mean"].mask(t["depth"] == 3, 1e-3)), {
            "above_the_floor", "deeper_is_better"}),
        ("baselines", lambda t: t.assign(mean=t["mean"].mask(t["method"] == "lstd", 3 / t["context_length"])), {
            "beats_lstd, mean", "beats_best, mean"}),
        ("baselines", lambda t: t.assign(mean=t["mean"].mask(t["method"] == "ce_uniform", 3 / t["context_length"])), {
            "beats_uniform, mean", "beats_best, mean", "transfers, mean", "attention_beats_uniform"}),
        ("baselines", lambda t: t.assign(mean=t["mean"].mask(t["method"] == "ce_prior", 3 / t["context_length"])),
            set()),
        ("baselines", lambda t: t.assign(mean=t["mean"].mask(t["method"] == "lstd_prior", 3 / t["context_length"])), {
            "beats_best, mean"}),
        ("baselines", lambda t: t.assign(median=t["median"].mask(t["method"] == "lstd", 1e-3)), {
            "beats_lstd, median"}),
        ("baselines", lambda t: t.assign(median=t["median"].mask(t["method"] == "lstd_prior", 1e-3)), {
            "beats_best, median"}),
        ("baselines", lambda t: t.assign(median=t["median"].mask(t["method"] == "ce_uniform", 1e-3)), {
            "beats_uniform, median", "transfers, median"}),
        ("baselines", lambda t: t.assign(mean=t["mean"].mask(t["method"] == "zero", 9.0)), {"emerges"}),
        ("over_tasks", lambda t: t.assign(high=t["high"].mask(t["baseline"] == "lstd", 1.1)), {
            "beats_lstd_over_tasks"}),
        ("over_tasks", lambda t: t.assign(high=t["high"].mask(t["baseline"] != "lstd", 1.1)), {
            "beats_uniform_over_tasks", "beats_best_over_tasks", "mc_teaches_better_over_tasks"}),
        ("shapes", lambda t: t.assign(outside=0.2), {"structure"}),
        ("shapes", lambda t: t.assign(predecessors=-0.3), {"traces"}),
        ("shapes", lambda t: t.assign(predecessors=-0.1), {"traces"}),
        ("shapes", lambda t: t.assign(successors=0.9), {"traces"}),
        ("shapes", lambda t: t.assign(alpha=-0.2), {"step_is_near"}),
        ("shapes", lambda t: t.assign(alpha=0.5), {"step_is_near"}),
        ("shapes", lambda t: t.assign(alpha=0.05), {"step_is_near"}),
        ("attention", lambda t: t.assign(mean=1 / (t["context_length"] + 1)), {"beats_linear"}),
        ("attention", lambda t: t.assign(most_of_one=8.001), {"constant_rewards"}),
    ],
)  # fmt: skip
def test_claims_that_fail(tables, table, change, expected):
    assert failing({**tables, table: change(tables[table])}) == expected


def test_what_is_compared(tables):
    values = sampled_updates(latest(tables["values"], 100))
    assert set(values["tasks_seen"]) == {100} and set(values["prompts"]) == {"contexts"}
    home = with_baselines(at_home(values), tables["baselines"])
    assert (home["env"] == home["on_env"]).all() and len(home) == 2 * 3 * 4 * 3
    one = home[(home["algo"] == "td") & (home["env"] == "boyan") & (home["depth"] == 3) & (home["seed"] == 0)].iloc[0]
    np.testing.assert_allclose([one["lstd_mean"], one["bayes_median"], one["mean"]], [4, 0.4, 4 / 3])
    np.testing.assert_allclose([one["best_mean"], one["best_median"]], 2.4)
    assert set(home["best_is"]) == {"lstd_prior"}
    np.testing.assert_allclose(over_baseline(home)[one.name], 4 / 3 / 2.4)
    np.testing.assert_allclose(over_baseline(home, "lstd", "median")[one.name], one["median"] / 4)
    assert home.loc[home["env"] == "loop", "bayes_mean"].isna().all()
    # Baselines are those of the place of evaluation.
    others = tables["baselines"].assign(mean=lambda t: t["mean"].mask(t["env"] == "loop", 7.0))
    away = with_baselines(values[(values["env"] == "boyan") & (values["on_env"] == "loop")], others)
    assert set(away["lstd_mean"]) == {7.0}
    # The best one has the least mean, whatever its median.
    better = tables["baselines"].assign(mean=lambda t: t["mean"].mask(t["method"] == "lstd", 0.001))
    beside = with_baselines(at_home(values), better)
    assert set(beside["best_is"]) == {"lstd"} and (beside["best_median"] == beside["lstd_median"]).all()


def test_the_study_is_made_as_a_page(under_conda):
    results = under_conda / "results-smoke/agents"
    page = Page(results / "agents.html")
    assert page.headings[0] == "Prompts as an agent sees them" and not page.outside and len(page.images) == 6
    shown = ("beside_baselines", "ratios", "teachers", "transfer", "preconditioner", "attentions")
    for name in (*shown, "claims", "values", "ratios_by_setting", "shapes", "attention_runs"):
        assert (STUDY / f"captions/{name}.rst").read_text().strip() in page.text
    claims = json.loads((results / "claims.json").read_text())
    assert {"beats_lstd, mean", "above_the_floor", "beats_enumerated", "transfers, median", "structure"} <= {
        claim["id"].split("/")[0] for claim in claims
    }
    values = pd.read_csv(results / "values.csv")
    assert set(values["context_length"]) == {5, 20} and np.isfinite(values["mean"]).all()
    assert values.loc[values["prompts"] == "enumerated", "tasks_seen"].max() == 300
    baselines = pd.read_csv(results / "baselines.csv")
    assert np.isfinite(baselines.loc[(baselines["method"] == "bayes") & (baselines["env"] == "boyan"), "mean"]).all()
    # Those in the main setting have seen more, and are compared after as many tasks as the others.
    assert {100, 300} <= set(values.loc[values["prompts"] == "contexts", "tasks_seen"])
    over_tasks = pd.read_csv(results / "over_tasks.csv")
    ends = at_home(latest(values[values["prompts"] == "contexts"])).groupby(
        ["algo", "env", "discount", "context_length"]
    )
    for row in at_home(over_tasks).itertuples():
        own = ends.get_group((row.algo, row.env, row.discount, row.context_length))["mean"].mean()
        place = baselines[(baselines["env"] == row.env) & (baselines["discount"] == row.discount)]
        place = place[place["context_length"] == row.context_length].set_index("method")["mean"]
        if row.baseline == "td":
            by_td = (row.algo.replace("mc", "td"), row.env, row.discount, row.context_length)
            beside = ends.get_group(by_td)["mean"].mean()
        else:
            beside = place[list(BASELINES)].min() if row.baseline == "best" else place[row.baseline]
        assert row.low < own / beside < row.high
    attention = pd.read_csv(results / "attention.csv")
    softmax = attention[attention["attention"] == "softmax"]
    for end in ("least_of_one", "most_of_one"):
        np.testing.assert_allclose(softmax[end], softmax["of_one"], rtol=1e-9)


def test_claims_are_written_in_the_order_of_the_tables(tables, tmp_path):
    backwards = {name: table.iloc[::-1] for name, table in tables.items()}
    for name, table in backwards.items():
        save_table(tmp_path / f"{name}.csv", table)
    files = [tmp_path / f"{name}.csv" for name in tables]
    claims.main(STUDY / "claims.toml", files, MAIN._asdict(), 100, [5, 100], tmp_path / "claims.json")
    found = json.loads((tmp_path / "claims.json").read_text())
    assert [one["id"] for one in found] == [one.id for one in check_agents(STATEMENTS, backwards, MAIN, 100, 100)]
    by = {}
    for one in found:
        by.setdefault(one["id"].split("/")[0], []).append(one["setting"])
    settings = ["loop-5-30-0.9", "boyan-5-3-0.9", "boyan-5-30-0.9"]
    of_runs = [f"{algo}-{setting}-{m} steps" for setting in settings for algo in ("mc", "td") for m in (100, 5)]
    of_runs.sort(key=lambda name: (name.split("-")[0], settings.index("-".join(name.split("-")[1:5]))))
    assert by["beats_lstd, mean"] == of_runs == by["beats_uniform, mean"] == by["beats_best, median"]
    assert by["beats_lstd_over_tasks"] == of_runs == by["beats_best_over_tasks"]
    assert by["above_the_floor"] == [name for name in of_runs if "loop" not in name]
    pairs = ["mc-100 steps", "mc-5 steps", "td-100 steps", "td-5 steps"]
    assert by["beats_enumerated"] == pairs
    assert by["deeper_is_better"] == [pair.replace("-", "-30 layers-") for pair in pairs]
    assert by["more_tasks_help"] == [pair.replace("-", "-1000 tasks-") for pair in pairs]
    assert by["mc_targets_are_better"] == ["100 steps", "5 steps"]
    assert sorted(by["mc_teaches_better_over_tasks"]) == sorted(
        f"{teacher}-{m} steps" for teacher in ("100 tasks", "expected updates") for m in (100, 5)
    )
    assert by["mc_teaches_better"] == [f"{tasks} tasks-{m} steps" for tasks in (100, 1000) for m in (100, 5)]
    assert by["noise_costs"] == ["td-100 steps", "mc-100 steps", "td-5 steps", "mc-5 steps"]
    assert by["still_falls"] == ["mc-1000 steps", "td-1000 steps"]
    away = {"loop": "boyan", "boyan": "loop"}
    assert by["transfers, mean"] == [
        f"{algo}-{setting}-on-{away[setting.split('-')[0]]}-0.9" for algo in ("mc", "td") for setting in settings
    ]
    assert by["structure"] == by["traces"] == [f"td-{setting}" for setting in settings]
    assert by["step_is_near"] == ["td-100 steps", "td-5 steps"]
    # The first kind, here the last of the table as it is, has its own comparisons elsewhere.
    assert by["attention_beats_uniform"] == ["linear-td-100 steps", "linear-td-5 steps"]
    assert by["constant_rewards"] == ["softmax"]


def test_claims_have_the_values_of_their_tables(tables):
    """Each number of the tables multiplied by one of its own, so that taking one for another shows."""
    rng = np.random.default_rng(0)
    named = {"seed", "tasks_seen", "context_length", "states", "depth", "discount", "on_discount", "of_one"}
    for name, table in tables.items():
        numbers = [column for column in table.select_dtypes("number") if column not in named]
        tables[name] = table.assign(**{column: table[column] * rng.uniform(0.7, 1.4, len(table)) for column in numbers})
    values, baselines, attention = tables["values"], tables["baselines"], tables["attention"]
    found = {claim.id: claim.value for claim in check_agents(STATEMENTS, tables, MAIN, 100, 100)}
    lower, checked = {name: table["relation"] == ">" for name, table in STATEMENTS.tables.items()}, set()

    def check(kind, setting, samples, over=None):
        name = f"{kind}, {over}" if over else kind
        checked.add(f"{name}/{setting}")
        ends = bootstrap_interval(np.asarray(samples, float))
        assert found[f"{name}/{setting}"] == pytest.approx(ends[0 if lower[kind] else 1]), (name, setting)

    def runs(algo, setting, length, seen=100, over="mean", **place):
        place = {"on_env": setting.env, "on_discount": 0.9, "prompts": "contexts", "tasks_seen": seen, **place}
        rows = where(values, algo=algo, **setting._asdict(), context_length=length, **place)
        return rows.sort_values("seed")[over].to_numpy()

    def beside(method, env, length, over="mean"):
        return where(baselines, env=env, method=method, context_length=length)[over].item()

    log = np.log10
    deep, shallow, loop = SETTINGS
    for algo, setting, length in itertools.product(["td", "mc"], SETTINGS, [5, 100]):
        name, own = f"{algo}-{'-'.join(map(str, setting))}-{length} steps", runs(algo, setting, length)
        best = min(("lstd", "ce_uniform", "lstd_prior"), key=lambda one: beside(one, setting.env, length))
        for over in ("mean", "median"):
            of_run = runs(algo, setting, length, over=over)
            for claim, method in (("beats_lstd", "lstd"), ("beats_uniform", "ce_uniform"), ("beats_best", best)):
                check(claim, name, log(of_run / beside(method, setting.env, length, over)), over)
        if setting != loop:
            check("above_the_floor", name, log(own / beside("bayes", "boyan", length)))
        of = where(tables["over_tasks"], algo=algo, **setting._asdict(), context_length=length)
        for claim, baseline in (("beats_lstd", "lstd"), ("beats_uniform", "ce_uniform"), ("beats_best", "best")):
            checked.add(f"{claim}_over_tasks/{name}")
            assert found[f"{claim}_over_tasks/{name}"] == where(of, baseline=baseline)["high"].item()
    for (algo, teacher), length in itertools.product(
        [("mc", "100 tasks"), ("expected_mc", "expected updates")], [5, 100]
    ):
        of = where(tables["over_tasks"], algo=algo, **deep._asdict(), context_length=length, baseline="td")
        checked.add(f"mc_teaches_better_over_tasks/{teacher}-{length} steps")
        assert found[f"mc_teaches_better_over_tasks/{teacher}-{length} steps"] == of["high"].item()
    for algo, length in itertools.product(["td", "mc"], [5, 100]):
        steps = f"{length} steps"
        paper = runs(algo, deep, length, 20, prompts="enumerated")
        check("beats_enumerated", f"{algo}-{steps}", log(runs(algo, deep, length, 10) / paper))
        ratio = log(runs(algo, deep, length) / runs(algo, shallow, length))
        check("deeper_is_better", f"{algo}-30 layers-{steps}", ratio)
        ratio = log(runs(algo, deep, length, 1000) / runs(algo, deep, length))
        check("more_tasks_help", f"{algo}-1000 tasks-{steps}", ratio)
        ratio = log(runs(algo, deep, length) / runs(f"expected_{algo}", deep, length))
        check("noise_costs", f"{algo}-{steps}", ratio)
    for length in (5, 100):
        for seen in (100, 1000):
            ratio = log(runs("mc", deep, length, seen) / runs("td", deep, length, seen))
            check("mc_teaches_better", f"{seen} tasks-{length} steps", ratio)
        ratio = log(runs("expected_mc", deep, length) / runs("expected_td", deep, length))
        check("mc_targets_are_better", f"{length} steps", ratio)
    for algo in ("td", "mc"):
        check("still_falls", f"{algo}-1000 steps", log(runs(algo, deep, 1000) / runs(algo, deep, 100)))
        for setting, over in itertools.product(SETTINGS, ["mean", "median"]):
            on = "boyan" if setting == loop else "loop"
            ratio = log(runs(algo, setting, 5, over=over, on_env=on) / beside("ce_uniform", on, 5, over))
            check("transfers", f"{algo}-{'-'.join(map(str, setting))}-on-{on}-0.9", ratio, over)
    for setting in SETTINGS:
        rows = where(tables["shapes"], **setting._asdict(), tasks_seen=100)
        name = f"td-{'-'.join(map(str, setting))}"
        check("structure", name, rows["outside"])
        check("traces", name, np.minimum(rows["predecessors"], rows["predecessors"] - rows["successors"]))
    alpha = where(tables["shapes"], **deep._asdict(), tasks_seen=100)["alpha"].to_numpy()
    for length in (5, 100):
        ratio = 5 * alpha / where(tables["chosen"], context_length=length)["theta_td_step"].item()
        check("step_is_near", f"td-{length} steps", np.maximum(ratio, 1 / ratio))
    for kind, length in itertools.product(["linear", "softmax"], [0, 5, 100]):
        prompts, place = ("contexts", f"{length} steps") if length else ("enumerated", "enumerated prompts")
        own, linear = (
            where(attention, attention=one, prompts=prompts, context_length=length)["mean"].to_numpy()
            for one in (kind, "linear")
        )
        check("emerges", f"{kind}-td-{place}", own / beside("zero", "boyan", 5))
        if length and kind != "linear":
            check("attention_beats_uniform", f"{kind}-td-{place}", log(own / beside("ce_uniform", "boyan", length)))
        if kind == "softmax":
            check("beats_linear", f"{kind}-td-{place}", log(own / linear))
    ends = where(attention, attention="softmax")[["least_of_one", "most_of_one"]].to_numpy() / 8
    assert found["constant_rewards/softmax"] == pytest.approx(np.abs(ends - 1).max())
    assert checked | {"constant_rewards/softmax"} == set(found)


def test_no_claims_on_traces_of_two_states_or_a_single_layer(tables):
    shapes = tables["shapes"]
    two = check_agents(STATEMENTS, {**tables, "shapes": shapes.assign(states=2)}, MAIN, 100, 100)
    assert {claim.id.split("/")[0] for claim in two} & {"structure", "traces"} == {"structure"}
    one = check_agents(STATEMENTS, {**tables, "shapes": shapes.assign(depth=1)}, MAIN, 100, 100)
    assert not {claim.id.split("/")[0] for claim in one} & {"structure", "traces"}


@pytest.mark.parametrize(
    ("algos", "kinds"),
    [
        (["td", "expected_td"], {"noise_costs"}),
        (["td", "mc"], {"mc_teaches_better"}),
        (["td", "expected_mc"], set()),
        (["td", "expected_td", "expected_mc"], {"noise_costs", "mc_targets_are_better"}),
    ],
)
def test_teachers_are_compared_where_both_are_there(tables, algos, kinds):
    values = tables["values"][tables["values"]["algo"].isin(algos)]
    made = {claim.id.split("/")[0] for claim in check_agents(STATEMENTS, {**tables, "values": values}, MAIN, 100, 100)}
    assert made & {"noise_costs", "mc_teaches_better", "mc_targets_are_better"} == kinds

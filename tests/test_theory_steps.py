"""The theory's steps from sampled tasks to tables, beside slow computations, and what its figures draw."""

import itertools
import json
import math

import matplotlib.pyplot as plt
import naive
import naive_theory
import numpy as np
import pandas as pd
import pytest
import torch
from drawn import axes_of, check_border, check_lines, numbered, where
from naive import larger_weights
from projects import ROOT
from tolerances import ENGINES

import ictd
from ictd.pipeline.storage import save_arrays
from ictd.pipeline.table_files import load_table, load_tables, save_table
from ictd.report.claim import Statements, as_records
from ictd.report.figures.style import COLOURS, LINES
from ictd.statistics import bootstrap_interval
from ictd.theory import (
    agreement,
    claims,
    descent,
    family,
    figures,
    precision,
    pretrained,
    pretrained_figure,
    pretrained_tables,
    statements,
    tables,
    values,
)

torch.set_num_threads(1)
GAMMA, DEPTH, TASKS = 0.8, 4, 52
ENVS = {"boyan": {}, "loop": {"threshold": 0.3}}
CELLS = {"td-boyan-2-3": 3, "mc-boyan-2-3": 3}


def theory_tasks(env, states, size):
    return ictd.sample_tasks(env, states, size, ictd.generator(0, env, states, "theory"), **ENVS[env])


def trained(algo):
    parts = [larger_weights(2, seed + 10 * (algo == "mc")) for seed in range(2)]
    return ictd.Weights(np.stack([part.u for part in parts]), np.stack([part.A for part in parts]))


@pytest.fixture(scope="module")
def checks(tmp_path_factory) -> dict[str, pd.DataFrame]:
    """Tables that the steps make of small settings."""
    folder = tmp_path_factory.mktemp("theory")
    for env, options in ENVS.items():
        given = {"discount": GAMMA, "env_options": options}
        values.main(env, [3, 2], TASKS, DEPTH, **given, output=folder / f"values/{env}.npz")
        precision.main(env, [2], [2], 20, DEPTH, **given, output=folder / f"precision/{env}.json")
        descent.main(env, 2, 40, DEPTH, **given, output=folder / f"descent/{env}-2.npz")
        family.main(env, 3, 20, 12, **given, output=folder / f"family/{env}-3.npz")
    for cell, depth in CELLS.items():
        algo, scale = cell[:2], "context_length" if cell[:2] == "td" else "none"
        weights = trained(algo)
        save_arrays(folder / f"weights/{cell}.npz", seeds=np.array([4, 7]), u=weights.u, A=weights.A)
        files = ([folder / f"{name}/{cell}.npz"] for name in ("weights", "pretrained"))
        pretrained.main("boyan", 2, depth, 80, 5, GAMMA, scale, {}, *files)
    agreement.main(["boyan-3-4", "loop-2-5"], GAMMA, ENVS, folder / "agreement.json")
    parts = [sorted((folder / name).glob("[!.]*")) for name in ("values", "descent", "family", "precision")]
    tables.main(*parts[:2], folder / "agreement.json", *parts[2:], folder / "tables")
    pretrained_tables.main(sorted((folder / "pretrained").glob("[!.]*")), folder / "tables")
    return {path.stem: load_table(path) for path in (folder / "tables").glob("[!.]*")}


def close(found, expected, what):
    np.testing.assert_allclose(np.asarray(found, float), expected, rtol=1e-8, atol=1e-14, err_msg=what)


def test_pretrained_weights_are_paired_by_name(tmp_path):
    ours, others, loop = (tmp_path / name for name in ("td-boyan-2-3.npz", "a/td-boyan-2-3.npz", "td-loop-2-3.npz"))
    for weights, outputs, said in (
        ([ours, others], [ours], "give each name once"),
        ([ours], [ours, others], "give each name once"),
        ([loop], [ours], "there are no weights for"),
        ([loop], [loop], "is of no cell of this setting; name it td-boyan-2-3 or mc-boyan-2-3"),
    ):
        with pytest.raises(ValueError, match=said):
            pretrained.main("boyan", 2, 3, 80, 5, GAMMA, "none", {}, weights, outputs)


def test_sides_are_summarised_over_all_tasks(checks):
    table = checks["statements"]
    of_values = {one.__name__ for one in statements.OF_VALUES}
    settings = [*itertools.product(ENVS, [3, 2], [TASKS], [of_values])]
    settings += [(env, 2, 40, {one.__name__ for one in statements.OF_GRADIENTS}) for env in ENVS]
    assert len(table) == sum(len(names) * (DEPTH + 1) for *_, names in settings)
    for env, states, size, names in settings:
        tasks = theory_tasks(env, states, size)
        each = [naive_theory.sides(tasks.transition[i], tasks.reward[i], GAMMA, DEPTH) for i in range(size)]
        for name in names:
            rows = table[(table["env"] == env) & (table["states"] == states) & (table["statement"] == name)]
            left, right = np.array([sides[name] for sides in each]).swapaxes(0, 1)
            assert rows["layer"].tolist() == [*range(DEPTH + 1)]
            close(rows["left_mean"], left.mean(axis=0), name)
            close(rows["left_max"], left.max(axis=0), name)
            close(rows["right_mean"], right.mean(axis=0), name)
            if name != "lemma_2_step" and name != "lemma_2_step_corrected":
                clear = left.min(axis=0) > 1e-9
                close(rows["tightest"][clear], (right / np.maximum(left, 1e-30)).min(axis=0)[clear], name)
                np.testing.assert_array_equal(rows["violations"], (left > right * (1 + 1e-9) + 1e-12).sum(axis=0))


def estimates_of(updates):
    """Norm of the mean update, its standard error, and the norm that noise would have, from 20 groups' means."""
    groups = updates.reshape(20, -1, updates.shape[-1]).mean(axis=1)
    mean = groups.mean(axis=0)
    along = [sum(np.sign(m) * g for m, g in zip(mean, group, strict=True)) for group in groups]
    noise = sum(math.sqrt(2 / math.pi) * column.std(ddof=1) / math.sqrt(20) for column in groups.T)
    return np.abs(mean).sum(), np.std(along, ddof=1) / math.sqrt(20), noise


def updates_at(weights, tasks, algo, depth, scale=1.0):
    """Expected update of each task in Theta^looped and in Theta, for A as it is trained and used times ``scale``."""
    used = ictd.Weights(weights.u, scale * weights.A)
    each = np.array([naive_theory.separate_update(used, tasks, i, algo, depth, GAMMA) for i in range(len(tasks))])
    each[..., 2 * tasks.states :] *= scale
    return each.sum(axis=1), each.reshape(len(each), -1)


def test_norms_of_expected_updates_are_those_by_torch(checks):
    table = checks["neu"]
    assert len(table) == 2 * 2 * (DEPTH + 1 + DEPTH)
    for env, algo in itertools.product(ENVS, ("td", "mc")):
        tasks = theory_tasks(env, 2, 40)
        sides = [naive_theory.sides(tasks.transition[i], tasks.reward[i], GAMMA, DEPTH) for i in range(40)]
        error = "lemma_1" if algo == "td" else "lemma_4"
        bound, sharper = (
            np.mean([of[error][1] * of[name][1] for of in sides], axis=0) for name in ("lemma_3", "bounded_gradient")
        )
        for depth in range(1, DEPTH + 1):
            updates = updates_at(ictd.theta_td(2), tasks, algo, depth)
            for space, of_space in zip(("looped", "separate"), updates, strict=True):
                row = where(table, env=env, algo=algo, space=space, layer=depth)
                close(row[["norm", "standard_error", "noise"]].to_numpy()[0], estimates_of(of_space), space)
                close(row[["bound", "sharper"]].to_numpy()[0], (bound[depth], sharper[depth]), space)


def test_a_family_of_weights_has_the_limit_v(checks):
    """Beside whole prompts through naive Transformers, and the fixed point of layers that are written out."""
    table, updates = checks["family"], checks["family_updates"]
    assert len(table) == 2 * 2 * 5 * 13 and len(updates) == 2 * 2 * 5 * len(family.depths_of_updates(12))
    for env in ENVS:
        tasks, rng = theory_tasks(env, 3, 20), ictd.generator(0, env, 3, "family")
        for draw in range(2):
            K, N = family.member(tasks, GAMMA, rng), rng.normal(size=(6, 3))
            N *= np.linalg.norm(K - np.eye(6, 3)) / np.linalg.norm(N)
            for member, A in (("inside", np.hstack([-K, K])), ("beyond", np.hstack([N - K, N + K]))):
                rows = where(table, member=member, env=env, draw=draw).set_index("layer")
                weights, errors, largest = ictd.Weights(np.zeros(6), A), [], 0
                for P, r in zip(tasks.transition, tasks.reward, strict=True):
                    v = np.linalg.solve(np.eye(3) - GAMMA * P, r)
                    largest = max(largest, np.abs(v).max())
                    prompts = [naive.enumerated_prompt(P, r, GAMMA, s) for s in range(3)]
                    found = [naive.transformer(weights, 12, prompt, scaled=False) for prompt in prompts]
                    errors.append(np.abs(np.array(found) - v).max())
                assert rows["error"][12] == pytest.approx(max(errors) / largest)
                assert rows["violations"].eq(0).all()
            rows = where(table, member="inside", env=env, draw=draw)
            bound = ((1 + GAMMA) / 2) ** rows["layer"] * np.abs(tasks.reward).max() / (1 - GAMMA) / largest
            np.testing.assert_allclose(rows["bound"], bound)
            for P in tasks.transition:
                B = np.eye(3) - (K[:3] + GAMMA * P @ K[3:]) @ (np.eye(3) - GAMMA * P.T)
                assert np.abs(B).sum(axis=0).max() <= (1 + GAMMA) / 2 + 1e-12


@pytest.mark.parametrize(("discount", "made"), [(0.0, False), (0.9, True)])
def test_the_limit_is_v_inside_the_family_only(tmp_path, discount, made):
    """Far beyond the layers that the claims need; without a discount there is nothing beyond the family."""
    family.main("loop", 4, 20, 700, discount, {"threshold": 0.3}, tmp_path / "one.npz")
    stored = np.load(tmp_path / "one.npz")
    assert stored["errors"][0, :, -1].max() < 1e-12 and (stored["updates"][:, :, -1] < 1e-11).all()
    assert (stored["errors"][1, :, -1] > 1e-3).all() == made
    assert (stored["violations"] == 0).all()


def test_pretrained_weights_are_followed_to_theta_td_and_to_other_depths(checks):
    tasks, theta = theory_tasks("boyan", 2, 80), ictd.theta_td(2)
    for cell, depth in CELLS.items():
        algo, scale = cell[:2], 0.5 if cell[:2] == "td" else 1.0
        line, repeated = (
            checks[name][checks[name]["algo"] == algo].set_index(["seed", key])
            for name, key in (("pretrained", "position"), ("repeated", "layer"))
        )
        assert set(line.index) == set(itertools.product([4, 7], [0, 0.25, 0.5, 1]))
        # Log-spaced from 1 to 5, and the depth of pretraining.
        assert set(repeated.index) == set(itertools.product([4, 7], [1, 2, 3, 4, 5]))
        for seed, start in zip((4, 7), trained(algo), strict=False):
            size = np.mean([-start.A[0, 0], -start.A[1, 1], start.A[0, 2], start.A[1, 3]])
            for place in (0, 0.25, 0.5, 1) if seed == 4 else (0.5,):
                here = ictd.Weights((1 - place) * start.u, (1 - place) * start.A + place * size * theta.A)
                for space, updates in zip(
                    ("looped", "separate"), updates_at(here, tasks, algo, depth, scale), strict=True
                ):
                    names = [f"{space}_{name}" for name in ("norm", "standard_error", "noise")]
                    close(line.loc[(seed, place), names], estimates_of(updates), space)
            for layers in (1, 5) if seed == 4 else (2,):
                few = updates_at(start, tasks[:60], algo, layers, scale)
                for space, updates in zip(("looped", "separate"), few, strict=True):
                    close(repeated.loc[(seed, layers), f"{space}_norm"], estimates_of(updates)[0], space)
        pattern = ictd.Weights(theta.u, theta.A / scale)
        close(line["theta_td"], estimates_of(updates_at(pattern, tasks, algo, depth, scale)[0])[0], "theta_td")


def test_decimal_numbers_are_those_of_the_tasks(checks):
    table = checks["precision"]
    assert len(table) == 2 * (2 * 2 * 3 + 2 * 2)
    for env, task in itertools.product(ENVS, range(2)):
        tasks = theory_tasks(env, 2, 2)
        rows = table[(table["env"] == env) & (table["task"] == task)]
        sides = naive_theory.sides(tasks.transition[task], tasks.reward[task], GAMMA, 20)
        for name in ("lemma_1", "lemma_4"):
            of_name = rows[rows["quantity"] == name]
            assert of_name["layer"].tolist() == [0, 10, 20]
            left, right = sides[name][:, [0, 10, 20]]
            close(of_name[["exact", "bound", "ratio"]], np.transpose([left, right, left / right]), name)
        for name, algo in (("theorem_2", "td"), ("corollary_1", "mc")):
            update = updates_at(ictd.theta_td(2), tasks[task : task + 1], algo, DEPTH)[0]
            row = rows[rows["quantity"] == name].iloc[0]
            close(row["exact"], np.abs(update).sum(), name)
            assert row["layer"] == DEPTH and 0 <= row["difference"] < 1e-12


def test_gradients_are_compared_at_theta_td_and_at_random_weights(checks, monkeypatch, tmp_path):
    table = checks["agreement"]
    assert table[["env", "states", "depth", "weights"]].to_numpy().tolist() == [
        [env, n, depth, name] for env, n, depth in (("boyan", 3, 4), ("loop", 2, 5)) for name in ("theta_td", "random")
    ]
    assert (table[["fused", "appendix"]] < ENGINES).all(axis=None)
    seen = []
    by_torch = agreement.by_autograd

    def wrong(weights, tasks, task, *others):
        seen.append((weights, tasks))
        return by_torch(weights, tasks, task, *others) * (1.25 if task else 1)

    monkeypatch.setattr(agreement, "by_autograd", wrong)
    agreement.main(["loop-8-2"], GAMMA, ENVS, tmp_path / "agreement.json")
    rows = json.loads((tmp_path / "agreement.json").read_text())
    assert [row[way] for row in rows for way in ("fused", "appendix")] == pytest.approx([0.2] * 4)
    drawn = ictd.sample_tasks("loop", 8, 2, ictd.generator(0, "loop", 8, "agreement"), **ENVS["loop"])
    assert all((tasks.transition == drawn.transition).all() for _, tasks in seen) and len(seen) == 4
    entries = np.concatenate([seen[-1][0].u, seen[-1][0].A.ravel()])
    assert entries.std() == pytest.approx(0.2 / 4, rel=0.15) and abs(entries.mean()) < 0.01
    # Few chords are left out.
    assert (seen[-1][1].transition > 0).mean() > 0.5


@pytest.mark.parametrize("at_once", [1, 16 * 2 * 5, 700_000])
def test_descent_does_not_depend_on_how_many_tasks_are_in_memory(at_once, monkeypatch, tmp_path):
    sizes = []
    whole = descent.descent
    monkeypatch.setattr(descent, "AT_ONCE", at_once)
    monkeypatch.setattr(descent, "descent", lambda rows, groups: sizes.append(len(rows.tasks)) or whole(rows, groups))
    descent.main("boyan", 2, 40, 3, GAMMA, {}, tmp_path / "found.npz")
    assert sizes == [{1: 2, 160: 10, 700_000: 40}[at_once]] * (40 // sizes[0])
    found = np.load(tmp_path / "found.npz")
    tasks = theory_tasks("boyan", 2, 40)
    expected = estimates_of(updates_at(ictd.theta_td(2), tasks, "td", 3)[0])
    close(found["looped_norm"][0, 3], expected[0], "norm")
    close(found["looped_noise"][0, 3], expected[2], "noise")


def test_gradients_for_separate_layers_are_taken_at_24_depths_or_fewer(tmp_path):
    descent.main("loop", 2, 20, 90, GAMMA, {}, tmp_path / "found.npz")
    depths = np.load(tmp_path / "found.npz")["depths"]
    assert depths[0] == 1 and depths[-1] == 90 and len(depths) < 24
    np.testing.assert_array_equal(depths, sorted({round(90 ** (i / 23)) for i in range(24)}))


def test_overview_names_the_tightest_ratio(checks, tmp_path):
    of = Statements(ROOT / "report/theory_claims.toml")
    found = as_records(claims.check_theory(of, checks, GAMMA))
    table = claims.theory_overview(found, checks["statements"])
    ordered = sorted(found, key=lambda claim: ("paper", "ours", "check").index(claim["kind"]))
    kinds = list(dict.fromkeys(claim["id"].split("/")[0] for claim in ordered))
    columns = ["section", "claim", "measured", "least bound / measured", "verdict"]
    assert len(table) == len(kinds) and list(table)[:5] == columns
    later = checks["statements"].query("layer > 0")
    for kind, (_, row) in zip(kinds, table.iterrows(), strict=True):
        assert row["section"] == next(claim["section"] for claim in found if claim["id"].startswith(f"{kind}/"))
        ratios = later[later["statement"] == kind]["tightest"].dropna()
        shown = f"{ratios.min():.3g}" if len(ratios) and ratios.min() > 0 else ""
        assert row["least bound / measured"] == shown
    assert (table["least bound / measured"] != "").sum() >= 10


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


SIDES = numbered(
    {"statement": [*(panel[0] for panel in figures.PANELS), "theorem_1", "bounded_gradient"], "env": ["boyan", "loop"],
     "states": [3, 5], "layer": range(70)},
    ["left_mean", "right_mean", "tightest"],
)  # fmt: skip
SIDES = SIDES.drop(SIDES.index[(SIDES["statement"] == "lemma_3") & (SIDES["layer"] > 64)])


def test_theorem_1_is_drawn():
    digits = numbered(
        {"quantity": ["lemma_4", "lemma_1"], "env": ["boyan", "loop"], "states": [3, 5], "layer": [0, 10, 50, 100],
         "task": [0, 1]},
        ["ratio"],
    )  # fmt: skip
    figure = figures.theorem_1(SIDES, digits, 0.9)
    labels = [axes.get_ylabel() for axes in figure.axes]
    assert labels[0].startswith(r"$\max_q") and labels[1:] == ["", "error / bound", ""]
    layers, ten = np.arange(70), np.array([0, 50, 100])
    for column, (env, title) in enumerate((("boyan", "Boyan's chain"), ("loop", "Loop"))):
        above, below = [], []
        for states, colour in ((3, LINES[1]), (5, LINES[2])):
            rows = where(SIDES, statement="theorem_1", env=env, states=states)
            share = rows["left_mean"] / rows["right_mean"]
            exact = where(digits, quantity="lemma_4", env=env, states=states)
            means = np.array([exact.loc[exact["layer"] == layer, "ratio"].mean() for layer in ten])
            above.append((f"$n = {states}$", colour, "-", layers, share * 0.9**layers))
            above.append((None, colour, "None", ten, means * 0.9**ten))
            below.append((f"$n = {states}$", colour, "-", layers, share))
            below.append((None, colour, "None", ten, means))
        bound = r"bound, $\gamma^L \Vert v\Vert_\infty$"
        above.append((bound, COLOURS["zero"], ":", layers, 0.9**layers))
        above.append(("decimal arithmetic, 2 tasks", COLOURS["zero"], "None", [], []))
        below.append((bound, COLOURS["zero"], ":", layers, layers**0))
        upper, lower = figure.axes[column], figure.axes[2 + column]
        check_lines(upper, above)
        check_lines(lower, below)
        assert axes_of(upper) == {"title": title, "xlabel": "", "xscale": "linear", "yscale": "log"}
        assert axes_of(lower) == {"title": "", "xlabel": "layers $L$", "xscale": "linear", "yscale": "linear"}
        assert lower.get_ylim() == (0, 1.1)


def test_lemmas_are_drawn():
    figure = figures.lemmas(SIDES.assign(tightest=SIDES["tightest"].mask(SIDES["layer"] > 60)), "loop", 5)
    last = figure.axes[5]
    for i, (axes, (name, title, quantity, _)) in enumerate(zip(figure.axes, figures.PANELS, strict=False)):
        rows = where(SIDES, statement=name, env="loop", states=5).query("1 <= layer <= 64")
        lines = [
            ("measured", LINES[2], "-", rows["layer"], rows["left_mean"]),
            ("the paper's bound", COLOURS["zero"], ":", rows["layer"], rows["right_mean"]),
        ]
        if name == "lemma_3":
            ours = where(SIDES, statement="bounded_gradient", env="loop", states=5).query("1 <= layer <= 64")
            lines.append(("our bound", "#000000", "--", ours["layer"], ours["right_mean"]))
        check_lines(axes, lines)
        assert axes_of(axes) == {
            "title": title, "xlabel": "layer $l$" if i in (1, 2) else "layers $L$", "xscale": "linear",
            "yscale": "linear" if i == 1 else "log",
        }  # fmt: skip
        assert axes.get_ylabel() == quantity
        line = last.lines[i]
        assert (line.get_color(), line.get_label()) == (LINES[1 + i], title)
        np.testing.assert_allclose(line.get_ydata()[:60], rows["tightest"][:60])
    # Lines that coincide are told apart by markers of their own, at places of their own.
    assert len({line.get_marker() for line in last.lines}) == len({line.get_markevery() for line in last.lines}) == 5
    assert last.get_xlabel() == "layer $l$ or $L$" and last.get_ylabel() == "bound / measured"
    assert (last.get_title(), last.get_xscale(), last.get_yscale()) == ("least over tasks", "linear", "log")


@pytest.mark.parametrize(("algo", "name", "error"), [("td", "$J$", "lemma_1"), ("mc", "$J'$", "lemma_4")])
def test_expected_updates_are_drawn(algo, name, error):
    neu = numbered(
        {"algo": ["td", "mc"], "env": ["boyan", "loop"], "states": [3, 5], "space": ["looped", "separate"],
         "layer": range(70)},
        ["norm", "standard_error", "bound", "sharper"],
    )  # fmt: skip
    figure = figures.expected_update(neu, SIDES, algo, "boyan", 3)
    left, right = figure.axes
    rows = where(neu, algo=algo, env="boyan", states=3).query("layer > 0")
    looped, separate = rows[rows["space"] == "looped"], rows[rows["space"] == "separate"]
    layers = np.arange(1, 70)
    check_lines(
        left,
        [
            (f"{name} of $\\theta_L^{{\\mathrm{{TD}}}}$", COLOURS[algo], "-", layers, looped["norm"]),
            ("the same, separate layers", "#000000", "None", layers, separate["norm"]),
            ("the paper's bound", COLOURS["zero"], ":", layers, looped["bound"]),
            ("our bound", "#000000", "--", layers, looped["sharper"]),
        ],
    )
    title = "Boyan's chain, $n = 3$"
    assert axes_of(left) == {"title": title, "xlabel": "layers $L$", "xscale": "linear", "yscale": "log"}
    assert left.get_ylabel() == f"norm of the expected update, {name}"
    early, greatest = looped[:60], looped["norm"][:60].max()
    lines = [(None, COLOURS[algo], "-", layers[:60], early["norm"] / greatest)]
    for statement, dashes, label in (
        (error, "-.", f"expected {algo.upper()} error"),
        ("lemma_3", "--", "norm of the gradient"),
    ):
        side = where(SIDES, statement=statement, env="boyan", states=3)["left_mean"][1:61]
        lines.append((label, "#000000", dashes, layers[:60], side / side.max()))
    check_lines(right, lines)
    band = right.collections[0].get_paths()[0].vertices[:, 1]
    spread = early["standard_error"]
    assert band.min() == pytest.approx(((early["norm"] - spread) / greatest).min())
    assert band.max() == pytest.approx(((early["norm"] + spread) / greatest).max())


def test_pretrained_weights_are_drawn():
    cells = {"algo": ["mc", "td"], "env": ["boyan"], "states": [3], "depth": [4, 6], "seed": range(3)}
    line = numbered({**cells, "position": [0.0, 0.25, 0.5, 1.0]}, ["looped_norm", "theta_td"])
    repeated = numbered({**cells, "layer": [1, 4, 6, 20, 40]}, ["looped_norm"])
    line.loc[(line["depth"] == 6) & (line["position"] == 0.5), "looped_norm"] = 1e101
    repeated.loc[repeated["layer"] == 40, "looped_norm"] = 1e101
    repeated.loc[(repeated["layer"] == 6) & (repeated["depth"] == 6) & (repeated["seed"] == 0), "looped_norm"] = 1e101
    figure = pretrained_figure.pretrained(line, repeated)
    assert len(figure.axes) == 4 and [axes.get_title() for axes in figure.axes[:2]] == [
        "multi-task TD, $J$", "multi-task MC, $J'$",
    ]  # fmt: skip
    median = lambda table, **at: table[(table[list(at)] == list(at.values())).all(axis=1)]["looped_norm"].median()  # noqa: E731
    for column, algo in enumerate(("td", "mc")):
        above, below = figure.axes[column], figure.axes[2 + column]
        lines, deeper = [], []
        for depth, colour, style in ((4, LINES[0], "-"), (6, LINES[1], "--")):
            at = {"algo": algo, "depth": depth}
            places = [0, 0.25, 0.5, 1] if depth == 4 else [0, 0.25, 1]
            label = f"Boyan's chain, $n = 3$, $L = {depth}$"
            lines.append((label, colour, style, places, [median(line, **at, position=place) for place in places]))
            first = line[(line["algo"] == algo) & (line["depth"] == depth)]["theta_td"].iloc[0]
            lines.append((None, colour, "None", [1.3], [first]))
            layers = [1, 4, 6, 20]
            deeper.append((label, colour, style, layers, [median(repeated, **at, layer=layer) for layer in layers]))
            deeper.append((None, colour, "None", [depth], [median(repeated, **at, layer=depth)]))
        lines.append(("step size 1", "#000000", "None", [], []))
        deeper.append(("as many layers as in training", "#000000", "None", [], []))
        check_lines(above, lines)
        check_lines(below, deeper)
        assert (above.get_xscale(), above.get_yscale(), below.get_xscale(), below.get_yscale()) == (
            "linear",
            *["log"] * 3,
        )
        assert (
            above.get_xticks().tolist() == [0, 0.5, 1, 1.3]
            and below.get_xlabel() == "layers, the pretrained one repeated"
        )
        assert [axes.get_ylabel() for axes in (above, below)] == ["" if column else "median $J$ or $J'$"] * 2
    own = repeated[(repeated["layer"] == repeated["depth"]) & (repeated["looped_norm"] < 1e100)]["looped_norm"]
    assert figure.axes[2].get_ylim() == pytest.approx((own.min() / 30, own.max() * 1e4))


def test_pretrained_weights_that_all_diverged_are_drawn_as_nothing(tmp_path):
    cells = {"algo": ["td", "mc"], "env": ["boyan"], "states": [3], "depth": [6], "seed": range(3)}
    line = numbered({**cells, "position": [0.0, 0.5, 1.0]}, ["looped_norm"]).assign(looped_norm=np.nan, theta_td=1.0)
    repeated = numbered({**cells, "layer": [1, 6]}, ["looped_norm"]).assign(looped_norm=np.nan)
    check_border(pretrained_figure.pretrained(line, repeated), tmp_path)


@pytest.mark.parametrize(("env", "several"), [("loop", False), ("random_walks_on_a_ring_that_step_either_way", True)])
def test_no_figure_has_ink_on_its_border(env, several, tmp_path):
    at = {"env": [env, "boyan", "loops"] if several else [env], "states": [3, 5, 10, 20, 50] if several else [20]}
    # Over one decade or two axes have other labels, which are wide.
    layers = {"layer": range(301 if several else 31)}
    statements = [*(panel[0] for panel in figures.PANELS), "theorem_1", "bounded_gradient"]
    sides = numbered({"statement": statements, **at, **layers}, ["left_mean", "right_mean", "tightest"])
    sides[["left_mean", "right_mean"]] = np.outer(0.9 ** sides["layer"], [0.6, 0.7])
    digits = numbered({"quantity": ["lemma_4"], **at, "task": [0], **layers}, ["ratio"])
    both = {"algo": ["td", "mc"] if several else ["mc"], **at}
    neu = numbered({**both, "space": ["looped", "separate"], **layers}, ["norm", "standard_error", "bound", "sharper"])
    members = numbered({"member": ["inside", "beyond"], **at, "draw": [0, 1], **layers}, ["error", "bound"])
    updates = numbered({**both, "draw": [0, 1], **layers}, ["norm"])
    cells = {**both, "depth": [5, 300] if several else [30], "seed": [0, 1]}
    line = numbered({**cells, "position": [0.0, 0.5, 1.0]}, ["looped_norm", "theta_td"])
    repeated = numbered({**cells, "layer": [1, 5, 30, 300]}, ["looped_norm"])
    here = (env, at["states"][0])
    for figure in (
        figures.theorem_1(sides, digits, 0.9), figures.lemmas(sides, *here),
        figures.expected_update(neu, sides, both["algo"][0], *here), figures.family(members, updates, neu, *here),
        pretrained_figure.pretrained(line, repeated),
    ):  # fmt: skip
        check_border(figure, tmp_path)


def test_claims_have_the_values_of_their_tables(tmp_path):
    layers = range(201)
    settings = {"env": ["loop", "boyan"], "states": [5, 3]}
    sides = numbered(
        {**settings, "statement": ["theorem_1", "lemma_4"], "layer": layers}, ["left_max", "right_mean", "tightest"], 1
    )
    sides["violations"] = sides["layer"] % 3 * (sides["env"] == "loop")
    neu = numbered({"algo": ["mc", "td"], **settings, "space": ["separate", "looped"], "layer": layers}, ["norm"], 2)
    neu["norm"] *= 0.88 ** neu["layer"]
    neu["bound"], neu["sharper"] = neu["norm"] * (1 + neu["layer"] % 2), neu["norm"] - 1e-9 * (neu["layer"] == 7)
    cells = {"algo": ["td", "mc"], **settings, "depth": [6], "seed": range(3)}
    line = numbered({**cells, "position": [0.0, 0.25, 0.5, 1.0]}, ["looped_norm"], 3)
    line.loc[(line["env"] == "loop") & (line["seed"] == 1), "looped_norm"] = np.nan
    repeated = numbered({**cells, "layer": [1, 6, 90]}, ["looped_norm"], 4)
    lost = repeated["env"] == "boyan"
    repeated.loc[lost & (repeated["seed"] == 2) & (repeated["layer"] == 90), "looped_norm"] = np.nan
    gone = lost & (repeated["seed"] == 1) & (repeated["states"] == 5)
    repeated.loc[gone, "looped_norm"] = np.nan
    agreement = pd.DataFrame({"fused": [1e-12, 3e-12], "appendix": [2e-12, np.nan]})
    quantities = {"quantity": ["lemma_4", "lemma_1", "theorem_2"], "layer": [0, 10, 20]}
    digits = numbered(quantities, ["ratio", "difference"], 5)
    digits.loc[digits["layer"] == 0, ["ratio", "difference"]] = 5.0
    members = numbered({"member": ["beyond", "inside"], **settings, "draw": [1, 0], "layer": [0, 300]}, ["error"], 6)
    members["violations"] = 2 * members["draw"] * (members["env"] == "boyan") * (members["member"] == "inside")
    steps = numbered({"algo": ["td", "mc"], **settings, "draw": [1, 0], "layer": [1, 9, 300]}, ["norm"], 7)
    tables = {"statements": sides, "neu": neu, "pretrained": line, "repeated": repeated, "agreement": agreement,
              "precision": digits, "family": members, "family_updates": steps}  # fmt: skip
    for name, table in tables.items():
        save_table(tmp_path / f"{name}.csv", table)
    pages = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(claims.html, "save", lambda path, title, body: pages.update({path: (title, body)}))
        patch.setattr(claims, "load_tables", lambda paths, rows: load_tables(paths))
        patch.setattr(claims, "check_number", lambda *given: None)
        claims.main(
            ROOT / "report/theory_claims.toml", [tmp_path / f"{name}.csv" for name in tables], cells=[], states=[],
            seeds=3, depth=20, update_depth=20, discount=0.9, claims=tmp_path / "claims.json",
            page=tmp_path / "theory.html",
        )  # fmt: skip
    made = {}
    for claim in json.loads((tmp_path / "claims.json").read_text()):
        made.setdefault(claim["id"].split("/")[0], {})[claim["setting"]] = claim
    found = {name: {key: claim["value"] for key, claim in of.items()} for name, of in made.items()}
    assert list(pages) == [tmp_path / "theory.html"] and next(iter(pages.values()))[0] == "theory"
    order = ["loop-5", "loop-3", "boyan-5", "boyan-3"]
    assert all([name.removeprefix("td-").removeprefix("mc-").removesuffix("-6") for name in found[kind]][:4] == order
               for kind in ("theorem_1", "lemma_4", "theorem_2", "pretrained_lower", "barrier"))  # fmt: skip
    for name in order:
        env, states = name.split("-")[0], int(name.split("-")[1])
        of = where(sides, env=env, states=states, statement="theorem_1")
        assert found["theorem_1"][name] == pytest.approx(of["left_max"].iloc[-1] / of["right_mean"].iloc[0])
        assert found["lemma_4"][name] == (201 if env == "loop" else 0)
        assert found["family"][name] == (2 if env == "boyan" else 0)
        for claim, member, of_draws in (("family_limit", "inside", max), ("beyond_family", "beyond", min)):
            of = where(members, env=env, states=states, member=member, layer=300)
            assert found[claim][name] == pytest.approx(of_draws(of["error"]))
        for algo in ("td", "mc"):
            of = [where(steps, algo=algo, env=env, states=states, draw=draw)["norm"].to_numpy() for draw in (0, 1)]
            left = max(norms[-1] / norms.max() for norms in of)
            assert found[f"family_update_{algo}"][name] == pytest.approx(left)
        for algo, theorem in (("td", "theorem_2"), ("mc", "corollary_1")):
            of = where(neu, algo=algo, env=env, states=states)
            looped, separate = (where(of, space=space)["norm"].to_numpy() for space in ("looped", "separate"))
            assert found[f"{theorem}_bound"][name] == 0 and found[f"{theorem}_sharper"][name] == 2
            assert found[theorem][name] == pytest.approx(looped[-1] / looped.max())
            assert found[f"{theorem}_separate"][name] == pytest.approx(separate[-1] / separate.max())
            tail = np.arange(134, 201)
            slope = np.polyfit(tail, np.log(looped[tail]), 1)[0]
            assert found[f"{theorem}_rate"][name] == pytest.approx(abs(slope / np.log(0.9) - 1))
            assert f"{made[f'{theorem}_rate'][name]['statistic']} ".count(" 134 ") == 1
        for algo in ("td", "mc"):
            of = where(line, algo=algo, env=env, states=states).dropna()
            at = {place: np.log10(where(of, position=place)["looped_norm"].to_numpy()) for place in (0, 0.25, 0.5, 1)}
            cell = f"{algo}-{name}-6"
            assert found["pretrained_lower"][cell] == pytest.approx(bootstrap_interval(at[0] - at[1])[1])
            above = np.maximum(at[0.25], at[0.5]) - np.maximum(at[0], at[1])
            assert found["barrier"][cell] == pytest.approx(bootstrap_interval(above)[0])
            ratios = []
            for seed in range(3):
                of = where(repeated, algo=algo, env=env, states=states, seed=seed).set_index("layer")["looped_norm"]
                if not np.isnan(of[6]):
                    ratios.append(308 if np.isnan(of[90]) else np.log10(of[90] / of[6]))
            assert len(ratios) == (2 if cell[3:] == "boyan-5-6" else 3)
            assert found["pretrained_repeated"][cell] == pytest.approx(bootstrap_interval(np.array(ratios))[0])
    assert found["gradients_fused"] == {"all": 3e-12} and found["gradients_appendix"] == {"all": None}
    later = digits[digits["layer"] > 0]
    for name in ("lemma_1", "lemma_4"):
        assert found[f"{name}_digits"]["all"] == pytest.approx(where(later, quantity=name)["ratio"].max() - 1)
    assert found["theorem_2_digits"]["all"] == where(later, quantity="theorem_2")["difference"].max()
    short = {**tables, "neu": neu[neu["layer"] <= 131], "statements": sides[sides["layer"] <= 131]}
    of = Statements(ROOT / "report/theory_claims.toml")
    decided = {claim.id.split("/")[0] for claim in claims.check_theory(of, short, 0.9)}
    # 0.9^131 is just above a millionth, 0.9^132 below it.
    assert {"theorem_1", "theorem_2", "theorem_2_rate", "theorem_2_separate"} & decided == set()
    short["neu"], short["statements"] = neu[neu["layer"] <= 132], sides[sides["layer"] <= 132]
    decided = {claim.id.split("/")[0] for claim in claims.check_theory(of, short, 0.9)}
    assert {"theorem_1", "theorem_2", "theorem_2_rate", "theorem_2_separate"} <= decided
    single = {**tables, "pretrained": line[line["seed"] == 0], "repeated": repeated[repeated["seed"] == 0]}
    decided = {claim.id.split("/")[0] for claim in claims.check_theory(of, single, 0.0)}
    assert not {"pretrained_lower", "barrier", "pretrained_repeated", "theorem_2_rate"} & decided
    as_deep = {**tables, "repeated": repeated[repeated["layer"] <= 6]}
    assert "pretrained_repeated" not in {claim.id.split("/")[0] for claim in claims.check_theory(of, as_deep, 0.9)}


def test_each_figure_is_of_its_tables(tmp_path, monkeypatch):
    names = ("statements", "precision", "neu", "pretrained", "repeated", "family", "family_updates")
    for name in names:
        save_table(tmp_path / f"{name}.csv", pd.DataFrame({"of": [name]}))
    drawn = {}
    for module in (figures, pretrained_figure):
        monkeypatch.setattr(module, "save", lambda figure, path: drawn.setdefault(path.name, figure))
    shown = lambda part: part["of"].item() if isinstance(part, pd.DataFrame) else part  # noqa: E731
    for name in ("theorem_1", "lemmas", "expected_update", "family", "pretrained"):
        module = pretrained_figure if name == "pretrained" else figures
        monkeypatch.setattr(module, name, lambda *given, name=name: (name, *map(shown, given)))
    files = [tmp_path / f"{name}.csv" for name in names]
    figures.main(files, "loop", 4, 0.8, tmp_path)
    pretrained_figure.main(files, tmp_path / "pretrained.png")
    assert drawn == {
        "theorem_1.png": ("theorem_1", "statements", "precision", 0.8),
        "lemmas.png": ("lemmas", "statements", "loop", 4),
        "theorem_2.png": ("expected_update", "neu", "statements", "td", "loop", 4),
        "corollary_1.png": ("expected_update", "neu", "statements", "mc", "loop", 4),
        "family.png": ("family", "family", "family_updates", "neu", "loop", 4),
        "pretrained.png": ("pretrained", "pretrained", "repeated"),
    }

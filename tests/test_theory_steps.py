"""The theory's steps from sampled tasks to tables, compared with slow computations."""

import itertools
import math

import naive
import naive_theory
import numpy as np
import pandas as pd
import pytest
import torch
from drawn import where

import ictd
from ictd.pipeline.grid import Cell
from ictd.report.tables import load_table
from ictd.steps import concatenate
from ictd.steps.theory import descent, family, pretrained, values
from ictd.storage import save_arrays
from ictd.theory import inequalities
from ictd.theory.family import algorithm_weights, random_preconditioner

torch.set_num_threads(1)
GAMMA, DEPTH, TASKS = 0.8, 4, 52
ENVS = {"boyan": {}, "loop": {"threshold": 0.3}}
CELLS = {"td-boyan-2-3": 3, "mc-boyan-2-3": 3}
CONCATENATED = "statements neu pretrained repeated".split()
WHOLE = "family family_updates".split()


def theory_tasks(env, states, size):
    return ictd.sample_tasks(env, states, size, ictd.generator(0, env, states, "theory"), **ENVS[env])


def trained(algo):
    return naive.stacked([naive.larger_weights(2, seed + 10 * (algo == "mc")) for seed in range(2)])


@pytest.fixture(scope="module")
def checks(tmp_path_factory) -> dict[str, pd.DataFrame]:
    """Tables of the steps with small settings."""
    folder = tmp_path_factory.mktemp("theory")
    given = {"discount": GAMMA, "env_options": ENVS}
    for env in ENVS:
        values.main(env, [3, 2], TASKS, DEPTH, **given, output=folder / f"statements/{env}.csv")
        files = {name: folder / f"{name}/{env}-2.csv" for name in ("statements", "neu")}
        with pytest.MonkeyPatch.context() as patch:
            # Some of the sweeps take 5 of the 20 groups of tasks at once.
            patch.setattr(descent, "AT_ONCE", {"boyan": 5 * 2**4, "loop": 700_000}[env])
            descent.main(env, 2, 20, DEPTH, **given, **files)
    for cell in CELLS:
        algo = Cell.parse(cell).algo
        scale, weights = algo == "td", trained(algo)
        saved = folder / f"weights/{cell}.npz"
        save_arrays(saved, seeds=np.array([4, 7]), u=weights.u, A=weights.A)
        files = [folder / f"{name}/{cell}.csv" for name in ("pretrained", "repeated")]
        pretrained.main(80, 5, GAMMA, scale, ENVS, [saved], *files)
    settings = [f"{env}-3" for env in ENVS]
    family.main(settings, 20, 12, GAMMA, ENVS, folder / "family.csv", folder / "family_updates.csv")
    tables = [folder / f"{name}.csv" for name in CONCATENATED]
    concatenate.main(sorted(folder.glob("*/*.csv")), tables)
    return {table.stem: load_table(table) for table in [*tables, *(folder / f"{name}.csv" for name in WHOLE)]}


def close(found, expected, what):
    np.testing.assert_allclose(np.asarray(found, float), expected, rtol=1e-8, atol=1e-14, err_msg=what)


def test_sides_are_summarised_over_all_tasks(checks):
    table = checks["statements"]
    of_values = {statement.__name__ for statement in inequalities.OF_VALUES}
    settings = [*itertools.product(ENVS, [3, 2], [TASKS], [of_values])]
    settings += [(env, 2, 20, {statement.__name__ for statement in inequalities.OF_GRADIENTS}) for env in ENVS]
    assert len(table) == sum(len(names) * (DEPTH + 1) for *_, names in settings)
    for env, states, size, names in settings:
        tasks = theory_tasks(env, states, size)
        each = [naive_theory.sides(tasks.transition[i], tasks.reward[i], GAMMA, DEPTH) for i in range(size)]
        for name in names:
            rows = where(table, env=env, states=states, statement=name)
            left, right = np.array([sides[name] for sides in each]).swapaxes(0, 1)
            assert rows["layer"].tolist() == [*range(DEPTH + 1)]
            close(rows["left_mean"], left.mean(axis=0), name)
            close(rows["left_max"], left.max(axis=0), name)
            close(rows["right_mean"], right.mean(axis=0), name)
            if not name.startswith("lemma_2_step"):
                clear = left.min(axis=0) > 1e-9
                close(rows["tightest"][clear], (right / np.maximum(left, 1e-30)).min(axis=0)[clear], name)
                np.testing.assert_array_equal(rows["violations"], (left > right * (1 + 1e-9) + 1e-12).sum(axis=0))


def estimates_of(updates):
    """Norm of the mean update and its standard error, from means of 20 groups."""
    groups = updates.reshape(20, -1, updates.shape[-1]).mean(axis=1)
    mean = groups.mean(axis=0)
    along = [sum(np.sign(m) * g for m, g in zip(mean, group, strict=True)) for group in groups]
    return np.abs(mean).sum(), np.std(along, ddof=1) / math.sqrt(20)


def updates_at(weights, tasks, algo, depth, scale=1.0):
    """Expected update of each task in Theta^looped and in Theta, for a trained A that layers multiply by ``scale``."""
    used = ictd.Weights(weights.u, scale * weights.A)
    each = np.array([naive_theory.separate_update(used, tasks, i, algo, depth, GAMMA) for i in range(len(tasks))])
    each[..., 2 * tasks.states :] *= scale
    return each.sum(axis=1), each.reshape(len(each), -1)


def test_norms_of_expected_updates_are_those_by_torch(checks):
    table = checks["neu"]
    assert len(table) == 2 * 2 * (DEPTH + 1 + DEPTH)
    for env, algo in itertools.product(ENVS, ("td", "mc")):
        tasks = theory_tasks(env, 2, 20)
        sides = [naive_theory.sides(tasks.transition[i], tasks.reward[i], GAMMA, DEPTH) for i in range(20)]
        error = "lemma_1" if algo == "td" else "lemma_4"
        bound, sharper = (
            np.mean([of[error][1] * of[name][1] for of in sides], axis=0) for name in ("lemma_3", "bounded_gradient")
        )
        for depth in range(1, DEPTH + 1):
            updates = updates_at(ictd.theta_td(2), tasks, algo, depth)
            for space, of_space in zip(("looped", "separate"), updates, strict=True):
                row = where(table, env=env, algo=algo, space=space, layer=depth)
                close(row[["norm", "standard_error"]].to_numpy()[0], estimates_of(of_space), space)
                close(row[["bound", "sharper"]].to_numpy()[0], (bound[depth], sharper[depth]), space)


def test_a_family_of_weights_has_the_limit_v(checks):
    """Compared with naive Transformers on whole prompts, and with the fixed point of layers."""
    table, updates = checks["family"], checks["family_updates"]
    assert len(table) == 2 * (3 * 5 + 3) * 13 and len(updates) == 2 * 2 * 5 * 9
    for env in ENVS:
        tasks, rng = theory_tasks(env, 3, 20), ictd.generator(0, env, 3, "family")
        u_rng = ictd.generator(0, env, 3, "family u")
        values_of_tasks = ictd.value_function(tasks.transition, tasks.reward, GAMMA)
        largest = np.abs(values_of_tasks).max()
        for draw in range(2):
            K, N = random_preconditioner(tasks, GAMMA, rng), rng.normal(size=(6, 3))
            N *= np.linalg.norm(K - np.eye(6, 3)) / np.linalg.norm(N)
            inside, zero, u = np.hstack([-K, K]), np.zeros(6), u_rng.normal(size=6)
            members = {"inside": (zero, inside), "beyond": (zero, np.hstack([N - K, N + K])), "with_u": (u, inside)}
            for member, (u, A) in members.items():
                rows = where(table, member=member, env=env, draw=draw).set_index("layer")
                errors = []
                for P, r, v in zip(tasks.transition, tasks.reward, values_of_tasks, strict=True):
                    found = naive.enumerated_values(ictd.Weights(u, A), 12, P, r, GAMMA, scaled=False)
                    # The rows of gamma P' are below the identity.
                    uX = u @ np.vstack([np.eye(3), GAMMA * P.T])
                    shift = np.linalg.solve((np.eye(3) - GAMMA * P.T).T, uX)
                    errors.append(np.abs(found - v - shift).max())
                assert rows["error"][12] == pytest.approx(max(errors) / largest)
                assert rows["violations"].eq(0).all()
            rows = where(table, member="inside", env=env, draw=draw)
            bound = ((1 + GAMMA) / 2) ** rows["layer"] * np.abs(tasks.reward).max() / (1 - GAMMA) / largest
            np.testing.assert_allclose(rows["bound"], bound)


def test_weights_of_the_family_perform_known_algorithms(checks):
    """Compared with these algorithms without a Transformer."""
    for env in ENVS:
        tasks = theory_tasks(env, 3, 20)
        v = ictd.value_function(tasks.transition, tasks.reward, GAMMA)
        known = algorithm_weights(tasks, GAMMA)
        A = known["residual_gradient"].A
        step_size = A[0, 3]
        np.testing.assert_array_equal(A, step_size * np.kron([[-1, 1], [1, -1]], np.eye(3)))
        squares = [(np.eye(3) - GAMMA * P) @ (np.eye(3) - GAMMA * P).T for P in tasks.transition]
        bounds = np.linalg.eigvalsh(squares)
        assert step_size == pytest.approx(2 / (bounds.min() + bounds.max()))
        for algorithm in known:
            rows = where(checks["family"], member=algorithm, env=env, draw=0).set_index("layer")
            estimates = [
                naive_theory.estimates_by(algorithm, P, r, GAMMA, 12, step_size)
                for P, r in zip(tasks.transition, tasks.reward, strict=True)
            ]
            errors = np.abs(np.array(estimates) - v[:, None]).max(axis=(0, 2))
            np.testing.assert_allclose(rows["error"], errors / np.abs(v).max(), rtol=1e-9)
            assert rows["bound"].isna().all() and rows["violations"].eq(0).all()


def test_pretrained_weights_are_followed_to_theta_td_and_to_other_depths(checks):
    tasks, theta = theory_tasks("boyan", 2, 80), ictd.theta_td(2)
    for cell, depth in CELLS.items():
        algo, scale = cell[:2], 0.5 if cell[:2] == "td" else 1.0
        line, repeated = (
            checks[name][checks[name]["algo"] == algo].set_index(["seed", key])
            for name, key in (("pretrained", "position"), ("repeated", "layer"))
        )
        assert set(line.index) == set(itertools.product([4, 7], [0, 0.25, 0.5, 1]))
        # Log-spaced depths from 1 to 5, and the depth of pretraining.
        assert set(repeated.index) == set(itertools.product([4, 7], [1, 2, 3, 4, 5]))
        for (seed, place, layers), start in zip(((4, 0.25, 1), (7, 1, 5)), trained(algo), strict=False):
            size = np.mean([-start.A[0, 0], -start.A[1, 1], start.A[0, 2], start.A[1, 3]])
            here = ictd.Weights((1 - place) * start.u, (1 - place) * start.A + place * size * theta.A)
            of_line = updates_at(here, tasks, algo, depth, scale)
            few = updates_at(start, tasks[:60], algo, layers, scale)
            for space, updates, of_few in zip(("looped", "separate"), of_line, few, strict=True):
                close(line.loc[(seed, place), f"{space}_norm"], estimates_of(updates)[0], space)
                close(repeated.loc[(seed, layers), f"{space}_norm"], estimates_of(of_few)[0], space)
        pattern = ictd.Weights(theta.u, theta.A / scale)
        close(line["theta_td"], estimates_of(updates_at(pattern, tasks, algo, depth, scale)[0])[0], "theta_td")


def test_tables_are_joined_from_parts_with_the_same_columns_in_their_folders(tmp_path):
    parts = {"a/2.csv": "x,y\n1,2.50\n", "a/1/0.csv": "x,y\n,nan\n3,\n", "ab/0.csv": "x,y\n9,9\n", "b/0.csv": "z\n"}
    for name, text in parts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    files = [tmp_path / name for name in parts]
    concatenate.main(files, [tmp_path / "a.csv"])
    assert (tmp_path / "a.csv").read_text() == "x,y\n1,2.50\n,nan\n3,\n"
    with pytest.raises(ValueError, match=r"c\.csv has no part in .*/c\."):
        concatenate.main(files, [tmp_path / "c.csv"])
    files[0].write_text("y,x\n")
    with pytest.raises(ValueError, match=r"a/1/0\.csv has the columns x,y; .*a/2\.csv has y,x\."):
        concatenate.main(files, [tmp_path / "a.csv"])

"""The batched autograd engine compared with single runs, and pretraining under other readings."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from tolerances import DIFFERENCES, ENGINES, ROUNDING

import ictd
from studies.emergence import batched_engine
from studies.emergence.batched_engine import Transformers, initial_matrices, pretrain_runs, theta_masks
from studies.emergence.readings import Reading

OURS = {
    "scaled_attention": True, "parameters": "theta", "layers": "looped", "initial_gain": 0.1,
    "learning_rate": 1e-3, "clip": 0, "precision": "float64", "corner": "drawn", "skip": False,
}  # fmt: skip


def material(env, states, size, seeds):
    tasks = [ictd.sample_tasks(env, states, size, ictd.generator(seed, env, states, "tasks")) for seed in range(seeds)]
    unrolls = [
        ictd.unroll(one, 16, 0.9, 30, ictd.generator(seed, env, states, "unrolls")) for seed, one in enumerate(tasks)
    ]
    return tasks, unrolls


def generators(states, seeds):
    return [ictd.generator(seed, "boyan", states, "weights") for seed in range(seeds)]


class Batched(Reading):
    """A reading that takes the batched engine."""

    compiled = False


def pretrain(algos, depth, tasks, unrolls, discount=0.9, kind=Reading, **changes):
    rngs = generators(tasks[0].states, len(tasks))
    return kind(**{**OURS, **changes}).pretrain(algos, depth, discount, tasks, unrolls, rngs)


@pytest.mark.parametrize(("env", "clip"), [("boyan", 0.01), ("loop", 0.3)])
def test_clipped_runs_side_by_side_are_single_runs(env, clip):
    tasks, unrolls = material(env, 3, 30, 2)
    free, _ = pretrain(["td", "mc"], 5, tasks, unrolls)
    fused, batched = (pretrain(["td", "mc"], 5, tasks, unrolls, clip=clip, kind=one)[0] for one in (Reading, Batched))
    np.testing.assert_allclose(batched.weights().A, fused.weights().A, atol=ENGINES)
    assert (np.abs(fused.weights().A - free.weights().A).max(axis=(1, 2)) > 1e-6).all()


@pytest.mark.parametrize(
    ("env", "states", "depth", "scale"),
    [("boyan", 3, 6, True), ("loop", 3, 4, False), ("boyan", 2, 1, False)],
)
def test_runs_side_by_side_are_single_runs(env, states, depth, scale):
    tasks, unrolls = material(env, states, 30, 3)
    fused, none = pretrain(["td", "mc"], depth, tasks, unrolls, scaled_attention=scale)
    batched, diverged = pretrain(["td", "mc"], depth, tasks, unrolls, scaled_attention=scale, kind=Batched)
    assert not none.any() and not diverged.any()
    for name in ("u", "A"):
        np.testing.assert_allclose(getattr(batched.weights(), name), getattr(fused.weights(), name), atol=ENGINES)
    start = ictd.initial_weights(states, 0.1, generators(states, 3)[1])
    for run, algo in ((1, "td"), (4, "mc")):
        alone = ictd.pretraining.pretrain_history(
            tasks[1], unrolls[1], algo, depth, 0.9, 1e-3, start, "autograd", scaled=scale
        ).weights[-1]
        np.testing.assert_allclose(batched.weights().A[run], alone.A, atol=ENGINES)


def test_outputs_are_those_of_linear_transformers():
    rng = np.random.default_rng(0)
    weights = [ictd.Weights(0.3 * rng.normal(size=6), 0.3 * rng.normal(size=(6, 6))) for _ in range(2)]
    prompts = torch.from_numpy(rng.normal(size=(2, 7, 9)))
    prompts[:, 3:, 7:] = 0
    P, Q = (np.stack([getattr(one, name)() for one in weights])[:, None] for name in "PQ")
    model = Transformers(3 * P, Q / 3, 4, True)
    found = model(prompts, 2)
    for run, one in enumerate(weights):
        expected = ictd.LinearTransformer(one, 4)(prompts[run], queries=2).detach().numpy()
        np.testing.assert_allclose(found[run].detach(), expected, atol=ROUNDING * np.abs(expected).max())
        np.testing.assert_allclose(model[run](prompts[run], 2).detach(), expected, atol=1e-12)
        np.testing.assert_allclose(model.weights().A[run], one.A, atol=1e-14)
        np.testing.assert_allclose(model.weights().u[run], one.u, atol=1e-14)


def literal_gradient(P, Q, depth, tasks, unrolls, algo):
    """Of the loss of the first task by finite differences, layers and prompts written out; P, Q (K, 2n+1, 2n+1)."""
    n = tasks.states
    context = ictd.enumerated_columns(tasks.transition[0], tasks.reward[0], 0.9)

    def values(P, Q):
        out = []
        for query in range(n):
            Z = np.column_stack([context, np.eye(2 * n + 1)[query]])
            M = np.diag([1.0] * n + [0.0])
            for layer in range(depth):
                p, q = P[layer % len(P)], Q[layer % len(Q)]
                Z = Z + p @ Z @ M @ (Z.T @ q @ Z) / n
            out.append(-Z[-1, -1])
        return np.array(out)

    fixed, loss_of = values(P, Q), []
    visits, transitions = unrolls.visits[0], unrolls.transitions[0]
    target = visits * tasks.reward[0] + 0.9 * transitions @ fixed if algo == "td" else unrolls.return_sums[0]

    def loss(P, Q):
        v = values(P, Q)
        return (0.5 * visits * v**2 - target * v).sum() / visits.sum()

    step = 1e-6
    for part in range(2):
        gradient = np.zeros_like(P)
        for index in np.ndindex(P.shape):
            moved = [[P.copy(), Q.copy()] for _ in range(2)]
            moved[0][part][index] += step
            moved[1][part][index] -= step
            gradient[index] = (loss(*moved[0]) - loss(*moved[1])) / (2 * step)
        loss_of.append(gradient)
    return loss_of


@pytest.mark.parametrize(("algo", "layers", "clip"), [("td", 1, 0), ("mc", 3, 0), ("td", 3, 0.01)])
def test_first_gradient_is_that_of_the_loss_written_out(algo, layers, clip, monkeypatch):
    """With all of P and Q, shared or not; what Adam is given is caught, as its first step hides the gradient's size."""
    tasks, unrolls = material("boyan", 2, 1, 2)
    start = [initial_matrices(2, 0.7, layers, True, rng) for rng in generators(2, 2)]
    model = Transformers(*np.stack(start, axis=1), 3, True)
    caught = []
    monkeypatch.setattr(
        torch.optim.Adam, "step", lambda self: caught.extend(p.grad.clone() for p in model.parameters())
    )
    pretrain_runs(model, [algo] * 2, tasks, unrolls, 0.9, 1e-3, clip=clip)
    for run in range(2):
        expected = np.array(literal_gradient(*start[run], 3, tasks[run], unrolls[run], algo))
        norm = np.sqrt((expected**2).sum())
        expected *= min(1, clip / norm) if clip else 1
        assert not clip or norm > clip
        np.testing.assert_allclose([part[run].numpy() for part in caught], expected, atol=DIFFERENCES)


def test_masked_entries_do_not_change():
    tasks, unrolls = material("boyan", 3, 5, 2)
    inside = torch.tensor(theta_masks(3), dtype=torch.bool)
    for changes, layers in (({"clip": 1}, 1), ({"layers": "separate"}, 3), ({"parameters": "all"}, 1)):
        after = [pretrain(["td"], 3, [t[:k] for t in tasks], [u[:k] for u in unrolls], **changes)[0] for k in (1, 5)]
        for one, other, mask in zip(*(model.parameters() for model in after), inside, strict=True):
            moved = (one != other).all(dim=0)
            expected = torch.ones_like(mask) if "parameters" in changes else mask
            # In a separate last layer only the query's column has an effect, and its lower half is zero.
            assert moved.shape == (layers, 7, 7) and (moved[: layers - 1 or 1] == expected).all()
            assert not moved[-1][~expected].any() and moved[-1].any()


def test_gradients_of_separate_layers_add_up_to_that_of_a_looped_layer():
    tasks, unrolls = material("loop", 3, 1, 2)
    P, Q = np.stack([initial_matrices(3, 0.5, 1, False, rng) for rng in generators(3, 2)], axis=1)
    gradients = []
    for layers in (1, 4):
        model = Transformers(np.repeat(P, layers, axis=1), np.repeat(Q, layers, axis=1), 4, True)
        pretrain_runs(model, ["mc", "td"], tasks, unrolls, 0.9, 1e-9, theta_masks(3))
        gradients.append([part.grad.sum(dim=1) for part in model.parameters()])
    for looped, separate in zip(*gradients, strict=True):
        torch.testing.assert_close(looped, separate, rtol=0, atol=ROUNDING)


def test_weights_are_scaled_and_signed_as_in_theta():
    rng = np.random.default_rng(0)
    P, Q = rng.normal(size=(2, 2, 3, 5, 5))
    P[..., -1, -1] = [[2.0, 4.0, 6.0], [2.0, 4.0, 6.0]]
    flipped = Transformers(P * np.array([1, -1, 1])[:, None, None], Q * np.array([1, -1, 1])[:, None, None], 3, True)
    weights = flipped.weights()
    np.testing.assert_allclose(weights.u, P.mean(axis=1)[:, -1, :-1] / 4)
    np.testing.assert_allclose(weights.A, Q.mean(axis=1)[:, :-1, :-1] * 4)
    prompt = torch.from_numpy(rng.normal(size=(2, 5, 6)))
    torch.testing.assert_close(flipped(prompt, 2), Transformers(P, Q, 3, True)(prompt, 2))


def test_single_precision_is_near():
    tasks, unrolls = material("boyan", 3, 20, 2)
    single, double = (pretrain(["mc"], 5, tasks, unrolls, precision=one)[0] for one in ("float32", "float64"))
    difference = np.abs(single.weights().A - double.weights().A).max()
    assert single.P.dtype == torch.float32 and 0 < difference < 1e-4


@pytest.mark.parametrize("kind", [Reading, Batched])
def test_a_run_that_diverges_leaves_the_others_alone(kind):
    tasks, unrolls = material("boyan", 3, 6, 3)
    calm, _ = pretrain(["td"], 40, tasks, unrolls, kind=kind, scaled_attention=False)
    tasks[1] = ictd.Tasks(tasks[1].transition, 1e300 * tasks[1].reward, tasks[1].stationary)
    model, diverged = pretrain(["td"], 40, tasks, unrolls, kind=kind, scaled_attention=False)
    assert diverged.tolist() == [0, 1, 0]
    A = model.weights().A
    assert np.isnan(A[1]).all() and np.array_equal(A[[0, 2]], calm.weights().A[[0, 2]])


def test_long_runs_say_how_far_they_are(monkeypatch, caplog):
    monkeypatch.setattr(batched_engine, "PROGRESS_SECONDS", -1)
    tasks, unrolls = material("boyan", 2, 3, 1)
    with caplog.at_level("INFO"):
        pretrain(["td"], 1, tasks, unrolls, kind=Batched)
    assert [record.getMessage() for record in caplog.records] == [f"{i} of 3 tasks" for i in (1, 2, 3)]


def test_a_corner_of_one_is_the_only_entry_that_is_not_drawn():
    tasks, unrolls = material("boyan", 3, 1, 2)
    options = {"parameters": "all", "learning_rate": 1e-12, "initial_gain": 0.01}
    drawn, one = (pretrain(["td"], 4, tasks, unrolls, corner=corner, **options)[0] for corner in ("drawn", "one"))
    P, Q = (getattr(one, name).detach().numpy() for name in "PQ")
    np.testing.assert_allclose(P[..., -1, -1], 1)
    changed = P - drawn.P.detach().numpy()
    changed[..., -1, -1] = 0
    np.testing.assert_allclose(changed, 0, atol=1e-11)
    np.testing.assert_allclose(Q, drawn.Q.detach().numpy(), atol=1e-11)
    assert np.abs(Q).max() < 0.01


def test_updates_that_are_not_finite_are_skipped():
    """The third task of the first run has an infinite return; the second run has no such task."""
    tasks, unrolls = material("boyan", 3, 6, 2)
    broken = [ictd.BatchStatistics(one.visits, one.transitions, one.return_sums) for one in unrolls]
    broken[0].return_sums.flags.writeable = True
    broken[0].return_sums[2] = np.inf
    options = {"parameters": "all", "corner": "one", "initial_gain": 0.01}
    model, diverged = pretrain(["mc"], 4, tasks, broken, skip=True, **options)
    lost, at = pretrain(["mc"], 4, tasks, broken, **options)
    assert diverged.tolist() == [0, 0] and at[0] == 4 and at[1] == 0
    assert np.isnan(lost.P[0].detach().numpy()).all()
    whole, _ = pretrain(["mc"], 4, tasks, unrolls, skip=True, **options)
    np.testing.assert_array_equal(model.P[1].detach().numpy(), whole.P[1].detach().numpy())
    assert np.isfinite(model.P[0].detach().numpy()).all() and (model.P[0] != whole.P[0]).any()
    # A run has diverged if it skips the update for its last task.
    parts = [(one[:3], other[:3]) for one, other in zip(tasks, broken, strict=True)]
    assert pretrain(["mc"], 4, *zip(*parts, strict=True), skip=True, **options)[1].tolist() == [3, 0]


def test_skipped_updates_change_neither_parameters_nor_moments():
    parts = [torch.nn.Parameter(torch.ones(2, 1, 3, 3)) for _ in range(2)]
    model = SimpleNamespace(P=parts[0], Q=parts[1])
    optimizer = torch.optim.Adam(parts, lr=0.1)
    for skipped in ([False, True], [False, False], [True, False]):
        before = [part.detach().clone() for part in parts]
        for part in parts:
            part.grad = torch.full_like(part, 0.5)
            part.grad[torch.tensor(skipped)] = torch.nan
        with batched_engine._unchanged(model, optimizer, torch.tensor(skipped)):
            optimizer.step()
        for part, old in zip(parts, before, strict=True):
            assert part.isfinite().all()
            assert [bool((part[i] == old[i]).all()) for i in range(2)] == skipped
            assert all(optimizer.state[part][name].isfinite().all() for name in batched_engine.MOMENTS)

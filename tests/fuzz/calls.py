"""Library calls: every public function with arguments in all the types it takes, or with one that it must refuse.

Results are held to slow, obvious computations where there are some (``naive``), or to what must be so.
"""

import copy
import itertools
import random
from pathlib import Path
from typing import NamedTuple

import naive
import numpy as np
import torch

import ictd
from ictd import (
    autograd_engine,
    baselines,
    decomposition,
    environments,
    evaluation,
    fused_engine,
    gram,
    mrp,
    pattern,
    pretraining,
    prompts,
    snapshots,
    statistics,
    streams,
    trajectories,
    transformer,
    unseen_tasks,
    weights,
)  # fmt: skip

MODULES = (
    autograd_engine, baselines, decomposition, environments, evaluation, fused_engine, gram, mrp, pattern, pretraining,
    prompts, statistics, streams, trajectories, transformer, unseen_tasks, weights,
)  # fmt: skip


class Argument(NamedTuple):
    """A valid value, other forms of it, and values in its place that are none."""

    value: object
    forms: list = []  # noqa: RUF012
    wrong: list = []  # noqa: RUF012


def array(value, *wrong, finite=True, tied=True, numbers="f") -> Argument:
    """An array; ``tied`` if no other shape will do beside the other arguments."""
    value = np.asarray(value)
    forms = [
        value.tolist(),
        value.astype(value.dtype.newbyteorder(">")),
        value.copy(order="F"),
        value[..., ::-1][..., ::-1],
    ]
    forms.append(np.stack([value, value], axis=-1)[..., 0])
    if numbers == "f":
        forms += [value.astype(kind) for kind in (np.float32, np.longdouble) if (value.astype(kind) == value).all()]
    else:
        forms += [value.astype(np.int8), value.astype(np.uint16)]
    bad = [value + 0j, value.astype(object), value.astype(str), np.ma.masked_array(value), value > 0, None, "text", {}]
    bad += [[[1], [1, 2]], value[..., :0], np.full(value.shape, np.datetime64("2000-01-01"))]
    bad += [value[None, None, ..., :-1], value[..., None]] if tied else []
    if finite:
        for number in (np.nan, np.inf, -np.inf):
            spoiled = value.astype(float)
            spoiled.flat[-1] = number
            bad.append(spoiled)
    return Argument(value, forms, bad + list(wrong))


def distributions(value) -> Argument:
    value = np.asarray(value)
    negative, short = value.copy(), value.copy()
    negative[..., 0], negative[..., 1] = -0.25, 1.25
    short[..., 0] += 1e-6
    of = array(value, negative, short, 0 * value, 2 * value)
    return of._replace(forms=[*of.forms, value.astype(np.float32)])


def optional(argument) -> Argument:
    """Where None would do as well."""
    return argument._replace(wrong=[bad for bad in argument.wrong if bad is not None])


def whole(value: int, *wrong, least=1) -> Argument:
    bad = [least - 1, -1, value + 0.5, float(value), True, np.True_, str(value), None, np.nan, 1e30, 10**30]
    return Argument(value, [np.int64(value), np.uint8(value)], [*bad, [value], np.array([value, value]), *wrong])


def number(value: float, *wrong) -> Argument:
    bad = [np.nan, np.inf, -np.inf, "0.5", None, True, 0.5 + 0j, [0.5], np.array([0.5, 0.5]), 10**400]
    return Argument(value, [np.float64(value), np.float32(value)], [*bad, *wrong])


def thing(value, *wrong) -> Argument:
    """An object of a class, or a word."""
    return Argument(value, [], [None, 3, 0.5, b"word", [], np.zeros(3), value.__class__, *wrong])


def flag(value: bool) -> Argument:
    return Argument(value, [np.bool_(value)], [0, 1, None, "no", 0.5, np.zeros(2)])


class Draw:
    """Arguments that go together: N tasks of n states with what belongs to them."""

    def __init__(self, rng: random.Random):
        self.rng, self.g = rng, np.random.default_rng(rng.getrandbits(64))
        self.n, self.N, self.m, self.depth = (rng.randint(*ends) for ends in ((2, 4), (1, 3), (1, 6), (1, 4)))
        env = rng.choice(["boyan", "loop"])
        self.tasks = ictd.sample_tasks(env, self.n, self.N, self.g)
        self.gamma = rng.choice([0.0, 0.25, 0.875, 0.984375])
        self.unrolls = ictd.unroll(self.tasks, rng.choice([3, 20]), self.gamma, rng.randint(1, 4), self.g)
        self.paths = ictd.sample_paths(self.tasks, self.m, self.g)
        self.data = unseen_tasks.draw_unseen_tasks(rng.randint(0, 99), self.n, self.N, self.m, self.gamma, env)
        self.weights = naive.larger_weights(self.n, rng.randint(0, 99))
        self.context = prompts.Context.of_paths(self.paths, self.tasks.reward)
        self.several = ictd.Weights(np.stack([self.weights.u] * 2), np.stack([self.weights.A, -self.weights.A]))

    def real(self, *shape):
        return self.g.normal(size=shape).astype(np.float32).astype(float)

    def discount(self, value=None):
        value = self.gamma if value is None else value
        return number(value, 1, 1.0, -0.1, 2, 0.9999999999999999, 1 - 2.0**-27)

    @property
    def scaled(self):
        return flag(self.rng.random() < 0.5)

    @property
    def layers(self):
        return whole(self.depth)

    @property
    def generator(self):
        seed = self.rng.randint(0, 99)
        made = np.random.default_rng(seed)
        return Argument(made, [], [None, seed, np.random.RandomState(seed), np.random, "rng"])

    @property
    def lengths(self):
        return array(
            np.array([1, self.m]), [0.5, 1], [-1], [self.m + 1], [10**30], [], tied=False, finite=False, numbers="i"
        )

    def task(self):
        return self.tasks.transition, self.tasks.reward

    def of_tasks(self):
        return {"tasks": thing(self.tasks, self.unrolls, self.tasks.transition)}

    def of_weights(self):
        return {"weights": thing(self.weights, self.weights.u, self.tasks)}


def close(found, expected, loose=False) -> bool:
    """Whether all of what was found, by name if it has names, is what was expected."""
    if isinstance(expected, dict):
        return found.keys() == expected.keys() and all(close(found[name], expected[name], loose) for name in expected)
    found, expected = (np.asarray(x.detach() if isinstance(x, torch.Tensor) else x) for x in (found, expected))
    size = np.abs(expected[np.isfinite(expected)]).max(initial=1) if expected.dtype.kind in "fiu" else 1
    same = found.shape == expected.shape and found.dtype.kind != "c"
    return bool(same and np.allclose(found, expected, rtol=0, atol=(1e-3 if loose else 1e-9) * size, equal_nan=True))


def each(function, *arrays):
    """A function of one task, over a leading axis of tasks."""
    return np.array([function(*(array[i] for array in arrays)) for i in range(len(arrays[0]))])


def modelled(d, found, context, discount, pseudo_steps, reward):
    """Whether values are those of counted steps and pseudo-steps, with a reward where no step is counted."""
    for path, of, values in zip(d.paths, d.tasks.reward, found, strict=True):
        steps = np.zeros((d.n, d.n)) if pseudo_steps is None else np.array(pseudo_steps, float)
        np.add.at(steps, (path[:-1], path[1:]), 1)
        seen = np.isin(np.arange(d.n), path[:-1])
        p = steps / np.maximum(steps.sum(axis=1, keepdims=True), 1e-300)
        if not close(values, np.linalg.solve(np.eye(d.n) - discount * p, np.where(seen, of, reward)), True):
            return False
    return True


def contexts_of(d):
    """The context (2n+1, m) of each task's path."""
    columns = [
        naive.sampled_prompt(path, reward, d.gamma, 0) for path, reward in zip(d.paths, d.tasks.reward, strict=True)
    ]
    return np.stack(columns)[..., :-1]


def transformed(d, weights, context, scaled=True):
    """TF_L of all queries of a context (2n+1, m), from one prompt a query."""
    queries = np.eye(2 * d.n + 1)[: d.n]
    return np.array([naive.transformer(weights, d.depth, np.column_stack([context, q]), scaled) for q in queries])


def errors(d, estimates):
    """MSVE of estimates (..., N, n) of the unseen tasks."""
    mu, v = d.data.tasks.stationary, d.data.value
    return np.array(
        [[sum(mu[i] * (v[i] - e[i]) ** 2) for i in range(d.N)] for e in np.reshape(estimates, (-1, d.N, d.n))]
    )


def unseen_contexts(d, length):
    tasks = d.data.tasks
    if length == 0:
        return [
            naive.enumerated_prompt(p, r, d.gamma, 0)[:, :-1]
            for p, r in zip(tasks.transition, tasks.reward, strict=True)
        ]
    return [
        naive.sampled_prompt(path[: length + 1], r, d.gamma, 0)[:, :-1]
        for path, r in zip(d.data.paths, tasks.reward, strict=True)
    ]


def model_errors(d, weights, length, scaled=True):
    return errors(d, [transformed(d, weights, context, scaled) for context in unseen_contexts(d, length)])[0]


def td_errors(d, length, step, scaled=True):
    theta = ictd.theta_td(d.n)
    return model_errors(d, ictd.Weights(theta.u, step * theta.A), length, scaled)


def unrolled(d, found, tasks, batch_size, discount, rollout_steps, rng):
    visits, transitions, returns = naive.unroll(tasks, batch_size, discount, rollout_steps, rng)
    return close(found.visits, visits) and close(found.transitions, transitions) and close(found.returns, returns, True)


def engine(d, kind=fused_engine.FusedEngine, rate=1e-3):
    return kind(d.weights, "td", d.depth, d.gamma, rate, True)


def on_prompts(d, estimates):
    """Whether these are the estimates of the weights on the tasks' enumerated prompts."""
    contexts = each(lambda p, r: naive.enumerated_prompt(p, r, d.gamma, 0)[:, :-1], *d.task())
    return close(estimates, [transformed(d, d.weights, context) for context in contexts])


def run_arguments(d):
    return {
        "weights": thing(d.weights, d.several), "algo": thing(d.rng.choice(["td", "mc"]), "sarsa"), "depth": d.layers,
        "discount": d.discount(), "learning_rate": number(0.0078125, -1), "scaled": d.scaled,
    }  # fmt: skip


def history_arguments(d):
    seen = array(
        np.array([*range(1, d.N), d.N]), [0, d.N], [d.N, d.N], [d.N + 1], [2.0, 1.0], numbers="i", finite=False
    )
    start = {"u": array(0.1 * d.real(2 * d.n)), "A": array(0.1 * d.real(2 * d.n, 2 * d.n))}
    run = {name: one for name, one in run_arguments(d).items() if name != "weights"}
    longer = ictd.Unrolls(*(np.concatenate([part, part]) for part in vars(d.unrolls).values()))
    return {
        **d.of_tasks(), "unrolls": thing(d.unrolls, longer), **run, **start, "learning_rate": number(0.0078125, 0, -1),
        "engine": thing(d.rng.choice(["fused", "autograd"]), "jax"), "tasks_seen": optional(seen),
    }  # fmt: skip


def trained(d, history, engine, u, A, tasks, unrolls, algo, depth, discount, learning_rate, tasks_seen, scaled):
    other = {"fused": "autograd", "autograd": "fused"}[engine]
    arguments = (tasks, unrolls, algo, depth, discount, learning_rate, u, A, other)
    again = pretraining.pretrain_history(*arguments, scaled=scaled)
    return close(history.weights.A[-1], again.weights.A[-1], True) and close(history.estimates, again.estimates, True)


def unchanged(field):
    """Whether an object's field holds the values that it was given, up to the rounding of narrower types."""
    return lambda d, made, **given: close(getattr(made, field), given[field], True)


def one_length(d):
    """A context length, where an array of them would do as well."""
    of = whole(d.m)
    return of._replace(wrong=[bad for bad in of.wrong if not isinstance(bad, list | np.ndarray)])


def ranked(values):
    values = np.where(np.isnan(values), np.inf, values)
    return [sum(y < x for y in values) + (sum(y == x for y in values) - 1) / 2 for x in values]


def pearson(x, y):
    return 0 if len(set(x)) == 1 or len(set(y)) == 1 else np.corrcoef(x, y)[0, 1]


def wide(d, *lead, **more):
    return {"A": array(d.real(*lead, 2 * d.n, 2 * d.n), finite=False, **more)}


def theta_part(A):
    pattern = ictd.theta_td(A.shape[-1] // 2).A
    return np.linalg.lstsq(pattern.reshape(-1, 1), A.reshape(-1), rcond=None)[0][0]


def contexts_and(d, **more):
    contexts = Argument([d.data.context(d.m), d.data.context(0)], [], [None, [], [3], d.data.context(d.m)])
    return {"data": thing(d.data, d.tasks), "depth": d.layers, "contexts": contexts, "scaled": d.scaled, **more}


def rewards(d):
    return array(d.tasks.reward)


def paths(d):
    return array(
        d.paths, d.paths - d.n, d.paths + d.n, d.paths + 0.5, d.paths[..., :1], tied=False, finite=False, numbers="i"
    )


def stacked(d):
    """A context (N, 2n+1, m), whose shapes hang together only by an odd number of rows."""
    value = contexts_of(d)
    return array(value, value[:, :-1], value[0, 0], tied=False)


def of_depth(d, **more):
    return {"depth": d.layers, "discount": d.discount(), **more}


def drawn(d, **more):
    return {"states": whole(d.n, least=2), "size": whole(d.N), "rng": d.generator, **more}


def environment(d, found, **given):
    transition, reward = (found.transition, found.reward) if isinstance(found, ictd.Tasks) else found
    fits = transition.shape == (d.N, d.n, d.n) and reward.shape == (d.N, d.n) and np.abs(reward).max() <= 1
    return bool(fits and (transition >= 0).all() and np.allclose(transition.sum(axis=-1), 1))


def samples(d, *shape, empty=False):
    """Any numbers; ``empty`` if it may be none of them in each sample."""
    of = array(d.real(*shape), np.float64(1), tied=False, finite=False)
    return of._replace(wrong=[bad for bad in of.wrong if not (empty and isinstance(bad, np.ndarray) and bad.size == 0)])


def averages(d):
    c = d.context
    return {
        "length": one_length(d),
        "visits": distributions(c.visits),
        "successors": array(c.successors),
        "rewards": array(c.rewards),
        "next_rewards": array(c.next_rewards),
        "next_visits": optional(array(c.next_visits)),
    }


def averages_are(found, columns):
    """Whether a context's averages are those over columns [phi_t; phi_{t+1}; R_{t+1}], (N, 2n+1, m)."""
    n, m = found.states, columns.shape[-1]
    now, following, rewards = columns[:, :n], columns[:, n:-1], columns[:, -1:]
    pairs = {"successors": (now, following), "next_visits": (following, following), "rewards": (rewards, now),
             "next_rewards": (rewards, following)}  # fmt: skip
    return close(found.visits, now.mean(axis=-1)) and all(
        close(getattr(found, name), (one @ other.mT / m).reshape(getattr(found, name).shape))
        for name, (one, other) in pairs.items()
    )


def model_of(d):
    return thing(ictd.LinearTransformer(d.weights, d.depth), d.weights)


def prompt_of(d):
    """A joint prompt, and others with as many columns that are none."""
    value = naive.sampled_prompt(d.paths[0], d.tasks.reward[0], 0.9, 0)
    joint = np.column_stack([value[:, :-1], np.eye(2 * d.n + 1)[:, : d.n]])
    shifted = np.column_stack([joint[:, -d.n :], joint[:, : -d.n]])
    return array(joint, joint[:-1], joint[:, : d.n], shifted, torch.from_numpy(joint + 0j), tied=False)


def joint_output(d, found, prompt, queries):
    return close(found, transformed(d, d.weights, prompt[:, : -d.n]))


def layer(d, found, Z, P, Q, length):
    M = torch.diag((torch.arange(Z.shape[-1]) < length).double())
    return close(found, Z + P @ Z @ M @ (Z.T @ Q @ Z))


def layer_arguments(d):
    r, c = 2 * d.n + 1, d.m + d.n
    square = [torch.from_numpy(d.real(r, r)) for _ in range(2)]
    Z = torch.from_numpy(d.real(r, c))
    wrong = [torch.zeros(r, c), torch.zeros(r), torch.zeros(r + 1, c).double(), Z.numpy()]
    return {
        "Z": thing(Z, *wrong), "P": thing(square[0], *wrong, square[0][:-1]), "Q": thing(square[1], *wrong),
        "length": whole(d.m, c + 1),
    }  # fmt: skip


# Name of the function: itself, its arguments, and whether what was found for them is right.
CALLS = {
    "Tasks": (mrp.Tasks,
        lambda d: {"transition": distributions(d.tasks.transition), "reward": rewards(d),
            "stationary": optional(distributions(d.tasks.stationary))},
        unchanged("transition")),
    "stationary_distribution": (mrp.stationary_distribution,
        lambda d: {"transition": distributions(d.tasks.transition)},
        lambda d, found, transition: close(found, each(naive.stationary, transition), True)),
    "value_function": (mrp.value_function,
        lambda d: {"transition": distributions(d.tasks.transition), "reward": rewards(d), "discount": d.discount()},
        lambda d, found, transition, reward, discount: close(found - discount * np.einsum("isj,ij->is", transition,
            found), reward, True)),
    "msve": (mrp.msve,
        lambda d: {"stationary": distributions(d.tasks.stationary), "value": samples(d, d.N, d.n),
            "estimate": samples(d, d.N, d.n)},
        lambda d, found, stationary, value, estimate: close(found, each(lambda mu, v,
            e: sum(mu[s] * (v[s] - e[s]) ** 2 for s in range(d.n)), stationary, value, estimate), True)),
    "truncation_bias": (mrp.truncation_bias,
        lambda d: {"transition": distributions(d.tasks.transition), "value": array(d.data.value),
            "discount": d.discount(), "steps": whole(d.m, least=0)},
        lambda d, found, transition, value, discount, steps: close(found, each(lambda p, v: naive.truncated_value(p, v,
            discount, steps) - naive.truncated_value(p, v, discount, steps + 1), transition, value))),
    "boyan": (environments.boyan, drawn,
        environment),
    "loop": (environments.loop, lambda d: drawn(d, threshold=number(0.5, 0, 1, -1)),
        environment),
    "sample_tasks": (environments.sample_tasks,
        lambda d: {"env": thing(d.rng.choice(["boyan", "loop"]), "ring"), **drawn(d)},
        environment),
    "Unrolls": (trajectories.Unrolls,
        lambda d: {"visits": array(d.unrolls.visits, d.unrolls.visits + 1, finite=False, numbers="i"),
            "transitions": array(d.unrolls.transitions, d.unrolls.transitions + 1, finite=False, numbers="i"),
            "returns": array(d.unrolls.returns)},
        unchanged("transitions")),
    "stream_of": (trajectories.stream_of, lambda d: {"rng": d.generator},
        lambda d, found, rng: found.shape == (4,) and found[3] == 13),
    "random_bits": (trajectories.random_bits, lambda d: {"rng": d.generator, "rows": whole(d.N), "columns": whole(d.m)},
        lambda d, found, rng, rows, columns: found.dtype == np.uint32 and found.shape == (rows,
            columns + columns % 2)),
    "unroll": (trajectories.unroll,
        lambda d: {**d.of_tasks(), "batch_size": whole(d.m), "discount": d.discount(), "rollout_steps": whole(d.depth),
            "rng": d.generator},
        unrolled),
    "sample_paths": (trajectories.sample_paths,
        lambda d: {**d.of_tasks(), "steps": whole(d.m, least=0), "rng": d.generator},
        lambda d, found, tasks, steps, rng: found.shape == (d.N, d.m + 1) and all(((tasks.transition[i, path[:-1],
            path[1:]] > 0).all() for i, path in enumerate(found)))),
    "sample_contexts": (trajectories.sample_contexts,
        lambda d: {**d.of_tasks(), "lengths": array(np.full(d.N, d.m), np.zeros(d.N, int), numbers="i"),
            "rng": d.generator},
        lambda d, found, tasks, lengths, rng: np.allclose(found.visits.sum(axis=-1), 1)),
    "Weights": (weights.Weights, lambda d: {"u": array(d.real(3, 2 * d.n), finite=False), **wide(d, 3)},
        unchanged("A")),
    "Tasks[]": (lambda tasks, d: d.tasks[tasks],
        lambda d: {"tasks": Argument(slice(0, 1), [slice(None, 1)], [0, -1, None, "a", [0], np.array([0])])},
        lambda d, found, tasks: close(found.transition, d.tasks.transition[:1]) and len(found) == 1),
    "Unrolls[]": (lambda tasks, d: d.unrolls[tasks],
        lambda d: {"tasks": Argument(slice(0, 1), [slice(None, 1)], [0, -1, None, "a", [0], np.array([0])])},
        lambda d, found, tasks: close(found.visits, d.unrolls.visits[:1]) and len(found) == 1),
    "Weights[]": (lambda index, d: d.several[index],
        lambda d: {"index": Argument(1, [-1, np.int64(1), Ellipsis, slice(1, None), [0, 1], np.array([False, True])])},
        lambda d, found, index: close(found.A[..., -1, :, :], -d.weights.A) if found.A.ndim > 2 else close(found.A,
            -d.weights.A)),
    "theta_td": (weights.theta_td, lambda d: {"states": whole(d.n)},
        lambda d, found, states: all(found.A[i, i] == -1 and found.A[i,
            states + i] == 1 for i in range(states)) and np.abs(found.A).sum() == 2 * states and (not found.u.any())),
    "initial_weights": (weights.initial_weights,
        lambda d: {"states": whole(d.n), "gain": number(0.5, -1), "rng": d.generator},
        lambda d, found, states, **of: found.A.shape == (2 * states, 2 * states) and 0 < np.abs(found.A).max() < 5),
    "enumerated_context": (prompts.enumerated_context,
        lambda d: {"transition": distributions(d.tasks.transition), "reward": rewards(d), "discount": d.discount()},
        lambda d, found, transition, reward, discount: close(found, each(lambda p, r: naive.enumerated_prompt(p, r,
            discount, 0)[:, :-1], transition, reward), True)),
    "sampled_context": (prompts.sampled_context,
        lambda d: {"paths": paths(d), "reward": rewards(d), "discount": d.discount()},
        lambda d, found, paths, reward, discount: close(found, each(lambda path, r: naive.sampled_prompt(path, r,
            discount, 0)[:, :-1], paths, reward), True)),
    "query_columns": (prompts.query_columns, lambda d: {"states": whole(d.n)},
        lambda d, found, states: close(found, np.eye(2 * states + 1)[:, :states])),
    "prompts_of": (prompts.prompts_of, lambda d: {"context": stacked(d)},
        lambda d, found, context: close(found, [[np.column_stack([one,
            q]) for q in np.eye(2 * d.n + 1)[:d.n]] for one in context])),
    "joint_prompt": (prompts.joint_prompt, lambda d: {"context": stacked(d)},
        lambda d, found, context: close(found, [np.column_stack([one, np.eye(2 * d.n + 1)[:,
            :d.n]]) for one in context])),
    "Context": (prompts.Context, averages,
        unchanged("successors")),
    "Context.of_paths": (prompts.Context.of_paths, lambda d: {"paths": paths(d), "reward": rewards(d)},
        lambda d, found, paths, reward: close(found.successors,
            each(lambda path: sum(np.outer(*np.eye(d.n)[list(pair)]) for pair in itertools.pairwise(path)) / d.m,
            paths)) and close(found.rewards, found.visits * reward) and close(found.visits,
            found.successors.sum(axis=-1))),
    "Context.from_trajectory": (prompts.Context.from_trajectory, lambda d: {
            "states": paths(d), "rewards": array(d.real(d.N, d.m)), "n": whole(d.n, d.n - 1) if d.paths.max() == d.n - 1
            else whole(d.n)},
        lambda d, found, states, rewards, n: averages_are(found, each(lambda path, R: naive.columns_of_steps(path, R, n,
            1.0), states, rewards))),
    "Context.enumerated": (prompts.Context.enumerated,
        lambda d: {"transition": distributions(d.tasks.transition), "reward": rewards(d)},
        lambda d, found, transition, reward: close(found.successors * d.n, transition,
            True) and close(found.rewards * d.n, reward) and (found.length == d.n)),
    "Gram": (gram.Gram,
        lambda d: {"length": one_length(d), "M": array(d.real(d.N, 2 * d.n, 2 * d.n)), "c": array(d.real(d.N,
            2 * d.n))},
        unchanged("M")),
    "enumerated_gram": (gram.enumerated_gram, lambda d: {**d.of_tasks(), "discount": d.discount()},
        lambda d, found, tasks, discount: close(found.M, [c[:-1] @ c[:-1].T / d.n for c in (naive.enumerated_prompt(p,
            r, discount, 0)[:, :-1] for p, r in zip(*d.task(), strict=True))], True)),
    "gram_of": (gram.gram_of,
        lambda d: {"context": thing(d.context, d.tasks), "discount": d.discount(d.gamma)},
        lambda d, found, context, discount: close(found.M, [c[:-1] @ c[:-1].T / d.m for c in contexts_of(d)],
            True) and close(found.c, [c[:-1] @ c[-1] / d.m for c in contexts_of(d)], True)),
    "gram.estimates": (gram.estimates,
        lambda d: {"weights": thing(d.several, d.weights.u, ictd.theta_td(d.n + 1)),
            "gram": thing(gram.gram_of(d.context, d.gamma)), "depth": d.layers, "scaled": d.scaled},
        lambda d, found, weights, gram, depth, scaled: close(found, [[transformed(d, weights[i], c,
            scaled) for c in contexts_of(d)] for i in range(2)])),
    "Model": (gram.Model, lambda d: {**d.of_weights(), **of_depth(d), "scaled": d.scaled},
        lambda d, found, weights, depth, discount, scaled: close(found.weights.A,
            weights.A) and found.scaled == scaled),
    "Model.values": (lambda context, d: gram.Model(d.weights, d.depth, d.gamma).values(context),
        lambda d: {"context": thing(d.context, d.tasks, prompts.Context.enumerated(np.eye(5), np.zeros(5)))},
        lambda d, found, context: close(found, [transformed(d, d.weights, c) for c in contexts_of(d)])),
    "linear_attention": (transformer.linear_attention, layer_arguments,
        layer),
    "LinearTransformer": (transformer.LinearTransformer,
        lambda d: {**d.of_weights(), "depth": d.layers, "scaled": d.scaled},
        lambda d, found, weights, depth, scaled: close(found(prompts.joint_prompt(contexts_of(d)), queries=d.n),
            [transformed(d, weights, context, scaled) for context in contexts_of(d)])),
    "LinearTransformer.forward": (
        lambda prompt, queries, d: ictd.LinearTransformer(d.weights, d.depth)(prompt, queries),
        lambda d: {"prompt": prompt_of(d), "queries": whole(d.n, d.n - 1, d.n + 1)},
        joint_output),
    "History": (pretraining.History,
        lambda d: {"tasks_seen": array(np.array([1, 2]), [1], numbers="i", finite=False), "weights": thing(d.several,
            d.weights), "estimates": array(d.real(2, d.n), tied=False, finite=False)},
        unchanged("estimates")),
    "snapshot_counts": (snapshots.snapshot_counts, lambda d: {"tasks": whole(d.m), "number": whole(d.depth)},
        lambda d, found, tasks, number: found[-1] == tasks and len(found) <= number and (np.diff(found) > 0).all()),
    "pretrain_history": (pretraining.pretrain_history, history_arguments,
        trained),
    "pretrain": (pretraining.pretrain,
        lambda d: {name: one for name, one in history_arguments(d).items() if name not in ("tasks_seen", "scaled")},
        lambda d, found, **given: close(found.A, pretraining.pretrain_history(**given).weights.A[-1])),
    "pretrain_in_blocks": (pretraining.pretrain_in_blocks,
        lambda d: {"engine": Argument(engine(d)), "draw": Argument(lambda size: (d.tasks[:size], d.unrolls[:size]), [],
            [None, 3, lambda size: (d.tasks[:0], d.unrolls[:0])]), "seen": array(np.array([d.N]), [0], [2, 1], [1.5],
            numbers="i", finite=False, tied=False)},
        lambda d, found, engine, draw, seen: engine.train(*draw(d.N)) and close(found.A[-1], engine.weights()[1])),
    "AutogradEngine": (autograd_engine.AutogradEngine, run_arguments,
        lambda d, found, weights, **of: close(found.weights()[1], weights.A)),
    "AutogradEngine.train": (
        lambda tasks, unrolls, d: engine(d, autograd_engine.AutogradEngine).train(tasks, unrolls)[0],
        lambda d: {"tasks": thing(d.tasks[:1]), "unrolls": thing(d.unrolls[:1], d.unrolls[:0])},
        lambda d, found, **given: close(found[0], transformed(d, d.weights,
            naive.enumerated_prompt(*(part[0] for part in d.task()), d.gamma, 0)[:, :-1]))),
    "batch_of": (autograd_engine.batch_of,
        lambda d: {"unrolls": thing(d.unrolls), "task": whole(d.N - 1, d.N, least=0)},
        lambda d, found, unrolls, task: close(np.bincount(found[0], minlength=d.n),
            unrolls.visits[task]) and close(found[2].sum(), unrolls.returns[task].sum())),
    "FusedEngine": (fused_engine.FusedEngine, run_arguments,
        lambda d, found, weights, **of: close(found.weights()[1], weights.A)),
    "FusedEngine.train": (lambda tasks, unrolls, d: engine(d, rate=0.0).train(tasks, unrolls)[0],
        lambda d: {"tasks": thing(d.tasks, ictd.sample_tasks("loop", d.n + 1, d.N, d.g)), "unrolls": thing(d.unrolls,
            d.unrolls[:0])},
        lambda d, found, **given: on_prompts(d, found)),
    "value_gradients": (fused_engine.value_gradients,
        lambda d: {**d.of_weights(), **d.of_tasks(), "task": whole(d.N - 1, d.N, least=0), **of_depth(d)},
        lambda d, found, **given: found.shape == (d.n, 2 * d.n + 4 * d.n ** 2) and np.isfinite(found).all()),
    "batch_td": (baselines.batch_td,
        lambda d: {"context": thing(d.context), "discount": d.discount(d.gamma), "depth": d.layers,
            "step_size": Argument(0.5, [np.float64(0.5)], [np.nan, None, True, "0.5", 0.5 + 0j, [[0.5]], [np.inf]])},
        lambda d, found, context, discount, step_size, depth: close(found, each(lambda path, r: naive.batch_td(path, r,
            discount, step_size, depth), d.paths, d.tasks.reward), True)),
    "lstd": (baselines.lstd,
        lambda d: {"context": thing(d.context, d.tasks), "discount": d.discount(), "ridge": number(0.5, 0, -1, 5e-324)},
        lambda d, found, context, discount, ridge: close(found, each(lambda path, r: naive.lstd(path, r, discount,
            ridge), d.paths, d.tasks.reward), True)),
    "certainty_equivalence": (baselines.certainty_equivalence,
        lambda d: {"context": thing(d.context, d.tasks), "discount": d.discount(),
            "pseudo_steps": optional(array(np.full((d.n, d.n), 0.5))), "reward": number(0.5)},
        modelled),
    "unseen_direction": (decomposition.unseen_direction, lambda d: {"states": whole(d.n), "discount": d.discount()},
        lambda d, found, states, discount: close(found, [-discount] * states + [1] * states)),
    "seen": (decomposition.seen, lambda d: {**d.of_weights(), "discount": d.discount(d.gamma)},
        lambda d, found, weights, discount: close(found.A[d.n:].sum(axis=0),
            np.zeros(2 * d.n)) and close(transformed(d, found, contexts_of(d)[0]), transformed(d, weights,
            contexts_of(d)[0]), True)),
    "preconditioner": (decomposition.preconditioner, lambda d: wide(d, d.N, tied=False),
        lambda d, found, A: close(found, [np.linalg.lstsq(np.vstack([-np.eye(d.n), np.eye(d.n)]),
            one.T)[0].T for one in A])),
    "structured": (decomposition.structured, lambda d: {"K": array(d.real(2 * d.n, d.n), finite=False, tied=False)},
        lambda d, found, K: close(found, K @ np.hstack([-np.eye(d.n), np.eye(d.n)]))),
    "decomposition_measures": (decomposition.decomposition_measures,
        lambda d: {**d.of_weights(), "discount": d.discount(), "scaled": d.scaled},
        lambda d, found, **given: close(found["theta"] + found["preconditioner"] + found["outside"],
            1) and all(0 <= found[name] <= 1 for name in ("unseen", "theta", "outside", "H", "diagonal", "symmetric",
            "u"))),
    "energy": (pattern.energy, lambda d: {"matrices": samples(d, d.N, d.n, d.n)},
        lambda d, found, matrices: close(found, [sum(x * x for x in one.ravel()) for one in matrices])),
    "cosine": (pattern.cosine, lambda d: {"first": samples(d, d.n, d.n), "second": samples(d, d.n, d.n)},
        lambda d, found, first, second: close(found, np.vdot(first,
            second) / np.linalg.norm(first) / np.linalg.norm(second))),
    "theta_coefficient": (pattern.theta_coefficient, lambda d: wide(d, d.N, tied=False),
        lambda d, found, A: close(found, each(theta_part, A))),
    "remainder": (pattern.remainder, lambda d: wide(d, tied=False),
        lambda d, found, A: close(found, A - theta_part(A) * ictd.theta_td(d.n).A)),
    "pattern_measures": (pattern.pattern_measures, lambda d: {"weights": thing(d.several, d.several.A)},
        lambda d, found, weights: close(found["cosine"], [pattern.cosine(A,
            ictd.theta_td(d.n).A) for A in weights.A]) and close(sum(found[f"energy_{block}"]
            for block in pattern.BLOCKS), np.ones(2))),
    "pattern_shares": (pattern.pattern_shares, lambda d: wide(d, d.N, tied=False),
        lambda d, found, A: close(found["pattern"],
            [max(0, pattern.cosine(one, ictd.theta_td(d.n).A)) ** 2 for one in A]) and close(found["pattern_A22"],
            [(one[d.n:, d.n:] ** 2).sum() / (one[:d.n] ** 2).sum() for one in A])),
    "agreement_measures": (pattern.agreement_measures, lambda d: {"td": wide(d)["A"], "mc": wide(d)["A"]},
        lambda d, found, td, mc: close(found["correlation"], pearson(td.ravel(),
            mc.ravel())) and 0 <= found["distance"] <= 2),
    "bootstrap_means": (statistics.bootstrap_means, lambda d: {
            "samples": samples(d, d.m, d.n, empty=True), "resamples": whole(d.m)},
        lambda d, found, samples, resamples: found.shape == (resamples, d.n)
            and bool((found <= samples.max(axis=0) + 1e-9).all() and (found >= samples.min(axis=0) - 1e-9).all())),
    "interval": (statistics.interval, lambda d: {"resampled": samples(d, 40)},
        lambda d, found, resampled: close(found, np.interp([0.025 * 39, 0.975 * 39], range(40), sorted(resampled)))),
    "discoveries": (statistics.discoveries, lambda d: {"p": samples(d, d.m), "level": number(0.3, 0.0, -1.0)},
        lambda d, found, p, level: sorted(p[found].tolist()) == sorted(p)[:found.sum()] and all(
            sorted(p)[k] > level * (k + 1) / len(p) for k in range(found.sum(), len(p)))),
    "bootstrap_interval": (statistics.bootstrap_interval, lambda d: {"samples": samples(d, d.m)},
        lambda d, found, samples: min(samples) - 1e-09 <= found[0] <= found[1] <= max(samples) + 1e-09),
    "ranks": (statistics.ranks,
        lambda d: {"values": array(d.g.integers(0, 3, (d.N, d.m)) * 1.0, np.float64(1), tied=False, finite=False)},
        lambda d, found, values: close(found, [ranked(row) for row in values])),
    "correlation": (statistics.correlation,
        lambda d: {"first": samples(d, d.N, d.m + 2), "second": samples(d, d.N, d.m + 2)},
        lambda d, found, first, second: close(found, each(pearson, first, second))),
    "rank_correlation": (statistics.rank_correlation,
        lambda d: {"first": samples(d, d.N, d.m + 2), "second": samples(d, d.N, d.m + 2)},
        lambda d, found, first, second: close(found, each(naive.rank_correlation, first, second))),
    "standard_error": (statistics.standard_error, lambda d: {"samples": samples(d, d.m, d.n, empty=True)},
        lambda d, found, samples: close(found, samples.std(axis=0) / np.sqrt(max(d.m - 1, 1)))),
    "generator": (streams.generator,
        lambda d: {"seed": whole(d.m, least=0), "env": thing("boyan"), "states": whole(d.n),
            "purpose": thing("tests")},
        lambda d, found, **given: found.integers(2 ** 63) == streams.generator(**given).integers(2 ** 63)),
    "seeds_of": (streams.seeds_of,
        lambda d: {"text": thing(f"{d.m}-{d.m + 2}", "", "3", "3-1", "-1-2", "0-1\n", "0 - 1", "a-b", "0-1-2")},
        lambda d, found, text: list(found) == [d.m, d.m + 1, d.m + 2]),
    "transformer.estimates": (transformer.estimates, lambda d: {"model": model_of(d), "context": stacked(d)},
        lambda d, found, model, context: close(found, [transformed(d, d.weights, one) for one in context])),
    "baseline_msve": (evaluation.baseline_msve,
        lambda d: contexts_and(d, step_size=number(0.5), ridge=number(0.5, 0, -1)),
        lambda d, found, data, contexts, depth, step_size, ridge, scaled: close(found["theta_td"], found["batch_td"],
            True) and close(found["theta_td"], [td_errors(d, m, step_size, scaled) for m in (d.m, 0)], True)),
    "UnseenTasks": (unseen_tasks.UnseenTasks,
        lambda d: {"tasks": thing(d.data.tasks), "value": array(d.data.value), "paths": paths(d),
            "discount": d.discount()},
        unchanged("value")),
    "UnseenTasks.error": (lambda estimate, d: d.data.error(estimate),
        lambda d: {"estimate": array(d.real(2, d.N, d.n), finite=False, tied=False)},
        lambda d, found, estimate: close(found, errors(d, estimate))),
    "UnseenTasks.context": (lambda length, d: d.data.context(length),
        lambda d: {"length": whole(d.rng.randint(0, d.m), d.m + 1, least=0)},
        lambda d, found, length: close([found.rewards * found.length], [[c[:d.n] @ c[-1] for c in unseen_contexts(d,
            length)]])),
    "UnseenTasks.columns": (lambda length, d: d.data.columns(length),
        lambda d: {"length": whole(d.rng.randint(0, d.m), d.m + 1, least=0)},
        lambda d, found, length: close(found, unseen_contexts(d, length))),
    "UnseenTasks.gram": (lambda length, d: d.data.gram(length),
        lambda d: {"length": whole(d.rng.randint(0, d.m), d.m + 1, least=0)},
        lambda d, found, length: close(found.M * found.length, [c[:-1] @ c[:-1].T for c in unseen_contexts(d,
            length)])),
    "draw_unseen_tasks": (unseen_tasks.draw_unseen_tasks,
        lambda d: {"seed": whole(d.m, least=0), "states": whole(d.n, least=2), "size": whole(d.N), "steps": whole(d.m),
            "discount": d.discount(), "env": thing("boyan", "ring"), "stream": thing("tests")},
        lambda d, found, discount, **of: found.paths.shape == (d.N, d.m + 1) and close(found.value,
            mrp.value_function(found.tasks.transition, found.tasks.reward, discount))),
    "weights_msve": (evaluation.weights_msve,
        lambda d: {"weights": thing(d.several, d.weights.u), "data": thing(d.data, d.tasks), "lengths": d.lengths,
            "depth": d.layers, "scaled": d.scaled},
        lambda d, found, weights, data, lengths, depth, scaled: close(found, [[model_errors(d, weights[i], m,
            scaled) for m in lengths] for i in range(2)])),
    "log_spaced": (evaluation.log_spaced,
        lambda d: {"smallest": number(0.25, 0, -1), "largest": number(4.0, 0, -1), "number": whole(d.m)},
        lambda d, found, smallest, largest, number: close(found,
            [smallest * (largest / smallest) ** (i / max(number - 1, 1)) for i in range(number)])),
    "batch_td_msve": (evaluation.batch_td_msve,
        lambda d: contexts_and(d, step_sizes=samples(d, 2)),
        lambda d, found, data, depth, contexts, step_sizes, scaled: close(found, [[td_errors(d, m, step,
            scaled) for step in step_sizes] for m in (d.m, 0)], True)),
    "tune_step_size": (evaluation.tune_step_size,
        lambda d: contexts_and(d, step_sizes=samples(d, 2)),
        lambda d, found, data, contexts, depth, step_sizes, scaled: close(found, [np.mean([td_errors(d, m, step,
            scaled) for m in (d.m, 0)]) for step in step_sizes], True)),
}  # fmt: skip


def case(rng: random.Random, folder: Path) -> tuple[str, str]:
    """One call: what was tried, in a few words, and what came of it: "taken", "refused", or anything else, a fault."""
    d = Draw(rng)
    name = rng.choice(list(CALLS))
    function, arguments, right = CALLS[name]
    drawn = arguments(d)
    which = rng.choice(list(drawn))
    valid, forms, wrong = drawn[which]
    spoil = rng.random() < 0.5 and len(wrong) > 0
    given = {argument: copy.deepcopy(one.value) for argument, one in drawn.items()}
    passed = {argument: one.value for argument, one in drawn.items()}
    passed[which] = rng.choice(wrong if spoil else [valid, *forms])
    tried = f"{name}({which}={shortly(passed[which])})"
    try:
        with np.errstate(all="ignore"):
            found = function(**passed, **({"d": d} if function.__name__ == "<lambda>" else {}))
            if spoil:
                return tried, f"took what it must refuse, and gave {shortly(found)}"
            for array in passed.values():
                if isinstance(function, type) and isinstance(array, np.ndarray):
                    array[...] = 0  # An object has copies.
            return tried, "taken" if right(d, found, **given) else f"wrong: {shortly(found)}"
    except Exception as error:
        sentence = type(error) is ValueError and "\n" not in str(error)
        return tried, "refused" if spoil and sentence else f"{type(error).__name__}: {error}"


def shortly(value) -> str:
    return " ".join(f"{type(value).__name__} {value!r}".split())[:160]

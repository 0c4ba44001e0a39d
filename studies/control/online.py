"""Agents that each act in one unseen process, with all that they have seen as their data, and their regret.

Regret is the sum over steps of v*(s) - q*(s, a), by which the action falls short of an optimal one.  An agent with
estimates q after t steps, n(s, a) of them at a pair, acts by one of two rules with a number c: "epsilon" takes a random
action with probability c / (c + t), else the greedy one; "optimistic" that of the greatest q + c / sqrt(1 + n).  A
method learns from a step s, a, s' of N agents, of which ``of`` has what they know, and returns what ``choose`` does.
"""

import itertools
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from ictd.pipeline.storage import load_arrays, save_arrays
from ictd.streams import generator
from ictd.weights import Weights
from studies.control.evaluators import improve, in_context_td, least_squares, smoothed, transformer
from studies.control.processes import Processes, uniform, unseen_processes


def planning(evaluate, of, s, a, following, choose) -> np.ndarray:
    """Evaluate the policy on all that was seen, and improve it, once a step."""
    of.q, of.policy = improve(evaluate, of.counts, of.reward, of.policy, of.discount)
    return choose()


def posterior_sampling(concentration: float, of, s, a, following, choose) -> np.ndarray:
    """Plan in a model from the posterior, drawn every ten steps (Osband, Russo and Van Roy, NeurIPS 2013)."""
    visits = of.counts.sum(axis=-1)
    if visits[0].sum() % 10 == 1:
        gammas = of.rng.standard_gamma(of.counts + concentration) + 1e-300
        reward = np.where(visits == 0, of.rng.uniform(-1, 1, visits.shape), of.reward)
        model = Processes(gammas / gammas.sum(axis=-1, keepdims=True), reward)
        of.q = model.values(model.optimal(of.discount), of.discount)
    return choose()


def tabular(step_size: float, decay: float | None, of, s, a, following, choose) -> np.ndarray:
    """SARSA(lambda) with replacing traces of a decay, lambda, or else Q-learning (Watkins, 1989)."""
    i, action = np.arange(len(s)), None if decay is None else choose()
    target = of.q[i, following].max(axis=-1) if decay is None else of.q[i, following, action]
    error = of.reward[i, s, a] + of.discount * target - of.q[i, s, a]
    of.trace *= of.discount * (decay or 0.0)
    of.trace[i, s, a] = 1.0
    of.q += step_size * error[:, None, None] * of.trace
    return choose() if decay is None else action


def simulate(learn, processes: Processes, discount: float, steps: int, rule: str, c: float, seed: int):
    """Regret (N, steps) up to each step, of an agent in each process."""
    best, cumulative = processes.values(processes.optimal(discount), discount), processes.transition.cumsum(axis=-1)
    (size, states, actions), gaps = best.shape, best.max(axis=-1, keepdims=True) - best
    rng, i, found = generator(seed, rule, states, "control online"), np.arange(size), np.empty((size, steps))
    of = SimpleNamespace(reward=processes.reward, discount=discount, rng=rng,
                         counts=np.zeros(processes.transition.shape),
                         q=np.zeros(best.shape), trace=np.zeros(best.shape), policy=uniform(best.shape))  # fmt: skip
    s, a = rng.integers(states, size=size), rng.integers(actions, size=size)
    for t in range(1, steps + 1):
        found[:, t - 1] = gaps[i, s, a]
        following = (rng.random((size, 1)) >= cumulative[i, s, a, :-1]).sum(axis=-1)
        of.counts[i, s, a, following] += 1
        explores, drawn = rng.random(size) < c / (c + t), rng.integers(actions, size=size)

        def choose(following=following, explores=explores, drawn=drawn):
            q = of.q[i, following]
            if rule == "optimistic":
                return (q + c / np.sqrt(1 + of.counts[i, following].sum(axis=-1))).argmax(axis=-1)
            return np.where(explores, drawn, q.argmax(axis=-1))

        a, s = learn(of, s, a, following, choose), following
    return found.cumsum(axis=-1)


def methods(online: dict, states: int, depth: int, pairs: int) -> dict[str, list[partial]]:
    """Each yardstick for each choice that it has besides c."""
    plans = {
        "lspi": [partial(least_squares, one) for one in online["ridges"]],
        "smoothed": [partial(smoothed, one, 1 / states) for one in online["pseudo_steps"]],
        "theta_td": [in_context_td(one, depth, pairs) for one in online["theta_steps"]],
    }
    return {name: [partial(planning, one) for one in choices] for name, choices in plans.items()} | {
        "posterior": [partial(posterior_sampling, one) for one in online["concentrations"]],
        "q_learning": [partial(tabular, step, None) for step in online["step_sizes"]],
        "sarsa": [partial(tabular, step, decay) for step in online["step_sizes"] for decay in online["decays"]],
        "uniform": [partial(tabular, 0.0, None)],
    }


def main(place: dict, variants: dict, depth: int, seeds: int, concentrations: list[float], online: dict,
         runs: list[Path], output: Path) -> None:  # fmt: skip
    """Write ``regret`` (rows, N, checkpoints), and for each row its method, rule, seed and c.  Transformers have the
    weights of each seed; other methods as many runs.  Choices are those with the least regret on tuning processes."""
    discount, rows, steps = place["discount"], [], online["steps"]
    sizes = {purpose: online[f"{purpose}_processes"] for purpose in ("test", "tuning")}
    test, tuning = (unseen_processes(place, sizes[one], concentrations, f"online {one}")[0] for one in sizes)
    beside = methods(online, place["states"], depth, place["states"] * place["actions"])
    made = {name: [[one] * seeds for one in choices] for name, choices in beside.items()}
    for path in runs:
        (u, A), layers = load_arrays(path, "u", "A"), variants[path.stem]["depth"]
        weights = [Weights(u[seed, -1], A[seed, -1]) for seed in range(seeds)]
        for name, numbers in ((path.stem, [0.0]), (f"{path.stem} pseudo_steps", online["pseudo_steps"])):
            made[name] = [[partial(planning, partial(transformer, one, layers, k)) for one in weights] for k in numbers]
    taken = np.unique(np.linspace(1, steps, online["checkpoints"]).round().astype(int))
    alone, rules = {"uniform": [1e9], "posterior": [0.0]}, (("epsilon", "epsilons"), ("optimistic", "bonuses"))
    for (name, choices), (rule, key) in itertools.product(made.items(), rules):
        if name in alone and rule == "optimistic":
            continue
        every = list(itertools.product(choices, alone.get(name, online[key])))
        cost = [simulate(of[0], tuning, discount, steps, rule, c, seeds)[:, -1].mean() for of, c in every]
        of, c = every[int(np.argmin(cost))]
        for seed, learn in enumerate(of):
            regret = simulate(learn, test, discount, steps, rule, c, seed)[:, taken - 1]
            rows.append({"method": name, "rule": rule, "seed": seed, "c": c, "regret": regret})
    save_arrays(output, **{name: np.stack([row[name] for row in rows]) for name in rows[0]}, steps=taken)

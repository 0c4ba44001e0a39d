"""Agents that each act in one unseen process, with all that they have seen as their data, and their regret.

Regret is the sum over steps of v*(s) - q*(s, a).  With estimates q after t steps, n(s, a) of them at a pair, rules with
a number c are: "epsilon" takes a random action with probability c / (c + t), else the greedy one; "optimistic" that of
the greatest q + c / sqrt(1 + n).  A method learns from a step of N agents, of which ``of`` has what they know.
"""

from functools import partial
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from ictd.rng import generator
from ictd.statistics import log_spaced
from ictd.storage import load_arrays, save_arrays
from ictd.transformer import Weights
from studies.control.evaluators import improve, in_context_td, least_squares, smoothed, transformer
from studies.control.processes import TIE, Processes, uniform, unseen_processes


def planning(evaluate, of, s, a, following, choose) -> np.ndarray:
    """Evaluate the policy on all that was seen, and improve it, once a step."""
    of.q, of.policy = improve(evaluate, of.counts, of.reward, of.policy, of.discount)
    return choose()


def posterior_sampling(concentration: float, interval: int, of, s, a, following, choose) -> np.ndarray:
    """Plan in a model from the posterior, drawn at intervals (Osband, Russo and Van Roy, NeurIPS 2013)."""
    visits = of.counts.sum(axis=-1)
    if (visits[0].sum() - 1) % interval == 0:
        gammas = of.rng.standard_gamma(of.counts + concentration) + 1e-300
        reward = np.where(visits == 0, of.rng.uniform(-1, 1, visits.shape), of.reward)
        model = Processes(gammas / gammas.sum(axis=-1, keepdims=True), reward)
        of.q = model.values(model.optimal(of.discount), of.discount)
    return choose()


def tabular(step_size: float, power: float, start: float, decay: float | None, of, s, a, following, choose):
    """SARSA(lambda) with replacing traces of a decay, lambda, or else Q-learning (Watkins, 1989), without replay."""
    of.q += start * (of.counts[0].sum() == 1)
    i, action = np.arange(len(s)), None if decay is None else choose()
    step = step_size / of.counts[i, s, a].sum(axis=-1) ** power
    target = of.q[i, following].max(axis=-1) if decay is None else of.q[i, following, action]
    error = of.reward[i, s, a] + of.discount * target - of.q[i, s, a]
    of.trace *= of.discount * (decay or 0.0)
    of.trace[i, s, a] = 1.0
    of.q += (step * error)[:, None, None] * of.trace
    return choose() if decay is None else action


def simulate(learn, processes: Processes, discount: float, steps: int, rule: str, c: float, seed: int):
    """Regret (N, steps) up to each step, of an agent in each process."""
    best, cumulative = processes.values(processes.optimal(discount), discount), processes.transition.cumsum(axis=-1)
    (size, states, actions), gaps = best.shape, best.max(axis=-1, keepdims=True) - best
    rng, i, found = generator(seed, rule, states, "control online"), np.arange(size), np.empty((size, steps))
    of = SimpleNamespace(reward=processes.reward, discount=discount, rng=rng, policy=uniform(best.shape))
    of.counts, of.q, of.trace = np.zeros((*best.shape, states)), np.zeros(best.shape), np.zeros(best.shape)
    s, a = rng.integers(states, size=size), rng.integers(actions, size=size)
    for t in range(1, steps + 1):
        found[:, t - 1] = gaps[i, s, a]
        following = (rng.random((size, 1)) >= cumulative[i, s, a, :-1]).sum(axis=-1)
        of.counts[i, s, a, following] += 1
        explores, drawn = rng.random(size) < c / (c + t), rng.integers(actions, size=size)
        ties = TIE * rng.random((size, actions))

        def choose(following=following, explores=explores, drawn=drawn, ties=ties):
            q = of.q[i, following] + ties
            if rule == "optimistic":
                return (q + c / np.sqrt(1 + of.counts[i, following].sum(axis=-1))).argmax(axis=-1)
            return np.where(explores, drawn, q.argmax(axis=-1))

        a, s = learn(of, s, a, following, choose), following
    return found.cumsum(axis=-1)


def methods(online: dict, ridges: dict, states: int, depth: int, pairs: int) -> dict[str, tuple]:
    """Each yardstick: its ``learn`` for numbers that it chooses besides c, and the grids that these are from."""
    steps = (online["step_sizes"], online["powers"], online["starts"])
    return {
        "lspi": (lambda one: partial(planning, partial(least_squares, one)), log_spaced(**ridges)),
        "smoothed": (lambda one: partial(planning, partial(smoothed, one, 1 / states)), online["pseudo_steps"]),
        "theta_td": (lambda one: partial(planning, in_context_td(one, depth, pairs)), online["theta_steps"]),
        "posterior": (partial(partial, posterior_sampling), online["concentrations"], online["intervals"]),
        "q_learning": (lambda *of: partial(tabular, *of, None), *steps),
        "sarsa": (partial(partial, tabular), *steps, online["decays"]),
        "uniform": (lambda: partial(tabular, 0.0, 0.0, 0.0, None),),
    }


def main(place: dict, variants: dict, depth: int, seeds: int, concentrations: list[float], ridges: dict, online: dict,
         runs: list[Path], output: Path) -> None:  # fmt: skip
    """Write ``regret`` (rows, N, checkpoints), and each row's method, rule, seed, and choices by regret on tuning
    processes, c last, with a star at ends of grids.  Methods have as many runs as Transformers."""
    discount, rows, steps = place["discount"], [], online["steps"]
    test, tuning = (unseen_processes(place, online[f"{one}_processes"], concentrations, f"online {one}")[0]
                    for one in ("test", "tuning"))  # fmt: skip
    beside = methods(online, ridges, place["states"], depth, place["states"] * place["actions"])
    made = {name: ([make] * seeds, *grids) for name, (make, *grids) in beside.items()}
    for path in runs:
        (u, A), layers = load_arrays(path, "u", "A"), variants[path.stem]["depth"]
        weights = [Weights(u[seed, -1], A[seed, -1]) for seed in range(seeds)]
        learn = [lambda k, w=w, L=layers: partial(planning, partial(transformer, w, L, k)) for w in weights]
        made |= {path.stem: (learn, [0.0]), f"{path.stem} pseudo_steps": (learn, online["pseudo_steps"])}
    taken = np.unique(np.linspace(1, steps, online["checkpoints"]).round().astype(int))
    alone, rules = {"uniform": [1e9], "posterior": [0.0]}, (("epsilon", "epsilons"), ("optimistic", "bonuses"))
    for (name, (makers, *grids)), (rule, key) in product(made.items(), rules):
        if name in alone and rule == "optimistic":
            continue
        grids = [*grids, alone.get(name, online[key])]
        every = list(product(*grids))
        cost = [simulate(makers[0](*of), tuning, discount, steps, rule, c, seeds)[:, -1].mean() for *of, c in every]
        chosen = every[int(np.argmin(cost))]
        ends = [(min(grid), max(grid)) if len(grid) > 1 else () for grid in grids]
        choices = ", ".join(f"{one:.3g}{'*' * (one in end)}" for one, end in zip(chosen, ends, strict=True))
        for seed, make in enumerate(makers):
            regret = simulate(make(*chosen[:-1]), test, discount, steps, rule, chosen[-1], seed)[:, taken - 1]
            rows.append({"method": name, "rule": rule, "seed": seed, "choices": choices, "regret": regret})
    save_arrays(output, **{name: np.stack([row[name] for row in rows]) for name in rows[0]}, steps=taken)

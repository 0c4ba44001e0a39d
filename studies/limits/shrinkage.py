"""Transformers trained on sampled contexts, and the form of shrunk LSTD that is closest to their outputs.

LSTD with k pseudo-counts of a chain Q adds k steps of this chain to a context, which shrinks the estimate towards the
values of Q.  The number k, the chain, and the reward of states that no step starts from are fitted to the outputs, with
the weights mu of the MSVE.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ictd.baselines import certainty_equivalence, lstd
from ictd.evaluation import UnseenTasks, draw_unseen_tasks
from ictd.mrp import Tasks, boyan, value_function
from ictd.report.tables import load_table
from ictd.rng import generator
from ictd.storage import save_table
from ictd.training_data import sample_contexts
from ictd.transformer import initial_weights
from studies.limits.course import train
from studies.limits.engine import parameters_of, sampled_prompts
from studies.limits.forms import FEW, RIDGES
from studies.limits.grid import GAP
from studies.limits.minimise import Residuals, minimise, msve_of_parameters

# Largest norm of a gradient in pretraining.
CLIP = 1.0
# Number of tasks for the mean of a distribution.
MANY_TASKS = 20_000
# A fit ends at this norm of the gradient, or after this number of steps.
TOLERANCE = 1e-8
MOST_STEPS = 25
# Shift of the rewards in tasks of the kind "rewards".
REWARD_SHIFT = 0.5
# Kinds of tasks whose mean chain differs from that of uniform tasks.
SHIFTED_CHAINS = ("steps", "last_row")


class MeanTask(NamedTuple):
    """Mean transitions (n, n) and mean stationary distribution (n,) of a distribution of tasks."""

    transition: np.ndarray
    stationary: np.ndarray


def main(
    kind: str,
    states: int,
    depth: int,
    discount: float,
    learning_rate: float,
    initial_gain: float,
    tasks: int,
    fit_tasks: int,
    lengths: list[int],
    added: list[int],
    seeds: int,
    baselines: Path,
    output: Path,
) -> None:
    """Train Transformers, and write their errors and the fits to their outputs.

    The number of steps of training contexts is between the smallest and the largest of ``lengths``.  Outputs are
    computed on contexts of uniform tasks, which differ between seeds.  ``baselines`` is a table of the step ``forms``
    with the ridges and pseudo-counts of the baselines.
    """
    tuned = load_table(baselines).groupby(["method", "length"])["chosen"].first()
    task_kind = "uniform" if kind == "heads" else kind
    mean_tasks = {}
    for name in ("uniform", *SHIFTED_CHAINS):
        many = draw_tasks(name, states, MANY_TASKS, generator(0, "boyan", states, f"limits {name}"))
        mean_tasks[name] = MeanTask(many.transition.mean(axis=0), many.stationary.mean(axis=0))

    tables = []
    for seed in range(seeds):
        rng = generator(seed, "boyan", states, f"limits {task_kind} contexts")
        drawn = draw_tasks(task_kind, states, tasks, rng)
        context = sample_contexts(drawn, rng.integers(min(lengths), max(lengths) + 1, tasks), rng)
        value = value_function(drawn.transition, drawn.reward, discount)
        prompts = sampled_prompts(context.gram_matrix(discount), value, drawn.stationary)
        start = parameters_of(initial_weights(states, initial_gain, generator(seed, "boyan", states, "weights")))
        start = np.stack([start, 0 * start]) if kind == "heads" else start[None]
        unseen = draw_unseen_tasks(seed, states, fit_tasks, max(lengths), discount, "boyan", "limits fits")
        for algo in ("td", "mc"):
            (heads,) = train(
                start,
                shares_of_heads(context.length, kind, added[0]),
                drawn,
                prompts,
                algo,
                depth,
                discount,
                learning_rate,
                [tasks],
                CLIP,
            )
            for m in lengths:
                parameters = shares_of_heads(m, kind, added[0]) @ heads
                test_prompts = sampled_prompts(unseen.gram_matrix(m), unseen.value, unseen.tasks.stationary)
                (estimate,) = msve_of_parameters(test_prompts, depth).estimates(parameters)
                setting = {"kind": kind, "algo": algo, "seed": seed, "length": m}
                ridge, pseudo_counts = (tuned[method, m] for method in GAP)
                columns = setting | fits(unseen, m, estimate, mean_tasks, ridge, pseudo_counts)
                tables.append({name: [entry] for name, entry in columns.items()})
    save_table(output, *tables)


def draw_tasks(kind: str, states: int, size: int, rng: np.random.Generator) -> Tasks:
    """Draw Boyan's chains from a shifted distribution.

    Parameters
    ----------
    kind : str
        "uniform" is the paper's distribution.  "steps" draws the probabilities of inner states to step to the next
        state from Beta(5, 1).  "last_row" multiplies the last row by weights that fall from 1 to 0.1, and normalises
        it.  "rewards" adds REWARD_SHIFT to rewards.
    states : int, n
    size : int, number of tasks N
    rng : numpy.random.Generator

    Returns
    -------
    Tasks
    """
    transition, reward = boyan(states, size, rng)
    if kind == "steps":
        inner = np.arange(states - 2)
        next_state = rng.beta(5, 1, (size, states - 2))
        transition[:, inner, inner + 1] = next_state
        transition[:, inner, inner + 2] = 1 - next_state
    if kind == "last_row":
        last = transition[:, -1] * np.linspace(1, 0.1, states)
        transition[:, -1] = last / last.sum(axis=1, keepdims=True)
    if kind == "rewards":
        reward = reward + REWARD_SHIFT
    return Tasks(transition, reward)


def shares_of_heads(m: int | np.ndarray, kind: str, added: int) -> np.ndarray:
    """Weights (..., heads) of the heads on contexts of m steps (...): 1, and m / (m + added) of a second head."""
    first = np.ones(np.shape(m))
    return np.stack([first, m / (m + added)], axis=-1) if kind == "heads" else first[..., None]


class Fit:
    """Fits of shrunk LSTD to the estimates of a Transformer.

    The first half of the tasks is used for fitting, the second half for evaluation.

    Parameters
    ----------
    data : UnseenTasks, N of them with n states
    m : int, context length
    estimate : (N, n) array, outputs of the Transformer
    """

    def __init__(self, data: UnseenTasks, m: int, estimate: np.ndarray):
        root = np.sqrt(data.tasks.stationary)
        deviation = estimate - np.average(estimate, weights=root**2)
        middle = -(-len(estimate) // 2)
        self.contexts = []
        for half in (slice(None, middle), slice(middle, None)):
            tasks = replace(data, tasks=data.tasks[half], value=data.value[half], paths=data.paths[half])
            self.contexts.append(tasks.context(m))
        self.discount = data.discount
        self.estimates = np.array_split(estimate, 2)
        self.roots = np.array_split(root, 2)
        self.norms = [np.linalg.norm(half) for half in np.array_split(root * deviation, 2)]

    def unexplained(self, values: np.ndarray, half: int) -> np.ndarray:
        """Deviations (N n / 2,) of values (N / 2, n) from the estimates of a half of the tasks, weighted by sqrt(mu).

        The deviations are scaled so that their sum of squares is the share of the variance that the values do not
        explain.
        """
        return (self.roots[half] * (values - self.estimates[half])).ravel() / self.norms[half]

    def explained(self, values: np.ndarray) -> float:
        """Share of the variance that values (N / 2, n) explain on the second half of the tasks."""
        return 1 - (self.unexplained(values, 1) ** 2).sum()

    def best_ridge(self) -> np.ndarray:
        """Values (N / 2, n) on the second half of LSTD with the ridge that fits best."""

        def misfit(ridge):
            return np.linalg.norm(self.unexplained(lstd(self.contexts[0], self.discount, ridge), 0))

        return lstd(self.contexts[1], self.discount, min(RIDGES, key=misfit))

    def fit(self, values: Callable[..., np.ndarray], *start: float) -> tuple[np.ndarray, np.ndarray]:
        """Fit the arguments of a function of a context; return them, and its values (N / 2, n) on the second half."""
        residuals = Residuals(lambda arguments: self.unexplained(values(self.contexts[0], *arguments), 0))
        arguments = minimise(residuals, np.array(start), TOLERANCE, MOST_STEPS).z
        return arguments, values(self.contexts[1], *arguments)


def fits(
    data: UnseenTasks,
    m: int,
    estimate: np.ndarray,
    mean_tasks: dict[str, MeanTask],
    ridge: float,
    pseudo_counts: float,
) -> dict[str, float]:
    """Compute the error of a Transformer's estimates, and the share of their variance that shrunk LSTD explains.

    Parameters
    ----------
    data : UnseenTasks, N of them with n states
    m : int, context length
    estimate : (N, n) array, outputs of the Transformer
    mean_tasks : MeanTask by kind, of "uniform" and ``SHIFTED_CHAINS``
    ridge, pseudo_counts : float, the best of the baselines

    Returns
    -------
    dict
        explained_ridge : share of the variance of outputs that LSTD with a ridge explains
        explained_unvisited : the same for the mean chain, and a reward, only in states that no step starts from
        explained_uniform : the same for pseudo-counts of the uniform chain
        explained_mean : the same for k pseudo-counts of the mean chain
        explained_shifted : the same for pseudo-counts of Q + sum_i t_i (Q_i - Q), with mean chains Q_i of shifted tasks
        msve, lstd, pseudo_counts : mean MSVE of the Transformer and of the baselines
        k : the fitted pseudo-counts of the mean chain
        rewards, steps, last_row : the fitted reward, divided by its shift, and t of the shifted chains
    """
    Q, share = mean_tasks["uniform"]
    to_shifted = [mean_tasks[kind].transition - Q for kind in SHIFTED_CHAINS]
    context = data.context(m)
    fit = Fit(data, m, estimate)

    # The unit of a reward, of states that no step starts from, is REWARD_SHIFT.
    def shrunk(context, pseudo_counts, reward):
        return certainty_equivalence(context, data.discount, pseudo_counts, REWARD_SHIFT * reward)

    def in_unvisited_states(context, reward):
        return shrunk(context, FEW * (share[:, None] * Q), reward)

    def of_uniform_chain(context, k, reward):
        return shrunk(context, abs(k) * np.full_like(Q, 1 / Q.size), reward)

    def of_mean_chain(context, k, reward):
        return shrunk(context, abs(k) * (share[:, None] * Q), reward)

    def of_shifted_chain(context, k, reward, steps, last_row):
        chain = Q + (steps * to_shifted[0] + last_row * to_shifted[1])
        return shrunk(context, abs(k) * (share[:, None] * chain), reward)

    _, unvisited = fit.fit(in_unvisited_states, 0.0)
    _, uniform = fit.fit(of_uniform_chain, 2.0, 0.0)
    (k, _), mean = fit.fit(of_mean_chain, 5.0, 0.0)
    (_, rewards, steps, last_row), shifted = fit.fit(of_shifted_chain, 5.0, 0.0, 0.0, 0.0)
    return {
        "explained_ridge": fit.explained(fit.best_ridge()),
        "explained_unvisited": fit.explained(unvisited),
        "explained_uniform": fit.explained(uniform),
        "explained_mean": fit.explained(mean),
        "explained_shifted": fit.explained(shifted),
        "msve": data.error(estimate).mean(),
        "lstd": data.error(lstd(context, data.discount, ridge)).mean(),
        "pseudo_counts": data.error(of_mean_chain(context, pseudo_counts, 0.0)).mean(),
        "k": abs(k),
        "rewards": rewards,
        "steps": steps,
        "last_row": last_row,
    }

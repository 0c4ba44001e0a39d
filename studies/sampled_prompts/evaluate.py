"""Evaluate baselines and pretrained weights on the contexts of unseen tasks, and compare outputs with shrunk LSTD.

The unseen tasks are those that decide the claims of the paper's part (``ictd.steps.unseen``); each trial has
its own.  Contexts have three formats: "step" (a column for each step), "grouped" (a column for each visited state) and
"pseudo" (grouped, with one pseudo-step from each state to all states equally, so that all columns exist).  Attention is
divided by the number of steps, and by the number of states for grouped columns, as in pretraining.  ``cell_outputs``
has further ways to read contexts.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path

import numpy as np

from ictd.context import Context
from ictd.engine import compiled_estimates
from ictd.evaluation import UnseenTasks, draw_unseen_tasks, joined
from ictd.pipeline.grid import Cell
from ictd.prompt import ENUMERATED
from ictd.statistics import log_spaced, mean_score
from ictd.storage import join_arrays, load_arrays, save_tables
from ictd.transformer import Weights, theta_td
from studies.sampled_prompts.baselines import baseline_estimates, centred, methods
from studies.sampled_prompts.pretrain import Training
from studies.sampled_prompts.softmax import Columns, estimates

# Outputs are compared with shrunk LSTD in the format of pretraining, and in grouped columns for enumerated prompts.
COMPARED = {"step": "step", "grouped": "grouped", "enumerated": "grouped"}
# Candidates for the parameter of shrunk LSTD.
PSEUDO_COUNTS, RIDGES = log_spaced(0.01, 1000, 101), log_spaced(1e-4, 30, 101)
# Candidates for a factor on A, which is the step size of theta^TD.
FACTORS = log_spaced(0.1, 10, 31)
# Columns of the tables.
MEASURES = "mean median level deviations correlation typical".split()
ERRORS = "setting method env states depth prompts shown chosen context_length seed".split() + MEASURES
FITS = "setting method prompts context_length form seed chosen explained".split()


def main(
    env: str,
    states: int,
    discount: float,
    scaled_attention: bool,
    env_options: dict,
    seeds: int,
    claim_tasks: int,
    longest: int,
    tuning_tasks: int,
    context_lengths: list[int],
    bayes_samples: int,
    settings: dict,
    runs: list[Path],
    cells: list[Path],
    output: Path,
) -> None:
    """Write the tables ``errors`` and ``fits`` as CSV into a folder, with a row for each trial and context length.

    ``errors`` has the mean and the median over tasks of the MSVE, and ``measures``.  The column ``setting`` is
    "baseline", "paper" for the paper's ``cells`` and theta^TD, or a name in ``settings``; ``method`` is the baseline or
    the algorithm; ``prompts`` is the format of pretraining, and ``shown`` the format of the unseen contexts, or another
    way to read them (``cell_outputs``); ``chosen`` is a tuned parameter.  The context length ENUMERATED stands for
    enumerated prompts.  ``fits`` has the parameter of each form of shrunk LSTD that is closest to the outputs, and the
    share of their variance that it explains (``nearest``).
    """

    def draw(seed: int, size: int, stream: str) -> UnseenTasks:
        return draw_unseen_tasks(seed, states, size, longest, discount, env, stream, **env_options[env])

    data = joined([draw(seed, claim_tasks, "claims") for seed in range(seeds)])
    tuning = draw(0, tuning_tasks, "beyond tuning")
    errors, fits = [], []

    @cache
    def forms(length: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        return shrunk_lstd(data, tuning, length)

    found = chain(
        baseline_outputs(env, data, tuning, context_lengths, bayes_samples),
        cell_outputs(cells, data, tuning, context_lengths, scaled_attention),
        run_outputs(settings, runs, data, context_lengths),
    )
    for key, estimate in found:
        for seed, found_in_trial in enumerate(measures(data, estimate, seeds)):
            errors.append((*key, seed, *found_in_trial))
        name, algo, *_, prompts, shown, _, length = key
        if name in settings and settings[name]["attention"] == "linear" and length != ENUMERATED:
            for form, (candidates, values) in forms(length).items() if shown == COMPARED[prompts] else ():
                chosen, explained = nearest(values, estimate, data.tasks.stationary, seeds)
                for seed in range(seeds):
                    fits.append((name, algo, prompts, length, form, seed, candidates[chosen[seed]], explained[seed]))
    save_tables(output, {"errors": table(ERRORS, errors), "fits": table(FITS, fits)})


def table(columns: list[str], rows: list[tuple]) -> dict[str, list]:
    """A table, which may have no rows, as a dict of columns."""
    return {name: [row[i] for row in rows] for i, name in enumerate(columns)}


def measures(data: UnseenTasks, estimate: np.ndarray, seeds: int) -> np.ndarray:
    """Measures (S, 6) of the estimates (S k, n) of S trials.

    They are the mean and the median over tasks of the MSVE; the mean of its part due to the mean over states, and the
    median of the other part, due to deviations from that mean; the median over tasks of the correlation of the
    deviations with the true ones; and the median of all estimates.  States are weighted by mu.
    """
    mu, msve = data.tasks.stationary, data.error(estimate)
    level = np.vecdot(mu, estimate - data.value) ** 2
    own, true = (values - np.vecdot(mu, values)[:, None] for values in (estimate, data.value))
    with np.errstate(invalid="ignore"):  # A constant has no deviations.
        correlation = np.vecdot(mu, own * true) / np.sqrt(np.vecdot(mu, own**2) * np.vecdot(mu, true**2))
    msve, level, correlation = (part.reshape(seeds, -1) for part in (msve, level, correlation))
    medians = (np.median(part, axis=1) for part in (msve - level, correlation, estimate.reshape(seeds, -1)))
    return np.stack([msve.mean(axis=1), np.median(msve, axis=1), level.mean(axis=1), *medians], axis=1)


def formats_of(context: Context) -> dict[str, Context]:
    """A context in the three formats."""
    n = context.dimension
    return {"step": context, "grouped": context.grouped(), "pseudo": context.grouped(np.full((n, n), 1 / n))}


# Each of the following functions yields the first nine columns of ``ERRORS``, and estimates (S k, n).


def baseline_outputs(env: str, data: UnseenTasks, tuning: UnseenTasks, lengths: list[int], samples: int) -> Iterator:
    """Outputs of the baselines."""
    for name, length, chosen, estimate in baseline_estimates(env, data, tuning, lengths, samples):
        yield ("baseline", name, env, data.tasks.states, 0, "none", "any", chosen, length), estimate


def cell_outputs(
    cells: list[Path], data: UnseenTasks, tuning: UnseenTasks, lengths: list[int], scaled: bool
) -> Iterator:
    """Outputs of the paper's weights, and of theta^TD with as many layers, read in several ways.

    - "step", "grouped", "pseudo": the three formats
    - "grouped_length": attention is divided by the number of grouped columns, the prompt's length
    - "ones": the answers to the reward 1 in all states, as a share of the truth 1 / (1 - gamma)
    - "per_state", "mean_state": estimates divided by this answer in each state, or by its mean over states
    - "centred": the mean observed reward is subtracted from rewards, the mean over the steps from estimates, and the
      constant added
    - "step_tuned", "grouped_tuned", "centred_tuned": A is multiplied by a tuned factor; with the factor 0, centred
      estimates are the constant
    """
    models = {Cell.parse(path.stem): Weights(*load_arrays(path, "u", "A")) for path in cells}
    for n, depth in sorted({(cell.states, cell.depth) for cell in models}):
        models[Cell("theta_td", "any", n, depth)] = theta_td(n)[None]
    for length in lengths:
        unseen, others = (Readings.of(tasks, length, scaled) for tasks in (data, tuning))
        for cell, weights in models.items():
            found = {name: unseen.estimates(name, weights, cell.depth) for name in unseen.grams}
            found["ones"] *= 1 - data.discount
            factors = dict.fromkeys([*found, "per_state", "mean_state"], 1.0)
            with np.errstate(all="ignore"):  # Large factors diverge, and answers of theta^TD may be zero.
                found["per_state"] = found["step"] / found["ones"]
                found["mean_state"] = found["step"] / found["ones"].mean(axis=-1, keepdims=True)
                for name in ("step", "grouped", "centred"):
                    tried = (others.estimates(name, weights, cell.depth, factor) for factor in FACTORS)
                    best = FACTORS[np.argmin([mean_score(tuning.error(one)) for one in tried])]
                    found[f"{name}_tuned"] = unseen.estimates(name, weights, cell.depth, best)
                    factors[f"{name}_tuned"] = best
            for shown, estimate in found.items():
                yield ("paper", *cell, "enumerated", shown, factors[shown], length), estimate


@dataclass(frozen=True)
class Readings:
    """Contexts of k tasks, read in several ways.

    Parameters
    ----------
    grams : dict of (k, 2n+1, 2n+1) arrays, matrices G by the name of the way
    constant : (k, n) array, the estimates of one constant
    visits : (k, n) array, shares of the steps
    """

    grams: dict[str, np.ndarray]
    constant: np.ndarray
    visits: np.ndarray

    @classmethod
    def of(cls, data: UnseenTasks, length: int, scaled: bool) -> "Readings":
        """Read the contexts of one length."""
        context, discount = data.context(length), data.discount
        contexts = formats_of(context)
        constant, contexts["centred"] = centred(data, context)
        contexts["ones"] = Context.of_shares(length, context.D, np.ones_like(constant))
        grams = {name: one.gram_matrix(discount, scaled) for name, one in contexts.items()}
        columns = (context.visits > 0).sum(axis=-1)
        grams["grouped_length"] = grams["grouped"] * (data.tasks.states / columns)[:, None, None]
        return cls(grams, constant, context.visits)

    def estimates(self, name: str, weights: Weights, depth: int, factor: float = 1.0) -> np.ndarray:
        """Estimates (k, n) of S Transformers, on about as many contexts each, with a factor on A."""
        G, trials = self.grams[name], len(weights.u)
        if len(G) % trials:
            G = np.resize(G, (-(-len(G) // trials) * trials, *G.shape[1:]))
        found = compiled_estimates(Weights(weights.u, factor * weights.A), G, depth)[: len(self.constant)]
        if name == "centred":
            found = self.constant + found - np.vecdot(self.visits, found)[:, None]
        return found


def run_outputs(settings: dict, runs: list[Path], data: UnseenTasks, lengths: list[int]) -> Iterator:
    """Outputs of the study's runs."""
    for name in settings:
        setting = Training(**settings[name])
        u, A = join_arrays([path for path in runs if path.parent.name == name], "u", "A")
        for i, (prompts, algo) in enumerate(setting.runs):
            weights = Weights(np.ascontiguousarray(u[:, i]), np.ascontiguousarray(A[:, i]))
            cell = Cell(algo, setting.env, setting.states, setting.depth)
            for length in [ENUMERATED, *lengths]:
                for shown, estimate in outputs(setting, weights, data, length).items():
                    yield (name, *cell, prompts, shown, np.nan, length), estimate


def outputs(setting: Training, weights: Weights, data: UnseenTasks, length: int) -> dict[str, np.ndarray]:
    """Estimates (S k, n) of a run, u (S, 2n), by the format of the contexts.

    Enumerated contexts, and contexts for softmax, have the format "step" only.
    """
    context = data.context(length)
    if setting.attention == "softmax":
        columns = Columns.enumerated(data.tasks, data.discount)
        if length != ENUMERATED:
            columns = Columns.sampled(context, data.tasks.reward, data.discount)
        seeds = len(weights.u)
        size = len(columns) // seeds
        trials = [estimates(weights[i], columns[i * size : (i + 1) * size], setting.depth) for i in range(seeds)]
        return {"step": np.concatenate(trials)}
    contexts = {"step": context} if length == ENUMERATED else formats_of(context)
    return {
        shown: compiled_estimates(weights, contexts[shown].gram_matrix(data.discount), setting.depth)
        for shown in contexts
    }


def shrunk_lstd(data: UnseenTasks, tuning: UnseenTasks, length: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Candidates (K,) for the parameter of each form of shrunk LSTD, and the values (K, S k, n) with each of them.

    The forms are LSTD with a ridge ("lstd"), with pseudo-steps to all states equally ("ce_uniform"), and with
    pseudo-steps of the mean chain ("lstd_prior").
    """
    baselines, context = methods(tuning), data.context(length)
    forms = {"lstd": RIDGES, "ce_uniform": PSEUDO_COUNTS, "lstd_prior": PSEUDO_COUNTS}
    return {
        form: (candidates, np.stack([baselines[form][0](data, context, candidate) for candidate in candidates]))
        for form, candidates in forms.items()
    }


def nearest(values: np.ndarray, estimate: np.ndarray, mu: np.ndarray, seeds: int) -> tuple[np.ndarray, np.ndarray]:
    """Find the candidates whose values are closest to the outputs of each of S trials.

    Parameters
    ----------
    values : (K, S k, n) array, of K candidates
    estimate, mu : (S k, n) arrays, outputs and weights of the states
    seeds : int, S

    Returns
    -------
    chosen : (S,) int array, the candidates closest to the outputs on the first half of each trial's tasks
    explained : (S,) array, shares of the variance of the outputs on the other tasks that they explain
    """
    squares = (mu * (values - estimate) ** 2).sum(axis=-1).reshape(len(values), seeds, -1)
    trials = estimate.reshape(seeds, -1), mu.reshape(seeds, -1)
    means = np.vecdot(*trials) / trials[1].sum(axis=-1)
    deviation = estimate.reshape(seeds, -1, estimate.shape[-1]) - means[:, None, None]
    spread = (mu.reshape(deviation.shape) * deviation**2).sum(axis=-1)
    middle = -(-squares.shape[-1] // 2)
    chosen = squares[..., :middle].sum(axis=-1).argmin(axis=0)
    missed = squares[chosen, np.arange(seeds), middle:].sum(axis=-1)
    return chosen, 1 - missed / spread[:, middle:].sum(axis=-1)

"""Policy evaluation from observed transitions, and policy iteration with such evaluations.

An evaluator is a function of

    counts    (N, S, A, S) numbers of observed transitions
    reward    (N, S, A) rewards, zero for pairs that were not observed
    policy    (N, S, A) policies to evaluate
    discount  gamma

that returns estimates of q (N, S, A).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ictd.baselines import theta_preconditioned_td
from ictd.statistics import log_spaced
from ictd.transformer import Weights, estimates
from studies.control.contexts import pair_context
from studies.control.processes import Processes, greedy, sum_last, uniform

Evaluator = Callable[[np.ndarray, np.ndarray, np.ndarray, float], np.ndarray]


@dataclass(frozen=True)
class InContext:
    """The Transformer TF_L.

    Parameters
    ----------
    weights : Weights of d = SA pairs
    depth : int, number of layers L
    pseudo_counts : float
        Transitions that are added to the prompt from each pair, spread evenly over all next states.
    grouped : bool
        Whether the prompt has a column for each observed pair, with the mean of its next features
        (``ictd.prompt.Context.grouped``), in place of a column for each transition.
    """

    weights: Weights
    depth: int
    pseudo_counts: float = 0.0
    grouped: bool = False

    def __call__(self, counts, reward, policy, discount):
        """Estimate q (N, S, A)."""
        counts = counts + self.pseudo_counts / counts.shape[-1]
        context = pair_context(counts, reward, policy)
        context = context.grouped() if self.grouped else context
        with np.errstate(over="ignore", invalid="ignore"):
            return estimates(self.weights, context.gram_matrix(discount), self.depth).reshape(policy.shape)


def in_context_td(step_size: float, depth: int, pairs: int) -> InContext:
    """Make theta^TD with a step size; each layer is one update of batch TD."""
    return InContext(theta_preconditioned_td(step_size * np.eye(pairs)), depth)


def observed_rewards(counts, reward, policy, discount):
    """Estimate q (N, S, A) by the observed rewards alone, without values of next states."""
    return reward


@dataclass(frozen=True)
class LeastSquares:
    """LSTD on pairs, with a ridge.

    The estimates are the values in the maximum likelihood model with additional steps, as many from each pair as the
    ridge.  The additional steps have the reward 0 and end the episode.  Policy iteration with LSTD is LSPI (Lagoudakis
    and Parr, Journal of Machine Learning Research 4, 2003).
    """

    ridge: float

    def __call__(self, counts, reward, policy, discount):
        """Estimate q (N, S, A)."""
        visits = sum_last(counts)
        total = visits + self.ridge
        model = Processes(counts / total[..., None], visits * reward / total)
        return model.values(policy, discount)


@dataclass(frozen=True)
class SmoothedModel:
    """Exact values in the maximum likelihood model with pseudo-counts, which is LSTD with these pseudo-counts.

    Parameters
    ----------
    pseudo_counts : float, transitions that are added from each pair
    transition : (S, A, S) array or float
        Pseudo-counts are proportional to these probabilities of next states.
    """

    pseudo_counts: float
    transition: np.ndarray | float

    def __call__(self, counts, reward, policy, discount):
        """Estimate q (N, S, A)."""
        total = counts + self.pseudo_counts * self.transition
        model = Processes(total / sum_last(total)[..., None], reward)
        return model.values(policy, discount)


def baselines(
    place: dict, depth: int, mean_transition: np.ndarray, ridges: dict, pseudo_counts: dict, step_sizes: dict
) -> dict[str, dict[float, Evaluator]]:
    """Evaluators of each baseline, by the value of its tuned parameter.

    Parameters
    ----------
    place : dict with "states" and "actions"
    depth : int, number of updates of theta^TD
    mean_transition : (S, A, S) array, mean transition probabilities of the place
    ridges, pseudo_counts, step_sizes : arguments of ``ictd.statistics.log_spaced``
    """
    states, pairs = place["states"], place["states"] * place["actions"]
    numbers = log_spaced(**pseudo_counts)
    return {
        "lspi": {ridge: LeastSquares(ridge) for ridge in log_spaced(**ridges)},
        "lspi_mean": {number: SmoothedModel(number, mean_transition) for number in numbers},
        "smoothed": {number: SmoothedModel(number, 1 / states) for number in numbers},
        "theta_td": {step_size: in_context_td(step_size, depth, pairs) for step_size in log_spaced(**step_sizes)},
        "rewards": {0.0: observed_rewards},
    }


def improve(
    evaluate: Evaluator, counts: np.ndarray, reward: np.ndarray, policy: np.ndarray, discount: float
) -> tuple[np.ndarray, np.ndarray]:
    """Evaluate policies, and return the estimates q and the greedy policies, both (N, S, A).

    The evaluator gets the rewards of observed pairs only.  Estimates that are not finite are set to zero.
    """
    observed_reward = np.where(sum_last(counts) > 0, reward, 0.0)
    q = evaluate(counts, observed_reward, policy, discount)
    q = np.where(np.isfinite(q), q, 0.0)
    return q, greedy(q)


def iterate(
    evaluate: Evaluator, counts: np.ndarray, reward: np.ndarray, discount: float, iterations: int
) -> tuple[np.ndarray, np.ndarray]:
    """Iterate evaluation and improvement from the uniform policy.

    Parameters
    ----------
    evaluate : evaluator
    counts : (N, S, A, S) array
    reward : (N, S, A) array
    discount : float, gamma
    iterations : int, K

    Returns
    -------
    policies : (K+1, N, S, A) array
    q : (K, N, S, A) array, estimates for the first K policies
    """
    policies = [uniform(reward.shape)]
    all_estimates = []
    for _ in range(iterations):
        q, policy = improve(evaluate, counts, reward, policies[-1], discount)
        all_estimates.append(q)
        policies.append(policy)
    return np.stack(policies), np.stack(all_estimates)

"""Whether pretrained weights pass TD errors back, as eligibility traces do."""

import numpy as np

from ictd.anatomy import preconditioner, project_identifiable
from ictd.statistics import correlation
from ictd.transformer import Weights


def trace_measures(weights: Weights, discount: float, transition: np.ndarray) -> dict[str, np.ndarray]:
    """Where G of K = [G; H] sends a TD error besides to its own state.

    Entry G_ij weighs what the error at i does to the estimate at j: a step of TD(lambda), whose traces pass errors back
    to states seen before, has entries where p(i | j) is large; a step of TD has none off the diagonal.

    The arrays returned, of the leading axes, are correlations over i other than j: ``predecessors`` of G_ij with
    p(i | j), ``successors`` with p(j | i); zero where either does not vary.

    Parameters
    ----------
    weights : Weights with any leading axes, of n states
    discount : float, gamma
    transition : (n, n) array, p(s' | s), of a task or in the mean over tasks
    """
    n = weights.states
    G = preconditioner(project_identifiable(weights, discount).A)[..., :n, :]
    apart = ~np.eye(n, dtype=bool)
    return {
        "predecessors": correlation(G[..., apart], transition.T[apart]),
        "successors": correlation(G[..., apart], transition[apart]),
    }

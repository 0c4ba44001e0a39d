"""Measure whether pretrained weights propagate TD errors to predecessors, as eligibility traces do."""

import numpy as np

from ictd.statistics import correlation
from ictd.transformer import Weights
from ictd.weight_measures import preconditioner, project_identifiable


def trace_measures(weights: Weights, discount: float, transition: np.ndarray) -> dict[str, np.ndarray]:
    """Correlate the entries of G in the preconditioner K = [G; H] with transition probabilities.

    Entry G_ij is the effect of the TD error at state i on the estimate of state j.  The traces of TD(lambda) pass
    errors back to earlier states, so a step of TD(lambda) has entries G_ij where p(i | j) is large.  A step of TD has
    no entries off the diagonal.

    Parameters
    ----------
    weights : Weights with any leading axes, of n states
    discount : float, gamma
    transition : (n, n) array, p(s' | s), of a task or averaged over tasks

    Returns
    -------
    dict of arrays with these leading axes, correlations over all pairs i and j that differ
        predecessors : correlation of G_ij with p(i | j), zero if either is constant
        successors : correlation of G_ij with p(j | i), zero if either is constant
    """
    n = weights.dimension
    G = preconditioner(project_identifiable(weights, discount).A)[..., :n, :]
    off_diagonal = ~np.eye(n, dtype=bool)
    return {
        "predecessors": correlation(G[..., off_diagonal], transition.T[off_diagonal]),
        "successors": correlation(G[..., off_diagonal], transition[off_diagonal]),
    }

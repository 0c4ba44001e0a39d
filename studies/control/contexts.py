"""Transitions as a prompt shows them, for any policy.

A transition (s, a, r, s') is the column [phi(s, a); gamma sum_a' pi(a' | s') phi(s', a'); r], so that transitions of
any behaviour serve every policy pi.  It enters only through the averages over columns (``ictd.prompt``).
"""

import numpy as np

from ictd.prompt import Context, diagonal
from studies.control.processes import pair_transitions


def context_of(counts: np.ndarray, reward: np.ndarray, policy: np.ndarray) -> Context:
    """Averages over the columns of prompts with given transitions.

    Parameters
    ----------
    counts : (N, S, A, S) array of transitions, which need not be whole numbers
    reward : (N, S, A) array
    policy : (N, S, A) array, the policies to evaluate

    Returns
    -------
    Context of N prompts with d = SA pairs in place of states
    """
    length = counts.sum(axis=(1, 2, 3))
    shares = counts / length[:, None, None, None]
    visits, rewards = shares.sum(axis=-1).reshape(len(counts), -1), reward.reshape(len(counts), -1)
    D = pair_transitions(shares, policy)
    # All next features of a state are one vector, the row of the policy, so E has a block for each state.
    E = np.einsum("nsaj,ji,njb,nic->njbic", shares, np.eye(policy.shape[1]), policy, policy).reshape(D.shape)
    return Context(np.rint(length).astype(int), diagonal(visits), D, E, b=visits * rewards, d=np.vecmat(rewards, D))

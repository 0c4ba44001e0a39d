"""Transitions as a prompt shows them, for any policy.

A transition (s, a, r, s') is the column [phi(s, a); gamma sum_a' pi(a' | s') phi(s', a'); r], so that transitions of
any behaviour serve every policy pi.  It enters only through its Gram matrix M and c (``ictd.gram``).
"""

import numpy as np

from ictd.prompts import Context
from studies.control.processes import pair_transitions


def context_of(counts: np.ndarray, reward: np.ndarray, policy: np.ndarray) -> Context:
    """What a prompt shows of counts (N, S, A, S), which need not be whole, for policies and rewards (N, S, A)."""
    length = counts.sum(axis=(1, 2, 3))
    shares = counts / length[:, None, None, None]
    visits, rewards = (one.reshape(len(counts), -1) for one in (shares.sum(axis=-1), reward))
    successors = pair_transitions(shares, policy)
    # Next features of a state are one vector, the policy's row: E has a block for each state.
    E = np.einsum("nsaj,ji,njb,nic->njbic", shares, np.eye(policy.shape[1]), policy, policy).reshape(successors.shape)
    return Context(np.rint(length).astype(int), visits, successors, visits * rewards, np.vecmat(rewards, successors), E)

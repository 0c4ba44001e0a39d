"""Prompts of transitions between pairs, for the evaluation of any policy.

A transition (s, a, r, s') is the column [phi(s, a); gamma sum_a' pi(a' | s') phi(s', a'); r].  So transitions under any
behaviour policy can be used to evaluate every policy pi.  TF_L depends on the columns only through their averages
(``ictd.prompt``).
"""

import numpy as np

from ictd.prompt import Context, diagonal
from studies.control.processes import pair_transitions, sum_last


def pair_context(counts: np.ndarray, reward: np.ndarray, policy: np.ndarray) -> Context:
    """Average over the columns of prompts with given transitions.

    Parameters
    ----------
    counts : (N, S, A, S) array
        Numbers of transitions, not necessarily integers.
    reward : (N, S, A) array
    policy : (N, S, A) array, the policies to evaluate

    Returns
    -------
    Context of N prompts, with the d = SA pairs in place of states
    """
    length = counts.sum(axis=(1, 2, 3))
    shares = counts / length[:, None, None, None]
    visits = sum_last(shares).reshape(len(counts), -1)  # (N, d)
    rewards = reward.reshape(len(counts), -1)  # (N, d)
    D = pair_transitions(shares, policy)
    # The next features after (s, a, s') are zero except on the pairs of s', so E has one block for each state.
    size, states, actions = policy.shape
    arrivals = np.einsum("nsaj->nj", shares)
    E = np.zeros((size, states, actions, states, actions))
    state = np.arange(states)
    blocks = arrivals[:, :, None, None] * policy[:, :, :, None] * policy[:, :, None, :]  # (N, S, A, A)
    E[:, state, :, state] = blocks.swapaxes(0, 1)
    E = E.reshape(D.shape)
    b, d = (visits * rewards)[..., None], np.vecmat(rewards, D)[..., None]
    square = (visits * rewards**2).sum(axis=-1)[..., None, None]
    G = np.block([[diagonal(visits), D, b], [D.mT, E, d], [b.mT, d.mT, square]])
    return Context(np.rint(length).astype(int), G)

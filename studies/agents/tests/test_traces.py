"""Traces in known preconditioners."""

import numpy as np
from tolerances import ROUNDING

import ictd
from ictd.decomposition import structured
from studies.agents.traces import trace_measures


def test_traces_send_errors_to_predecessors():
    """Known preconditioners: that of a trace, whose errors go back along p, its opposite, and theta^TD's."""
    states, transition = 4, ictd.sample_tasks("boyan", 4, 1, np.random.default_rng(0)).transition[0]
    identity = np.eye(states)
    G = np.stack([identity + 0.3 * transition.T, identity + 0.3 * transition, identity])
    A = structured(np.concatenate([G, np.zeros_like(G)], axis=-2))
    found = trace_measures(ictd.Weights(np.zeros((3, 2 * states)), A), 0.9, transition)
    both = np.corrcoef(transition[~np.eye(states, dtype=bool)], transition.T[~np.eye(states, dtype=bool)])[0, 1]
    np.testing.assert_allclose(found["predecessors"], [1, both, 0], atol=ROUNDING)
    np.testing.assert_allclose(found["successors"], [both, 1, 0], atol=ROUNDING)

"""Prompts of the Transformer: enumerated states for training, sampled contexts for evaluation."""

import numpy as np


def enumerated_prompts(transition: np.ndarray, reward: np.ndarray, discount: float) -> np.ndarray:
    """Z_0 of eq. (Z0 redef) for every query state: all states, expected next features, rewards.

    Parameters
    ----------
    transition : (..., n, n) array
    reward : (..., n) array
    discount : float, gamma

    Returns
    -------
    (..., n, 2n+1, n+1) array; entry [..., s, :, :] has s as its query
    """
    states = reward.shape[-1]
    features = np.broadcast_to(np.eye(states), transition.shape)
    context = [features, discount * np.swapaxes(transition, -1, -2), reward[..., None, :]]
    return _add_queries(np.concatenate(context, axis=-2), states)


def sampled_prompts(paths: np.ndarray, reward: np.ndarray, discount: float) -> np.ndarray:
    """Z(i, m, s) of section "In-Context Policy Evaluation Verification" for every query state s.

    Parameters
    ----------
    paths : (..., m+1) int array
        States S_0, ..., S_m.
    reward : (..., n) array
        r(s), so that R_{t+1} = r(S_t).
    discount : float, gamma

    Returns
    -------
    (..., n, 2n+1, m+1) array; entry [..., s, :, :] has s as its query
    """
    states = reward.shape[-1]
    features = np.swapaxes(np.eye(states)[paths], -1, -2)
    rewards = np.take_along_axis(reward, paths[..., :-1], axis=-1)
    context = [features[..., :-1], discount * features[..., 1:], rewards[..., None, :]]
    return _add_queries(np.concatenate(context, axis=-2), states)


def _add_queries(context: np.ndarray, states: int) -> np.ndarray:
    """Put behind a context (..., 2n+1, m) the column [phi(s); 0; 0], for each s."""
    *leading, rows, length = context.shape
    prompts = np.zeros((*leading, states, rows, length + 1))
    prompts[..., :length] = context[..., None, :, :]
    prompts[..., np.arange(states), np.arange(states), length] = 1
    return prompts

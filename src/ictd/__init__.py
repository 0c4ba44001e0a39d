"""In-context temporal difference learning: the experiments of "Towards Provable Emergence of In-Context RL".

Names are loaded on first use, so that importing one module does not import torch, numba and the rest.
"""

from importlib import import_module

_HOME = {
    "Tasks": "mrp",
    "stationary_distribution": "mrp",
    "value_function": "mrp",
    "msve": "mrp",
    "ENVIRONMENTS": "environments",
    "sample_tasks": "environments",
    "Unrolls": "trajectories",
    "unroll": "trajectories",
    "sample_paths": "trajectories",
    "Weights": "weights",
    "theta_td": "weights",
    "initial_weights": "weights",
    "enumerated_context": "prompts",
    "sampled_context": "prompts",
    "prompts_of": "prompts",
    "joint_prompt": "prompts",
    "LinearTransformer": "transformer",
    "pretrain": "pretraining",
    "pretrain_history": "pretraining",
    "generator": "streams",
}

__all__ = sorted(_HOME)
__version__ = "0.1.0"


def __getattr__(name: str):
    if name not in _HOME:
        raise AttributeError(f"ictd has no attribute {name!r}")
    return getattr(import_module(f"ictd.{_HOME[name]}"), name)


def __dir__():
    return sorted([*globals(), *__all__])

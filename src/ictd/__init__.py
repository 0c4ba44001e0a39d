"""In-context temporal difference learning: the experiments of "Towards Provable Emergence of In-Context RL".

Names are loaded on first use, so that importing one module does not import torch, numba and the rest.
"""

from importlib import import_module

_MODULES = {
    "mrp": ["Tasks", "stationary_distribution", "value_function", "msve"],
    "environments": ["ENVIRONMENTS", "sample_tasks"],
    "trajectories": ["Unrolls", "unroll", "sample_paths"],
    "weights": ["Weights", "theta_td", "initial_weights"],
    "prompts": ["Context", "enumerated_context", "sampled_context", "prompts_of", "joint_prompt"],
    "gram": ["Model"],
    "baselines": ["batch_td", "lstd"],
    "pipeline.saved_runs": ["load_model"],
    "transformer": ["LinearTransformer"],
    "pretraining": ["pretrain", "pretrain_history"],
    "streams": ["generator"],
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}

__all__ = sorted(_HOME)
__version__ = "0.1.0"


def __getattr__(name: str):
    if name not in _HOME:
        raise AttributeError(f"ictd has no attribute {name!r}")
    return getattr(import_module(f"ictd.{_HOME[name]}"), name)

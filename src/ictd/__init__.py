"""In-context temporal difference learning: the experiments of "Towards Provable Emergence of In-Context RL".

Names are loaded on first use, so that importing one module does not import torch and numba.
"""

from importlib import import_module

_MODULES = {
    "mrp": [
        "Tasks",
        "stationary_distribution",
        "value_function",
        "msve",
        "ENVIRONMENTS",
        "sample_tasks",
        "TaskDistribution",
        "register_environment",
    ],
    "rng": ["generator"],
    "sampling": ["BatchStatistics", "unroll", "sample_paths", "sample_steps"],
    "prompt": ["Context", "enumerated_columns", "sampled_columns", "prompts_of", "joint_prompt"],
    "transformer": ["Weights", "theta_td", "initial_weights", "Model", "load_model"],
    "literal": ["LinearTransformer"],
    "baselines": [
        "Instruments",
        "eligibility_traces",
        "expected_traces",
        "batch_td",
        "residual_gradient",
        "gtd2",
        "tdc",
        "td_lambda",
        "lstd",
        "certainty_equivalence",
        "project_values",
        "theta_preconditioned_td",
        "theta_residual_gradient",
        "boyan_posterior",
        "posterior_values",
    ],
    "training_data": ["EnumeratedPrompts", "SampledPrompts"],
    "pretraining": ["pretrain", "pretrain_history"],
    "attention": ["GramAttention", "pretrain_attention"],
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}

__all__ = sorted(_HOME)
__version__ = "0.1.0"


def __getattr__(name: str):
    if name not in _HOME:
        raise AttributeError(f"ictd has no attribute {name!r}")
    return getattr(import_module(f"ictd.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return __all__

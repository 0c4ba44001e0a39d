"""A setting of the study: what a Transformer is pretrained on, and how."""

from dataclasses import dataclass

from ictd.pipeline.grid import variants

ENVS = "boyan", "loop", "dense"
FEATURES = "normal", "constant", "orthonormal"


@dataclass(frozen=True)
class Setting:
    """A setting; ``config.yaml`` explains its values.

    A ValueError names an unknown text, or a number of features that does not fit the number of states.
    """

    env: str
    states: int
    features: str
    dimension: int
    depth: int
    discount: float
    start: str
    initial_gain: float
    updates: int
    targets: list[str]
    seeds: int

    def __post_init__(self):
        for key, name, names in (("env", self.env, ENVS), ("features", self.features, FEATURES)):
            if name not in names:
                raise ValueError(f"features: {key} has {name!r}; choose from {', '.join(names)}.")
        complete = self.features == "orthonormal"
        if self.dimension > self.states or (complete and self.dimension < self.states):
            raise ValueError(
                f"features: dimension is {self.dimension} with {self.states} states and {self.features} features; give"
                " at most as many features as states, and as many if they are orthonormal."
            )


def checked_settings(section: dict) -> dict[str, dict]:
    """All settings by name, the main one first, from the configuration of this study.

    A ValueError names a setting that occurs twice, does not fit, or that ``mean_part`` cannot use.
    """
    found = variants(section["main"], [{"name": "main"}, *section["variations"]])
    for setting in found.values():
        Setting(**setting)
    for name in section["mean_part"]["settings"]:
        if name not in found or "values" not in found[name]["targets"]:
            raise ValueError(f"features.mean_part has {name!r}; give a setting with the target values.")
    return found

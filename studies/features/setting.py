"""A setting of the study: what a Transformer is pretrained on, and how."""

from dataclasses import dataclass

ENVS = "boyan", "loop", "dense"
FEATURES = "normal", "constant", "orthonormal"
STARTS = "random", "residual_gradient"
TARGETS = "td", "mc", "values"


@dataclass(frozen=True)
class Setting:
    """A setting.

    Parameters
    ----------
    env : str, one of ``ENVS``
    states : int, n
    features : str, one of ``FEATURES``, which ``tasks`` draws for each task
    dimension : int, number of features d
    depth : int, number of layers L
    discount : float, gamma
    start : str
        Weights before the first update: "random", or those of the "residual_gradient" algorithm with a step size of 1.
    initial_gain : float, factor of random weights
    updates : int, number of tasks
    targets : list of str, some of ``TARGETS``
    seeds : int, number of trials

    Raises
    ------
    ValueError
        If a name is unknown, or the number of features does not fit the number of states.
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
        known = {"env": ENVS, "features": FEATURES, "start": STARTS}
        given = [(key, getattr(self, key), names) for key, names in known.items()]
        given += [("targets", target, TARGETS) for target in self.targets]
        for key, name, names in given:
            if name not in names:
                raise ValueError(f"features: {key} has {name!r}; choose from {', '.join(names)}.")
        complete = self.features == "orthonormal"
        if self.dimension > self.states or (complete and self.dimension < self.states):
            raise ValueError(
                f"features: dimension is {self.dimension} with {self.states} states and {self.features} features; give"
                " at most as many features as states, and as many if they are orthonormal."
            )


def checked_settings(section: dict) -> dict[str, dict]:
    """All settings by name, the main one first.

    Parameters
    ----------
    section : dict, the configuration of this study

    Raises
    ------
    ValueError
        If two settings have the same name, a value is unknown or does not fit, or ``mean_part`` has an unknown setting.
    """
    found = {"main": section["main"]}
    for given in section["variations"]:
        changes = dict(given)
        name = changes.pop("name")
        if name in found:
            raise ValueError(f"features has two settings {name!r}; give each a name of its own.")
        found[name] = section["main"] | changes
    for setting in found.values():
        Setting(**setting)
    for name in section["mean_part"]["settings"]:
        if name not in found or "values" not in found[name]["targets"]:
            raise ValueError(f"features.mean_part has {name!r}; give a setting with the target values.")
    return found

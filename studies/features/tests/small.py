"""A small setting of the study."""

from studies.features.setting import Setting

MAIN = {
    "env": "boyan", "states": 6, "features": "normal", "dimension": 3, "depth": 4, "discount": 0.9, "start": "random",
    "initial_gain": 0.1, "updates": 30, "targets": ["td", "values"], "seeds": 2,
}  # fmt: skip


def small(**changes):
    return Setting(**MAIN | changes)

"""The settings of the study: a main one, and others that differ from it."""

# Methods whose numbers are fitted by descent, ``studies.features.symmetric.FAMILIES``.
FITTED = ("theta_td", "residual_gradient", "two_numbers", "four_numbers")


def settings(section: dict) -> dict[str, dict]:
    """All settings by name: the main one, and those of the variations and controls.

    Parameters
    ----------
    section : dict, the configuration of this study
    """
    others = [*section["variations"], *section["controls"]]
    return {"main": section["main"]} | {
        given["name"]: section["main"] | section["others"] | {key: given[key] for key in given if key != "name"}
        for given in others
    }


def compared(section: dict) -> list[str]:
    """Names of the settings in which methods are compared: all but the controls."""
    return ["main", *(given["name"] for given in section["variations"])]


def fitted(section: dict) -> list[str]:
    """Names of the settings in which few numbers are fitted: all but those whose tasks share features of a seed."""
    return [name for name, setting in settings(section).items() if setting["features"] != "fixed"]

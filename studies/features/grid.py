"""The settings of the study: a main one, and others that differ from it."""

# Features whose distribution no rotation changes.
ROTATION_INVARIANT = ("normal", "rotated")
# Features with d = n, which represent all values.
EXACT = ("rotated", "one_hot")

# Factors that are varied alone, with labels of their axes.
FACTORS = {"dimension": "features $d$", "depth": "layers $L$", "discount": r"discount $\gamma$"}

# Controls of eta: the words of the page, and the settings that differ from those of an environment {env}.
CONTROLS = {
    "rotated": ("where d = n features represent all values", {"features": "rotated"}),
    "constant": ("where one feature is constant", {"features": "constant"}),
    "centred": ("where values have a mean of zero", {"env": "{env}_centred"}),
    "shuffled": ("where prompts show next features of other states", {"prompts": "shuffled"}),
}


def settings(section: dict) -> dict[str, dict]:
    """All settings by name: the main one, and those of the variations and controls.

    Parameters
    ----------
    section : dict, the configuration of this study

    Raises
    ------
    ValueError
        If two settings have the same name, the number of features does not fit, or a name is unknown.
    """
    found = {"main": section["main"]}
    for given in [*section["variations"], *section["controls"]]:
        name = given["name"]
        if name in found:
            raise ValueError(f"features has two settings {name!r}; give each a name of its own.")
        found[name] = section["main"] | section["others"] | {key: given[key] for key in given if key != "name"}
    unknown = [name for name in section["mean_part"]["settings"] if name not in found]
    if unknown:
        raise ValueError(f"features.mean_part has no setting {unknown[0]!r}; choose from {', '.join(found)}.")
    for name, setting in found.items():
        states, dimension = setting["states"], setting["dimension"]
        if (setting["features"] in EXACT and dimension != states) or dimension > states:
            raise ValueError(
                f"features: the setting {name!r} has {dimension} {setting['features']} features for {states} states;"
                " give at most as many features as states, and as many if they are rotated or one_hot."
            )
    return found


def compared(section: dict) -> list[str]:
    """Names of the settings in which methods are compared: all but the controls."""
    return ["main", *(given["name"] for given in section["variations"])]


def fitted(section: dict) -> list[str]:
    """Settings in which few numbers are fitted: compared ones, and those whose features no rotation changes."""
    others = [name for name, setting in settings(section).items() if setting["features"] in ROTATION_INVARIANT]
    return list(dict.fromkeys([*compared(section), *others]))


def varied(found: dict[str, dict], factor: str) -> dict[str, float]:
    """The value of a factor, by the names of the settings that differ from the main one in nothing else.

    Targets and seeds may differ.
    """
    ignored = {factor, "targets", "seeds"}
    main = {key: value for key, value in found["main"].items() if key not in ignored}
    return {name: setting[factor] for name, setting in found.items() if main.items() <= setting.items()}


def control_of(found: dict[str, dict], name: str, changes: dict[str, str]) -> str | None:
    """The setting with some changes that is otherwise like a setting, if there is one.

    Targets and seeds may differ, and the number of features if the change determines it.  "{env}" in a change is the
    environment of the setting.
    """
    changes = {key: value.format(env=found[name]["env"]) for key, value in changes.items()}
    ignored = {"targets", "seeds", *changes}
    if changes.get("features") in EXACT:
        ignored.add("dimension")
    wanted = {key: value for key, value in found[name].items() if key not in ignored} | changes
    for other, setting in found.items():
        if other != name and wanted.items() <= setting.items():
            return other
    return None


def is_plain(setting: dict) -> bool:
    """Whether features are normal and rewards the environment's own."""
    return setting["features"] == "normal" and not setting["env"].endswith("_centred")

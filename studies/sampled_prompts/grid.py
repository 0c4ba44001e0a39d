"""The settings of pretraining, and the places where weights are evaluated, from the configuration."""

from ictd.pipeline.grid import cells, evaluation_envs, main_setting, variants

FORMATS = ("step", "grouped", "enumerated")


def training_settings(paper: dict, study: dict) -> dict[str, dict]:
    """Values of ``Training`` by the name of the setting, from the settings of the paper's part and of the study."""
    main = main_setting(paper) | {"initial_gain": paper["readings"]["initial_gain"]}
    main |= {key: paper[key] for key in ("algos", "discount", "batch_size", "rollout_steps", "learning_rate")}
    main |= {key: study[key] for key in ("formats", "tasks", "lengths", "clip")}
    return variants(main, study["settings"])


def place(setting: dict) -> str:
    """The name "env-states" of the unseen tasks of a setting."""
    return f"{setting['env']}-{setting['states']}"


def settings_at(settings: dict[str, dict], wildcards) -> dict[str, dict]:
    """Settings of pretraining that are evaluated at a place, by name."""
    here = f"{wildcards.env}-{wildcards.states}"
    return {name: setting for name, setting in settings.items() if place(setting) == here}


def places(paper: dict, study: dict) -> list[str]:
    """Places where weights are evaluated; those of the paper's cells have its environment of evaluation."""
    env = evaluation_envs(paper)[0]
    of_cells = {f"{env}-{cell.states}" for cell in cells(paper)}
    return sorted(of_cells | {place(setting) for setting in training_settings(paper, study).values()})


def lengths_of(paper: dict, study: dict) -> list[int]:
    """Lengths of the contexts of unseen tasks, which are those of the paper's claims, up to their longest."""
    longest = max(paper["evaluation"]["context_lengths"])
    return [length for length in study["context_lengths"] if length <= longest] or [longest]


def check(paper: dict, study: dict) -> None:
    """Raise a ValueError of one sentence if the study cannot have these settings."""
    settings = training_settings(paper, study)
    if "main" not in settings or set(settings["main"]["formats"]) != set(FORMATS):
        raise ValueError(
            f"Config: sampled_prompts.settings needs one called main with the formats {', '.join(FORMATS)}."
        )

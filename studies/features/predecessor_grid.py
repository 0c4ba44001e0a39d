"""Variants of the predecessor's setting: which of its settings decide what pretraining of all of P and Q finds."""


def variants(config: dict) -> dict[str, dict]:
    """Settings of each variant, by its name: the main settings with the variant's changes.

    ``config`` is the whole configuration, with the study's settings under "features".
    """
    section = config["features"]["predecessor"]
    by_name = {}
    for changes in section["variants"]:
        settings = section["main"] | changes
        by_name[settings.pop("name")] = settings
    return by_name


def work(config: dict) -> dict[str, int]:
    """About how much work each variant is: thousands of layers of contexts."""
    batch = config["features"]["predecessor"]["batch"]
    return {
        name: variant["seeds"] * variant["tasks"] * variant["batches"] * variant["depth"]
        * (batch if variant["prompts"] == "sampled" else 1) // 1000
        for name, variant in variants(config).items()
    }  # fmt: skip


def check(config: dict) -> None:
    """Refuse variants that cannot be pretrained, with a ValueError."""
    for name, variant in variants(config).items():
        if variant["features"] == "one_hot" and variant["dimension"] != variant["states"]:
            raise ValueError(
                f"Config: features.predecessor.variants gives {name!r} one-hot features with dimension"
                f" {variant['dimension']} and states {variant['states']}; give both the same number."
            )
        if variant["trained"] == "theta" and variant["layers"] == "separate":
            raise ValueError(
                f"Config: features.predecessor.variants gives {name!r} separate layers and trained: theta, which has"
                " looped layers; change one of them."
            )

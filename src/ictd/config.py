"""Checking a configuration."""

import math
import re

import jsonschema
import numpy as np

from ictd.environments import ENVIRONMENTS, sample_tasks

# What the schema's patterns ask of a key.
PATTERNS = {
    "results": "a folder whose path has letters, digits and _ . / -",
    "anatomy.readings.name": "letters, digits and _",
    "beyond.attentions.name": "letters, digits and _",
}
SMALLEST_DISCOUNT = 0.0001
NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
KINDS = {
    "array": "a list, such as [a, b]",
    "integer": "an integer",
    "number": "a number",
    "object": "keys with values",
    "string": "a text",
}


def numbers_from_text(value):
    """A configuration with its numbers as such: those that YAML or Snakemake's --config leave as text, like 1e-3, and
    whole ones, like 20.0, as integers."""
    if isinstance(value, dict):
        return {key: numbers_from_text(item) for key, item in value.items()}
    if isinstance(value, list):
        return [numbers_from_text(item) for item in value]
    if isinstance(value, str) and NUMBER.fullmatch(value):
        value = float(value)
    return int(value) if isinstance(value, float) and value.is_integer() else value


def check_config(config: dict, schema: dict) -> None:
    """Refuse a configuration that does not make sense.

    Parameters
    ----------
    config : the configuration, as loaded from YAML
    schema : JSON schema, workflow/schemas/config.schema.yaml

    Raises
    ------
    ValueError
        One sentence that names the key, its value and what is allowed.
    """
    for name, number in _numbers(config):
        if not math.isfinite(number):
            raise ValueError(f"Config: {name} is {number}; give a finite number.")
    error = jsonschema.exceptions.best_match(jsonschema.Draft202012Validator(schema).iter_errors(config))
    if error is not None:
        raise ValueError(f"Config: {_explain(error)}.")
    readings = config["readings"]
    named = [("envs", env) for env in config["envs"]]
    named += [("readings.evaluation_env", readings["evaluation_env"])]
    named += [("readings.env_options", env) for env in readings["env_options"]]
    for key, env in named:
        if env not in ENVIRONMENTS or not env.isidentifier():
            raise ValueError(f"Config: {key} names {env!r}; the environments are {', '.join(ENVIRONMENTS)}.")
    for env in dict.fromkeys(env for _, env in named):
        try:
            sample_tasks(env, config["states"][0], 1, np.random.default_rng(0), **readings["env_options"].get(env, {}))
        except (ValueError, TypeError) as error:
            what = str(error).rstrip(".")
            raise ValueError(f"Config: environment {env!r} with its readings.env_options: {what}.") from None
    for section, key in (("evaluation", "context_lengths"), ("beyond", "context_lengths"), ("beyond", "lengths")):
        lengths = config[section][key]
        if lengths != sorted(lengths):
            raise ValueError(f"Config: {section}.{key} is {lengths}; give the lengths in ascending order.")
    spaced = [(section, "step_sizes") for section in ("evaluation", "anatomy", "beyond")] + [("beyond", "ridges")]
    for section, key in spaced:
        smallest, largest = (config[section][key][name] for name in ("smallest", "largest"))
        if smallest > largest:
            raise ValueError(f"Config: {section}.{key}.smallest is {smallest}; give at most the largest, {largest}.")
    beyond = config["beyond"]
    if beyond["main_tasks"] < beyond["tasks"]:
        raise ValueError(
            f"Config: beyond.main_tasks is {beyond['main_tasks']}; give at least beyond.tasks, {beyond['tasks']}."
        )
    if beyond["step_sizes"]["smallest"] > 1:
        raise ValueError(
            f"Config: beyond.step_sizes.smallest is {beyond['step_sizes']['smallest']}; give at most 1, for TD(lambda)."
        )
    # Files of the study are named after discounts.
    tiny = [discount for discount in (config["discount"], *beyond["discounts"]) if 0 < discount < SMALLEST_DISCOUNT]
    if tiny:
        raise ValueError(f"Config: there is a discount of {tiny[0]}; give 0, or at least {SMALLEST_DISCOUNT}.")
    for section, key in (("anatomy", "readings"), ("beyond", "attentions")):
        first, *_ = config[section][key]
        if len(first) > 1:
            raise ValueError(
                f"Config: {section}.{key} begins with {first['name']!r}; begin with one that changes nothing."
            )
        names = [one["name"] for one in config[section][key]]
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise ValueError(f"Config: {section}.{key} has {twice[0]!r} twice; give each a name of its own.")


def _numbers(value, name: str = ""):
    """Pairs of dotted keys and numbers of a configuration."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _numbers(item, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list):
        for item in value:
            yield from _numbers(item, name)
    elif isinstance(value, float):
        yield name, value


def _explain(error: jsonschema.ValidationError) -> str:
    """What is wrong, where, and what is allowed, as the inside of a sentence."""
    key = ".".join(part for part in error.absolute_path if isinstance(part, str))
    place = next((f"value {part + 1} of " for part in error.absolute_path if isinstance(part, int)), "")
    found, rule, allowed = error.instance, error.validator, error.validator_value
    if rule == "additionalProperties":
        known = error.schema["properties"]
        unknown = sorted(set(found) - set(known))
        return f"{key + ' has' if key else 'there is'} an unknown key {unknown[0]!r}; the keys are {', '.join(known)}"
    if rule == "required":
        missing = [name for name in allowed if name not in found]
        return f"{key + ' lacks' if key else 'there is no'} key {missing[0]!r}"
    wanted = {
        "type": f"give {KINDS.get(str(allowed), allowed)}",
        "enum": f"choose from {', '.join(map(str, allowed))}" if rule == "enum" else "",
        "minimum": f"give at least {allowed}",
        "maximum": f"give at most {allowed}",
        "exclusiveMinimum": f"give more than {allowed}",
        "exclusiveMaximum": f"give less than {allowed}",
        "multipleOf": f"give a multiple of {allowed}",
        "minItems": f"give at least {allowed} value(s)",
        "uniqueItems": "give each value once",
        "pattern": f"give {PATTERNS.get(key)} only",
    }
    shown = "empty" if found is None else repr(found)
    return f"{place}{key} is {shown}; {wanted.get(rule, error.message)}"

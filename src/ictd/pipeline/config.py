"""Checking a configuration."""

import math
import re

import jsonschema
import numpy as np

from ictd.environments import ENVIRONMENTS, sample_tasks

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
    """Refuse a configuration, as loaded from YAML, that does not make sense.

    The JSON schema is workflow/schemas/config.schema.yaml.  The ValueError is one sentence that names the key, its
    value and what is allowed.
    """
    check_values(config, schema)
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


def check_values(values: dict, schema: dict, section: str = "") -> None:
    """Refuse values, as loaded from YAML, that do not fit a JSON schema.

    Besides JSON schema's own keywords there are ``ascending`` for lists of numbers, ``atMost`` for mappings, from a key
    to another whose value is at least as large, ``variants`` for lists of mappings with names, each name once and the
    first with nothing else, and ``means`` beside a pattern, which says it in words.

    ``section`` is the one that the values are of, if they are not the whole configuration.  The ValueError is one
    sentence that names the key, its value and what is allowed.
    """
    for name, number in _numbers(values, section):
        if not math.isfinite(number):
            raise ValueError(f"Config: {name} is {number}; give a finite number.")
    error = jsonschema.exceptions.best_match(VALIDATOR(schema).iter_errors(values))
    if error is not None:
        raise ValueError(f"Config: {_explain(error, section)}.")


def _ascending(validator, wanted, values, schema):
    if isinstance(values, list) and all(map(_is_number, values)) and values != sorted(values):
        yield jsonschema.ValidationError("give the lengths in ascending order")


def _at_most(validator, pairs, values, schema):
    for one, other in pairs.items() if isinstance(values, dict) else ():
        least, most = values.get(one), values.get(other)
        if _is_number(least) and _is_number(most) and least > most:
            yield jsonschema.ValidationError(f"give at most the {other}, {most}", path=[one], instance=least)


def _variants(validator, wanted, values, schema):
    values = [one for one in values if isinstance(one, dict)] if isinstance(values, list) else []
    if values and len(values[0]) > 1:
        words = "begin with one that has a name only and changes nothing"
        yield jsonschema.ValidationError(words, path=[0], instance=values[0])
    names = [one.get("name") for one in values]
    for i, name in enumerate(names):
        if name in names[:i]:
            yield jsonschema.ValidationError("give each a name of its own", path=[i, "name"], instance=name)


def _is_number(value) -> bool:
    return isinstance(value, int | float)


VALIDATOR = jsonschema.validators.extend(
    jsonschema.Draft202012Validator, {"ascending": _ascending, "atMost": _at_most, "variants": _variants}
)


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


def _explain(error: jsonschema.ValidationError, section: str) -> str:
    """What is wrong, where, and what is allowed, as the inside of a sentence."""
    key = ".".join(part for part in (section, *error.absolute_path) if part and isinstance(part, str))
    place = next((f"value {part + 1} of " for part in error.absolute_path if isinstance(part, int)), "")
    found, rule, allowed = error.instance, error.validator, error.validator_value
    if rule == "additionalProperties":
        known = error.schema["properties"]
        unknown = sorted(set(found) - set(known), key=str)
        where = f"{place}{key} has" if key else "there is"
        return f"{where} an unknown key {unknown[0]!r}; the keys are {', '.join(known)}"
    if rule == "required":
        missing = [name for name in allowed if name not in found]
        return f"{f'{place}{key} lacks' if key else 'there is no'} key {missing[0]!r}"
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
        "pattern": f"give {error.schema.get('means')} only",
    }
    shown = "empty" if found is None else repr(found)
    return f"{place}{key} is {shown}; {wanted.get(rule, error.message)}"

"""Checking a configuration."""

import re
import sys
from contextlib import contextmanager
from pathlib import Path

import jsonschema
import numpy as np

from ictd.checks import shown
from ictd.environments import ENVIRONMENTS, sample_tasks
from ictd.pipeline.failures import check_writable
from ictd.pipeline.yaml_files import check_size

NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
# Where NumPy's integers end.
LARGEST = 2**63
KINDS = {
    "array": "a list, such as [a, b]",
    "integer": "an integer",
    "number": "a number",
    "object": "keys with values",
    "string": "a text",
}
# Folders of the project; results in them would be taken for its files.
OWN = {".ci", ".git", ".github", ".snakemake", ".venv"}
OWN |= set("config docs envs examples profiles reference report src studies tests workflow".split())
# What there is in a folder of results before the first job has ended; afterwards there are benchmarks.
MARKS = {"benchmarks", "kernels", "logs"}


def with_defaults(given: dict, defaults: dict) -> dict:
    """Values that are given, in mappings within mappings too, and in place of others those of defaults."""
    nested = (key for key in given if isinstance(given[key], dict) and isinstance(defaults.get(key), dict))
    return {**defaults, **given, **{key: with_defaults(given[key], defaults[key]) for key in nested}}


def checked_config(config: dict, schema: dict) -> dict:
    """A configuration, as ``checked_values`` gives it, whose environments are there and take their options.

    The JSON schema is workflow/schemas/config.schema.yaml.
    """
    config = checked_values(config, schema)
    readings = config["readings"]
    named = [("envs", env) for env in config["envs"]]
    named += [("readings.evaluation_env", readings["evaluation_env"])]
    named += [("readings.env_options", env) for env in readings["env_options"]]
    for key, env in named:
        if env not in ENVIRONMENTS or not env.isidentifier():
            raise ValueError(f"Config: {key} names {shown(env)}; the environments are {', '.join(ENVIRONMENTS)}.")
    for env in dict.fromkeys(env for _, env in named):
        try:
            sample_tasks(env, config["states"][0], 1, np.random.default_rng(0), **readings["env_options"].get(env, {}))
        except (ValueError, TypeError) as error:
            what = " ".join(str(error).split()).rstrip(".")
            raise ValueError(f"Config: environment {env!r} with its readings.env_options: {what}.") from None
    return config


def checked_values(values: dict, schema: dict, section: str = "") -> dict:
    """Values as loaded from YAML, with numbers as such; refused where they do not fit a JSON schema.

    Besides JSON schema's own keywords there are ``ascending`` for lists of numbers, ``atMost`` for mappings, from a key
    to another whose value is at least as large, ``variants`` for lists of mappings with names, each name once and the
    first with nothing else, and ``means`` beside a pattern, which says it in words; patterns are of whole texts.
    The ValueError is one sentence that names the key, its value and what is allowed.
    """
    check_size(values, f"Config: {section or 'the whole'}")
    values = numbers_from_text(values, schema, section)
    error = jsonschema.exceptions.best_match(VALIDATOR(schema).iter_errors(values))
    if error is not None:
        raise ValueError(f"Config: {_explain(error, section)}.")
    return values


def numbers_from_text(value, schema: dict, name: str = ""):
    """Values with their numbers as such: those that YAML or Snakemake's --config leave as text, like 1e-3, unless the
    schema wants a text there, and whole ones, like 20.0, as integers.  ValueError for one that is not finite."""
    schema = schema if isinstance(schema, dict) else {}
    if isinstance(value, dict):
        of, inner = f"{name}." if name else "", schema.get("properties", {})
        return {key: numbers_from_text(item, inner.get(key, {}), f"{of}{key}") for key, item in value.items()}
    if isinstance(value, list):
        return [numbers_from_text(item, schema.get("items", {}), name) for item in value]
    if isinstance(value, str) and schema.get("type") != "string" and NUMBER.fullmatch(value):
        value = float(value)
    if _is_number(value) and not abs(value) <= sys.float_info.max:
        what = value if isinstance(value, float) else "too large"
        raise ValueError(f"Config: {name} is {what}; give a finite number.")
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < LARGEST else value


def check_folder(results: Path, root: Path) -> None:
    """Refuse a folder of the project, which is in ``root``, one with other files, or one that cannot be written to, for
    results; ValueError."""
    try:
        folder, root = results.resolve(), root.resolve()
        names = {path.name for path in folder.glob("[!.]*")} if folder.is_dir() else set()
    except (OSError, RuntimeError) as error:
        raise ValueError(f"Config: results is {shown(str(results))}, no usable folder: {error}.") from None
    around = folder in {root, *root.parents, Path("~").expanduser()}
    if around or (folder.is_relative_to(root) and folder.relative_to(root).parts[0] in OWN):
        raise ValueError(
            f"Config: results is {str(results)!r}, a folder of the project, one around it, or the home folder; give one"
            " of its own."
        )
    if names - MARKS and "benchmarks" not in names:
        other = min(names - MARKS)
        raise ValueError(f"Config: results is {str(results)!r}, where there is {other!r}; give a folder of its own.")
    check_writable(results)


@contextmanager
def ending_in_a_sentence():
    """End the program with the sentence of a ValueError."""
    try:
        yield
    except ValueError as error:
        sys.exit(f"{error}")


def _ascending(validator, wanted, values, schema):
    if isinstance(values, list) and all(map(_is_number, values)) and values != sorted(values):
        yield jsonschema.ValidationError("give them in ascending order")


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


def _unique(validator, wanted, values, schema):
    # jsonschema's own compares each with each where values cannot be sorted.
    if isinstance(values, list) and len({repr(value) for value in values}) < len(values):
        yield jsonschema.ValidationError("give each value once")


def _pattern(validator, pattern, value, schema):
    # JSON schema searches, and a $ would be found before a newline at the end.
    if isinstance(value, str) and not re.fullmatch(pattern, value):
        yield jsonschema.ValidationError(f"give {schema['means']} only")


def _is_number(value) -> bool:
    return isinstance(value, int | float)


def _is_integer(checker, value) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < LARGEST


VALIDATOR = jsonschema.validators.extend(
    jsonschema.Draft202012Validator,
    {"ascending": _ascending, "atMost": _at_most, "variants": _variants, "pattern": _pattern, "uniqueItems": _unique},
    type_checker=jsonschema.Draft202012Validator.TYPE_CHECKER.redefine("integer", _is_integer),
)


def _explain(error: jsonschema.ValidationError, section: str) -> str:
    """What is wrong, where, and what is allowed, as the inside of a sentence."""
    key = ".".join(part for part in (section, *error.absolute_path) if part and isinstance(part, str))
    place = next((f"value {part + 1} of " for part in error.absolute_path if isinstance(part, int)), "")
    found, rule, allowed = error.instance, error.validator, error.validator_value
    if rule == "additionalProperties":
        known = error.schema["properties"]
        unknown = sorted(set(found) - set(known), key=str)
        where = f"{place}{key} has" if key else "there is"
        return f"{where} an unknown key {shown(unknown[0])}; the keys are {', '.join(known)}"
    if rule == "required":
        missing = [name for name in allowed if name not in found]
        return f"{f'{place}{key} lacks' if key else 'there is no'} key {missing[0]!r}"
    large = allowed == "integer" and _is_number(found) and abs(found) >= LARGEST
    wanted = {
        "type": f"give {KINDS.get(str(allowed), allowed)}{' below 2^63' if large else ''}",
        "enum": f"choose from {', '.join(map(str, allowed))}" if rule == "enum" else "",
        "minimum": f"give at least {allowed}",
        "maximum": f"give at most {allowed}",
        "exclusiveMinimum": f"give more than {allowed}",
        "exclusiveMaximum": f"give less than {allowed}",
        "multipleOf": f"give a multiple of {allowed}",
        "minItems": f"give at least {allowed} value(s)",
        "maxLength": f"give at most {allowed} letters",
    }
    what = "empty" if found is None else shown(found)
    return f"{place}{key} is {what}; {wanted.get(rule, error.message)}"

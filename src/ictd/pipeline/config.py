"""The configuration: values that are given in place of those of the project's files, checked in one sentence."""

import math
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import jsonschema
import numpy as np
import yaml

from ictd.checks import shown
from ictd.mrp import ENVIRONMENTS, sample_tasks

NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
# Above it, not every float is a whole number.
LARGEST_INTEGER = 2**53
# Types of JSON schema in words.
TYPES = {
    "array": "a list, such as [a, b]",
    "integer": "an integer",
    "number": "a finite number",
    "object": "keys with values",
    "string": "a text",
}
PROJECT_FOLDERS = (
    ".ci", ".git", ".github", ".snakemake", ".venv", "config", "docs", "envs", "examples", "profiles", "reference",
    "report", "src", "studies", "tests", "workflow",
)  # fmt: skip


def load_config(given: dict, root: Path) -> dict:
    """The whole configuration: the paper's keys, and the settings of each study under its name.

    Values that are given, by ``--config`` or ``--configfile``, take the place of those of ``config.yaml`` and of
    ``studies/NAME/config.yaml`` below the project's folder ``root``.  ValueError of one sentence for a key that is
    unknown or missing, a value that the schema does not allow, an environment that does not exist, or a folder of
    results that cannot be used.
    """
    schema = load_yaml(root / "workflow/schemas/config.schema.yaml")
    studies = study_names(root)
    own = {key: given[key] for key in given if key not in studies}
    config = checked_values(merged(load_yaml(root / "config.yaml"), own), schema)
    check_environments(config)
    check_folder(Path(config["results"]), root)
    for name in studies:
        settings = merged(load_yaml(root / f"studies/{name}/config.yaml"), given.get(name, {}))
        of_study = load_yaml(root / f"studies/{name}/schema.yaml")
        of_study["$defs"] = schema["$defs"]
        config[name] = checked_values(settings, of_study, name)
    return config


def study_names(root: Path) -> list[str]:
    """Names of the studies: the folders of ``studies`` that have a ``rules.smk``."""
    return sorted(path.parent.name for path in root.glob("studies/*/rules.smk"))


def merged(defaults, given):
    """Defaults with given values in their place; mappings are merged, lists replaced."""
    if not isinstance(defaults, dict) or not isinstance(given, dict):
        return given
    both = {key: merged(defaults[key], given[key]) for key in defaults.keys() & given.keys()}
    return defaults | given | both


class _UniqueKeys(yaml.SafeLoader):
    """Refuses a key that a mapping has twice, of which YAML's own loader takes the last."""

    def construct_mapping(self, node, deep=False):
        seen = set()
        for key, _ in node.value:
            if key.value in seen and key.value != "<<":
                raise yaml.MarkedYAMLError(problem=f"key {key.value!r} is there twice", problem_mark=key.start_mark)
            seen.add(str(key.value))
        return super().construct_mapping(node, deep)


def load_yaml(path: Path) -> dict:
    """Mapping in a YAML file; ValueError with file and line if it is missing, or not valid, or has a key twice."""
    try:
        found = yaml.load(path.read_text(encoding="utf-8"), Loader=_UniqueKeys)
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}.") from None
    except yaml.MarkedYAMLError as error:
        raise ValueError(f"{path}, line {error.problem_mark.line + 1}: {error.problem}.") from None
    except (UnicodeDecodeError, yaml.YAMLError):
        raise ValueError(f"{path} is not a text in UTF-8.") from None
    if not isinstance(found, dict):
        raise ValueError(f"{path} has no keys with values.")
    return found


def checked_values(values: dict, schema: dict, section: str = "") -> dict:
    """Values as loaded from YAML, with numbers as such, checked by a JSON schema.

    Besides the keywords of JSON schema there are ``ascending`` for lists of numbers, ``atMost`` for mappings, from a
    key to another key whose value is at least as large, and ``variants`` for lists of mappings with names: each name
    once, and the first with nothing else.  ``means`` beside a pattern says it in words.  ValueError of one sentence
    that names the key, its value and what is allowed.
    """
    values = numbers_from_text(values, schema)
    error = jsonschema.exceptions.best_match(VALIDATOR(schema).iter_errors(values))
    if error is not None:
        raise ValueError(f"Config: {_explain(error, section)}.")
    return values


def numbers_from_text(value, schema: dict):
    """Values with numbers that YAML or ``--config`` leave as text, like 1e-3, and whole ones, like 20.0, as integers.

    A text stays where the schema wants a text.
    """
    if isinstance(value, dict):
        inner = schema.get("properties", {})
        return {key: numbers_from_text(item, inner.get(key, {})) for key, item in value.items()}
    if isinstance(value, list):
        return [numbers_from_text(item, schema.get("items", {})) for item in value]
    if isinstance(value, str) and schema.get("type") != "string" and NUMBER.fullmatch(value):
        value = float(value)
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < LARGEST_INTEGER else value


def check_environments(config: dict) -> None:
    """Refuse an environment that does not exist, or one that does not take its options; ValueError."""
    readings = config["readings"]
    named = [("envs", env) for env in config["envs"]]
    named += [("readings.evaluation_env", readings["evaluation_env"])]
    named += [("readings.env_options", env) for env in readings["env_options"]]
    for key, env in named:
        if env not in ENVIRONMENTS:
            raise ValueError(f"Config: {key} names {shown(env)}; the environments are {', '.join(ENVIRONMENTS)}.")
        options = readings["env_options"].get(env, {})
        try:
            sample_tasks(env, config["states"][0], 1, np.random.default_rng(0), **options)
        except (ValueError, TypeError) as error:
            what = str(error).rstrip(".")
            raise ValueError(f"Config: environment {env!r} with its readings.env_options: {what}.") from None


def check_folder(results: Path, root: Path) -> None:
    """Refuse a folder for results that has the project's own files, or that cannot be written to; ValueError."""
    folder, root = results.resolve(), root.resolve()
    inside = folder.is_relative_to(root) and folder.relative_to(root).parts[:1]
    if folder in {root, *root.parents} or (inside and inside[0] in PROJECT_FOLDERS):
        raise ValueError(f"Config: results is {str(results)!r}, which holds files of the project; give another folder.")
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    if not (existing.is_dir() and os.access(existing, os.W_OK | os.X_OK)):
        raise ValueError(
            f"Config: nothing can be written to {existing}; give write access, or another folder as results."
        )


def _ascending(validator, wanted, values, schema):
    if all(isinstance(value, int | float) for value in values) and values != sorted(values):
        yield jsonschema.ValidationError("give them in ascending order")


def _at_most(validator, pairs, values, schema):
    for smaller, larger in pairs.items() if isinstance(values, dict) else ():
        least, most = values.get(smaller), values.get(larger)
        if isinstance(least, int | float) and isinstance(most, int | float) and least > most:
            yield jsonschema.ValidationError(f"give at most the {larger}, {most}", path=[smaller], instance=least)


def _variants(validator, wanted, values, schema):
    if not all(isinstance(variant, dict) for variant in values):
        return
    if values and len(values[0]) > 1:
        words = "begin with one that has a name only and changes nothing"
        yield jsonschema.ValidationError(words, path=[0], instance=values[0])
    names = [variant.get("name") for variant in values]
    for i, name in enumerate(names):
        if name in names[:i]:
            yield jsonschema.ValidationError("give each a name of its own", path=[i, "name"], instance=name)


def _is_finite_number(checker, value) -> bool:
    return STANDARD.TYPE_CHECKER.is_type(value, "number") and abs(value) < math.inf


STANDARD = jsonschema.Draft202012Validator
VALIDATOR = jsonschema.validators.extend(
    STANDARD,
    {"ascending": _ascending, "atMost": _at_most, "variants": _variants},
    type_checker=STANDARD.TYPE_CHECKER.redefine("number", _is_finite_number),
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
    wanted = {
        "type": f"give {TYPES.get(str(allowed), allowed)}",
        "enum": f"choose from {', '.join(map(str, allowed))}" if rule == "enum" else "",
        "minimum": f"give at least {allowed}",
        "maximum": f"give at most {allowed}",
        "exclusiveMinimum": f"give more than {allowed}",
        "exclusiveMaximum": f"give less than {allowed}",
        "multipleOf": f"give a multiple of {allowed}",
        "minItems": f"give at least {allowed} value(s)",
        "maxItems": f"give at most {allowed} value(s)",
        "maxLength": f"give at most {allowed} letters",
        "uniqueItems": "give each value once",
        "pattern": f"give {error.schema.get('means')} only",
    }
    what = "empty" if found is None else shown(found)
    return f"{place}{key} is {what}; {wanted.get(rule, error.message)}"


@contextmanager
def ending_in_a_sentence() -> Iterator[None]:
    """End the program with the sentence of a ValueError."""
    try:
        yield
    except ValueError as error:
        sys.exit(f"{error}")

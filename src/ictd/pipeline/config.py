"""The configuration of the workflow: the project's settings, overridden by given values, and checked by schemas.

An error in the configuration raises a ValueError of one sentence that names the key, its value and what is allowed.
"""

import difflib
import math
import os
import re
import reprlib
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from ictd.algorithms import ALGORITHMS
from ictd.extras import missing_extra
from ictd.mrp import ENVIRONMENTS, sample_tasks
from ictd.pipeline.extensions import load_extensions
from ictd.pipeline.grid import evaluation_envs, flat_settings

try:
    import jsonschema
    import yaml
except ModuleNotFoundError as error:
    raise missing_extra("workflow", error.name) from None

NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
# Above this number, floats cannot represent every whole number.
LARGEST_INTEGER = 2**53
PROJECT_FOLDERS = (
    ".ci .git .github .snakemake .venv config docs envs examples profiles reference report src studies tests workflow"
).split()


def load_config(given: dict, root: Path) -> dict:
    """Load the whole configuration: the paper's settings, and the settings of each study under the study's name.

    Parameters
    ----------
    given : dict
        Values of ``--config`` and ``--configfile``.  They override those of ``config.yaml`` and of
        ``studies/NAME/config.yaml``.
    root : Path, the project's folder

    Returns
    -------
    dict of all settings

    Raises
    ------
    ValueError
        If a key is unknown or missing, a schema does not allow a value, an environment does not exist, or the folder of
        results cannot be used.
    """
    schema = load_yaml(root / "workflow/schemas/config.schema.yaml")
    of_studies = {name: load_yaml(root / f"studies/{name}/config.yaml") for name in study_names(root)}
    schema["properties"] |= schema_like(of_studies, load_yaml(root / "workflow/schemas/studies.schema.yaml"))[
        "properties"
    ]
    config = merged(of_studies, values_from_text(merged(load_yaml(root / "config.yaml"), given), schema))
    check_values(config, schema)
    load_extensions(config["extensions"])
    check_names(config)
    check_folder(Path(config["results"]), root)
    return config


def schema_like(example, bounds: dict[str, dict]) -> dict:
    """Make a JSON schema of values that have the types of an example, and bounds by the names of their keys.

    A mapping has the keys of the example or fewer.  Items of a list have the type of the example's items; mappings in a
    list have the keys of any of them, at least those of all.  An empty list is not allowed.
    """
    if isinstance(example, dict):
        inner = {key: merged(schema_like(value, bounds), bounds.get(key, {})) for key, value in example.items()}
        return {"type": "object", "properties": inner, "additionalProperties": False}
    if isinstance(example, list):
        item, required = max(example, key=lambda item: isinstance(item, float), default={}), []
        if isinstance(item, dict):
            required = sorted(set.intersection(*map(set, example)))
            item = {key: value for other in example for key, value in other.items()}
        return {"type": "array", "minItems": 1, "items": schema_like(item, bounds) | {"required": required}}
    names = {bool: "boolean", int: "integer", float: "number"}
    return {"type": names.get(type(example), "string")}


def study_names(root: Path) -> list[str]:
    """Names of the studies: the folders of ``studies`` that have a ``rules.smk``."""
    return sorted(path.parent.name for path in root.glob("studies/*/rules.smk"))


def merged(defaults, given):
    """Override defaults by given values; mappings are merged, and lists are replaced."""
    if not isinstance(defaults, dict) or not isinstance(given, dict):
        return given
    common = {key: merged(defaults[key], given[key]) for key in defaults.keys() & given.keys()}
    return defaults | given | common


def differences(settings: dict, own: dict) -> list[str]:
    """Keys of the settings whose values differ from one's own; keys of mappings are joined by dots.

    Parameters
    ----------
    settings : dict
    own : dict, with the keys of ``settings``
    """
    known = flat_settings(own)
    return [key for key, value in flat_settings(settings).items() if value != known.get(key)]


class _Loader(yaml.SafeLoader):
    """A loader that refuses a key that a mapping has twice, which YAML's own loader takes."""

    def construct_mapping(self, node, deep=False):
        seen = set()
        for key, _ in node.value:
            name = str(key.value)
            if name in seen and name != "<<":
                raise yaml.MarkedYAMLError(problem=f"key {name!r} is there twice", problem_mark=key.start_mark)
            seen.add(name)
        return super().construct_mapping(node, deep)


def load_yaml(path: Path) -> dict:
    """Load a mapping from a YAML file.

    Raises a ValueError that names the file and the line if the file is missing or not valid, or has a key twice.
    """
    try:
        mapping = yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader)
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}.") from None
    except yaml.MarkedYAMLError as error:
        raise ValueError(f"{path}, line {error.problem_mark.line + 1}: {error.problem}.") from None
    except Exception:  # Of wrong bytes, of a date such as 2025-13-01, or of deep nesting: PyYAML has no type for them.
        raise ValueError(f"{path} is not valid YAML in UTF-8.") from None
    if not isinstance(mapping, dict):
        raise ValueError(f"{path} has no keys with values.")
    return mapping


def check_values(values: dict, schema: dict) -> None:
    """Raise a ValueError if a schema does not allow a value.

    Schemas may use these keywords in addition to those of JSON schema.

    - ``ascending`` in a list: the numbers ascend.
    - ``atMost`` in a mapping: for each pair of keys, the value of the first is at most the value of the second.
    - ``means``: describes a ``pattern`` in words, for the message.
    """
    error = jsonschema.exceptions.best_match(VALIDATOR(schema).iter_errors(values))
    if error is not None:
        raise ValueError(f"Config: {_explain(error)}.")


def values_from_text(value, schema: dict):
    """Convert texts that are numbers, such as 1e-3, or true or false; and whole floats, such as 20.0, to integers.

    YAML and ``--config`` leave some of these values as texts.  A text remains a text where the schema wants a text.
    """
    if isinstance(value, dict):
        inner = schema.get("properties", {})
        return {key: values_from_text(item, inner.get(key, {})) for key, item in value.items()}
    if isinstance(value, list):
        return [values_from_text(item, schema.get("items", {})) for item in value]
    if isinstance(value, str) and schema.get("type") != "string":
        value = float(value) if NUMBER.fullmatch(value) else {"true": True, "false": False}.get(value.lower(), value)
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < LARGEST_INTEGER else value


def check_names(config: dict) -> None:
    """Raise a ValueError if an algorithm or environment does not exist, or an environment does not take its options."""
    for algo in config["algos"]:
        if algo not in ALGORITHMS:
            raise ValueError(
                f"Config: algos names {reprlib.repr(algo)}{_suggestion(algo, ALGORITHMS)}; the algorithms are "
                f"{', '.join(ALGORITHMS)}."
            )
    readings = config["readings"]
    named = {
        "envs": config["envs"],
        "readings.evaluation_env": evaluation_envs(config),
        "readings.env_options": readings["env_options"],
    }
    for key, env in ((key, env) for key, envs in named.items() for env in envs):
        if env not in ENVIRONMENTS:
            raise ValueError(
                f"Config: {key} names {reprlib.repr(env)}{_suggestion(env, ENVIRONMENTS)}; the environments are "
                f"{', '.join(ENVIRONMENTS)}."
            )
        options = readings["env_options"].get(env, {})
        try:
            sample_tasks(env, config["states"][0], 1, np.random.default_rng(0), **options)
        except (ValueError, TypeError) as error:
            reason = str(error).rstrip(".")
            raise ValueError(f"Config: environment {env!r} with its readings.env_options: {reason}.") from None


def check_folder(results: Path, root: Path) -> None:
    """Raise a ValueError if the folder of results holds files of the project or cannot be written to."""
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
    if not isinstance(values, list) or not all(isinstance(value, int | float) for value in values):
        return
    if values != sorted(values):
        yield jsonschema.ValidationError("give them in ascending order")


def _at_most(validator, pairs, values, schema):
    for smaller, larger in pairs.items() if isinstance(values, dict) else ():
        least, most = values.get(smaller), values.get(larger)
        if isinstance(least, int | float) and isinstance(most, int | float) and least > most:
            yield jsonschema.ValidationError(f"give at most the {larger}, {most}", path=[smaller], instance=least)


def _is_finite_number(checker, value) -> bool:
    return STANDARD.TYPE_CHECKER.is_type(value, "number") and abs(value) < math.inf


STANDARD = jsonschema.Draft202012Validator
VALIDATOR = jsonschema.validators.extend(
    STANDARD,
    {"ascending": _ascending, "atMost": _at_most},
    type_checker=STANDARD.TYPE_CHECKER.redefine("number", _is_finite_number),
)


def _explain(error: jsonschema.ValidationError) -> str:
    """Describe an error of a schema, as the inside of a sentence: the key, its value, and what is allowed."""
    names = [part for part in error.absolute_path if isinstance(part, str)]
    places = [f"value {part + 1} of " for part in error.absolute_path if isinstance(part, int)]
    key, value = "".join(places[:1]) + ".".join(names), error.instance
    if error.validator == "additionalProperties":
        known = error.schema["properties"]
        unknown = min(set(value) - set(known), key=str)
        where = f"{key} has" if key else "there is"
        suggestion = _suggestion(unknown, known)
        return f"{where} an unknown key {reprlib.repr(unknown)}{suggestion}; the keys are {', '.join(known)}"
    if error.validator == "pattern":
        return f"{key} is {reprlib.repr(value)}; give {error.schema['means']} only"
    return f"{key or 'settings'}: {error.message.replace(repr(value), reprlib.repr(value), 1)}"


def _suggestion(name, known: Iterable[str]) -> str:
    """The known name that is most similar to a misspelt one, as a question in brackets; empty if none is similar."""
    similar = difflib.get_close_matches(str(name), known, n=1)
    return f" (did you mean {similar[0]}?)" if similar else ""


@contextmanager
def ending_in_a_sentence() -> Iterator[None]:
    """Turn a ValueError into the end of the program, with the error's sentence as its output."""
    try:
        yield
    except ValueError as error:
        sys.exit(f"{error}")

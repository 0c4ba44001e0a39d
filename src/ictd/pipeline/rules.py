"""What rules files call: the params of a step, and markers of compiled kernels."""

import json
import shlex
from os.path import commonpath
from pathlib import Path

from ictd.pipeline.provenance import code_digests, digest
from ictd.pipeline.steps import ROOTS, Step, find_step
from ictd.pipeline.studies import study_names

# Modules that carry out every step, besides its own.
RUNNER = "ictd.steps.__main__"


def step_params(config: dict, name: str, **given) -> dict:
    """Params of a rule that carries out a step, from the signature of its ``main``.

    A parameter that is a ``Path``, or a list of them, is the rule's input or output of that name; ``output`` without a
    name is the rule's output, or the folder of its outputs.  Any other is given, a wildcard of the rule, or the
    configuration's: of the step's sections, else of the readings, else of the top level.

    Parameters
    ----------
    config : the configuration
    name : str, the step
    given : values of parameters, or functions of the rule's wildcards that return them

    Returns
    -------
    dict with
        step : its name
        one entry a module that the step imports : its digest, so that an edit reruns the rules that it touches
        values, files : functions that return the options, each as one string, so that any change is seen; apart, as
            Snakemake does not compare what depends on input or output

    Raises
    ------
    ValueError
        For a step that is not there, or a parameter that it does not have.
    """
    step = find_step(name)
    parameters = step.parameters
    unknown = sorted(set(given) - set(parameters))
    if unknown:
        raise ValueError(f"step {name} has no parameter {unknown[0]!r}; it has {', '.join(parameters)}.")
    files = [one for one, kind in parameters.items() if "Path" in kind and one not in given]

    def values(wildcards) -> str:
        words = []
        for one in (one for one in parameters if one not in files):
            value = given[one] if one in given else _value(config, step, one, wildcards)
            words += _words(one, value(wildcards) if callable(value) else value)
        return shlex.join(words)

    def paths(wildcards, input, output) -> str:
        return shlex.join([word for one in files for word in _words(one, _files(step, one, input, output))])

    code = {line.split()[0]: line for line in step_digests(step)}
    return {"step": name, **code, "values": values, "files": paths}


def step_digests(step: Step) -> list[str]:
    """Digests of the modules that a step's job imports."""
    return sorted({*code_digests(step.module, ROOTS), *code_digests(RUNNER, ROOTS)})


def _words(name: str, value) -> list[str]:
    """An option as words of a command line."""
    if isinstance(value, dict):
        value = json.dumps(value, sort_keys=True)
    return [f"--{name.replace('_', '-')}", *map(str, value if isinstance(value, list) else [value])]


def _files(step: Step, name: str, input, output) -> list[str]:
    for files in (input, output):
        if name in files.keys():
            found = files.get(name)
            return [found] if isinstance(found, str) else list(found)
    if name == "output":
        return [output[0] if len(output) == 1 else commonpath(map(str, map(Path, output)))]
    raise ValueError(f"step {step.name} needs an input or output {name!r} of its rule.")


def _value(config: dict, step: Step, name: str, wildcards):
    """A wildcard, or a value of the configuration."""
    if name in wildcards.keys():
        return wildcards.get(name)
    for section in step.sections:
        found = _section(config, section)
        if name in found:
            return found[name]
    paper = {key: value for key, value in config.items() if key not in study_names(ROOTS["studies"] / "studies")}
    sections = [key for key, value in paper.items() if isinstance(value, dict) and name in value]
    if sections == ["readings"]:
        return paper["readings"][name]
    if name in paper and not sections:
        return paper[name]
    why = "stands in several sections" if sections else "is given by nothing"
    raise ValueError(f"{name!r} of step {step.name} {why}; give it in the rule, or its section as SECTION in the step.")


def _section(config: dict, name: str) -> dict:
    for part in name.split(".") if name else []:
        config = config[part]
    return config


def kernels_marker(module: str) -> str:
    """Name of the marker of a module's compiled kernels, with a digest of its code.

    It changes only with what the module's users import anyway.
    """
    return f"{module}-{digest(*code_digests(module, ROOTS))}"


def env_options(config: dict, env: str) -> dict:
    """Options of an environment, from the readings."""
    return config["readings"]["env_options"].get(env, {})

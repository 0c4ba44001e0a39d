"""What the rules files call: the params of a rule that carries out a step.

A step is a module with a function ``main`` that reads files, calls the library and writes files.  Its parameters have
types and no defaults, so that a rule says all that a result depends on.  They are read without importing the module.
"""

import ast
import json
import os
import shlex
import sys
from os.path import commonpath
from pathlib import Path

from ictd.pipeline.provenance import code_digests, module_path, notebook_digests, syntax_tree, text_digest
from ictd.pipeline.record import RECORD_VARIABLE, record_path

RUNNER = "ictd.pipeline.runner"
# Types of the parameters of steps; a dict and a bool are given as JSON.
TYPES = ("int", "float", "str", "bool", "dict", "Path")


class Steps:
    """Makes the params of rules, for a checked configuration.

    Attributes
    ----------
    code : dict
        Digest of each module that the steps of the rules so far import, by name.
    """

    def __init__(self, config: dict):
        self.config = config
        self.code = {}

    def __call__(self, module: str, *sections: dict, **given) -> dict:
        """Params of a rule that carries out the step ``module``, such as "ictd.steps.tasks".

        A parameter of the step's ``main`` that is a ``Path``, or a list of them, is the rule's input or output of that
        name.  ``output`` without a name is the rule's output (of several, their folder, or the first if they are one
        file in two formats).  Any other parameter is looked up in ``given``, in the
        wildcards of the rule, in ``sections`` (mappings of values by name, the first that has it), in the readings, and
        in the top level of the configuration.  A function in ``given`` is called with the wildcards.

        ValueError if the module does not exist or has no ``main``, or if a parameter is unknown or has no value.

        Returns
        -------
        dict with
            step : the module's name
            one entry a module that the step imports, and one a text that it is given : its digest
            settings, files : functions that return the options of the command line
        """
        parameters = main_parameters(module)
        unknown = sorted(given.keys() - parameters.keys())
        if unknown:
            raise ValueError(f"Step {module} has no parameter {unknown[0]!r}; it has {', '.join(parameters)}.")
        paths = [name for name, kind in parameters.items() if "Path" in kind and name not in given]
        known = self.config | self.config["readings"]
        for section in reversed(sections):
            known |= section

        def settings(wildcards) -> str:
            values = known | dict(wildcards.items()) | given
            return shlex.join(
                word
                for name in parameters
                if name not in paths
                for word in option(name, value_of(module, name, parameters[name], values, wildcards))
            )

        def files(wildcards, input, output) -> str:
            named = dict(output.items()) | dict(input.items())
            if len(output):
                same = len({Path(path).with_suffix("") for path in output}) == 1
                named.setdefault("output", output[0] if same else commonpath(output))
            missing = [name for name in paths if name not in named]
            if missing:
                raise ValueError(f"Step {module} needs an input or output {missing[0]!r} of its rule.")
            return shlex.join(word for name in paths for word in option(name, named[name]))

        results = Path(self.config["results"])
        given_paths = {name: path for name, path in given.items() if isinstance(path, Path)}
        texts = {name: path for name, path in given_paths.items() if not path.is_relative_to(results)}
        # What else the runner imports changes no result.
        code = code_digests(module) | {RUNNER: code_digests(RUNNER)[RUNNER]}
        for path in texts.values():
            if path.suffix == ".ipynb":
                code |= notebook_digests(path)
        self.code |= code
        # Snakemake compares the values of params, not their names.
        digests = {name: f"{name} {digest}" for name, digest in code.items()}
        digests |= {name: f"{path.name} {text_digest(path)}" for name, path in texts.items()}
        return {"step": module, **digests, "settings": settings, "files": files}


def main_parameters(module: str) -> dict[str, str]:
    """Names and types of the parameters of a step's ``main``; ValueError if there is no ``main``, or no such type."""
    path = module_path(module)
    if path is None:
        raise ValueError(f"There is no step {module}.")
    functions = (node for node in syntax_tree(path).body if isinstance(node, ast.FunctionDef))
    main = next((function for function in functions if function.name == "main"), None)
    if main is None:
        raise ValueError(f"{path} has no function main, so it is no step.")
    found = {}
    for argument in (*main.args.args, *main.args.kwonlyargs):
        kind = ast.unparse(argument.annotation) if argument.annotation else ""
        if kind.removeprefix("list[").removesuffix("]") not in TYPES:
            raise ValueError(
                f"{path}, line {argument.lineno}: give {argument.arg} a type, {', '.join(TYPES)} or a list of one."
            )
        found[argument.arg] = kind
    return found


def value_of(module: str, name: str, kind: str, values: dict, wildcards):
    """Value of a step's parameter; ValueError if there is none, or a list where one value is needed."""
    value = values.get(name)
    if callable(value):
        value = value(wildcards)
    if value is None or isinstance(value, list | tuple) != kind.startswith("list"):
        raise ValueError(f"Step {module}: {name!r} has no value of type {kind}; give it in the rule.")
    return value


def option(name: str, value) -> list[str]:
    """An option as words of a command line; a mapping and a bool are given as JSON."""
    if isinstance(value, dict | bool):
        value = json.dumps(value, sort_keys=True)
    values = value if isinstance(value, list | tuple) else [value]
    return [f"--{name.replace('_', '-')}", *map(str, values)]


def env_options(config: dict, env: str) -> dict:
    """Options of an environment, from the readings."""
    return config["readings"]["env_options"].get(env, {})


def job_environment(source: str, results: Path) -> str:
    """Variables of a job, as the beginning of its command; ``source`` is the folder that holds the package ``ictd``."""
    variables = {
        "PYTHONPATH": source,
        "PYTHONNOUSERSITE": 1,
        "PYTHONSAFEPATH": 1,
        RECORD_VARIABLE: record_path(results),
        # Keep freed memory in the process: returning it to the system costs a third of NumPy's time.
        "MALLOC_TRIM_THRESHOLD_": 2**28,
        "MALLOC_MMAP_THRESHOLD_": 2**25,
    }
    return " ".join(f"{name}={shlex.quote(str(value))}" for name, value in variables.items())


def use_own_python() -> None:
    """Have jobs find the Python that runs Snakemake; an environment that ``--sdm`` activates comes before it."""
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

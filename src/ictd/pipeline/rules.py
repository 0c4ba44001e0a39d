"""The params of a rule that runs a step, for the files of rules.

A step is a module with a function ``main`` that reads files, calls the library and writes files.  The parameters of
``main`` have types and no defaults, so that a rule states everything that its result depends on.  The parameters are
read from the syntax tree, without importing the module.
"""

import ast
import json
import os
import shlex
import sys
from os.path import commonpath
from pathlib import Path

from ictd.pipeline.environments import ENVIRONMENTS_VARIABLE, environment_digest
from ictd.pipeline.provenance import code_digests, module_path, notebook_digests, syntax_tree, text_digest
from ictd.pipeline.record import RECORD_VARIABLE, record_path

RUNNER = "ictd.pipeline.runner"
# Types of the parameters of steps.  On the command line a dict and a bool are written as JSON.
TYPES = ("int", "float", "str", "bool", "dict", "Path")


class Steps:
    """Makes the params of rules from a checked configuration.

    Parameters
    ----------
    config : dict, a checked configuration

    Attributes
    ----------
    code : dict
        Digest of each module, by name, that the steps of all rules so far import.
    """

    def __init__(self, config: dict):
        self.config = config
        self.code = {}

    def __call__(self, module: str, *sections: dict, **given) -> dict:
        """Make the params of a rule that runs a step.

        A parameter of the step's ``main`` that is a ``Path``, or a list of them, gets the rule's input or output of
        that name.  The parameter ``output`` gets the rule's output if no output has that name: the only output, the
        first output if all are one file in several formats, or else the common folder of all outputs.

        The parameter ``env_options`` gets the options of some environments, by their names.  The environments are those
        of the parameters ``env`` and ``evaluation_env``, or all ``envs`` of the configuration if the step has neither
        parameter.

        Any other parameter gets the first value found in ``given``, in the wildcards of the rule, in ``sections``, in
        the readings, and in the top level of the configuration.

        Parameters
        ----------
        module : str, the step, such as "ictd.steps.tasks"
        *sections : dicts
            Values by the names of parameters, such as parts of the configuration; the first has priority.
        **given : values of parameters
            A function is called with the wildcards.

        Returns
        -------
        dict with
            step : name of the module
            one entry for each module that the step imports, and for each text file in ``given`` : its digest
            environments : function that returns the digests of the files of environments of one's own
            settings, files : functions that return the options of the command line

        Raises
        ------
        ValueError
            If the module does not exist or has no ``main``, or if a parameter is unknown or has no value.
        """
        parameters = main_parameters(module)
        unknown = sorted(given.keys() - parameters.keys())
        if unknown:
            raise ValueError(f"Step {module} has no parameter {unknown[0]!r}; it has {', '.join(parameters)}.")
        paths = [name for name, kind in parameters.items() if "Path" in kind and name not in given]
        others = [(name, kind) for name, kind in parameters.items() if name not in paths]
        configured = self.config | self.config["readings"]
        for section in reversed(sections):
            configured |= section

        def arguments(wildcards) -> dict:
            computed = {name: value(wildcards) if callable(value) else value for name, value in given.items()}
            found = configured | dict(wildcards.items()) | computed
            values = {name: value_of(module, name, kind, found) for name, kind in others}
            if "env_options" in values:
                envs = [values[name] for name in ("env", "evaluation_env") if name in values] or configured["envs"]
                values["env_options"] = {env: values["env_options"].get(env, {}) for env in envs}
            return values

        def settings(wildcards) -> str:
            return shlex.join(word for name, value in arguments(wildcards).items() for word in option(name, value))

        def files(wildcards, input, output) -> str:
            files_by_name = dict(output.items()) | dict(input.items())
            if len(output):
                one_file = len({Path(path).with_suffix("") for path in output}) == 1
                files_by_name.setdefault("output", output[0] if one_file else commonpath(output))
            missing = [name for name in paths if name not in files_by_name]
            if missing:
                raise ValueError(f"Step {module} needs an input or output {missing[0]!r} of its rule.")
            return shlex.join(word for name in paths for word in option(name, files_by_name[name]))

        def environments(wildcards) -> str:
            return " ".join(map(environment_digest, sorted(arguments(wildcards).get("env_options", ()))))

        results = Path(self.config["results"])
        given_paths = {name: path for name, path in given.items() if isinstance(path, Path)}
        texts = {name: path for name, path in given_paths.items() if not path.is_relative_to(results)}
        # Other modules that the runner imports do not change results.
        code = code_digests(module) | {RUNNER: code_digests(RUNNER)[RUNNER]}
        for path in texts.values():
            if path.suffix == ".ipynb":
                code |= notebook_digests(path)
        self.code |= code
        # Snakemake compares the values of params, not their names.
        digests = {name: f"{name} {digest}" for name, digest in code.items()}
        digests |= {name: f"{path.name} {text_digest(path)}" for name, path in texts.items()}
        return {"step": module, **digests, "environments": environments, "settings": settings, "files": files}


def main_parameters(module: str) -> dict[str, str]:
    """Read the names and types of the parameters of a step's ``main``.

    Raises a ValueError if the step has no ``main``, or if a parameter has no type of ``TYPES``.
    """
    path = module_path(module)
    if path is None:
        raise ValueError(f"There is no step {module}.")
    functions = (node for node in syntax_tree(path).body if isinstance(node, ast.FunctionDef))
    main = next((function for function in functions if function.name == "main"), None)
    if main is None:
        raise ValueError(f"{path} has no function main, so it is no step.")
    parameters = {}
    for argument in (*main.args.args, *main.args.kwonlyargs):
        kind = ast.unparse(argument.annotation) if argument.annotation else ""
        if kind.removeprefix("list[").removesuffix("]") not in TYPES:
            raise ValueError(
                f"{path}, line {argument.lineno}: give {argument.arg} a type, {', '.join(TYPES)} or a list of one."
            )
        parameters[argument.arg] = kind
    return parameters


def value_of(module: str, name: str, kind: str, values: dict):
    """Look up the value of a step's parameter; no value, or a list in place of one value, raises a ValueError."""
    value = values.get(name)
    if value is None or isinstance(value, list | tuple) != kind.startswith("list"):
        raise ValueError(f"Step {module}: {name!r} has no value of type {kind}; give it in the rule.")
    return value


def option(name: str, value) -> list[str]:
    """Write an option as words of a command line; a dict and a bool are written as JSON."""
    if isinstance(value, dict | bool):
        value = json.dumps(value, sort_keys=True)
    values = value if isinstance(value, list | tuple) else [value]
    return [f"--{name.replace('_', '-')}", *map(str, values)]


def job_variables(source: str, results: Path, environments: list[str]) -> str:
    """Make the prefix of a job's command that sets its environment variables.

    Parameters
    ----------
    source : str, folder that holds the package ``ictd``
    results : Path, the folder of results
    environments : list of str, files with environments of one's own
    """
    variables = {
        "PYTHONPATH": source,
        "PYTHONNOUSERSITE": 1,
        "PYTHONSAFEPATH": 1,
        # Empty means unset.  Jobs store compiled modules; otherwise each of them compiles pandas and Matplotlib again.
        "PYTHONDONTWRITEBYTECODE": "",
        RECORD_VARIABLE: record_path(results),
        ENVIRONMENTS_VARIABLE: os.pathsep.join(environments),
        # Keep freed memory in the process: returning it to the system costs a third of NumPy's time.
        "MALLOC_TRIM_THRESHOLD_": 2**28,
        "MALLOC_MMAP_THRESHOLD_": 2**25,
    }
    return " ".join(f"{name}={shlex.quote(str(value))}" for name, value in variables.items())


def use_own_python() -> None:
    """Let jobs use the Python that runs Snakemake, unless ``--sdm`` activates an environment of the rule."""
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

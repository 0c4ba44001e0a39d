"""The options of steps, for the files of rules.

A step is a module with a function ``main`` that reads files, calls the library and writes files.  The parameters of
``main`` have types and no defaults, so that a rule states everything that its result depends on.  The parameters are
read from the syntax tree, without importing the module.

``Steps`` writes what a step depends on, apart from files that other jobs make, to a file in ``results/options``: values
of options, and digests of code, texts and environments.  This file is an input of the jobs.  It is written only if its
content changes, so Snakemake runs a job again if something that the job depends on has changed, also if Snakemake's own
records are lost.  With its records, which have the checksums of small inputs, equal content repeats nothing.
"""

import ast
import json
import os
import shlex
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from copy import deepcopy
from functools import cache
from os.path import commonpath
from pathlib import Path

import grimp

from ictd.pipeline.extensions import EXTENSIONS_VARIABLE, FILES, extension_digest
from ictd.pipeline.provenance import (
    JOB_VARIABLE,
    PACKAGES,
    PROJECT,
    code_digest,
    listed,
    module_path,
    options_digest,
    source_digest,
    syntax_tree,
    text_digest,
)
from ictd.pipeline.records import load_records
from ictd.storage import Unusable, load_json, save_json

# Folder of the options files of dry runs.
PLANNED = ".snakemake/options"
# By the path of an options file: its content, the digest of the sources, and the paths that the rule gives to the step.
# These are not in the file, so that results can be moved.
JOBS: dict[str, tuple[dict, str, dict]] = {}
# Seconds by which clocks may differ.
CLOCK_ERROR = 60
# Types of the parameters of steps.  On the command line a dict and a bool are written as JSON.
TYPES = ("int", "float", "str", "bool", "dict", "Path")


class Steps:
    """Makes the options files and the commands of jobs from a checked configuration.

    Parameters
    ----------
    config : dict, a checked configuration
    source : str, folder that holds the package ``ictd``
    workflow : Snakemake's workflow
    """

    def __init__(self, config: dict, source: str, workflow):
        self.config, self.source, self.workflow = config, source, workflow
        # By the path of an options file: its content, and the path where it is, which is another one in a dry run.
        self.written: dict[str, tuple[dict, str]] = {}

    def __call__(
        self,
        module: str,
        *sections: dict,
        options_file: str | None = None,
        modules: tuple[str, ...] = (),
        without: tuple[str, ...] = (),
        **given,
    ) -> Callable:
        """Make the input ``options`` of a rule that runs a step: a function of wildcards, as Snakemake takes it.

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
        options_file : str, optional
            Name of the options file, for a step that several rules run with different values; by default the module.
        modules : tuple of str
            Modules that the step imports by a name that is a value.
        without : tuple of str
            Modules that the step imports for other values only.
        **given : values of parameters
            A function is called with the wildcards.  A ``Path`` outside the folder of results is a text of the project.

        Raises
        ------
        ValueError
            If the module does not exist or has no ``main``, or if a parameter is unknown or has no value.
        """
        parameters = main_parameters(module)
        unknown = sorted(given.keys() - parameters.keys())
        if unknown:
            raise ValueError(f"Step {module} has no parameter {unknown[0]!r}; it has {', '.join(parameters)}.")
        configured = self.config | self.config["readings"]
        for section in reversed(sections):
            configured |= section
        paths = {key: value for key, value in given.items() if "Path" in parameters[key]}
        results = Path(self.config["results"])
        files = [file for value in paths.values() for file in listed(value) if not file.is_relative_to(results)]
        texts = [os.path.relpath(file.absolute(), PROJECT) for file in files]
        names = modules_of(module, *modules, without=without)
        # Before the digests of the code: an edit between the two then stops no job.
        sources = source_digest(names, texts)
        fixed = {
            "step": module,
            "code": {name: code_digest(name) for name in names},
            "texts": {text: text_digest(text) for text in texts},
        }

        def options(wildcards) -> str:
            of_rule = dict(wildcards.items())
            computed = {key: value(wildcards) if callable(value) else value for key, value in given.items()}
            values = {}
            for key, kind in parameters.items():
                if "Path" not in kind and (key in computed or key not in of_rule):
                    values[key] = value_of(module, key, kind, configured | computed)
            place = [options_file or module]
            if any(map(callable, given.values())):
                place.append("-".join(of_rule.values()))
            named = [key for key in ("env", "evaluation_env") if key in parameters]
            chosen = [(of_rule | values)[key] for key in named] or configured["envs"]
            if "env_options" in values:
                values["env_options"] = {env: values["env_options"].get(env, {}) for env in chosen}
                if len(place) == 1:
                    place += [of_rule[key] for key in named if key in of_rule]
            # A step can also reach an environment or an algorithm whose name is a part of another value.
            text = json.dumps([of_rule, values])
            reached = [name for module, name in FILES if module in names and (name in chosen or name in text)]
            # Jobs of these names have options files of their own.
            place += [value for value in of_rule.values() if value in reached and value not in place]
            content = fixed | {"extensions": {name: extension_digest(name) for name in reached}, "options": values}
            path = self._options_file(f"{results.joinpath('options', *place)}.json", content)
            JOBS[path] = content, sources, paths
            return path

        return options

    def _options_file(self, path: str, content: dict) -> str:
        """Write an options file if its content changes, and return its path.

        If Snakemake runs no jobs, such as in a dry run, the new content goes to another file, which is the input of the
        planned jobs.
        """
        known, place = self.written.get(path, (content, ""))
        if known != content:
            raise ValueError(f"Several rules run {content['step']} with other values; give one an options_file.")
        if not place:
            place = self._place(path, content)
            self.written[path] = content, place
        return place

    def _place(self, path: str, content: dict) -> str:
        """Write an options file, unless it has the content, and return where it is."""
        if self.workflow.touch:
            self._check_touched(path, content)
        with suppress(Unusable):
            if load_json(Path(path)) == content:
                return path
        if self.workflow.executor_plugin is None or self.workflow.dryrun:
            path = f"{PLANNED}/{path}/{options_digest(content)}.json".replace("..", "parent")
        try:
            save_json(Path(path), content)
        except OSError as error:
            raise ValueError(f"{error.filename}: {error.strerror}; make room or give write access.") from None
        return path

    def _check_touched(self, path: str, content: dict) -> None:
        """Raise a ValueError if ``--touch`` would keep files that were made with other options."""
        results = Path(self.config["results"])
        for name, record in load_records(results).items():
            digest = record["options"].get(os.path.relpath(path, results), "")
            if (results / name).exists() and digest not in ("", options_digest(content)):
                raise ValueError(f"{results / name} was made with other options; --touch would keep it.")

    def check_times(self) -> None:
        """Wait until no job has ended in the future, because Snakemake compares times.

        Raises a ValueError if that takes more than a minute.
        """
        results = self.config["results"]
        ended = max((log.stat().st_mtime for log in Path(results, "logs").rglob("*.log")), default=0)
        ahead = ended - time.time()
        if ahead > CLOCK_ERROR:
            raise ValueError(
                f"{results} has files with times in the future; correct the clock, or give all files the present time:"
                f" find {results} -exec touch {{}} +"
            )
        time.sleep(max(0, ahead))

    def command(self, wildcards, input, output) -> str:
        """Make the command line of a job: environment variables, the module of the step, and its options."""
        if input.get("options") not in JOBS:
            raise ValueError("the rule has no options; give it the input options=step(MODULE).")
        content, sources, given_paths = JOBS[input.options]
        module = content["step"]
        parameters = main_parameters(module)
        values = dict(wildcards.items()) | content["options"] | given_paths
        files = dict(output.items()) | {name: file for name, file in input.items() if name != "options"}
        if len(output):
            one_file = len({Path(file).with_suffix("") for file in output}) == 1
            files.setdefault("output", output[0] if one_file else commonpath(output))
        for name, kind in parameters.items():
            if "Path" in kind and name not in values:
                if name not in files:
                    raise ValueError(f"Step {module} needs an input or output {name!r} of its rule.")
                values[name] = files[name]
        options = [word for name in parameters for word in option(name, values[name])]
        job = {
            "results": self.config["results"],
            "options": input.options,
            "digest": options_digest(content),
            "sources": sources,
            "outputs": [*output],
        }
        variables = {
            "PYTHONPATH": self.source,
            "PYTHONNOUSERSITE": 1,
            "PYTHONOPTIMIZE": "",  # Docstrings are titles and captions.
            "PYTHONSAFEPATH": 1,
            # Empty means unset.  Jobs store compiled modules; otherwise each of them compiles pandas and Matplotlib.
            "PYTHONDONTWRITEBYTECODE": "",
            EXTENSIONS_VARIABLE: os.pathsep.join(self.config["extensions"]),
            JOB_VARIABLE: json.dumps(job),
        }
        words = ["env", *(f"{name}={value}" for name, value in variables.items())]
        return shlex.join([*words, "python", "-m", "ictd.pipeline.runner", module, *options])


@cache
def import_graph() -> grimp.ImportGraph:
    """Find the imports between the project's modules, also those inside functions.

    A file that is no valid Python raises a ValueError.
    """
    present = [name for name, root in PACKAGES.items() if (root / name).is_dir()]
    sys.path[:0] = [str(root) for root in PACKAGES.values()]
    try:
        return grimp.build_graph(*present, cache_dir=None, exclude_type_checking_imports=True)
    except grimp.exceptions.SourceSyntaxError as error:
        raise ValueError(f"{error}") from None
    finally:
        del sys.path[: len(PACKAGES)]


def modules_of(*steps: str, without: tuple[str, ...] = ()) -> list[str]:
    """List some modules, and all modules of the project that they import, directly or not, but not through some."""
    graph = import_graph()
    if without:
        graph = deepcopy(graph)
        for name in without:
            graph.remove_module(name)
    return sorted({*steps}.union(*map(graph.find_upstream_modules, steps)))


@cache
def main_parameters(module: str) -> dict[str, str]:
    """Read the names and types of the parameters of a step's ``main``.

    Raises a ValueError if the step has no ``main``, or if a parameter has no type of ``TYPES``.
    """
    path = module_path(module)
    if path is None:
        raise ValueError(f"There is no step {module}.")
    functions = {node.name: node for node in syntax_tree(path).body if isinstance(node, ast.FunctionDef)}
    main = functions.get("main")
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
    return [f"--{name.replace('_', '-')}", *map(str, listed(value))]


def use_own_python() -> None:
    """Let jobs use the Python that runs Snakemake, unless ``--sdm`` activates an environment of the rule."""
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

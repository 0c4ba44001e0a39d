"""What rules files call: the environment of jobs, and the params of a step."""

import json
import shlex
from os.path import commonpath
from pathlib import Path

from ictd.pipeline.provenance import code_digests, digest, notebook_digests, text_digest
from ictd.pipeline.steps import ROOTS, find_step

# Modules that carry out every step, besides its own.
RUNNER = "ictd.steps.__main__"
# All that a job keeps of its surroundings, as anything else could change results or run code: what finds programs and
# libraries, places for temporary files and caches, and what numpy takes the processor for, where it is told.
KEPT = "HOME LD_LIBRARY_PATH OPENBLAS_CORETYPE PATH TMPDIR XDG_CACHE_HOME".split()
# glibc would return arrays of megabytes to the system at once, and numpy spend a third of its time on fetching them.
SET = {"MALLOC_TRIM_THRESHOLD_": 2**28, "MALLOC_MMAP_THRESHOLD_": 2**25, "PYTHONNOUSERSITE": 1, "PYTHONSAFEPATH": 1}
SET |= dict.fromkeys(("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "{threads}")
# The beginning of a rule's shell command that gives it this environment.
ENVIRONMENT = " ".join(["/usr/bin/env -i", *('${{NAME+"NAME=$NAME"}}'.replace("NAME", name) for name in KEPT)])
ENVIRONMENT += "".join(f" {name}={value}" for name, value in SET.items())


def step_params(config: dict, studies: list[str], name: str, /, **given) -> dict:
    """Params of a rule that carries out a step, from the signature of its ``main``.

    A parameter that is a ``Path``, or a list of them, is the rule's input or output of that name; ``output`` without a
    name is the rule's output, the first if they are one in two formats, or the folder of its outputs, and ``outputs``
    are all of them.  Any other is given, a wildcard of the rule, or the configuration's: of the step's sections, else
    env, states or depth of the main setting, else of the readings or the top level.

    ``studies`` are the names of the sections that are studies', ``name`` is the step's, and ``given`` has values of
    parameters, or functions of the rule's wildcards that return them.  A step that is not there, or a parameter that it
    does not have, raises a ValueError.

    Returns
    -------
    dict with
        step : its name
        one entry a module that the step imports, and one a file or folder that it is given and that is no result :
            its digest, so that an edit reruns the rules that it touches
        values, files : functions that return the options, each as one string, so that any change is seen; apart, as
            Snakemake does not compare what depends on input or output
        taken : a function that returns the names of the options that come from the configuration
    """
    step = find_step(name)
    parameters = step.parameters()
    unknown = sorted(set(given) - set(parameters))
    if unknown:
        raise ValueError(f"step {name} has no parameter {unknown[0]!r}; it has {', '.join(parameters)}.")
    files = [one for one, kind in parameters.items() if "Path" in kind and one not in given]
    settings = step.settings(config, studies)

    def values(wildcards) -> str:
        words = []
        for one in (one for one in parameters if one not in files):
            if one in wildcards.keys() and one not in given:
                words += _words(one, wildcards.get(one))
            elif one in given:
                words += _words(one, given[one](wildcards) if callable(given[one]) else given[one])
            elif one in settings and isinstance(settings[one], list) == parameters[one].startswith("list"):
                words += _words(one, settings[one])
            else:
                raise ValueError(
                    f"step {name}: {one!r} is no setting, one of several sections, or no {parameters[one]}; give it in"
                    " the rule, or name its section as SECTION in the step."
                )
        return shlex.join(words)

    def taken(wildcards) -> str:
        own = [one for one in parameters if one not in files and one not in wildcards.keys()]
        return " ".join(one for one in own if one not in given or (one in config and given[one] == config[one]))

    def paths(wildcards, input, output) -> str:
        named = dict(output.items()) | dict(input.items())
        named.setdefault("outputs", list(output))
        if len(output):
            one = len({path.rpartition(".")[0] for path in output}) == 1
            named.setdefault("output", output[0] if one else commonpath(output))
        missing = [one for one in files if one not in named]
        if missing:
            raise ValueError(f"step {name} needs an input or output {missing[0]!r} of its rule.")
        return shlex.join([word for one in files for word in _words(one, named[one])])

    texts = {n: p for n, p in given.items() if isinstance(p, Path) and not p.is_relative_to(config["results"])}
    code = {*code_digests(step.module, ROOTS), *code_digests(RUNNER, ROOTS)}
    code.update(*(notebook_digests(path, ROOTS) for path in texts.values() if path.suffix == ".ipynb"))
    digests = {line.split()[0]: line for line in sorted(code)}
    digests |= {one: text_digest(path) for one, path in texts.items()}
    return {"step": name, **digests, "values": values, "taken": taken, "files": paths}


def named_files(rule) -> str:
    """Digest of a Snakemake rule's inputs and outputs, in any order, with their names, which it does not compare."""
    named = [pair for files in (rule.input, rule.output) for pair in files.items()]
    files = [f"{name} {file}" for name, listed in named for file in _listed(listed) if isinstance(file, str)]
    return digest(*sorted(files))


def _words(name: str, value) -> list[str]:
    """An option as words of a command line."""
    if isinstance(value, dict):
        value = json.dumps(value, sort_keys=True)
    return [f"--{name.replace('_', '-')}", *map(str, _listed(value))]


def _listed(value) -> list | tuple:
    return value if isinstance(value, list | tuple) else [value]


def env_options(config: dict, env: str) -> dict:
    """Options of an environment, from the readings."""
    return config["readings"]["env_options"].get(env, {})

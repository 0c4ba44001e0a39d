"""Configurations at random: values of wrong types, extreme numbers, odd texts, broken YAML, and valid ones.

Each is written as a file and goes the way that the Snakefile takes it, up to the plan of the jobs, which has to be made
in well under a second.
"""

import copy
import importlib.util
import json
import random
import shlex
import time
from pathlib import Path
from types import SimpleNamespace

import yaml
from snakemake.cli import parse_config
from snakemake.common.configfile import load_configfile
from snakemake.utils import update_config

from ictd.checks import shown
from ictd.pipeline.config import check_folder, checked_config
from ictd.pipeline.grid import Cell, cells, seed_ranges
from ictd.pipeline.needs import checked_needs, paper_needs
from ictd.pipeline.rules import env_options, step_params
from ictd.pipeline.studies import study_names, study_settings
from ictd.pipeline.yaml_files import load_yaml

ROOT = Path(__file__).parents[2]
CONFIG = load_yaml(ROOT / "config.yaml")
SCHEMA = load_yaml(ROOT / "workflow/schemas/config.schema.yaml")
STUDIES = {name: load_yaml(ROOT / "studies" / name / "config.yaml") for name in study_names(ROOT / "studies")}
MEMORY = 24e9
OF_ENV = ("tasks", "theory.values", "theory.descent", "theory.pretrained")
SECONDS = 1
TEXTS = (
    "", " ", "td", "mc", "boyan", "loop", "auto", "fail", "none", "1e-3", "007", "1_000", "0x10", "nan", "inf", "-.inf",
    "1e400", "results\n", "a\n", "a/../b", "..", "/", "//", "~", "-x", "--help", ".git", "src", "src/x", "../x", "./-x",
    "a b", "$(touch x)", "`id`", "a;b", "{states}", "%s", "\0", "\x1b[31m", "é", "ß" * 300, "\u202e", "٣", "x" * 300,
    "/".join("y" * 200 for _ in range(30)), "true", "null", "=", "<<", "*a", "&a", "!!python/name:os.system",
)  # fmt: skip
NUMBERS = (
    0, 1, -1, 2, 3, 7, 20, 63, 64, 255, 256, 257, 10**4, 10**6, 10**9, 10**12, 10**15, 2**31, 2**32, 2**53, 2**63 - 1,
    2**63, 10**30, 10**308, 10**400, 0.1, 0.5, 0.9, 1.0, 1.5, 20.0, 1e-3, 1e-8, 1e-16, 1e-300, 5e-324, 1e30, 1e308,
    1 - 2**-53, 0.99999999, -0.0, float("nan"), float("inf"), -float("inf"),
)  # fmt: skip
OTHERS = (None, True, False, [], {}, [[]], {"name": "a"}, [{"name": "a\n"}], [{"name": "007"}])
OPTIONS = (
    "&a [*a]",
    "&a {b: *a}",
    "[[" * 400 + "]]" * 400,
    "[9" + "9" * 5000 + "]",
    "{tasks: 1e3}",
    "[3, '5']",
    "[td]",
)
BROKEN = (
    "{key}: 1\n{key}: 2\n", "evaluation: {{tasks: 1, tasks: 2}}\n", "{key}: &a [*a]\n", "{key}: &a {{b: *a}}\n",
    "a: &a [1, 2, 3, 4, 5, 6, 7, 8, 9]\nb: &b [*a, *a, *a, *a, *a, *a, *a]\nc: &c [*b, *b, *b, *b, *b, *b]\n"
    "d: &d [*c, *c, *c, *c, *c, *c]\ne: &e [*d, *d, *d, *d, *d]\n{key}: [*e, *e, *e, *e, *e, *e, *e]\n",
    "{key}: {digits}\n", "{key}: -{digits}\n", "{key}: 0x{digits}\n", "{key}: 0.{digits}\n", "{key}: {deep}\n",
    "{key}: [1\n", "{key}: 'a\n", "{key}\n", "- {key}\n", "", "\t{key}: 1\n", "{key}: !!python/object:os.system a\n",
    "{key}: !!set {{a, b}}\n", "{key}: !!binary aGk=\n", "{key}: 2024-13-45\n", "{key}: 2024-01-01\n", "? [a]\n: 1\n",
    "{key}: 12:30:45\n", "--- 1\n--- 2\n", "%YAML 9.9\n---\n{key}: 1\n", "{key}: @a\n", "{key}: !a b\n", "{key}: *b\n",
    "<<: {{{key}: 3}}\n", "{{\"{key}\": 1}}", "\ufeff{key}: 1\n", "{key}: 1\r{key}: 2\r", "3: 4\n", "null: 1\n",
    "readings: &a\n  env_options: *a\n", "? {{a: 1}}\n: 2\n", "{key}: 1e5\n", "{key}: +.inf\n", "{key}: 1:1\n",
    '{key}: "\\ud800"\n',
)  # fmt: skip


def case(rng: random.Random, folder: Path) -> tuple[str, str]:
    """One configuration: what was tried, and what came of it."""
    path, option = folder / "config.yaml", f"{rng.choice(list(CONFIG))}={rng.choice(TEXTS + OPTIONS + NUMBERS)}".strip()
    tried = _write(rng, path) if rng.random() < 0.9 else f"--config {option!r:.70}"
    began = time.monotonic()
    try:
        if path.exists():
            given = load_yaml(path)
            # Snakemake reads it too, and must not see anything else.
            if not _same(load_configfile(path), given):
                return tried, "read differently by Snakemake"
        else:
            given = parse_config([option])
        _planned(given, folder, rng)
    except ValueError as error:
        said = str(error)
        odd = "\n" in said or len(said) > 600 or not (said.startswith(("Config: ", str(path))) and said.endswith("."))
        outcome = f"said {said[:1000]!r}" if odd else "refused"
    except BaseException as error:
        outcome = f"{type(error).__name__}: {str(error)[:300]}"
    else:
        outcome = "taken"
    taken = time.monotonic() - began
    return tried, outcome if taken < SECONDS else f"{outcome} after {taken:.1f} s"


def _planned(given: dict, folder: Path, rng: random.Random) -> None:
    """Take values in place of those of the project, as the Snakefile does, and plan the jobs."""
    config, cores = copy.deepcopy(CONFIG), rng.choice([None, 1, 2, 64])
    update_config(config, given)
    own = checked_config({key: value for key, value in config.items() if key not in STUDIES}, SCHEMA)
    check_folder(folder / own["results"], ROOT)
    checked_needs(paper_needs, own, SCHEMA["properties"], cores, MEMORY)
    config = {**config, **own}
    for study in STUDIES:
        config[study] = study_settings(ROOT / "studies" / study, config.get(study, {}), SCHEMA["$defs"])
        if importlib.util.find_spec(f"studies.{study}.needs"):
            needs = importlib.import_module(f"studies.{study}.needs").needs
            checked_needs(needs, config, SCHEMA["properties"], cores, MEMORY)
    assert json.loads(json.dumps(config, allow_nan=False)) == config
    grid = cells(config)
    assert len(set(grid)) == len(grid) and all(Cell.parse(f"{cell}") == cell for cell in grid)
    ranges = seed_ranges(config, config["seeds"], len(grid), cores, [])
    assert [int(one.split("-")[1]) + 1 for one in ranges[:-1]] == [int(one.split("-")[0]) for one in ranges[1:]]
    assert ranges[0].startswith("0-") and ranges[-1].endswith(f"-{config['seeds'] - 1}")
    results, unseen = Path(own["results"]), env_options(config, config["readings"]["evaluation_env"])
    wildcards = SimpleNamespace(**grid[-1]._asdict(), seeds=ranges[-1])
    given = {name: {"env_options": env_options(config, wildcards.env)} for name in OF_ENV}
    given |= {name: {"env_options": unseen} for name in ("evaluate", "baselines")} | {"unrolls": {}}
    tested = {"unseen_tasks": config["evaluation"]["tasks"], "env_options": unseen}
    given["audit"] = tested | {"context_lengths": config["evaluation"]["context_lengths"]}
    given["tasks"]["tasks"], given["pretrain"] = config["tasks"], {"diverged": results / "diverged"}
    given["theory.values"]["states"] = sorted({*config["theory"]["states"], *config["states"]})
    for name, values in given.items():
        words = shlex.split(step_params(config, list(STUDIES), name, **values)["values"](Wildcards(wildcards)))
        # Words of a command line, of which none is empty or has a line of its own.
        assert words[0].startswith("--") and all(word and word.isprintable() for word in words)


class Wildcards(SimpleNamespace):
    """A job's wildcards, as params see them."""

    def __init__(self, of: SimpleNamespace):
        super().__init__(**vars(of))

    def keys(self):
        return vars(self).keys()

    def get(self, key):
        return vars(self)[key]


def _same(one, other) -> bool:
    """Whether two values from YAML are the same, with numbers that are none the same as such."""
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(map(_same, one.values(), other.values()))
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return type(one) is type(other) and (one == other or (one != one and other != other))


def _write(rng: random.Random, path: Path) -> str:
    """Write a configuration to ``path``, and say in a few words what it is."""
    whole = {**CONFIG, **STUDIES}
    key = rng.choice(list(whole))
    if rng.random() < 0.2:
        template = rng.choice(BROKEN)
        deep, digits = "[" * 900 + "]" * 900, "9" * rng.choice([400, 5000])
        text = template.format(key=key, deep=deep, digits=digits)
        path.write_text(text, encoding="utf-8", newline="")
        return f"{text[:60]!r}"
    if rng.random() < 0.05:
        path.write_bytes(rng.randbytes(rng.randrange(60)))
        return "bytes"
    changes, given = [], {}
    for _ in range(rng.randrange(1, 4)):
        inner, place = whole, []
        while isinstance(inner, dict) and (not place or rng.random() < 0.9):
            place.append(rng.choice(list(inner) or ["x"]) if rng.random() < 0.95 else rng.choice(TEXTS + NUMBERS))
            inner = inner.get(place[-1])
        value, section = _value(rng, inner), given
        for name in place[:-1]:
            section = section.setdefault(name, {}) if isinstance(section.get(name, {}), dict) else {}
        section[place[-1]] = value
        changes.append(f"{place[-1]!s:.40} = {shown(value)[:60]}")
    text = yaml.dump(given, Dumper=yaml.CSafeDumper)
    if rng.random() < 0.03:
        text = text[: rng.randrange(len(text))]
    path.write_text(text, encoding="utf-8")
    return "; ".join(changes)


def _value(rng: random.Random, now, most: int = 3000):
    """A value in place of the one now: near to it, of another type, or extreme; lists have at most so many values."""
    kind = rng.random()
    if isinstance(now, list) and kind < 0.5:
        return [
            _value(rng, rng.choice(now or [1]), 3) for _ in range(min(rng.choice([0, 1, 1, 2, 3, 3, 300, most]), most))
        ]
    if isinstance(now, dict) and kind < 0.5:
        return {name: _value(rng, one, 3) if rng.random() < 0.3 else one for name, one in now.items()}
    if isinstance(now, int | float) and kind < 0.4:
        near = now * rng.choice([1, 1, 2, 0.5, 3, 10])
        return rng.choice([near, round(near), str(near), f" {near}"])
    if kind < 0.5:
        return now
    if kind < 0.9:
        return rng.choice(rng.choice([TEXTS, NUMBERS, OTHERS]))
    return rng.choice(
        [[_value(rng, 1, 3)] * 2, {"a": _value(rng, 1, 3)}, list(range(2, rng.choice([5, most, 5 * most])))]
    )

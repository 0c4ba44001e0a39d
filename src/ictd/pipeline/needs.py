"""What a configuration needs: jobs, the memory of a job of each rule, and room for results.

Sizes are those of the arrays that a step holds at once, counted generously.  They are seldom twice as large as what is
measured, and hardly ever less.
"""

import copy
import math
import os
from collections.abc import Callable
from typing import NamedTuple

from ictd.pipeline.config import shown
from ictd.pipeline.grid import cells, seeds_in_a_job

# Snakemake plans some 500 jobs a second and keeps 27 kB of each: more take minutes, and gigabytes, before any of them.
MOST_JOBS = 100_000
# No process can address more on the processors of today.
ADDRESSABLE = 2**47
# Python with NumPy, numba and torch.
BASE = 4e8
# As in ictd.pretraining, whose imports would take longer than the planning of a run.
BLOCK = 10_000
# Rules with one job, figures among them.
SINGLE = 26


class Needs(NamedTuple):
    """About how many jobs there are, and in bytes the room that results take, and the memory of a rule's largest job.

    Rules that gather what others computed are left out.
    """

    jobs: float
    room: float
    memory: dict[str, float]

    def __str__(self) -> str:
        rule, most = max(self.memory.items(), key=lambda pair: pair[1])
        return f"{self.jobs:.0f} jobs of up to {most / 1e9:.2g} GB ({rule}), {self.room / 1e9:.2g} GB of results"


def ask_for(memory: dict[str, float], rules: dict) -> None:
    """Have each of Snakemake's rules ask for the memory that its jobs need, if that is more than it asks for."""
    for name in memory.keys() & rules.keys():
        asked = rules[name].resources
        asked["mem_mb"] = max(asked["mem_mb"].value, math.ceil(memory[name] / 1e6))


def own_memory() -> int:
    """Bytes of memory that the machine has."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def checked_needs(
    of: Callable[[dict, int | None], Needs],
    config: dict,
    properties: dict,
    cores: int | None,
    memory: float = ADDRESSABLE,
) -> Needs:
    """Needs of a checked configuration, by a function of it and of the number of cores, None where it is not known.

    ValueError for jobs that need more bytes of memory than there are, or for more jobs than can be planned.  It names
    the key whose value makes most of that, beside the paper's, which the schema's ``properties`` have, or else 1.
    """
    needs = of(config, cores)
    rule, most = max(needs.memory.items(), key=lambda pair: pair[1])
    if needs.jobs > MOST_JOBS:
        key = _largest(config, properties, lambda one: of(one, cores).jobs)
        raise ValueError(
            f"Config: {key}, which makes about {needs.jobs:.2g} jobs; give less, or more seeds_per_job, as Snakemake"
            f" can plan some {MOST_JOBS}."
        )
    if most > memory:
        key = _largest(config, properties, lambda one: of(one, cores).memory[rule])
        raise ValueError(
            f"Config: {key}, with which a job of rule {rule} needs about {most / 1e9:.2g} GB of memory; give less, as"
            f" there are {memory / 1e9:.2g} GB."
        )
    return needs


def _largest(config: dict, properties: dict, size: Callable[[dict], float]) -> str:
    """The key, with its value, that makes most of the size of a configuration."""

    def without(path: tuple[str, ...], usual) -> float:
        *sections, last = path
        inner = other = copy.deepcopy(config)
        for name in sections:
            inner = inner[name]
        inner[last] = usual
        return size(other)

    path, value, _ = min(_counts(config, properties), key=lambda one: without(one[0], one[2]))
    return f"{'.'.join(path)} is {shown(value)}"


def _counts(section: dict, properties: dict, path: tuple[str, ...] = ()):
    """Paths and values of whole numbers, and of lists of them, and what they are in the paper."""
    for key, value in section.items():
        about = properties.get(key, {})
        if isinstance(value, dict):
            yield from _counts(value, about.get("properties", {}), (*path, key))
        elif isinstance(value, list) and value and all(isinstance(one, int) for one in value):
            yield (*path, key), value, about.get("paper", [min(value)])
        elif isinstance(value, int):
            yield (*path, key), value, about.get("paper", 1)


def paper_needs(config: dict, cores: int | None) -> Needs:
    """Needs of the paper's part; ``cores`` is None where it is not known."""
    N, S, b, e, t = (config[key] for key in ("tasks", "seeds", "batch_size", "evaluation", "theory"))
    runs = cells(config)
    s = min(S, seeds_in_a_job(config["seeds_per_job"], S, len(runs), cores))
    K, count = min(config["snapshots"], N), 1 if b < 2**8 else 4
    lengths, test, tuning, sizes = (e[key] for key in ("context_lengths", "tasks", "tuning_tasks", "step_sizes"))
    longest = max(lengths)

    def stored(n: int) -> tuple[float, float]:
        """Tasks and unrolls of a seed."""
        return 8 * N * (n**2 + 3 * n), N * (count * (n**2 + n) + 8 * n)

    def of_jobs(n: int, L: int) -> dict[str, float]:
        """Memory at n states and L layers."""
        tasks, unrolls = stored(n)
        weights, history = 4 * n**2 + 2 * n, 16 * K * (4 * n**2 + 2 * n)
        prompts = 8 * test * ((2 * n + 1) * (sum(lengths) + 6 * (longest + n)) + 8 * S * len(lengths))
        # Autograd keeps some six arrays of the size of all prompts of a task for each layer, the fused engine rows.
        engines = {"autograd": 48 * L * n * (2 * n + 1) * (n + 1), "fused": 48 * L * n}
        deepest, groups = max(L, t["update_depth"]), 20
        at_once = max(t["tasks"] / groups, min(t["tasks"], 7e5 / n**4))
        updates = 32 * groups * deepest * weights
        digits = 30 - max(t["depth"], deepest) * math.log10(config["discount"] or 1)
        return {
            "tasks": 8 * N * (s * (3 * n**2 + 8 * n) + 3 * n**2),
            "unrolls": s * (tasks + 3 * unrolls) + tasks + 64 * b * config["rollout_steps"],
            "pretrain": s * (tasks + unrolls + history) + tasks + 24 * (N * n + config["snapshots"])
            + engines[config["engine"]],
            "audit": s * (tasks + unrolls) + history + sum(engines.values()),
            "evaluate": 2 * S * history + prompts,
            "baselines": prompts + batch_td_memory(tuning, n, longest, sizes["number"])
            + 8 * tuning * len(lengths) * (n**2 + 2 * sizes["number"]),
            "theory_descent": 8 * (16 * n * t["tasks"] * t["update_depth"] + 20 * at_once * n**3) + 1.5 * updates,
            "theory_pretrained": 128 * n * (t["pretrained_tasks"] * (L + n) + 3 * groups * deepest) + updates,
            "theory_agreement": 4 * engines["autograd"] + 320 * n**3,
            "theory_precision": (10 * n**2 + deepest * n) * (104 + digits / 2) + 400 * t["depth"],
        }  # fmt: skip

    n, L = config["states"][0], config["depths"][0]
    found = [of_jobs(max(config["states"]), L), of_jobs(n, max(config["depths"]))]
    memory = {rule: BASE + max(one[rule] for one in found) for rule in found[0]}
    n = max(*t["states"], *config["states"])
    memory["theory_values"] = BASE + 8 * (t["tasks"] * (26 * t["depth"] + 5 * n**2) + 300 * t["depth"] * n)
    sets, pairs = {(cell.env, cell.states) for cell in runs}, {(cell.states, cell.depth) for cell in runs}
    jobs = math.ceil(S / s) * (2 * len(sets) + len(runs)) + 2 * len(runs) + len(sets) + len(pairs)
    room = S * sum(sum(stored(states)) for _, states in sets) + 16 * S * K * sum(4 * cell.states**2 for cell in runs)
    return Needs(jobs + 2 * len(config["envs"]) + SINGLE, room, memory)


def batch_td_memory(tasks: int, n: int, longest: int, step_sizes: int) -> float:
    """Bytes that contexts of n states, and batch TD on them with some step sizes, take."""
    return 8 * tasks * n * (2 * longest + n + 5 * step_sizes)

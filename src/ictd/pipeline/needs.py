"""What a configuration needs: jobs, the memory of a job of each rule, and room for results.

Of what a step holds at once, the largest arrays are counted, generously.
"""

import math
import os
from collections.abc import Callable, Iterator
from typing import NamedTuple

from ictd.checks import shown
from ictd.pipeline.grid import algos_together, cells, seeds_in_a_job

# Snakemake plans some 500 jobs a second and keeps 27 kB of each: more take minutes, and gigabytes, before any of them.
MOST_JOBS = 100_000
# Bytes of memory that the machine has, and that no process can address more of on the processors of today.
OWN_MEMORY, ADDRESSABLE = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), 2**47
# Python with NumPy, numba and torch.
BASE = 4e8
# As in ictd.pretraining, whose imports would take longer than the planning of a run.
BLOCK = 10_000
# Rules with one job, figures among them.
SINGLE = 22


class Needs(NamedTuple):
    """About how many jobs there are, and in bytes the room that results take, and the memory of a rule's largest job.

    Rules that gather what others computed are left out.
    """

    jobs: float
    room: float
    memory: dict[str, float]

    def __str__(self) -> str:
        rule = max(self.memory, key=self.memory.get)
        most, room = self.memory[rule] / 1e9, self.room / 1e9
        return f"{self.jobs:.0f} jobs of up to {most:.2g} GB ({rule}), {room:.2g} GB of results"


def ask_for(memory: dict[str, float], rules: dict) -> None:
    """Have each of Snakemake's rules ask for the memory that its jobs need, if that is more than it asks for."""
    for name in memory.keys() & rules.keys():
        asked = rules[name].resources
        asked["mem_mb"] = max(asked["mem_mb"].value, math.ceil(memory[name] / 1e6))


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
    rule = max(needs.memory, key=needs.memory.get)
    jobs = "which makes about {:.2g} jobs; give less, or more seeds_per_job, as Snakemake can plan some {}"
    job = f"with which a job of rule {rule} needs about {{:.2g}} GB of memory; give less, as there are {{:.2g}} GB"
    for size, most, words in (
        (lambda one: one.jobs, MOST_JOBS, jobs),
        (lambda one: one.memory[rule] / 1e9, memory / 1e9, job),
    ):
        if size(needs) > most:
            counts = _counts(config, properties)
            key, value, _ = min(counts, key=lambda one, size=size: size(of(one[2], cores)))
            raise ValueError(f"Config: {key} is {shown(value)}, {words.format(size(needs), most)}.")
    return needs


def _counts(section: dict, properties: dict) -> Iterator[tuple[str, object, dict]]:
    """Keys and values of whole numbers, or lists of them, and the section with the paper's in their place."""
    for key, value in section.items():
        about = properties.get(key, {})
        if isinstance(value, dict):
            for name, one, other in _counts(value, about.get("properties", {})):
                yield f"{key}.{name}", one, section | {key: other}
        elif isinstance(value, int):
            yield key, value, section | {key: about.get("paper", 1)}
        elif isinstance(value, list) and value and all(isinstance(one, int) for one in value):
            yield key, value, section | {key: about.get("paper", [min(value)])}


def paper_needs(config: dict, cores: int | None) -> Needs:
    """Needs of the paper's part; ``cores`` is None where it is not known."""
    N, S, b, e, t = (config[key] for key in ("tasks", "seeds", "batch_size", "evaluation", "theory"))
    runs = cells(config)
    s = min(S, seeds_in_a_job(config["seeds_per_job"], S, len(runs), cores))
    lengths, steps, deep = e["context_lengths"], e["step_sizes"]["number"], t["update_depth"]
    digits = -math.log10(config["discount"] or 1)

    def tasks(n: int) -> float:
        return 8 * N * (n**2 + 2 * n)

    def unrolls(n: int) -> float:
        return N * ((1 if b < 2**8 else 4) * n**2 + 8 * n)

    def history(n: int) -> float:
        return 16 * min(config["snapshots"], N) * (4 * n**2 + 2 * n)

    def of_jobs(n: int, L: int) -> dict[str, float]:
        """Memory at n states and L layers."""
        # Of all seeds as it is stored, and of one whole and checked.
        read, deepest = (s + 2) * (tasks(n) + unrolls(n)), max(L, deep)
        prompts = 16 * n * e["tasks"] * (sum(lengths) + 6 * max(lengths) + 6 * n)
        gradients = 50 * L * n * (2 * n + 1) * (n + 1)
        return {
            "tasks": 24 * N * (s + 1) * (n**2 + 2 * n),
            "unrolls": read + 2 * s * unrolls(n) + 64 * b * config["rollout_steps"],
            "pretrain": read + s * history(n) * (1 + len(config["algos"])) / 2 + 16 * N * n**2
            + 24 * (N * n + config["snapshots"]),
            "audit": read + history(n) + gradients,
            "evaluate": S * (2 * history(n) + 64 * e["tasks"] * len(lengths)) + prompts,
            "baselines": prompts + batch_td_memory(e["tuning_tasks"], n, max(lengths), steps)
            + 8 * e["tuning_tasks"] * len(lengths) * (n**2 + 2 * steps),
            "theory_descent": 8 * n * t["tasks"] * (16 * deep + n**2) + 1e8 / n + 4000 * deep * n * (n + 1),
            "theory_pretrained": 128 * n * t["pretrained_tasks"] * (L + n) + 4000 * deepest * n * (n + 1),
            "theory_family": 8 * n * t["pretrained_tasks"] * deep * 24 + 4000 * deep * n * (n + 1),
            "theory_agreement": 4 * gradients,
            "theory_precision": n * (10 * n + deepest) * (120 + max(t["depth"], deepest) * digits / 2),
        }  # fmt: skip

    n, L = config["states"][0], config["depths"][0]
    found = [of_jobs(max(config["states"]), L), of_jobs(n, max(config["depths"]))]
    memory = {rule: BASE + max(one[rule] for one in found) for rule in found[0]}
    n = max(*t["states"], *config["states"])
    memory["theory_values"] = BASE + 8 * (t["tasks"] * (26 * t["depth"] + 5 * n**2) + 300 * t["depth"] * n)
    sets, settings = {(cell.env, cell.states) for cell in runs}, {cell.setting for cell in runs}
    # Each trained, and then looked at by the theory.
    models = settings if algos_together(config, cores) else runs
    jobs = math.ceil(S / s) * (2 * len(sets) + len(models)) + len(settings) + len(models) + 2 * len(sets)
    room = S * (sum(tasks(n) + unrolls(n) for _, n in sets) + sum(history(cell.states) for cell in runs))
    return Needs(jobs + 2 * len(config["envs"]) + SINGLE, room, memory)


def batch_td_memory(tasks: int, n: int, longest: int, step_sizes: int) -> float:
    """Bytes that contexts of n states, and batch TD on them with some step sizes, take."""
    return 8 * tasks * n * (2 * longest + n + 5 * step_sizes)

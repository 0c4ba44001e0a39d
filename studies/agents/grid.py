"""The runs that a configuration spans, and what they are compared with, by the names of their files."""

import math
from pathlib import Path
from typing import NamedTuple

from ictd.pipeline.grid import Cell, main_setting, seed_ranges, seeds_in_a_job
from ictd.pipeline.needs import BASE, Needs, batch_td_memory
from ictd.pretraining import BLOCK

# Files are named after discounts; smaller ones would be written with an exponent.
SMALLEST_DISCOUNT = 0.0001
# What runs with a kind of attention are pretrained on.
PROMPTS = ("contexts", "enumerated")


class Setting(NamedTuple):
    """What a run is pretrained on, besides its teacher."""

    env: str
    states: int
    depth: int
    discount: float


SETTING = list(Setting._fields)  # The columns that name one in tables.


class Grid:
    """The study's runs, and where they and the baselines are evaluated.

    ValueError for a discount that files cannot be named after.

    Parameters
    ----------
    config : the whole configuration, checked
    folder : the study's results, whose finished runs keep their ranges of seeds
    cores : int, or None where it is not known

    Attributes
    ----------
    main : the main Setting
    tasks : numbers of tasks of all runs, by their names TEACHER-ENV-STATES-DEPTH-DISCOUNT
    values : names of runs and of what they are evaluated on, RUN/ENV-DISCOUNT
    paper : the same for cells of the paper
    baselines : names of what baselines are evaluated on, ENV-STATES-DISCOUNT
    attentions : by name, the parameters of each kind of attention
    seeds : ranges of the runs' seeds, one a job
    attention_runs : names of each of these kinds' runs, PROMPTS-ALGO/SEEDS
    """

    def __init__(self, config: dict, folder: Path, cores: int | None):
        own, algos, envs = config["agents"], config["algos"], config["envs"]
        self.main = main = Setting(**main_setting(config), discount=config["discount"])
        discounts = [main.discount, *own["discounts"]]
        for discount in discounts:
            if 0 < discount < SMALLEST_DISCOUNT:
                raise ValueError(f"Config: there is a discount of {discount}; give 0, or at least {SMALLEST_DISCOUNT}.")
        others = {"depth": own["depths"], "states": own["states"], "env": envs[1:], "discount": own["discounts"]}
        settings = [main, *(main._replace(**{key: one}) for key, values in others.items() for one in values)]
        self.tasks = {_name(algo, *setting): own["tasks"] for algo in algos for setting in settings}
        self.tasks |= {_name(algo, *main): own["main_tasks"] for algo in algos}
        self.tasks |= {_name(f"expected_{algo}", *main): own["tasks"] for algo in algos}
        # Environments and discounts that every run with the main numbers of states and layers is evaluated on.
        places, home = [(env, discount) for env in envs for discount in discounts], _name(main.env, main.discount)
        values = [
            f"{_name(algo, *setting)}/{_name(*place)}"
            for algo in algos
            for setting in settings
            for place in places
            if place == (setting.env, setting.discount) or setting[1:3] == main[1:3]
        ]
        values += [f"{_name(f'expected_{algo}', *main)}/{home}" for algo in algos]
        self.values = list(dict.fromkeys(values))
        self.paper = [f"{Cell(algo, *main[:3])}/{home}" for algo in algos]
        beside = {(env, main.states, discount) for env, discount in places}
        beside |= {(env, states, discount) for env, states, _, discount in settings}
        self.baselines = [_name(*one) for one in sorted(beside)]
        self.attentions = {
            one["name"]: {key: value for key, value in one.items() if key != "name"} for one in own["attentions"]
        }

        self.seeds = seed_ranges(config, own["seeds"], len(self.tasks), cores, folder.glob("runs/*/*.npz"))
        of_attention = [_name(prompts, algo) for prompts in PROMPTS for algo in algos]
        runs, finished = len(self.attentions) * len(of_attention), folder.glob("attention/*/*/*.npz")
        attention_seeds = seed_ranges(config, own["seeds"], runs, cores, finished)
        self.attention_runs = [f"{run}/{seeds}" for run in of_attention for seeds in attention_seeds]


def _name(*parts) -> str:
    return "-".join(map(str, parts))


def needs(config: dict, cores: int | None) -> Needs:
    """Needs of the study; ``config`` is the whole configuration, checked."""
    own, algos, S = config["agents"], len(config["algos"]), config["agents"]["seeds"]
    runs = algos * (1 + len(config["envs"]) + sum(len(own[key]) for key in ("depths", "states", "discounts")))
    kinds, places = len(own["attentions"]), len(config["envs"]) * (1 + len(own["discounts"]))
    of_attention = len(PROMPTS) * algos * kinds
    sizes = [min(S, seeds_in_a_job(config["seeds_per_job"], S, number, cores)) for number in (runs, of_attention)]
    n, m = max([config["states"][0], *own["states"]]), config["states"][0]
    block, K, test = min(BLOCK, own["main_tasks"]), own["snapshots"] + 1, own["test_tasks"]
    lengths, steps = own["context_lengths"], own["step_sizes"]["number"]
    drawn = 8 * block * (25 * n**2 + 3 * own["lengths"][-1]) + 64 * config["batch_size"] * config["rollout_steps"]
    history = 16 * K * (4 * n**2 + 2 * n)
    tested = batch_td_memory(test, n, max(lengths), 2 * n)
    tuned = steps * (4 + 2 * len(lengths))
    memory = {
        "agents_pretrain": drawn + max(sizes) * history + 48 * n * max([config["depths"][0], *own["depths"]]),
        # A column for each pair of states.
        "agents_pretrain_attention": drawn + 40 * block * m**3 + 72 * m**4 + 48 * m**2 * config["depths"][0],
        "agents_evaluate": tested + S * (history + 16 * K * len(lengths) * test),
        "agents_evaluate_attention": tested + 40 * test * m**4,
        "agents_baselines": tested + batch_td_memory(own["tuning_tasks"], n, max(lengths), tuned)
        + 8 * own["tuning_tasks"] * (own["ridges"]["number"] + steps * len(own["updates"]))
        + 32 * own["bayes_samples"] * n**2,
    }  # fmt: skip
    values = algos * (places * (len(config["envs"]) + len(own["discounts"])) + len(own["depths"]) + len(own["states"]))
    jobs = runs * math.ceil(S / sizes[0]) + values + of_attention * math.ceil(S / sizes[1]) + kinds + 2 * places
    room = S * runs * history / 2 + values * 16 * S * K * len(lengths)
    return Needs(jobs, room, {rule: BASE + needed for rule, needed in memory.items()})

"""The runs that a configuration spans, and what they are compared with, by the names of their files."""

from pathlib import Path
from typing import NamedTuple

from ictd.pipeline.grid import Cell, main_setting, seed_ranges

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
    cores : int

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

    def __init__(self, config: dict, folder: Path, cores: int):
        own, algos, envs = config["sampled_prompts"], config["algos"], config["envs"]
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

        wanted = config["seeds_per_job"]
        self.seeds = seed_ranges(wanted, own["seeds"], len(self.tasks), cores, folder.glob("runs/*/*.npz"))
        of_attention = [_name(prompts, algo) for prompts in PROMPTS for algo in algos]
        runs, finished = len(self.attentions) * len(of_attention), folder.glob("attention/*/*/*.npz")
        attention_seeds = seed_ranges(wanted, own["seeds"], runs, cores, finished)
        self.attention_runs = [f"{run}/{seeds}" for run in of_attention for seeds in attention_seeds]


def _name(*parts) -> str:
    return "-".join(map(str, parts))

"""The runs of a configuration, and the places of their evaluation, by the names of their files."""

from pathlib import Path
from typing import NamedTuple

from ictd.pipeline.grid import Cell, cells, main_setting, seed_ranges

# Smallest discount.  Files are named after discounts, and Python writes smaller discounts with an exponent.
SMALLEST_DISCOUNT = 0.0001
# Pretraining prompts of runs with a kind of attention.
PROMPTS = ("contexts", "enumerated")
# Formats of the prompts of pretraining in the names of runs, other than a column for each step of a context.
GROUPED, ENUMERATED = "grouped_", "enumerated_"


class Setting(NamedTuple):
    """The setting of a run, without its target."""

    env: str
    states: int
    depth: int
    discount: float


SETTING = list(Setting._fields)  # The columns that name a setting in tables.


class Run(NamedTuple):
    """A run: the target of its pretraining, and its setting."""

    target: str
    env: str
    states: int
    depth: int
    discount: float | None

    def __str__(self) -> str:
        return "-".join(map(str, self))

    @property
    def place(self) -> tuple[str, int, float]:
        """Environment, number of states and discount, which determine tasks and batches."""
        return self.env, self.states, self.discount

    @property
    def columns(self) -> dict:
        """The columns that name a run in tables."""
        return dict(zip(["algo", *SETTING], self, strict=True))

    @classmethod
    def parse(cls, name: str, discount: float | None = None) -> "Run":
        """Make the run from its name, such as "td-boyan-5-30-0.9".

        The names of the paper's cells have no discount.  They get ``discount``, by default None.
        """
        target, env, states, depth, *own = name.split("-")
        return cls(target, env, int(states), int(depth), float(own[0]) if own else discount)


class Grid:
    """The study's runs, and where the runs and the baselines are evaluated.

    A place is an environment and a discount of evaluation.

    Parameters
    ----------
    config : the whole configuration, checked
    folder : the study's results; the ranges of seeds of finished runs are kept
    cores : int

    Attributes
    ----------
    main : the main Setting
    tasks : number of tasks of each Run
    main_runs : the Runs with the environment, number of states and discount of the main Setting
    values : names RUN/ENV-DISCOUNT of runs and places
    evaluated : the Runs in ``values``
    shown_by_tasks : names in ``values`` whose MSVE is shown against the number of tasks
    paper_cells : names of the paper's cells in the main Setting
    paper : names CELL/ENV-DISCOUNT of these cells with their place
    formats : the Runs in the main Setting that differ in the format of their prompts
    cells : names of the paper's cells
    format_baselines : names, as in ``baselines``, of the baselines that the formats are compared with
    baselines : names ENV-STATES-DISCOUNT of the settings in which baselines are evaluated
    attentions : parameters of each kind of attention, by its name
    seeds : ranges of the runs' seeds, one for each job
    attention_seeds : the same for the runs with other kinds of attention
    attention_runs : names PROMPTS-ALGO of the runs with one kind of attention

    Raises
    ------
    ValueError
        If files cannot be named after a discount.
    """

    def __init__(self, config: dict, folder: Path, cores: int):
        study, algos, envs = config["sampled_prompts"], config["algos"], config["envs"]
        # Names have discounts as Python writes floats.
        discounts = [float(discount) for discount in (config["discount"], *study["discounts"])]
        self.main = Setting(**main_setting(config), discount=discounts[0])
        for discount in discounts:
            if 0 < discount < SMALLEST_DISCOUNT:
                raise ValueError(f"Config: there is a discount of {discount}; give 0, or at least {SMALLEST_DISCOUNT}.")
        settings = self._settings(study, envs, discounts[1:])

        self.tasks = {Run(algo, *setting): study["tasks"] for algo in algos for setting in settings}
        self.tasks |= {Run(algo, *self.main): study["main_tasks"] for algo in algos}
        self.tasks |= {Run(f"expected_{algo}", *self.main): study["tasks"] for algo in algos}
        self.formats = [Run(prefix + algo, *self.main) for prefix in ("", GROUPED, ENUMERATED) for algo in algos]
        self.tasks |= {run: study["tasks"] for run in self.formats if run not in self.tasks}

        self.main_runs = [run for run in self.tasks if run.place == Run("td", *self.main).place]

        # Runs with the main numbers of states and layers are evaluated at every place, other runs only at their own
        # place.
        places = [(env, discount) for env in envs for discount in discounts]
        own_place = _name(self.main.env, self.main.discount)
        values = [
            (Run(algo, *setting), _name(*place))
            for algo in algos
            for setting in settings
            for place in places
            if place == (setting.env, setting.discount) or setting[1:3] == self.main[1:3]
        ]
        main_targets = [target for algo in algos for target in (algo, f"expected_{algo}")]
        shown_by_tasks = [(Run(target, *self.main), own_place) for target in main_targets]
        values = dict.fromkeys([*values, *shown_by_tasks])
        self.shown_by_tasks = [f"{run}/{place}" for run, place in shown_by_tasks]
        self.values = [f"{run}/{place}" for run, place in values]
        self.evaluated = list(dict.fromkeys(run for run, _ in values))
        self.paper_cells = [str(Cell(algo, *self.main[:3])) for algo in algos]
        self.paper = [f"{cell}/{own_place}" for cell in self.paper_cells]

        evaluated = {(env, self.main.states, discount) for env, discount in places}
        # The formats are evaluated on the environment on which the paper's cells are evaluated.
        paper_cells = cells(config)
        self.cells = [str(cell) for cell in paper_cells]
        shown_on = {(config["readings"]["evaluation_env"], cell.states, self.main.discount) for cell in paper_cells}
        self.format_baselines = [_name(*parts) for parts in sorted(shown_on)]
        evaluated |= shown_on | {(setting.env, setting.states, setting.discount) for setting in settings}
        self.baselines = [_name(*parts) for parts in sorted(evaluated)]

        self.attentions = {}
        for entry in study["attentions"]:
            self.attentions[entry["name"]] = {key: value for key, value in entry.items() if key != "name"}

        self.attention_runs = [_name(prompts, algo) for prompts in PROMPTS for algo in algos]

        # Runs with the same tasks and batches are in one job.
        size, seeds = config["seeds_per_job"], study["seeds"]
        shared = len({run.place for run in self.tasks})
        self.seeds = seed_ranges(size, seeds, shared, cores, folder.glob("runs/*/*.npz"))
        self.attention_seeds = seed_ranges(size, seeds, 1, cores, folder.glob("attention/*/*/*.npz"))

    def _settings(self, study: dict, envs: list[str], discounts: list[float]) -> list[Setting]:
        """The main setting, and the settings that change one of its values."""
        varied = {"depth": study["depths"], "states": study["states"], "env": envs[1:], "discount": discounts}
        settings = [self.main]
        for name, values in varied.items():
            settings += [self.main._replace(**{name: value}) for value in values]
        return settings


def _name(*parts) -> str:
    return "-".join(map(str, parts))

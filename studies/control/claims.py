"""Claims of the study on control in context.

Each claim is decided twice: over processes, with means over seeds, and over seeds, with means over processes.  All
methods see the same processes and transitions.
"""

from collections.abc import Iterator
from itertools import pairwise, product
from pathlib import Path

import numpy as np

from ictd.report.claim import Claim, Statements, save_claims
from studies.control.grid import BASELINES, CONTROLS, PLACE, equal_except
from studies.control.measured import Offline, Online

# Pairs of control experiments that claims compare; "own" is the method itself.
COMPARED_CONTROLS = {
    "own_over_random_error": ("own", "random_error"),
    "random_advantage_over_own": ("random_advantage", "own"),
    "random_sign_over_own": ("random_sign", "own"),
    "aligned_over_own": ("aligned_advantage", "own"),
    "random_advantage_over_aligned": ("random_advantage", "aligned_advantage"),
    "unseen_over_as_many": ("exact_unseen", "exact_as_unseen"),
    "seen_over_as_many": ("exact_seen", "exact_as_seen"),
}


def main(statements: Path, variants: dict, places: dict, offline: list[Path], online: Path, output: Path) -> None:
    """Write each claim with its value and its verdict, as JSON."""
    results = {path.stem: Offline(path) for path in offline}
    save_claims(output, check_control(Statements(statements), results, Online(online), variants, places))


def check_control(
    statements: Statements,
    offline: dict[str, Offline],
    online: Online,
    variants: dict[str, dict],
    places: dict[str, dict],
) -> list[Claim]:
    """Decide all claims.

    Parameters
    ----------
    statements : Statements of claims.toml
    offline : Offline by place, the first of which is home
    online : Online
    variants, places : dict of ``grid.variants`` and ``grid.places``
    """
    return Decider(statements, offline, online, variants, places).claims()


class Decider:
    """Decides claims from differences between methods; its parameters are those of ``check_control``."""

    def __init__(self, statements, offline, online, variants, places):
        self.statements = statements
        self.offline = offline
        self.online = online
        self.variants = variants
        self.places = places
        self.home = next(iter(offline.values()))
        self.first = next(name for name in self.home.methods if name in variants)
        self.main = variants[self.first]
        self.papers = [
            name for name in self.equal_except("prompts", "algo") if variants[name]["prompts"] != self.main["prompts"]
        ]

    def claims(self) -> list[Claim]:
        """All claims, in the order of the pages."""
        claims = []
        for place in self.offline:
            claims += [*self.place_claims(place), *self.transfer_claims(place)]
        return [
            *claims,
            *self.equal_task_claims(),
            *self.depth_claims(),
            *self.pretraining_claims(),
            *self.iteration_claims(),
            *self.control_claims(),
            *self.regret_claims(),
        ]

    def equal_except(self, *keys: str) -> list[str]:
        """Variants that differ from the first one at most in some keys and in the number of tasks."""
        return equal_except(self.variants, self.first, *keys)

    def both_ways(self, name: str, setting: tuple, samples: np.ndarray, **words: str) -> Iterator[Claim]:
        """A claim on samples (seeds, N), over processes and over seeds."""
        yield from self.statements.of_trials(name, setting, samples.mean(axis=0), over="processes", **words)
        yield from self.statements.of_trials(name, setting, samples.mean(axis=1), over="seeds", **words)

    def by_length(self, name: str, setting: tuple, samples: np.ndarray, **words: str) -> Iterator[Claim]:
        """A claim on samples (seeds, lengths, N), for each number of transitions m."""
        for k, length in enumerate(self.home.lengths):
            yield from self.both_ways(name, (*setting, f"m = {length}"), samples[:, k], **words)

    def pretrained_for(self, place: str) -> list[str]:
        """Variants that differ from the first in the place and the algorithm only, and were pretrained for a place."""
        return [
            name
            for name in self.equal_except(*PLACE, "algo")
            if self.places[place].items() <= self.variants[name].items()
        ]

    def place_claims(self, place: str) -> Iterator[Claim]:
        """Compare what was pretrained for a place with baselines and with weights pretrained as in the paper."""
        here = self.offline[place]
        own = self.pretrained_for(place)
        others = [name for name in (*BASELINES, *self.papers) if name in here.methods]
        for (name, other), claim in product(product(own, others), ("beats", "behind")):
            yield from self.by_length(claim, (name, place), here.share(name) - here.share(other), other=other)
        for (name, other), error in product(product(own, others), ("error", "advantage_error")):
            other_error = here.rows(error, other)
            scale = other_error.mean(axis=(0, 2))[:, None]
            difference = (here.rows(error, name) - other_error) / scale
            yield from self.by_length(f"lower_{error}", (name, place), difference, other=other)
        for name in own:
            yield from self.by_length("settles", (name, place), here.rows("changes", name))
        for name in own:
            if f"{name} pseudo_counts" in here.methods:
                share = here.share(f"{name} pseudo_counts")
                yield from self.by_length("pseudo_steps_help", (name, place), share - here.share(name))
                difference = share - here.share("smoothed")
                yield from self.by_length("pseudo_steps_over_smoothed", (name, place), difference)

    def transfer_claims(self, place: str) -> Iterator[Claim]:
        """Evaluate variants that were pretrained for other places."""
        here = self.offline[place]
        own = self.pretrained_for(place)
        same_algorithm = self.equal_except(*PLACE)
        for name in same_algorithm:
            if name not in here.methods or name in own:
                continue
            share = here.share(name)
            yield from self.by_length("transfers", (name, "in", place), share - here.share("lspi"))
            tasks = self.variants[name]["tasks"]
            for own_name in own:
                if own_name in same_algorithm and here.task_counts(own_name)[0] <= tasks:
                    difference = here.share(own_name, tasks=tasks) - share
                    setting = (own_name, "over", name, "in", place)
                    yield from self.by_length("own_over_other", setting, difference)

    def equal_task_claims(self) -> Iterator[Claim]:
        """Compare with weights pretrained as in the paper, after as many tasks."""
        for name in self.papers:
            tasks = self.variants[name]["tasks"]
            if tasks in self.home.task_counts(self.first):
                difference = self.home.share(self.first, tasks=tasks) - self.home.share(name)
                yield from self.by_length("equal_tasks", (f"{tasks} tasks",), difference, other=name)

    def depth_claims(self) -> Iterator[Claim]:
        """Compare depths, after the number of tasks of the variant with the fewest."""
        share = self.home.share
        names = {self.variants[name]["depth"]: name for name in [*self.equal_except("depth"), self.first]}
        tasks = min(self.variants[name]["tasks"] for name in names.values())
        layers = [(depth, name) for depth, name in sorted(names.items()) if self.home.task_counts(name)[0] <= tasks]
        for (few, shallower), (many, deeper) in pairwise(layers):
            difference = share(deeper, tasks=tasks) - share(shallower, tasks=tasks)
            yield from self.by_length("deeper", (f"{few} to {many} layers",), difference)
        most_iterations = self.home.arrays["mean_value"].shape[2] - 1
        for depth, name in layers:
            times, rest = divmod(self.main["depth"], depth)
            if rest == 0 and 1 < times <= most_iterations:
                difference = share(name, times, tasks) - share(self.first, 1, tasks)
                yield from self.by_length("iterations_over_layers", (f"{depth} x {times}",), difference)

    def pretraining_claims(self) -> Iterator[Claim]:
        """Compare numbers of tasks, algorithms, and policies of pretraining."""
        share = self.home.share
        for before, after in pairwise(self.home.task_counts(self.first)):
            difference = share(self.first, tasks=after) - share(self.first, tasks=before)
            yield from self.by_length("more_tasks", (f"{before} to {after} tasks",), difference)
        if (self.main["algo"], self.main["policies"]) != ("td", "both"):
            return
        for key in ("algo", "policies"):
            for name in self.equal_except(key):
                variant = self.variants[name]
                if variant[key] == self.main[key]:
                    continue
                claim = "td_over_mc" if key == "algo" else f"both_over_{variant['policies']}"
                difference = share(self.first, tasks=variant["tasks"]) - share(name)
                yield from self.by_length(claim, (name,), difference)

    def iteration_claims(self) -> Iterator[Claim]:
        """Compare the last policy with the one after the first iteration."""
        for name, claim in product((self.first, *BASELINES), ("iterations_help", "iterations_hurt")):
            yield from self.by_length(claim, (name,), self.home.share(name) - self.home.share(name, 1))

    def control_claims(self) -> Iterator[Claim]:
        """Compare control experiments with the Transformer and with the smoothed model."""
        share = self.home.share
        for name in (self.first, "smoothed"):
            shares = {kind: share(f"{name} {kind}") for kind in CONTROLS}
            shares["own"] = share(name)
            yield from self.by_length("shrinks", (name,), self.home.rows("cosine", name))
            yield from self.by_length("half_loses_less", (name,), shares["half_error"] - (1 + shares["own"]) / 2)
            for claim, (more, less) in COMPARED_CONTROLS.items():
                yield from self.by_length(claim, (name,), shares[more] - shares[less])
        yield from self.by_length("behind_smoothed_once", (self.first,), share(self.first, 1) - share("smoothed", 1))

    def regret_claims(self) -> Iterator[Claim]:
        """Compare the regret of Transformers after all steps with that of other methods, by the same rule."""
        same = self.equal_except("algo")
        transformers = [name for name in self.online.methods if name.split()[0] in same]
        others = [self.first, *(name for name in self.online.methods if name not in transformers)]
        for name, other, rule in product(transformers, others, self.online.rules):
            if name == other:
                continue
            other_regret = self.online.rows("regret", other, rule)[..., -1]
            difference = (self.online.rows("regret", name, rule)[..., -1] - other_regret) / other_regret.mean()
            who, how = ("pseudo", "with") if name.endswith(" pseudo_counts") else ("plain", "without")
            for claim in ("less_regret", "more_regret"):
                yield from self.both_ways(claim, (name, rule), difference, other=other, who=who, how=how)

"""Claims of the study on control in context.

The 95% interval over processes of a mean over seeds decides each claim.  The trials of a claim are the seeds; a seed
counts if its mean over processes meets the threshold.  All methods use the same processes and transitions.
"""

from collections.abc import Iterator
from itertools import pairwise, product
from pathlib import Path

import numpy as np

from ictd.report.claim import Claim, Statements, save_claims
from studies.control.grid import FORMATS, PLACE, equal_except
from studies.control.measured import Offline, Online

# Pairs of control experiments that claims compare, the better experiment first; "" is the method itself.
COMPARED_CONTROLS = {
    "random_advantage_over_own": (" random_advantage", ""),
    "unseen_over_as_many": (" exact_unseen", " exact_as_unseen"),
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
    offline : dict of Offline by place, home first
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
        self.first = self.home.first(variants)
        self.main = variants[self.first]

    def claims(self) -> list[Claim]:
        """All claims, in the order of the pages."""
        claims = []
        for place in self.offline:
            claims += [*self.place_claims(place), *self.pseudo_count_claims(place)]
        return [
            *claims,
            *self.prompt_claims(),
            *self.depth_claims(),
            *self.iteration_claims(),
            *self.control_claims(),
            *self.regret_claims(),
        ]

    def equal_except(self, *keys: str) -> list[str]:
        """Variants that differ from the first variant at most in some keys and in the number of tasks."""
        return equal_except(self.variants, self.first, *keys)

    def decided(self, name: str, setting: tuple, samples: np.ndarray) -> Iterator[Claim]:
        """A claim on samples (seeds, N), with the interval over N processes and the trials over seeds."""
        for claim in self.statements.of_trials(name, setting, samples.mean(axis=0)):
            yield claim.with_trials(samples.mean(axis=1))

    def by_length(self, name: str, setting: tuple, samples: np.ndarray) -> Iterator[Claim]:
        """A claim on samples (seeds, lengths, N), for each number of transitions m."""
        for k, length in enumerate(self.home.lengths):
            yield from self.decided(name, (*setting, f"m = {length}"), samples[:, k])

    def pretrained_for(self, place: str) -> list[str]:
        """Variants pretrained for a place that differ from the first variant only in place and algorithm."""
        return [
            name
            for name in self.equal_except(*PLACE, "algo")
            if self.places[place].items() <= self.variants[name].items()
        ]

    def place_claims(self, place: str) -> Iterator[Claim]:
        """Compare Transformers that were pretrained for a place with baselines, with prompts in all formats."""
        here = self.offline[place]
        own = self.pretrained_for(place)
        methods = [name + format for name, format in product(own, FORMATS) if name + format in here.methods]
        for method in methods:
            share = here.share(method)
            yield from self.by_length("beats_rewards", (method, place), share - here.share("rewards"))
            yield from self.by_length("behind_lspi", (method, place), share - here.share("lspi"))
            yield from self.by_length("behind_smoothed", (method, place), share - here.share("smoothed"))

    def pseudo_count_claims(self, place: str) -> Iterator[Claim]:
        """Compare prompts with pseudo-counts to prompts without them, and to the smoothed model."""
        here = self.offline[place]
        for name in here.methods:
            method = name.removesuffix(" pseudo_counts")
            if name != method:
                share = here.share(name)
                yield from self.by_length("pseudo_counts_help", (method, place), share - here.share(method))
                difference = share - here.share("smoothed")
                yield from self.by_length("behind_smoothed_with_pseudo_counts", (method, place), difference)

    def prompt_claims(self) -> Iterator[Claim]:
        """Compare prompt formats for the same weights, and prompts of pretraining after equal numbers of tasks."""
        share = self.home.share
        names = [name for name in self.equal_except("prompts") if f"{name} grouped" in self.home.methods]
        for name in names:
            yield from self.by_length("grouping_helps", (name,), share(f"{name} grouped") - share(name))
        for name in names:
            prompts, tasks = self.variants[name]["prompts"], self.variants[name]["tasks"]
            if prompts != self.main["prompts"] and self.home.task_counts(self.first)[0] <= tasks:
                difference = share(self.first, tasks=tasks) - share(f"{name} grouped")
                yield from self.by_length("sampled_over_other_prompts", (prompts, f"{tasks} tasks"), difference)

    def depth_claims(self) -> Iterator[Claim]:
        """Compare depths, after the number of tasks of the variant with the fewest."""
        depths, shares = self.home.shares_by("depth", self.variants)
        for (few, shallower), (many, deeper) in pairwise(zip(depths, shares, strict=True)):
            yield from self.by_length("deeper", (f"{few} to {many} layers",), deeper - shallower)

    def iteration_claims(self) -> Iterator[Claim]:
        """Compare the last policy with the policy after the first iteration."""
        for name in (self.first, f"{self.first} grouped", "lspi", "smoothed"):
            difference = self.home.share(name) - self.home.share(name, 1)
            yield from self.by_length("iterations_help", (name,), difference)

    def control_claims(self) -> Iterator[Claim]:
        """Compare control experiments with the Transformer and with the smoothed model."""
        for (claim, (better, other)), name in product(COMPARED_CONTROLS.items(), (self.first, "smoothed")):
            difference = self.home.share(name + better) - self.home.share(name + other)
            yield from self.by_length(claim, (name,), difference)

    def regret_claims(self) -> Iterator[Claim]:
        """Compare the regret of Transformers and of the smoothed model after all steps, with the same rule."""
        same = self.equal_except("algo")
        transformers = [name for name in self.online.methods if name.split()[0] in same]
        for name, rule in product(transformers, self.online.rules):
            other_regret = self.online.rows("regret", "smoothed", rule)[..., -1]
            difference = self.online.rows("regret", name, rule)[..., -1] - other_regret
            yield from self.decided("more_regret", (name, rule), difference / other_regret.mean())

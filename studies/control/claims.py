"""What control in context comes to, as claims of our own, each decided twice: by processes, with means over seeds, and
by seeds, with means over processes.  All methods see the same processes and transitions."""

from functools import partial
from itertools import pairwise, product
from pathlib import Path

from ictd.report.claim import Statements, save_claims
from studies.control.grid import LIMITS, PLACE, YARDSTICKS, but_for
from studies.control.measured import Offline, Online

CONTROLS = {
    "own_over_random_error": ("own", "random_error"), "random_advantage_over_own": ("random_advantage", "own"),
    "random_sign_over_own": ("random_sign", "own"), "aligned_over_own": ("aligned_advantage", "own"),
    "random_advantage_over_aligned": ("random_advantage", "aligned_advantage"),
    "unseen_over_as_many": ("exact_unseen", "exact_as_unseen"), "seen_over_as_many": ("exact_seen", "exact_as_seen"),
}  # fmt: skip


def main(statements: Path, variants: dict, places: dict, offline: list[Path], online: Path, output: Path) -> None:
    """Write one entry a claim."""
    measured = {path.stem: Offline(path) for path in offline}, Online(online)
    save_claims(output, check_control(Statements(statements), *measured, variants, places))


def check_control(of: Statements, offline: dict[str, Offline], online: Online, variants: dict, places: dict):
    """All claims, as claims.toml states them, from differences (seeds, N) or (seeds, lengths, N)."""
    found, at = [], next(iter(offline.values()))
    first, share = next(name for name in at.methods if name in variants), at.share
    main, alike = variants[first], partial(but_for, variants, first)

    def by_both(name, setting, samples, **words):
        for over, axis in (("processes", 0), ("seeds", 1)):
            found.extend(of.of_trials(name, setting, samples.mean(axis=axis), over=over, **words))

    def add(name, setting, differences, **words):
        for k, length in enumerate(at.lengths):
            by_both(name, (*setting, f"m = {length}"), differences[:, k], **words)

    papers = [one for one in alike("prompts", "algo") if variants[one]["prompts"] != main["prompts"]]
    for place, here in offline.items():
        own = [one for one in alike(*PLACE, "algo") if places[place].items() <= variants[one].items()]
        beside = [one for one in (*YARDSTICKS, *papers) if one in here.methods]
        for (name, other), claim in product(product(own, beside), ("beats", "behind")):
            add(claim, (name, place), here.share(name) - here.share(other), other=other)
        for (name, other), error in product(product(own, beside), ("error", "advantage_error")):
            mine, its = here.of(error, name), here.of(error, other)
            add(f"lower_{error}", (name, place), (mine - its) / its.mean(axis=(0, 2))[:, None], other=other)
        for name in own:
            add("settles", (name, place), here.of("changes", name))
        for name in [one for one in own if f"{one} pseudo_steps" in here.methods]:
            for claim, other in (("pseudo_steps_help", name), ("pseudo_steps_over_smoothed", "smoothed")):
                add(claim, (name, place), here.share(f"{name} pseudo_steps") - here.share(other))
        for name in [one for one in alike(*PLACE) if one in here.methods and one not in own]:
            add("transfers", (name, "in", place), here.share(name) - here.share("lspi"))
            tasks = variants[name]["tasks"]
            for mine in [one for one in own if one in alike(*PLACE) and here.counts(one)[0] <= tasks]:
                difference = here.share(mine, tasks=tasks) - here.share(name)
                add("own_over_other", (mine, "over", name, "in", place), difference)
    for name in [one for one in papers if variants[one]["tasks"] in at.counts(first)]:
        tasks = variants[name]["tasks"]
        add("equal_tasks", (f"{tasks} tasks",), share(first, tasks=tasks) - share(name), other=name)
    layers = sorted({variants[name]["depth"]: name for name in [*alike("depth"), first]}.items())
    tasks = min(variants[name]["tasks"] for _, name in layers)
    layers = [(depth, name) for depth, name in layers if at.counts(name)[0] <= tasks]
    for (few, fewer), (many, more) in pairwise(layers):
        add("deeper", (f"{few} to {many} layers",), share(more, tasks=tasks) - share(fewer, tasks=tasks))
    for depth, name in layers:
        times, rest = divmod(main["depth"], depth)
        if not rest and 1 < times < at.arrays["worth"].shape[2]:
            add("iterations_over_layers", (f"{depth} x {times}",), share(name, times, tasks) - share(first, 1, tasks))
    for before, after in pairwise(at.counts(first)):
        add("more_tasks", (f"{before} to {after} tasks",), share(first, tasks=after) - share(first, tasks=before))
    others = [(key, one) for key in ("algo", "policies") for one in alike(key) if variants[one][key] != main[key]]
    for key, name in others if (main["algo"], main["policies"]) == ("td", "both") else ():
        what = "td_over_mc" if key == "algo" else f"both_over_{variants[name]['policies']}"
        add(what, (name,), share(first, tasks=variants[name]["tasks"]) - share(name))
    for name, claim in product((first, *YARDSTICKS), ("iterations_help", "iterations_hurt")):
        add(claim, (name,), share(name) - share(name, 1))
    for name in (first, "smoothed"):
        by = {kind: share(f"{name} {kind}") for kind in LIMITS} | {"own": share(name)}
        add("shrinks", (name,), at.of("cosine", name))
        add("half_loses_less", (name,), by["half_error"] - (1 + by["own"]) / 2)
        for claim, (more, less) in CONTROLS.items():
            add(claim, (name,), by[more] - by[less])
    add("behind_smoothed_once", (first,), share(first, 1) - share("smoothed", 1))
    ours = [name for name in online.methods if name.split()[0] in alike("algo")]
    for name, other, rule in product(ours, [first, *(one for one in online.methods if one not in ours)], online.rules):
        mine, its = (online.of("regret", one, rule)[..., -1] for one in (name, other))
        who, how = ("pseudo", "with") if " " in name else ("plain", "without")
        for claim in ("less_regret", "more_regret") if name != other else ():
            by_both(claim, (name, rule), (mine - its) / its.mean(), other=other, who=who, how=how)
    return found

"""How close trained Transformers come, and what they shrink towards: LSTD with k pseudo-steps of Q, fitted to them."""

from pathlib import Path

import numpy as np
import pandas as pd

from ictd.baselines import certainty_equivalence, lstd
from ictd.evaluation import UnseenTasks, draw_unseen_tasks, sample_contexts
from ictd.mrp import value_function
from ictd.rng import generator
from ictd.storage import load_table, save_table
from ictd.transformer import initial_weights
from studies.limits.course import train
from studies.limits.engine import Prompts, columns
from studies.limits.forms import NONE, RIDGES, draw_tasks
from studies.limits.grid import GAP, KINDS
from studies.limits.minimise import Objective, Residuals, flat, minimise

CLIP, MANY = 1.0, 20_000  # Longer gradients are shortened; tasks whose mean is taken for that of a distribution.
TOLERANCE, MOST = 1e-8, 25  # A fit's gradient, and its steps.
SHIFT, SHIFTED = 0.5, ("steps", "last_row")  # Shift of rewards, and those from one mean chain to another.


def main(
    kind: str, states: int, depth: int, discount: float, learning_rate: float, initial_gain: float, tasks: int,
    fit_tasks: int, lengths: list[int], added: list[int], seeds: int, yardsticks: Path, output: Path,
) -> None:  # fmt: skip
    """Train on contexts of the least to the greatest of ``lengths``; write errors and fits on uniform tasks, others for
    each seed, beside errors there of the ``yardsticks`` as they were tuned."""
    tuned = load_table(yardsticks).groupby(["method", "length"])["chosen"].first()
    shifted, rows = kind.replace("heads", "uniform"), []
    many = {name: draw_tasks(name, states, MANY, generator(0, "boyan", states, f"limits {name}")) for name in KINDS[:3]}
    chains = {name: (some.transition.mean(axis=0), some.stationary.mean(axis=0)) for name, some in many.items()}

    def heads(m: np.ndarray) -> np.ndarray:
        return np.stack([np.ones(np.shape(m)), m / (m + added[0])], axis=-1)[..., : 1 + (kind == "heads")]

    for seed in range(seeds):
        rng = generator(seed, "boyan", states, f"limits {shifted} contexts")
        drawn = draw_tasks(shifted, states, tasks, rng)
        context = sample_contexts(drawn, rng.integers(min(lengths), max(lengths) + 1, tasks), rng)
        value = value_function(drawn.transition, drawn.reward, discount)
        prompts = Prompts(*columns(context.gram(discount)), value, drawn.stationary)
        begin = flat(initial_weights(states, initial_gain, generator(seed, "boyan", states, "weights")))
        begin = np.outer(np.eye(2)[0], begin)[: 1 + (kind == "heads")]
        of = draw_unseen_tasks(seed, states, fit_tasks, max(lengths), discount, "boyan", "limits fits")
        read = {m: Prompts(*columns(of.gram(m)), of.value, of.tasks.stationary) for m in lengths}
        for algo in ("td", "mc"):
            how = drawn, prompts, algo, depth, discount, learning_rate, [tasks], CLIP
            end = train(begin, heads(context.length), *how)[-1]
            for m, beside in read.items():
                at = heads(m) @ end
                (estimate,) = Objective([(beside, np.eye(len(at)))], depth, 0 * at).estimates(at)
                place = {"kind": kind, "algo": algo, "seed": seed, "length": m}
                rows.append(place | fitted(of, m, estimate, chains, *(tuned[name, m] for name in GAP)))
    save_table(output, pd.DataFrame(rows))


def fitted(of: UnseenTasks, m: int, estimate: np.ndarray, chains: dict, ridge: float, k: float) -> dict[str, float]:
    """MSVEs of estimates (N, n), of LSTD with ``ridge`` and with ``k`` pseudo-steps of the mean chain; and fits to the
    estimates, weighted as the MSVE, on the first half of tasks, each with the share of the variance on the other
    half that it explains: LSTD with a ridge; ``unseen``, the mean chain, and a reward, only where no step was seen;
    ``even``, pseudo-steps of the uniform chain; ``number``, k of the mean chain; and ``chain``, with the t of
    Q + t (Q_shifted - Q) in addition."""
    (Q, share), root, context = chains["uniform"], np.sqrt(of.tasks.stationary), of.context(m)
    moves, spread = [chains[name][0] - Q for name in SHIFTED], root * (estimate - np.average(estimate, weights=root**2))

    def values(a: list[float], joint: np.ndarray | None) -> np.ndarray:
        chain = share[:, None] * (Q + sum(t * move for t, move in zip(a[2:], moves, strict=False)))
        return certainty_equivalence(
            context, of.discount, abs(a[0]) * (chain if joint is None else joint), SHIFT * a[1]
        )

    def unexplained(found: np.ndarray, half: int) -> np.ndarray:
        off, all_of_it = (np.array_split(root * one, 2)[half].ravel() for one in (found - estimate, spread / root))
        return off / np.linalg.norm(all_of_it)

    def fit(start: list[float], *held: float, joint: np.ndarray | None = None) -> tuple[list[float], np.ndarray]:
        off = Residuals(lambda a: unexplained(values([*held, *a], joint), 0))
        a = [*held, *minimise(off, np.array(start), TOLERANCE, MOST)[0]]
        return a, values(a, joint)

    ridges = [lstd(context, of.discount, one) for one in RIDGES]
    ends = {"ridge": min(ridges, key=lambda one: np.linalg.norm(unexplained(one, 0)))}
    _, ends["unseen"] = fit([0.0], NONE)
    _, ends["even"] = fit([2.0, 0.0], joint=np.full_like(Q, 1 / Q.size))
    (number, *_), ends["number"] = fit([5.0, 0.0])
    (_, *chain), ends["chain"] = fit([5.0, 0.0, 0.0, 0.0])
    measures = {name: 1 - (unexplained(end, 1) ** 2).sum() for name, end in ends.items()}
    errors = {"msve": estimate, "lstd": lstd(context, of.discount, ridge), "pseudo_steps": values([k, 0.0], None)}
    measures |= {name: of.error(found).mean() for name, found in errors.items()}
    return measures | {"k": abs(number)} | dict(zip(("rewards", *SHIFTED), chain, strict=True))

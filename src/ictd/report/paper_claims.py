"""The tests of the paper's claims on its experiments, and of claims of our own, decided by the result tables."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pandas as pd

from ictd.pipeline.grid import CELL
from ictd.report.claim import Claim, Statements, has_pattern
from ictd.report.sentences import VARIED, Sentence, varied_in
from ictd.report.tables import rows_with
from ictd.statistics import Estimate, proportion, rank_correlation

# The claim that MSVE falls compares the longest context with one of about a fifth of its length.
FIFTH = 5
# The shares of ``pattern_shares`` and ``representative_shares``, each of which a claim of its name is about.
SHARES = ("pattern", "pattern_A11", "pattern_A12", "pattern_A21", "pattern_A22", "pattern_shortest", "pattern_full")


def check_claims(
    statements: Statements, sentences: list[Sentence], tables: dict[str, pd.DataFrame], main: tuple[str, int, int]
) -> list[Claim]:
    """Decide all claims on the experiments.

    Parameters
    ----------
    statements : Statements of report/claims.toml
    sentences : list of Sentence, of report/sentences.toml; their tests get the kind "paper"
    tables : dict
        The result tables unseen_msve, unseen_baselines, baselines, weights, mean_weights, agreement, learning and
        truncation.
    main : tuple, env, states and depth of the main setting
    """
    on_unseen_tasks = tables | {"msve": tables["unseen_msve"], "baselines": tables["unseen_baselines"]}
    claims = [
        *check_cells(statements, on_unseen_tasks, main),
        *_convergence_claims(statements, tables["learning"], main),
        *_truncation_claims(statements, tables["truncation"]),
        *_batch_td_claims(statements, tables["baselines"]),
    ]
    tests = {(name, sentence.cells) for sentence in sentences for name in sentence.tests}
    is_test = [(claim.id.split("/")[0], varied_in(claim.setting, main)) in tests for claim in claims]
    return [replace(claim, kind="paper") if test else claim for claim, test in zip(claims, is_test, strict=True)]


def check_cells(statements: Statements, tables: dict[str, pd.DataFrame], main: tuple[str, int, int]) -> list[Claim]:
    """Decide the claims on single cells, and on the two algorithms of a setting.

    Parameters
    ----------
    statements, main : as of ``check_claims``
    tables : dict
        By "msve" and "baselines" the MSVE that claims are decided on; the result tables weights, mean_weights and
        agreement.
    """
    return [
        *_evaluation_claims(statements, tables["msve"], tables["baselines"], main),
        *_weight_claims(statements, tables["weights"], tables["mean_weights"], main),
        *_agreement_claims(statements, tables["agreement"], main, tables["weights"]["seed"].nunique() > 1),
    ]


def _section(setting: tuple, main: tuple) -> str:
    """The section of the paper that a cell or setting belongs to."""
    title = VARIED[varied_in("-".join(map(str, setting)), main)]
    return f"Hyperparameter Study: {title}" if title else "Experiments"


def _evaluation_claims(statements: Statements, msve: pd.DataFrame, baselines: pd.DataFrame, main) -> Iterator[Claim]:
    """Section "In-Context Policy Evaluation Verification", for each cell."""
    for cell, errors in msve.groupby(CELL, sort=False):
        trials = errors.pivot(index="seed", columns="context_length", values="msve")
        if min(trials.shape) < 2:
            continue  # A single trial or context length shows no trend and gives no interval.
        lengths = np.array(trials.columns, dtype=float)
        longest = trials.columns.max()
        logs = np.log10(trials)
        fifth = trials.columns[:-1][np.abs(lengths[:-1] - longest / FIFTH).argmin()]
        zero = rows_with(baselines, method="zero", states=cell[2], context_length=longest)
        # It does not depend on the number of layers.
        zero = zero.drop_duplicates("seed").set_index("seed")["msve"]
        samples = {
            "msve_falls": rank_correlation(trials.to_numpy(), lengths),
            "msve_lower": logs[longest] - logs[fifth],
            "beats_zero": logs[longest] - np.log10(zero.loc[trials.index]),
        }
        words = {"section": _section(cell, main), "longest": longest, "fifth": fifth}
        for name, values in samples.items():
            yield from statements.of_trials(name, cell, values, **words)


def _weight_claims(statements: Statements, weights: pd.DataFrame, mean_weights: pd.DataFrame, main) -> Iterator[Claim]:
    """Section "Weight Convergence", for each cell."""
    for mean in mean_weights.itertuples():
        cell = (mean.algo, mean.env, mean.states, mean.depth)
        trials = rows_with(weights, **dict(zip(CELL, cell, strict=True)))
        words = {"section": _section(cell, main)}
        for name in SHARES:
            yield statements.claim(name, cell, _estimate(mean, name), **words).with_trials(trials[name])
        wrong_signs = _wrong_signs(mean.diagonal_signs, mean.states)
        wrong_in_trials = _wrong_signs(trials["diagonal_signs"], mean.states)
        yield statements.claim("signs", cell, wrong_signs, **words).with_trials(wrong_in_trials)
        yield statements.claim("pattern_P", cell, mean.largest_u, **words).with_trials(trials["largest_u"])
        for name, good in (("consistent", has_pattern(trials["cosine"])), ("finite", trials["diverged_at"] == 0)):
            yield statements.claim(name, cell, proportion(int(good.sum()), len(good)), **words).with_trials(good)


def _estimate(row, name: str) -> Estimate:
    """The estimate in the columns NAME, NAME_low and NAME_high of a row of a table."""
    return Estimate(*(float(getattr(row, column)) for column in (name, f"{name}_low", f"{name}_high")))


def _squared(estimate: Estimate) -> Estimate:
    """The square of a correlation, zero if it is negative; NaN stays NaN."""
    return Estimate(*(float(np.maximum(0, number) ** 2) for number in estimate))


def _wrong_signs(diagonal_signs, states: int):
    """Number of diagonal entries of A11 and A12 with another sign than theta^TD's, from the share with its sign."""
    return np.round((1 - diagonal_signs) * 2 * states)


def _agreement_claims(statements: Statements, agreement: pd.DataFrame, main, several: bool) -> Iterator[Claim]:
    """Section "Weight Convergence", on TD and MC together, for each setting; ``several`` tells whether seeds are."""
    for measures in agreement.itertuples():
        setting = (measures.env, measures.states, measures.depth)
        values = {
            "same_pattern": _squared(_estimate(measures, "correlation")),
            "same_noise": _squared(_estimate(measures, "residual_correlation")),
            "same_place": _estimate(measures, "distance"),
        }
        if several:
            values["same_pattern_apart"] = _squared(_estimate(measures, "apart"))
            values["same_noise_apart"] = _squared(_estimate(measures, "residual_apart"))
        for name, value in values.items():
            yield statements.claim(name, setting, value, section=_section(setting, main))


def _convergence_claims(statements: Statements, learning: pd.DataFrame, main) -> Iterator[Claim]:
    """Section "Weight Convergence", on "converged parameters": how much A changes after about half of the tasks."""
    for cell, course in learning.groupby(CELL, sort=False):
        snapshots = course["tasks_seen"].unique()
        half = snapshots[np.abs(snapshots - snapshots.max() / 2).argmin()]
        to_go = rows_with(course, tasks_seen=half)["to_go"]
        yield from statements.of_trials("converged", cell, to_go, section=_section(cell, main))


def _truncation_claims(statements: Statements, truncation: pd.DataFrame) -> Iterator[Claim]:
    """Section "Experiments": the bias of returns that are cut short is negligible."""
    for returns in truncation.itertuples():
        relative_bias = returns.largest_bias / returns.typical_value
        yield statements.claim("truncation", (returns.env, returns.states), relative_bias)


def _batch_td_claims(statements: Statements, baselines: pd.DataFrame) -> Iterator[Claim]:
    """Section "In-Context TD": the Transformer with theta^TD carries out batch TD."""
    for setting, errors in baselines.groupby(["states", "depth"], sort=False):
        msve = errors.pivot(index=["seed", "context_length"], columns="method", values="msve")
        difference = np.abs(msve["theta_td"] - msve["batch_td"]) / msve["batch_td"]
        yield statements.claim("theta_td", setting, difference.max(skipna=False))

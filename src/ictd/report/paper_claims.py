"""The paper's claims of sections "Experiments" and "Hyperparameter Study", decided by the result tables."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from ictd.pipeline.grid import CELL, Cell
from ictd.report.claim import Claim, Statements, has_pattern
from ictd.report.tables import rows_with
from ictd.statistics import rank_correlation

# The claim that MSVE falls compares the longest context with one of about a fifth of its length.
FIFTH = 5
# Titles of the studies of section "Hyperparameter Study", by what they vary.
STUDIES = {"depth": "Transformer Depth", "states": "Number of States", "env": "MRP"}
# The statistic of the claim on each share of ``pattern_shares``: an end of its interval.
PATTERN_ENDS = {
    "pattern": "pattern_low",
    "pattern_A11": "pattern_A11_low",
    "pattern_A12": "pattern_A12_low",
    "pattern_A21": "pattern_A21_high",
    "pattern_A22": "pattern_A22_high",
}


def check_claims(statements: Statements, tables: dict[str, pd.DataFrame], main: tuple[str, int, int]) -> list[Claim]:
    """Decide all claims of sections "Experiments" and "Hyperparameter Study".

    Parameters
    ----------
    statements : Statements of report/claims.toml
    tables : dict
        The result tables msve, baselines, weights, mean_weights, agreement, learning and truncation.
    main : tuple, env, states and depth of the main setting
    """
    claims = check_cells(statements, tables, main)
    return [
        *claims,
        *_convergence_claims(statements, tables["learning"], main),
        *_robustness_claims(statements, claims, main),
        *_truncation_claims(statements, tables["truncation"]),
        *_batch_td_claims(statements, tables["baselines"]),
    ]


def check_cells(statements: Statements, tables: dict[str, pd.DataFrame], main: tuple[str, int, int]) -> list[Claim]:
    """Decide the claims on single cells, and on the two algorithms of a setting; parameters as of ``check_claims``."""
    return [
        *_evaluation_claims(statements, tables["msve"], tables["baselines"], main),
        *_weight_claims(statements, tables["weights"], tables["mean_weights"], main),
        *_agreement_claims(statements, tables["agreement"], main, tables["weights"]["seed"].nunique() > 1),
    ]


def _study(setting: tuple, main: tuple) -> str | None:
    """The key in STUDIES of the study that a cell or setting belongs to; None for the main setting."""
    env, states, depth = setting[-3:]
    if env != main[0]:
        return "env"
    if states != main[1]:
        return "states"
    return "depth" if depth != main[2] else None


def _section(setting: tuple, main: tuple) -> str:
    """The section of the paper that a cell or setting belongs to."""
    study = _study(setting, main)
    return f"Hyperparameter Study: {STUDIES[study]}" if study else "Experiments"


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
        place = {"method": "zero", "states": cell[2], "depth": cell[3], "context_length": longest}
        zero = rows_with(baselines, **place).set_index("seed")["msve"]
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
        for name, end in PATTERN_ENDS.items():
            yield statements.claim(name, cell, getattr(mean, end), **words).with_trials(trials[name])
        wrong_signs = _wrong_signs(mean.diagonal_signs, mean.states)
        wrong_in_trials = _wrong_signs(trials["diagonal_signs"], mean.states)
        yield statements.claim("signs", cell, wrong_signs, **words).with_trials(wrong_in_trials)
        yield statements.claim("pattern_P", cell, mean.largest_u, **words).with_trials(trials["largest_u"])
        # The paper claims this of its own depth; at other depths the claim is ours.
        suffix = "" if mean.depth == main[2] else "_at_depth"
        without_pattern = ~has_pattern(trials["cosine"])
        diverged = trials["diverged_at"] > 0
        yield statements.claim(f"consistent{suffix}", cell, without_pattern.sum(), **words).with_trials(without_pattern)
        yield statements.claim(f"finite{suffix}", cell, diverged.sum(), **words).with_trials(diverged)


def _wrong_signs(diagonal_signs, states: int):
    """Number of diagonal entries of A11 and A12 with another sign than theta^TD's, from the share with its sign."""
    return np.round((1 - diagonal_signs) * 2 * states)


def _agreement_claims(statements: Statements, agreement: pd.DataFrame, main, several: bool) -> Iterator[Claim]:
    """Section "Weight Convergence", on TD and MC together, for each setting; ``several`` tells whether seeds are."""
    for measures in agreement.itertuples():
        setting = (measures.env, measures.states, measures.depth)
        values = {
            "same_pattern": np.maximum(0, measures.correlation_low) ** 2,
            "same_noise": np.maximum(0, measures.residual_correlation_low) ** 2,
            "same_place": measures.distance_high,
        }
        if several:
            values["same_pattern_apart"] = np.maximum(0, measures.apart) ** 2
            values["same_noise_apart"] = np.maximum(0, measures.residual_apart) ** 2
        for name, value in values.items():
            yield statements.claim(name, setting, value, section=_section(setting, main))


def _convergence_claims(statements: Statements, learning: pd.DataFrame, main) -> Iterator[Claim]:
    """Section "Weight Convergence", on "converged parameters": how much A changes after about half of the tasks."""
    for cell, course in learning.groupby(CELL, sort=False):
        snapshots = course["tasks_seen"].unique()
        half = snapshots[np.abs(snapshots - snapshots.max() / 2).argmin()]
        to_go = rows_with(course, tasks_seen=half)["to_go"]
        yield from statements.of_trials("converged", cell, to_go, section=_section(cell, main))


def _robustness_claims(statements: Statements, claims: list[Claim], main: tuple) -> Iterator[Claim]:
    """The conclusions of section "Hyperparameter Study", from the verdicts of its cells."""
    ids = tuple(f"{statements.tables[name]['id']}/" for name in ("pattern", "msve_falls", "msve_lower"))
    decided = [claim for claim in claims if claim.id.startswith(ids)]
    for study in STUDIES:
        of_study = [claim for claim in decided if _study(Cell.parse(claim.setting), main) == study]
        if of_study:
            failures = sum(claim.verdict == "fails" for claim in of_study)
            yield statements.claim(f"robust_{study}", ["all"], failures)


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

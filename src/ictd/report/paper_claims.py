"""The paper's claims of sections "Experiments" and "Hyperparameter Study", decided by the result tables."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from ictd.anatomy import PATTERN
from ictd.pipeline.grid import CELL, Cell
from ictd.report.claim import Claim, Statements, has_pattern, save_claims
from ictd.statistics import rank_correlation
from ictd.storage import load_json
from ictd.tables import load_tables, rows_with

# The claim that MSVE falls compares the longest context with one of about a fifth of its length.
FIFTH = 5
STUDIES = {"depth": "Transformer Depth", "states": "Number of States", "env": "MRP"}


def main(statements: Path, tables: list[Path], theory: Path, env: str, states: int, depth: int, output: Path) -> None:
    """Write one entry a claim: those on the experiments, and after them those on the theory.

    ``env``, ``states`` and ``depth`` are the main setting.  An entry has id, section, setting, statement, statistic,
    value, relation, threshold and verdict.
    """
    found = check_claims(Statements(statements), load_tables(tables), (env, states, depth))
    save_claims(output, found, load_json(theory))


def check_claims(of: Statements, tables: dict[str, pd.DataFrame], main: tuple[str, int, int]) -> list[Claim]:
    """All claims of sections "Experiments" and "Hyperparameter Study", as report/claims.toml states them.

    ``tables`` are the result tables msve, baselines, weights, mean_weights, agreement, learning and truncation;
    ``main`` is env, states and depth of the main setting.
    """
    claims = check_cells(of, tables, main)
    return [
        *claims,
        *_convergence_claims(of, tables["learning"], main),
        *_robustness_claims(of, claims, main),
        *_truncation_claims(of, tables["truncation"]),
        *_batch_td_claims(of, tables["baselines"]),
    ]


def check_cells(of: Statements, tables: dict[str, pd.DataFrame], main: tuple[str, int, int]) -> list[Claim]:
    """Of these the claims on single cells, and on their two algorithms together."""
    return [
        *_evaluation_claims(of, tables["msve"], tables["baselines"], main),
        *_weight_claims(of, tables["weights"], tables["mean_weights"], main),
        *_agreement_claims(of, tables["agreement"], main, tables["weights"]["seed"].nunique() > 1),
    ]


def _study(setting: tuple, main: tuple) -> str | None:
    """Which of the three studies a cell or setting belongs to; None for the main setting."""
    env, states, depth = setting[-3:]
    varied = "env" if env != main[0] else "states" if states != main[1] else "depth"
    return None if (env, states, depth) == main else varied


def _section(setting: tuple, main: tuple) -> str:
    """The section of the paper that a cell or setting belongs to."""
    study = _study(setting, main)
    return f"Hyperparameter Study: {STUDIES[study]}" if study else "Experiments"


def _evaluation_claims(of: Statements, msve: pd.DataFrame, baselines: pd.DataFrame, main) -> Iterator[Claim]:
    """Section "In-Context Policy Evaluation Verification", for each cell."""
    for cell, rows in msve.groupby(CELL, sort=False):
        trials = rows.pivot(index="seed", columns="context_length", values="msve")
        if min(trials.shape) < 2:
            continue  # A single trial or context length shows no trend and gives no interval.
        lengths = np.array(trials.columns, dtype=float)
        longest, logs = trials.columns.max(), np.log10(trials)
        fifth = trials.columns[:-1][np.abs(lengths[:-1] - longest / FIFTH).argmin()]
        place = {"method": "zero", "states": cell[2], "depth": cell[3], "context_length": longest}
        zero = rows_with(baselines, **place).set_index("seed")["msve"]
        samples = {
            "msve_falls": rank_correlation(trials.to_numpy(), lengths),
            "msve_lower": logs[longest] - logs[fifth],
            "beats_zero": logs[longest] - np.log10(zero.loc[trials.index]),
        }
        words = {"section": _section(cell, main), "longest": longest, "fifth": fifth}
        for name, of_trials in samples.items():
            yield from of.of_trials(name, cell, of_trials, **words)


def _weight_claims(of: Statements, weights: pd.DataFrame, mean_weights: pd.DataFrame, main) -> Iterator[Claim]:
    """Section "Weight Convergence", for each cell."""
    for row in mean_weights.itertuples():
        cell = (row.algo, row.env, row.states, row.depth)
        trials = rows_with(weights, **dict(zip(CELL, cell, strict=True)))
        words = {"section": _section(cell, main)}
        ends = {name: f"{name}_{'low' if i < 3 else 'high'}" for i, name in enumerate(PATTERN)}
        for name, end in ends.items():
            yield of.claim(name, cell, getattr(row, end), **words).with_trials(trials[name])
        # Entries with another sign, of the mean and of each trial, from the share of those with theta^TD's.
        wrong, in_trials = (np.round((1 - one["diagonal_signs"]) * 2 * row.states) for one in (row._asdict(), trials))
        yield of.claim("signs", cell, wrong, **words).with_trials(in_trials)
        yield of.claim("pattern_P", cell, row.largest_u, **words).with_trials(trials["largest_u"])
        depth = "" if row.depth == main[2] else "_at_depth"
        for name, failed in (("consistent", ~has_pattern(trials["cosine"])), ("finite", trials["diverged_at"] > 0)):
            yield of.claim(f"{name}{depth}", cell, failed.sum(), **words).with_trials(failed)


def _agreement_claims(of: Statements, agreement: pd.DataFrame, main, several: bool) -> Iterator[Claim]:
    """What section "Weight Convergence" says of TD and MC together, for each setting; ``several`` seeds can differ."""
    for row in agreement.itertuples():
        setting = (row.env, row.states, row.depth)
        values = {
            "same_pattern": np.maximum(0, row.correlation_low) ** 2,
            "same_noise": np.maximum(0, row.residual_correlation_low) ** 2,
            "same_place": row.distance_high,
        }
        if several:
            values["same_pattern_apart"] = np.maximum(0, row.apart) ** 2
            values["same_noise_apart"] = np.maximum(0, row.residual_apart) ** 2
        for name, value in values.items():
            yield of.claim(name, setting, value, section=_section(setting, main))


def _convergence_claims(of: Statements, learning: pd.DataFrame, main) -> Iterator[Claim]:
    """The figures of section "Weight Convergence" are said to show "converged parameters": for each cell, how much A
    changes after the snapshot nearest to half of the tasks."""
    for cell, rows in learning.groupby(CELL, sort=False):
        seen = rows["tasks_seen"].unique()
        half = seen[np.abs(seen - seen.max() / 2).argmin()]
        to_go = rows_with(rows, tasks_seen=half)["to_go"]
        yield from of.of_trials("converged", cell, to_go, section=_section(cell, main))


def _robustness_claims(of: Statements, claims: list[Claim], main: tuple) -> Iterator[Claim]:
    """The conclusions of section "Hyperparameter Study", from the verdicts of its cells."""
    names = tuple(f"{of.tables[name]['id']}/" for name in ("pattern", "msve_falls", "msve_lower"))
    decided = [claim for claim in claims if claim.id.startswith(names)]
    for study in STUDIES:
        of_study = [claim for claim in decided if _study(Cell.parse(claim.setting), main) == study]
        if of_study:
            yield of.claim(f"robust_{study}", ["all"], sum(claim.verdict == "fails" for claim in of_study))


def _truncation_claims(of: Statements, truncation: pd.DataFrame) -> Iterator[Claim]:
    """Section "Experiments": the bias of returns that are cut short is negligible."""
    for row in truncation.itertuples():
        yield of.claim("truncation", (row.env, row.states), row.largest_bias / row.typical_value)


def _batch_td_claims(of: Statements, baselines: pd.DataFrame) -> Iterator[Claim]:
    """Section "In-Context TD": the Transformer with theta^TD carries out batch TD."""
    for setting, rows in baselines.groupby(["states", "depth"], sort=False):
        table = rows.pivot(index=["seed", "context_length"], columns="method", values="msve")
        off = (np.abs(table["theta_td"] - table["batch_td"]) / table["batch_td"]).max(skipna=False)
        yield of.claim("theta_td", setting, off)

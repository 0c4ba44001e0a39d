"""The paper's claims of sections "Experiments" and "Hyperparameter Study", decided by the result tables."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from ictd.pipeline.grid import CELL, Cell
from ictd.pipeline.storage import load_json
from ictd.pipeline.table_files import load_tables, rows_with
from ictd.report.claim import Claim, Statements, check_number, save_claims
from ictd.report.result_tables import spanned
from ictd.statistics import bootstrap_interval, rank_correlation

SECTION = "evaluation"
STUDIES = {"depth": "Transformer Depth", "states": "Number of States", "env": "MRP"}


def main(
    statements: Path,
    tables: list[Path],
    theory: Path,
    env: str,
    states: int,
    depth: int,
    cells: list[str],
    seeds: int,
    context_lengths: list[int],
    output: Path,
) -> None:
    """Write one entry a claim: those on the experiments, and after them those on the theory.

    ``env``, ``states`` and ``depth`` are the main setting.  An entry has id, section, setting, statement, statistic,
    value, relation, threshold and verdict.  ValueError names a row that a table lacks, and claims that are too few.
    """
    grid, main = [Cell.parse(cell) for cell in cells], (env, states, depth)
    of = load_tables(tables, spanned(grid, list(range(seeds)), context_lengths))
    found = check_claims(Statements(statements), of, main)
    check_number(found, number_of_claims(grid, main, seeds, context_lengths))
    save_claims(output, found, load_json(theory))


def check_claims(of: Statements, tables: dict[str, pd.DataFrame], main: tuple[str, int, int]) -> list[Claim]:
    """All claims of sections "Experiments" and "Hyperparameter Study", as report/claims.toml states them.

    ``tables`` are the result tables msve, baselines, weights, mean_weights, agreement and truncation; ``main`` is env,
    states and depth of the main setting.
    """
    claims = check_cells(of, tables, main)
    return [
        *claims,
        *_robustness_claims(of, claims, main),
        *_truncation_claims(of, tables["truncation"]),
        *_batch_td_claims(of, tables["baselines"]),
    ]


def number_of_claims(cells: list[Cell], main: tuple[str, int, int], seeds: int, lengths: list[int]) -> int:
    """How many claims a configuration spans: on each cell nine, and two where a trial has a trend; on each setting that
    both algorithms have three; and one on each of the studies, environments with their states, and baselines."""
    of_cell = 9 + (2 if min(seeds, len(lengths)) > 1 else 0)
    both = len(cells) - len({cell[1:] for cell in cells})
    studies = {_study(cell, main) for cell in cells} - {None}
    of_tasks, of_baselines = {cell[1:3] for cell in cells}, {cell[2:] for cell in cells}
    return of_cell * len(cells) + 3 * both + len(studies) + len(of_tasks) + len(of_baselines)


def check_cells(of: Statements, tables: dict[str, pd.DataFrame], main: tuple[str, int, int]) -> list[Claim]:
    """Of these the claims on single cells, and on their two algorithms together."""
    return [
        *_evaluation_claims(of, tables["msve"], tables["baselines"], main),
        *_weight_claims(of, tables["weights"], tables["mean_weights"], main),
        *_agreement_claims(of, tables["agreement"], main),
    ]


def _study(setting: tuple, main: tuple) -> str | None:
    """Which of the three studies a cell or setting belongs to; None for the main setting."""
    env, states, depth = setting[-3:]
    varied = "env" if env != main[0] else "states" if states != main[1] else "depth"
    return None if (env, states, depth) == main else varied


def _claims(of: Statements, setting: tuple, main: tuple, values: dict[str, float]) -> Iterator[Claim]:
    """Claims by name on one cell or setting, in the section of the paper that it belongs to."""
    study = _study(setting, main)
    section = f"Hyperparameter Study: {STUDIES[study]}" if study else "Experiments"
    for name, value in values.items():
        yield of.claim(name, setting, value, section=section)


def _evaluation_claims(of: Statements, msve: pd.DataFrame, baselines: pd.DataFrame, main) -> Iterator[Claim]:
    """Section "In-Context Policy Evaluation Verification", for each cell."""
    for cell, rows in msve.groupby(CELL, sort=False):
        trials = rows.pivot(index="seed", columns="context_length", values="msve")
        if min(trials.shape) < 2:
            continue  # A single trial or context length shows no trend and gives no interval.
        trends = rank_correlation(trials.to_numpy(), np.array(trials.columns, dtype=float))
        longest = trials.columns.max()
        place = {"method": "zero", "states": cell[2], "depth": cell[3], "context_length": longest}
        zero = rows_with(baselines, **place).set_index("seed")["msve"]
        ratios = np.log10(trials[longest] / zero.loc[trials.index]).to_numpy()
        values = {"msve_falls": bootstrap_interval(trends)[1], "beats_zero": bootstrap_interval(ratios)[1]}
        yield from _claims(of, cell, main, values)


def _weight_claims(of: Statements, weights: pd.DataFrame, mean_weights: pd.DataFrame, main) -> Iterator[Claim]:
    """Section "Weight Convergence", for each cell."""
    for row in mean_weights.itertuples():
        cell = (row.algo, row.env, row.states, row.depth)
        trials = rows_with(weights, **dict(zip(CELL, cell, strict=True)))
        values = {
            "pattern": np.maximum(0, row.cosine) ** 2,
            "pattern_A11": np.maximum(0, row.cosine_A11) ** 2,
            "pattern_A12": np.maximum(0, row.cosine_A12) ** 2,
            "pattern_A21": row.energy_A21 / (row.energy_A11 + row.energy_A12),
            "pattern_A22": row.energy_A22 / (row.energy_A11 + row.energy_A12),
            "signs": np.round((1 - row.diagonal_signs) * 2 * row.states),
            "pattern_P": row.largest_u,
            "consistent": trials["cosine"].clip(lower=0).min(skipna=False) ** 2,
            "finite": (trials["diverged_at"] > 0).sum(),
        }
        yield from _claims(of, cell, main, values)


def _agreement_claims(of: Statements, agreement: pd.DataFrame, main) -> Iterator[Claim]:
    """What section "Weight Convergence" says of TD and MC together, for each setting."""
    for row in agreement.itertuples():
        setting = (row.env, row.states, row.depth)
        values = {
            "same_pattern": np.maximum(0, row.correlation) ** 2,
            "same_noise": np.maximum(0, row.remainder_correlation) ** 2,
            "same_place": row.distance,
        }
        yield from _claims(of, setting, main, values)


def _robustness_claims(of: Statements, claims: list[Claim], main: tuple) -> Iterator[Claim]:
    """The conclusions of section "Hyperparameter Study", from the verdicts of its cells."""
    names = tuple(f"{of.tables[name]['id']}/" for name in ("pattern", "msve_falls"))
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

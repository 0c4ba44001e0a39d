"""The paper's claims of sections "Experiments" and "Hyperparameter Study", decided by the result tables."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from ictd.pipeline.grid import CELL
from ictd.pipeline.storage import load_json
from ictd.pipeline.table_files import load_tables
from ictd.report.claim import HALF, NEGLIGIBLE, ROUNDING, Claim, save_claims
from ictd.statistics import bootstrap_interval, rank_correlation

# Below this, a row u of P counts as zero beside the last entry of P, which is 1.
SMALL_U = 0.1


def main(tables: list[Path], theory: Path, env: str, states: int, depth: int, output: Path) -> None:
    """Write one entry a claim: those on the experiments, and after them those on the theory.

    ``env``, ``states`` and ``depth`` are the main setting.  An entry has id, section, setting, statement, statistic,
    value, relation, threshold and verdict.
    """
    save_claims(output, check_claims(load_tables(tables), (env, states, depth)), load_json(theory))


def check_claims(tables: dict[str, pd.DataFrame], main: tuple[str, int, int]) -> list[Claim]:
    """All claims of sections "Experiments" and "Hyperparameter Study".

    Parameters
    ----------
    tables : the result tables msve, baselines, weights, mean_weights, agreement and truncation
    main : env, states and depth of the main setting
    """
    claims = check_cells(tables, main)
    claims += _robustness_claims(claims)
    claims += _truncation_claims(tables["truncation"])
    claims += _batch_td_claims(tables["baselines"])
    return claims


def check_cells(tables: dict[str, pd.DataFrame], main: tuple[str, int, int]) -> list[Claim]:
    """Of these the claims on single cells, and on their two algorithms together."""
    return [
        *_evaluation_claims(tables["msve"], tables["baselines"], main),
        *_weight_claims(tables["weights"], tables["mean_weights"], main),
        *_agreement_claims(tables["agreement"], main),
    ]


def section_of(env: str, states: int, depth: int, main: tuple[str, int, int]) -> str:
    """Section of the paper that a setting belongs to."""
    if (env, states, depth) == main:
        return "Experiments"
    if env != main[0]:
        return "Hyperparameter Study: MRP"
    return f"Hyperparameter Study: {'Number of States' if states != main[1] else 'Transformer Depth'}"


def _evaluation_claims(msve: pd.DataFrame, baselines: pd.DataFrame, main) -> Iterator[Claim]:
    """Section "In-Context Policy Evaluation Verification", for each cell."""
    for cell, rows in msve.groupby(CELL, sort=False):
        _, env, states, depth = cell
        section, setting = section_of(env, states, depth, main), "-".join(map(str, cell))
        trials = rows.pivot(index="seed", columns="context_length", values="msve")
        if min(trials.shape) < 2:
            continue  # A single trial or context length shows no trend and gives no interval.
        trends = rank_correlation(trials.to_numpy(), np.array(trials.columns, dtype=float))
        yield Claim(
            f"msve_falls/{setting}", section, setting, "The MSVE falls as the context gets longer.",
            "upper end of the 95% bootstrap interval of the rank correlation, over trials, of MSVE and context length",
            bootstrap_interval(trends)[1], "<", 0.0,
        )  # fmt: skip
        zero = baselines.query("method == 'zero' and states == @states and depth == @depth")
        longest = trials.columns.max()
        zero = zero[zero["context_length"] == longest].set_index("seed")["msve"]
        ratios = np.log10(trials[longest] / zero.loc[trials.index]).to_numpy()
        yield Claim(
            f"beats_zero/{setting}", section, setting,
            "The pretrained Transformer performs in-context policy evaluation: with the longest context it beats"
            " predicting zero (our test of the paper's words).",
            "upper end of the 95% bootstrap interval of the log10 ratio, over trials, of its MSVE to that of zero",
            bootstrap_interval(ratios)[1], "<", 0.0,
        )  # fmt: skip


def _weight_claims(weights: pd.DataFrame, mean_weights: pd.DataFrame, main) -> Iterator[Claim]:
    """Section "Weight Convergence", for each cell."""
    for row in mean_weights.itertuples():
        section = section_of(row.env, row.states, row.depth, main)
        setting = f"{row.algo}-{row.env}-{row.states}-{row.depth}"
        trials = weights[(weights[CELL] == [row.algo, row.env, row.states, row.depth]).all(axis=1)]

        def claim(name, statement, statistic, value, relation, threshold, section=section, setting=setting):
            return Claim(f"{name}/{setting}", section, setting, statement, statistic, float(value), relation, threshold)

        yield claim(
            "pattern", "The pattern of theta^TD emerges in the mean parameters.",
            "squared cosine of the mean A to that of theta^TD, zero if negative",
            np.maximum(0, row.cosine) ** 2, ">", HALF,
        )  # fmt: skip
        for block, sign in (("A11", "-I"), ("A12", "I")):
            yield claim(
                f"pattern_{block}", f"Block {block} of the mean A is a multiple of {sign}, up to mild noise.",
                f"squared cosine to {sign}, zero if negative",
                np.maximum(0, getattr(row, f"cosine_{block}")) ** 2, ">", HALF,
            )  # fmt: skip
        for block in ("A21", "A22"):
            yield claim(
                f"pattern_{block}", f"Block {block} of the mean A is zero, up to mild noise.",
                "sum of its squares over that of A11 and A12",
                getattr(row, f"energy_{block}") / (row.energy_A11 + row.energy_A12), "<", HALF,
            )  # fmt: skip
        yield claim(
            "signs", "The diagonals of A11 and A12 have the signs of -I and I.",
            "number of diagonal entries of the mean A with another sign",
            np.round((1 - row.diagonal_signs) * 2 * row.states), "<", 1,
        )  # fmt: skip
        yield claim(
            "pattern_P", "P has the pattern of theta^TD: u is zero beside the last entry, 1.",
            "greatest absolute entry of the mean u", row.largest_u, "<", SMALL_U,
        )  # fmt: skip
        yield claim(
            "consistent", "Pretraining yields consistent results: the pattern emerges in every trial.",
            "smallest squared cosine of A to that of theta^TD among trials, zero if negative",
            trials["cosine"].clip(lower=0).min(skipna=False) ** 2, ">", HALF,
        )  # fmt: skip
        yield claim(
            "finite", "Pretraining runs into no numerical instability.",
            "number of trials that diverged", (trials["diverged_at"] > 0).sum(), "<", 1,
        )  # fmt: skip


def _agreement_claims(agreement: pd.DataFrame, main) -> Iterator[Claim]:
    """What section "Weight Convergence" says of TD and MC together, for each setting."""
    for row in agreement.itertuples():
        section, setting = section_of(row.env, row.states, row.depth, main), f"{row.env}-{row.states}-{row.depth}"
        for name, statement, measure, value, relation in (
            (
                "same_pattern", "Multi-task TD and MC produce the same parameters.",
                "squared correlation of their mean A", np.maximum(0, row.correlation) ** 2, ">",
            ),
            (
                "same_noise", "Even their noise patterns look very similar.",
                "squared correlation of their mean A without its part along theta^TD",
                np.maximum(0, row.remainder_correlation) ** 2, ">",
            ),
            (
                "same_place", "The weights converge to the same place with TD and MC.",
                "norm of the difference of their mean A over the mean of their norms", row.distance, "<",
            ),
        ):  # fmt: skip
            yield Claim(f"{name}/{setting}", section, setting, statement, measure, float(value), relation, HALF)


def _robustness_claims(claims: list[Claim]) -> Iterator[Claim]:
    """The conclusions of section "Hyperparameter Study", from the verdicts of its cells."""
    studies = (
        ("depth", "Transformer Depth", "ICTD emerges with other numbers of layers."),
        ("states", "Number of States", "ICTD emerges with other numbers of states."),
        ("env", "MRP", "ICTD emerges on other classes of MRPs, and transfers to the unseen tasks."),
    )
    for name, study, statement in studies:
        section = f"Hyperparameter Study: {study}"
        of_study = (claim for claim in claims if claim.section == section)
        decided = [claim for claim in of_study if claim.id.startswith(("pattern/", "msve_falls/"))]
        if decided:
            failed = sum(claim.verdict == "fails" for claim in decided)
            yield Claim(
                f"robust_{name}/all", section, "all", statement,
                "number of times that the pattern is missing, or the MSVE does not fall, in one of its cells",
                failed, "<", 1,
            )  # fmt: skip


def _truncation_claims(truncation: pd.DataFrame) -> Iterator[Claim]:
    """Section "Experiments": the bias of returns that are cut short is negligible."""
    for row in truncation.itertuples():
        setting = f"{row.env}-{row.states}"
        yield Claim(
            f"truncation/{setting}", "Experiments", setting, "The bias of truncated returns is negligible.",
            "largest exact bias over the root mean square value", row.largest_bias / row.typical_value, "<", NEGLIGIBLE,
        )  # fmt: skip


def _batch_td_claims(baselines: pd.DataFrame) -> Iterator[Claim]:
    """Section "In-Context TD": the Transformer with theta^TD carries out batch TD."""
    for (states, depth), rows in baselines.groupby(["states", "depth"], sort=False):
        setting = f"{states}-{depth}"
        table = rows.pivot(index=["seed", "context_length"], columns="method", values="msve")
        off = (np.abs(table["theta_td"] - table["batch_td"]) / table["batch_td"]).max(skipna=False)
        yield Claim(
            f"theta_td/{setting}", "In-Context Temporal Difference Learning", setting,
            "The Transformer with theta^TD carries out batch TD on the context.",
            "largest relative difference of their MSVEs", float(off), "<", ROUNDING,
        )  # fmt: skip

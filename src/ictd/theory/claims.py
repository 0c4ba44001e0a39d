"""The theory's statements as claims, decided by the tables of its checks."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from ictd.pipeline.grid import CELL
from ictd.pipeline.table_files import load_tables
from ictd.report import html
from ictd.report.claim import NEGLIGIBLE, ROUNDING, Claim, as_records, named_claim, save_claims
from ictd.report.summaries import claims_overview
from ictd.statistics import bootstrap_interval

INFERENCE = "Inference Time Convergence"
MINIMIZER = "Global Minimizer of Pretraining Loss"
PROOFS = "Proof of Theoretical Results"
OURS = "Beyond the paper's theory"

# Two gradients in float64, over some ten thousand operations.
GRADIENTS = 1e-10
# Relative difference of a fitted rate of decay from log gamma.
RATE = 0.01
# Orders of magnitude about which float64 overflows.
LARGEST = 308.0

STATEMENTS = {
    "lemma_1": (
        MINIMIZER, "Lemma 1: $|E[r(s_q) + gamma TF_L(Z_0') - TF_L(Z_0)]| <= ||r||_inf gamma^L$.",
    ),
    "lemma_2_query": (MINIMIZER, "Lemma 2, part 1: $|y^q_l| <= (1 + gamma^l) ||v||_inf$."),
    "lemma_2_context": (
        MINIMIZER,
        "Lemma 2, part 2: $||Y_l||_1 <= (gamma + gamma^l) ||v||_inf$, the norm being induced, as in its proof.",
    ),
    "lemma_3": (
        MINIMIZER,
        "Lemma 3: $||grad_theta TF_L(Z_0; theta^TD_L)||_1 <= (L^2 + L) nu / 2 + L xi$, summed over all entries.",
    ),
    "lemma_4": (MINIMIZER, "Lemma 4: $|E[G(s_q) - TF_L(Z_0)]| <= ||v||_inf gamma^L$."),
    "lemma_2_step": (PROOFS, "A step in the proof of Lemma 2: $Y_l = r' - w_l'$."),
    "lemma_3_context_A": (PROOFS, "Proof of Lemma 3: $||grad_A y^{(i)}_l||_1 <= l beta$, induced."),
    "lemma_3_query_A": (PROOFS, "Proof of Lemma 3: $||grad_A y^q_l||_1 <= (l^2 + l) beta / 2$, induced."),
    "lemma_3_context_u": (PROOFS, "Proof of Lemma 3: $||grad_u Y_l||_1 <= l zeta$, induced."),
    "lemma_3_query_u": (PROOFS, "Proof of Lemma 3: $||grad_u y^q_l||_1 <= (l^2 + l) zeta / 2 + l eta$, induced."),
    "lemma_2_step_corrected": (
        OURS, "What that step should be: $Y_l = (r + gamma P w_l - w_l)'$, the TD errors of the context's states.",
    ),
    "lemma_2_context_sum": (
        OURS, "Lemma 2, part 2, would hold for the sum of the entries of $Y_l$ as well (the paper does not claim it).",
    ),
    "bounded_gradient": (
        OURS,
        "The gradient of Lemma 3 is bounded whatever $L$:"
        " $||grad_theta TF_L||_1 <= n ((1 + gamma) / (1 - gamma))^2 ||r||_inf + (1 + gamma) / (1 - gamma)$.",
    ),
}  # fmt: skip
EXCEEDED = "number of tasks and layers at which the left side exceeds the right one by more than rounding"
NAMES = {"td": ("Theorem 2", "J"), "mc": ("Corollary 1", "J'")}


def main(tables: list[Path], discount: float, claims: Path, page: Path) -> None:
    """Write one entry a claim as JSON, and as HTML a table with a row a kind of claim."""
    of = load_tables(tables)
    found = check_theory(of, discount)
    save_claims(claims, found)
    html.save(page, "theory", html.table(theory_overview(as_records(found), of["statements"])))


def check_theory(tables: dict[str, pd.DataFrame], discount: float) -> list[Claim]:
    """All claims on the theory.

    Parameters
    ----------
    tables : statements, neu, pretrained, repeated, agreement and precision
    discount : float, gamma
    """
    return [
        *_statement_claims(tables["statements"], discount),
        *_neu_claims(tables["neu"], discount),
        *_pretrained_claims(tables["pretrained"], tables["repeated"]),
        *_numerical_claims(tables["agreement"], tables["precision"]),
    ]


def _statement_claims(statements: pd.DataFrame, discount: float) -> Iterator[Claim]:
    """Theorem 1, and every inequality."""
    for setting, rows in statements[statements["statement"] == "theorem_1"].groupby(["env", "states"], sort=False):
        last = rows.iloc[-1]
        if discount ** last["layer"] < NEGLIGIBLE:
            yield named_claim(
                INFERENCE, "theorem_1", setting, "Theorem 1: $TF_L(Z_0; theta^TD_L) -> v(s_q)$ as $L -> inf$.",
                f"largest error over tasks and queries at L = {last['layer']}, over the mean largest value",
                last["left_max"] / rows.iloc[0]["right_mean"], "<", NEGLIGIBLE,
            )  # fmt: skip
    for name, (section, text) in STATEMENTS.items():
        of_name = statements[statements["statement"] == name]
        for setting, rows in of_name.groupby(["env", "states"], sort=False):
            yield named_claim(section, name, setting, text, EXCEEDED, rows["violations"].sum(), "<", 1)


def _neu_claims(neu: pd.DataFrame, discount: float) -> Iterator[Claim]:
    """Theorem 2 and Corollary 1; limits and rates only where gamma^L is small enough to tell."""
    for (algo, *setting), rows in neu.groupby(["algo", "env", "states"], sort=False):
        setting, (theorem, J) = tuple(setting), NAMES[algo]
        name = theorem.lower().replace(" ", "_")
        looped, separate = (rows[rows["space"] == space] for space in ("looped", "separate"))
        exceeded = "number of depths at which it is exceeded"
        yield named_claim(
            PROOFS, f"{name}_bound", setting, f"Proof of {theorem}: the bound on ${J}(theta^TD_L)$.", exceeded,
            (~(looped["norm"] <= looped["bound"])).sum(), "<", 1,
        )  # fmt: skip
        yield named_claim(
            OURS, f"{name}_sharper", setting,
            f"A bound on ${J}(theta^TD_L)$ of $gamma^L$ times a constant, for one or for separate layers' parameters.",
            exceeded, (~(rows["norm"] <= rows["sharper"])).sum(), "<", 1,
        )  # fmt: skip
        depth = looped["layer"].iloc[-1]
        if discount**depth >= NEGLIGIBLE:
            continue
        statistic = f"its value at L = {depth} over its greatest"
        yield named_claim(
            MINIMIZER, name, setting, f"{theorem}: ${J}(theta^TD_L) -> 0$ as $L -> inf$.", statistic,
            _left_over(looped["norm"]), "<", NEGLIGIBLE,
        )  # fmt: skip
        yield named_claim(
            OURS, f"{name}_separate", setting,
            f"${J}(theta^TD_L) -> 0$ where every layer has parameters of its own, too.", statistic,
            _left_over(separate["norm"]), "<", NEGLIGIBLE,
        )  # fmt: skip
        if discount > 0:
            tail = looped[looped["layer"] >= 2 * depth / 3]
            rate = np.polyfit(tail["layer"], np.log(tail["norm"]), 1)[0] / np.log(discount)
            yield named_claim(
                OURS, f"{name}_rate", setting,
                f"${J}(theta^TD_L)$ falls as $gamma^L$ in the end, without the factor $L^2$ of the bound.",
                f"relative difference from log gamma of the rate fitted from L = {tail['layer'].iloc[0]} on",
                abs(rate - 1), "<", RATE,
            )  # fmt: skip


def _left_over(norms: pd.Series) -> float:
    """The last of norms over the greatest; zero if all are."""
    return norms.iloc[-1] / norms.max() if norms.any() else 0.0


def _pretrained_claims(pretrained: pd.DataFrame, repeated: pd.DataFrame) -> Iterator[Claim]:
    """Where the paper proves nothing: at the pretrained weights, and between them and theta^TD; over trials."""
    for cell, rows in pretrained.groupby(CELL, sort=False):
        line = np.log10(rows.pivot(index="seed", columns="position", values="looped_norm").dropna().to_numpy())
        if len(line) > 1:
            yield named_claim(
                OURS, "pretrained_lower", cell,
                "The expected update is smaller at the pretrained weights than at theta^TD with their step size.",
                "upper end of the 95% bootstrap interval of the log10 ratio, over trials",
                bootstrap_interval(line[:, 0] - line[:, -1])[1], "<", 0.0,
            )  # fmt: skip
            yield named_claim(
                OURS, "barrier", cell,
                "Between the pretrained weights and theta^TD with their step size, it is larger than at both.",
                "lower end of the 95% bootstrap interval of the log10 ratio, over trials, of its greatest value"
                " between them to the larger end",
                bootstrap_interval(line[:, 1:-1].max(axis=1) - line[:, [0, -1]].max(axis=1))[0], ">", 0.0,
            )  # fmt: skip
    for cell, rows in repeated.groupby(CELL, sort=False):
        trials = rows.pivot(index="seed", columns="layer", values="looped_norm")
        trials, depth = trials[trials[cell[-1]].notna()], trials.columns.max()
        if len(trials) > 1 and depth > cell[-1]:
            # What overflows has grown.
            ratios = np.log10(trials[depth].fillna(np.inf) / trials[cell[-1]]).clip(upper=LARGEST)
            yield named_claim(
                OURS, "pretrained_repeated", cell,
                "It does not vanish where the pretrained layer is repeated more often than in training, but grows.",
                "lower end of the 95% bootstrap interval of the log10 ratio, over trials, of its value at"
                f" L = {depth} to that at the depth of training",
                bootstrap_interval(ratios.to_numpy())[0], ">", 0.0,
            )  # fmt: skip


def _numerical_claims(agreement: pd.DataFrame, precision: pd.DataFrame) -> Iterator[Claim]:
    """What the numbers themselves are worth."""
    for way, words in (("fused", "the fused engine's adjoint"), ("appendix", "the appendix's recursions")):
        yield named_claim(
            OURS, f"gradients_{way}", ("all",), f"Gradients by {words} are those that torch gives on whole prompts.",
            "largest difference of an entry over the largest entry", agreement[way].max(skipna=False), "<", GRADIENTS,
        )  # fmt: skip
    tails = precision[precision["quantity"].isin(["lemma_1", "lemma_4"]) & (precision["layer"] > 0)]
    for quantity, rows in tails.groupby("quantity", sort=False):
        yield named_claim(
            OURS, f"{quantity}_digits", ("all",),
            f"{quantity.replace('_', ' ').capitalize()} holds where float64 ends as well, in decimal arithmetic.",
            "largest ratio of its left side to its right side, less one", rows["ratio"].max(skipna=False) - 1, "<",
            ROUNDING,
        )  # fmt: skip
    updates = precision[precision["quantity"].isin(["theorem_2", "corollary_1"])]
    for quantity, rows in updates.groupby("quantity", sort=False):
        yield named_claim(
            OURS, f"{quantity}_digits", ("all",),
            f"The tail of {quantity.replace('_', ' ').capitalize()} is not rounding: its terms in decimal arithmetic.",
            f"largest relative difference from float64 at L = {rows['layer'].max()}",
            rows["difference"].max(skipna=False), "<", ROUNDING,
        )  # fmt: skip


def theory_overview(claims: list[dict], statements: pd.DataFrame) -> pd.DataFrame:
    """As ``claims_overview``, with the least ratio of bound to measured over tasks, layers and settings."""
    table = claims_overview(claims)
    tightest = statements[statements["layer"] > 0].groupby("statement")["tightest"].min()
    names = dict.fromkeys(claim["id"].split("/")[0] for claim in claims)
    ratios = [f"{tightest[name]:.3g}" if tightest.get(name, 0) > 0 else "" for name in names]
    table.insert(2, "least bound / measured", ratios)
    table.insert(0, "section", list({claim["id"].split("/")[0]: claim["section"] for claim in claims}.values()))
    return table

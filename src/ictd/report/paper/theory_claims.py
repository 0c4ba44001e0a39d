"""Claims on the theory, which the tables of its checks decide."""

from collections.abc import Iterator
from functools import partial

import numpy as np
import pandas as pd

from ictd.pipeline.grid import CELL
from ictd.report import part
from ictd.report.claim import NEGLIGIBLE, Statement
from ictd.report.tables import rows_with
from ictd.statistics import Estimate, bootstrap_mean
from ictd.theory.family import MEMBERS, contraction

# Decimal logarithm that stands for numbers beyond float64's range.
OVERFLOW = 308.0
CONVERGENCE = "Inference Time Convergence"
MINIMIZER = "Global Minimizer of Pretraining Loss"
PROOF = "Proof of Theoretical Results"
BEYOND = "Beyond the paper's theory"
# A claim without another section goes beyond the paper's theory.  Identities, bounds and counts are exact; means over
# trials have intervals.
claim = partial(part.claim, section=BEYOND, exact=True)


# Theorem 1, and every inequality.


def of_statement(results, name: str) -> Iterator[tuple[tuple, pd.DataFrame]]:
    """For each environment and number of states: both sides of a statement by layer."""
    table = results.theory["statements"]
    yield from table[table["statement"] == name].groupby(["env", "states"], sort=False)


@claim(
    "<",
    NEGLIGIBLE,
    kind="paper",
    section=CONVERGENCE,
    shown="theorem_1",
    statement=r"Theorem 1: $\mathrm{TF}_L(Z_0; \theta^{\mathrm{TD}}_L) \to v(s_q)$ as $L \to \infty$.",
)
def theorem_1(results):
    """Largest error over tasks and queries at the last layer, divided by the mean of the largest value."""
    # Only where gamma^L is negligible itself.
    for setting, layers in of_statement(results, "theorem_1"):
        last = layers.iloc[-1]
        if results.discount ** last["layer"] < NEGLIGIBLE:
            yield setting, last["left_max"] / layers.iloc[0]["right_mean"]


def inequality(id: str, statement: str, section: str, kind: str = "paper", shown: str = "") -> Statement:
    """Claim that an inequality of ``ictd.theory.inequalities`` holds for all tasks and layers."""

    @claim("<", 1, kind=kind, section=section, shown=shown, id=id, statement=statement)
    def violations(results):
        """Number of tasks and layers at which the left side exceeds the right side by more than rounding."""
        for setting, layers in of_statement(results, id):
            yield setting, layers["violations"].sum()

    return violations


lemma_1 = inequality(
    "lemma_1",
    r"Lemma 1: $|E[r(s_q) + \gamma \mathrm{TF}_L(Z_0') - \mathrm{TF}_L(Z_0)]| \le \Vert r\Vert_\infty \gamma^L$.",
    MINIMIZER,
    shown="lemmas",
)
lemma_2_query = inequality(
    "lemma_2_query", r"Lemma 2, part 1: $|y^q_l| \le (1 + \gamma^l) \Vert v\Vert_\infty$.", MINIMIZER, shown="lemmas"
)
lemma_2_context = inequality(
    "lemma_2_context",
    r"Lemma 2, part 2: $\Vert Y_l\Vert_1 \le (\gamma + \gamma^l) \Vert v\Vert_\infty$, with the induced norm, as in its"
    " proof.",
    MINIMIZER,
    shown="lemmas",
)
lemma_3 = inequality(
    "lemma_3",
    r"Lemma 3: $\Vert\nabla_\theta \mathrm{TF}_L(Z_0; \theta^{\mathrm{TD}}_L)\Vert_1 \le (L^2 + L) \nu / 2 + L \xi$,"
    " summed over all entries.",
    MINIMIZER,
    shown="lemmas",
)
lemma_4 = inequality(
    "lemma_4",
    r"Lemma 4: $|E[G(s_q) - \mathrm{TF}_L(Z_0)]| \le \Vert v\Vert_\infty \gamma^L$.",
    MINIMIZER,
    shown="theorem_1 lemmas",
)
lemma_2_step = inequality("lemma_2_step", "A step in the proof of Lemma 2: $Y_l = r' - w_l'$.", PROOF)
lemma_3_context_A = inequality(
    "lemma_3_context_A", r"Proof of Lemma 3: $\Vert\nabla_A y^{(i)}_l\Vert_1 \le l \beta$, induced.", PROOF
)
lemma_3_query_A = inequality(
    "lemma_3_query_A", r"Proof of Lemma 3: $\Vert\nabla_A y^q_l\Vert_1 \le (l^2 + l) \beta / 2$, induced.", PROOF
)
lemma_3_context_u = inequality(
    "lemma_3_context_u", r"Proof of Lemma 3: $\Vert\nabla_u Y_l\Vert_1 \le l \zeta$, induced.", PROOF
)
lemma_3_query_u = inequality(
    "lemma_3_query_u",
    r"Proof of Lemma 3: $\Vert\nabla_u y^q_l\Vert_1 \le (l^2 + l) \zeta / 2 + l \eta$, induced.",
    PROOF,
)
lemma_2_step_corrected = inequality(
    "lemma_2_step_corrected",
    r"The corrected step: $Y_l = (r + \gamma P w_l - w_l)'$, the TD errors of the context's states.",
    BEYOND,
    "ours",
)
lemma_2_context_sum = inequality(
    "lemma_2_context_sum",
    "Lemma 2, part 2, would also hold for the sum of the absolute entries of $Y_l$ (the paper does not claim this).",
    BEYOND,
    "ours",
)
bounded_gradient = inequality(
    "bounded_gradient",
    "The gradient of Lemma 3 has a bound that does not depend on $L$:"
    r" $\Vert\nabla_\theta \mathrm{TF}_L\Vert_1 \le n ((1 + \gamma) / (1 - \gamma))^2 \Vert r\Vert_\infty"
    r" + (1 + \gamma) / (1 - \gamma)$.",
    BEYOND,
    "ours",
    "lemmas",
)


def expected_update_claims(algo: str, theorem: str, J: str) -> list[Statement]:
    """Theorem 2 or Corollary 1: claims on the norm of the expected update, by TD or MC, at theta^TD.

    Claims on limits and rates are made only where gamma^L is negligible.

    Parameters
    ----------
    algo : str, "td" or "mc"
    theorem, J : str, name of the theorem and of the norm
    """
    name = theorem.lower().replace(" ", "_")
    J_of_theta = rf"{J}(\theta^{{\mathrm{{TD}}}}_L)"

    def norms_of(results, space=None):
        """For each environment and number of states: norms and bounds by layer."""
        of_algo = rows_with(results.theory["neu"], algo=algo)
        rows = rows_with(of_algo, space=space) if space else of_algo
        yield from rows.groupby(["env", "states"], sort=False)

    def deep(results, space):
        """Those of ``norms_of`` whose last gamma^L is negligible."""
        for setting, norms in norms_of(results, space):
            if results.discount ** norms["layer"].iloc[-1] < NEGLIGIBLE:
                yield setting, norms

    @claim(
        "<",
        1,
        kind="paper",
        section=PROOF,
        shown=name,
        id=f"{name}_bound",
        statement=rf"Proof of {theorem}: the bound on ${J_of_theta}$.",
    )
    def bound(results):
        """Number of depths at which the bound is exceeded."""
        for setting, norms in norms_of(results, "looped"):
            yield setting, (~(norms["norm"] <= norms["bound"])).sum()

    @claim(
        "<",
        1,
        shown=name,
        id=f"{name}_sharper",
        statement=rf"${J_of_theta}$ is at most $\gamma^L$ times a constant, for shared and for separate parameters"
        " of the layers.",
    )
    def sharper(results):
        """Number of depths at which the bound is exceeded."""
        for setting, norms in norms_of(results):
            yield setting, (~(norms["norm"] <= norms["sharper"])).sum()

    @claim(
        "<",
        NEGLIGIBLE,
        kind="paper",
        section=MINIMIZER,
        shown=name,
        id=name,
        statement=rf"{theorem}: ${J_of_theta} \to 0$ as $L \to \infty$.",
    )
    def limit(results):
        """Its value at the last depth, divided by its maximum over depths."""
        for setting, norms in deep(results, "looped"):
            yield setting, last_over_largest(norms["norm"])

    @claim(
        "<",
        NEGLIGIBLE,
        shown=name,
        id=f"{name}_separate",
        statement=rf"${J_of_theta} \to 0$ also if each layer has its own parameters.",
    )
    def separate(results):
        """Its value at the last depth, divided by its maximum over depths."""
        for setting, norms in deep(results, "separate"):
            yield setting, last_over_largest(norms["norm"])

    @claim(
        "<",
        0.01,
        shown=name,
        id=f"{name}_rate",
        statement=rf"${J_of_theta}$ falls as $\gamma^L$ for large $L$, without the factor $L^2$ of the bound.",
    )
    def rate(results):
        """Relative difference between log gamma and the rate fitted to the last third of the depths."""
        for setting, norms in deep(results, "looped"):
            if results.discount > 0:
                tail = norms[norms["layer"] >= 2 * norms["layer"].iloc[-1] / 3]
                fitted = np.polyfit(tail["layer"], np.log(tail["norm"]), 1)[0] / np.log(results.discount)
                yield setting, abs(fitted - 1)

    @claim(
        "<",
        NEGLIGIBLE,
        shown="family",
        id=f"family_update_{algo}",
        statement=rf"${J} \to 0$ for the weights of this set, drawn at random, so the limit of ${J}$ does not single"
        " out theta^TD.",
    )
    def family_update(results):
        """Largest ratio, over draws, of its value at the last depth to its maximum over depths."""
        for setting, _, _ in family_limits(results):
            updates = rows_with(results.theory["family_updates"], algo=algo, env=setting[0], states=setting[1])
            norms = updates.pivot(index="layer", columns="draw", values="norm")
            if len(norms):
                yield setting, max(last_over_largest(norms[draw]) for draw in norms)

    return [bound, sharper, limit, separate, rate, family_update]


def last_over_largest(norms: pd.Series) -> float:
    """The last of some norms over the largest; zero if all are zero."""
    return norms.iloc[-1] / norms.max() if norms.any() else 0.0


# Which weights have the limit v.  At discount 0 the weights with N [I, I] added have it, too.


def family_limits(results) -> Iterator[tuple[tuple, list, int]]:
    """For each environment and number of states with enough layers: errors of each kind of weights, and the depth."""
    for setting, errors in results.theory["family"].groupby(["env", "states"], sort=False):
        depth = errors["layer"].max()
        if contraction(results.discount) ** depth < NEGLIGIBLE:
            yield setting, [rows_with(errors, member=member, layer=depth)["error"] for member in MEMBERS], depth


@claim(
    "<",
    1,
    shown="family",
    statement="theta^TD is one of an open set of weights with the limit v: on enumerated prompts, with $u = 0$ and"
    r" $A = [G; H] [-I, I]$, $|v - \mathrm{TF}_L| \le c^L \Vert r\Vert_\infty / (1 - \gamma)$, where"
    r" $c = \max_P \Vert I - (G + \gamma P H) (I - \gamma P')\Vert_1$.",
)
def family(results):
    """Number of draws and layers at which the left side exceeds the right side by more than rounding."""
    inside = rows_with(results.theory["family"], member=MEMBERS[0])
    for setting, errors in inside.groupby(["env", "states"], sort=False):
        yield setting, errors.groupby("draw")["violations"].first().sum()


@claim("<", NEGLIGIBLE, shown="family")
def family_limit(results):
    r"""$\mathrm{TF}_L \to v$ for all weights of this set, drawn at random with $c = (1 + \gamma) / 2$.

    Largest error over draws, tasks and queries at the last layer, divided by the largest value.
    """
    for setting, (inside, _, _), _ in family_limits(results):
        yield setting, inside.max()


@claim(
    "<",
    NEGLIGIBLE,
    shown="family",
    statement=r"With any $u$, $\mathrm{TF}_L \to v' + u X (I - \gamma P')^{-1}$ for all weights of this set, so the"
    " limit is v only for $u$ that no prompt sees, $u X = 0$.",
)
def family_u(results):
    """Largest distance from this limit over draws of $u$ and $[G; H]$, tasks and queries at the last layer, divided by
    the largest value.
    """
    for setting, (_, _, with_u), _ in family_limits(results):
        yield setting, with_u.max()


@claim(">", 1e-3, shown="family")
def beyond_family(results):
    r"""With $N [I, I]$ added, where $N$ has the same size as the random part of $[G; H]$, $\mathrm{TF}_L$ does not
    tend to v.

    Smallest value, over draws, of the largest error over tasks and queries at the last layer, divided by the largest
    value.
    """
    for setting, (_, beyond, _), _ in family_limits(results):
        if results.discount > 0:
            # An error that is not a number has overflowed.
            yield setting, min(beyond.fillna(np.inf).min(), 10**OVERFLOW)


# J or J' at the pretrained weights and between them and theta^TD, where the paper proves nothing; over trials.


def _on_the_line(results) -> Iterator[tuple[tuple, np.ndarray]]:
    """For each cell: log10 of the norm, (trials, positions), from the pretrained weights to theta^TD."""
    for cell, of_cell in results.theory["pretrained"].groupby(CELL, sort=False):
        log_norms = np.log10(of_cell.pivot(index="seed", columns="position", values="looped_norm").to_numpy())
        if len(log_norms) > 1:
            yield cell, log_norms[~np.isnan(log_norms).any(axis=1)]


@claim("<", 0.0)
def pretrained_lower(results):
    """The expected update is smaller at the pretrained weights than at theta^TD with the same step size.

    The log10 ratio of the first to the second.
    """
    for cell, log_norms in _on_the_line(results):
        fall = log_norms[:, 0] - log_norms[:, -1]
        yield cell, _mean(fall), fall


@claim(">", 0.0)
def barrier(results):
    """Between the pretrained weights and theta^TD with the same step size, the expected update is larger than at both
    ends.

    The log10 ratio of its largest value between the ends to the larger value at an end.
    """
    for cell, log_norms in _on_the_line(results):
        rise = log_norms[:, 1:-1].max(axis=1) - log_norms[:, [0, -1]].max(axis=1)
        yield cell, _mean(rise), rise


@claim(">", 0.0)
def pretrained_repeated(results):
    """If the pretrained layer is repeated more often than in training, the expected update does not vanish but grows.

    The log10 ratio of its value at the last depth to its value at the depth of training.
    """
    for cell, of_cell in results.theory["repeated"].groupby(CELL, sort=False):
        trained_depth = cell[-1]
        norms = of_cell.pivot(index="seed", columns="layer", values="looped_norm")
        depth = norms.columns.max()
        if len(norms) > 1 and depth > trained_depth:
            norms = norms[norms[trained_depth].notna()]
            # A norm that is not a number has overflowed.
            growth = np.log10(norms[depth].fillna(np.inf) / norms[trained_depth]).clip(upper=OVERFLOW).to_numpy()
            yield cell, _mean(growth), growth


def _mean(samples: np.ndarray) -> Estimate:
    """The mean over the trials that did not diverge; NaN, which shows nothing, for fewer than two."""
    return bootstrap_mean(samples).estimate() if len(samples) > 1 else Estimate(np.nan, np.nan, np.nan)


theorem_2 = expected_update_claims("td", "Theorem 2", "J")
corollary_1 = expected_update_claims("mc", "Corollary 1", "J'")

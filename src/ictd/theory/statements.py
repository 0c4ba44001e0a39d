"""The paper's statements on theta^TD, as inequalities whose two sides are computed for every task, layer and query.

The left sides of the lemmas come from the Transformer itself: from its embeddings and their gradients, as eq. (Yl
dissection) gives them.  Theorem 2 and Corollary 1 are on means over tasks, and their functions give the right sides.
w_l is TF_l for all query states, and ||.||_inf of a vector its largest entry.

||.||_1 is the paper's induced norm, the largest column sum: of the row Y_l its largest entry, and of grad_theta TF_L, a
column, the sum of all entries.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ictd.theory.embeddings import ALGOS, Embeddings, gradients


@dataclass(frozen=True)
class Inequality:
    """left <= right, for N tasks and layers 0, ..., L; on the left is the largest over the query states.

    All three are (N, L+1) arrays; ``rounding`` is a generous estimate of what rounding may add to the left side.
    """

    left: np.ndarray
    right: np.ndarray
    rounding: np.ndarray

    @property
    def violations(self) -> np.ndarray:
        """Whether the left side exceeds the right one by more than rounding explains, or is no number, (N, L+1)."""
        return ~(self.left <= self.right + self.rounding)


# A number is clear of rounding when it is so many times what rounding may add.
CLEAR = 1000


def summarise(parts: Sequence[Inequality]) -> dict[str, np.ndarray]:
    """Both sides over all tasks of several groups, arrays (L+1,).

    Returns
    -------
    dict with
        left_mean, left_max, right_mean : over tasks
        tightest : smallest right / left over tasks whose left side is clear of rounding, NaN where there is none
        violations : number of tasks
    """
    left, right = (np.concatenate([getattr(part, name) for part in parts]) for name in ("left", "right"))
    above = np.concatenate([part.left > CLEAR * part.rounding for part in parts])
    ratio = np.divide(right, left, out=np.full_like(left, np.inf), where=above)
    return {
        "left_mean": left.mean(axis=0),
        "left_max": left.max(axis=0),
        "right_mean": right.mean(axis=0),
        "tightest": np.where(above.any(axis=0), ratio.min(axis=0), np.nan),
        "violations": sum(part.violations.sum(axis=0) for part in parts),
    }


def theorem_1(rows: Embeddings) -> Inequality:
    """lim TF_L(Z_0; theta_L^TD) = v(s_q), since |v(s_q) - TF_L(Z_0)| <= gamma^L ||v||_inf by Lemma 4."""
    return lemma_4(rows)


def lemma_1(rows: Embeddings) -> Inequality:
    """|E[r(s_q) + gamma TF_L(Z_0') - TF_L(Z_0)]| <= ||r||_inf gamma^L, the expectation being over s_q'."""
    left = _largest_by_layer(rows.expected_errors("td"))
    return Inequality(left, _powers(rows) * _largest(rows.tasks.reward), _rounding(rows))


def lemma_2_query(rows: Embeddings) -> Inequality:
    """|y_l^q| <= (1 + gamma^l) ||v||_inf."""
    return Inequality(_largest_by_layer(rows.y), (1 + _powers(rows)) * _largest(rows.value), _rounding(rows))


def lemma_2_context(rows: Embeddings) -> Inequality:
    """||Y_l||_1 <= (gamma + gamma^l) ||v||_inf, the norm being induced, as in the proof: the largest entry of Y_l."""
    right = (rows.discount + _powers(rows)) * _largest(rows.value)
    return Inequality(_largest_by_layer(rows.Y), right, _rounding(rows))


def lemma_2_context_sum(rows: Embeddings) -> Inequality:
    """The same with the norm read as the sum of absolute entries; the paper does not claim this."""
    return Inequality(np.abs(rows.Y).sum(axis=-1), lemma_2_context(rows).right, _rounding(rows))


def lemma_2_step(rows: Embeddings) -> Inequality:
    """Y_l = r' - w_l', a step of the proof of Lemma 2, as |Y_l - (r' - w_l')| <= 0."""
    left = _largest_by_layer(rows.Y - (rows.tasks.reward[:, None] - rows.TF))
    return Inequality(left, np.zeros_like(left), _rounding(rows))


def lemma_2_step_corrected(rows: Embeddings) -> Inequality:
    """Y_l = (r + gamma P w_l - w_l)' in its place: the context's entries of Z_l are its states' expected TD errors.

    That step of the proof puts x^(k) = [phi_k; gamma p_k] where y_l^q has x^q = [phi_q; 0], and loses gamma p_k.  With
    f(A) = gamma P', Y_{l+1} = gamma Y_l P', so Y_l = gamma^l (P^l r)'.  Lemma 2 stands, and more tightly:
    ||Y_l||_inf <= gamma^l ||r||_inf <= gamma^l (1 + gamma) ||v||_inf.
    """
    left = _largest_by_layer(rows.Y - rows.expected_errors("td"))
    return Inequality(left, np.zeros_like(left), _rounding(rows))


def lemma_4(rows: Embeddings) -> Inequality:
    """|E[G(s_q) - TF_L(Z_0)]| <= ||v||_inf gamma^L, where E[G(s_q)] = v(s_q)."""
    left = _largest_by_layer(rows.expected_errors("mc"))
    return Inequality(left, _powers(rows) * _largest(rows.value), _rounding(rows))


# Gradients' norms are taken at each layer up to this one, the paper's main depth, and then at each tenth.
EVERY_LAYER_TO = 30
NORMS = ("A_context", "A_query", "u_context", "u_query", "theta")


def layers_of_norms(depth: int) -> list[int]:
    """Layers at which the norms of gradients are taken."""
    return [layer for layer in range(depth + 1) if layer <= EVERY_LAYER_TO or layer % 10 == 0]


@dataclass(frozen=True)
class Descent:
    """What a pass through the gradients of ``rows`` at layers 0, ..., L gives.

    Parameters
    ----------
    layers : (K,) int array, those at which norms are taken
    norms : dict of (N, K) arrays
        Largest over i or q: of the induced norms of grad_A y_l^(i) and grad_A y_l^q ("A_context", "A_query"), of those
        of grad_u Y_l and grad_u y_l^q ("u_context", "u_query"), and of the sum of all entries of grad_theta TF_l
        ("theta").
    updates : dict of (groups, L+1, 2n + 4n^2) arrays
        Means over groups of tasks of the expected update in Theta^looped, of "td" and of "mc", at theta^TD of depth L.
    """

    layers: np.ndarray
    norms: dict[str, np.ndarray]
    updates: dict[str, np.ndarray]


def descent(rows: Embeddings, groups: int = 1) -> Descent:
    """Norms of the gradients, and the expected updates with the errors that ``Embeddings.limiting_errors`` gives.

    ``groups`` is the number of groups of equal size that the tasks make, in their order.
    """
    # One pass through the gradients is for the state weights e, (N, L+1, 2, n), of both.
    errors = np.stack([rows.limiting_errors(algo) for algo in ALGOS], axis=2)
    e, norms, updates = rows.tasks.stationary[:, None, None] * errors, {name: [] for name in NORMS}, []
    layers = layers_of_norms(rows.k.shape[1] - 1)
    for layer, at in enumerate(gradients(rows)):
        each = at.expected_updates(e[:, layer])
        updates.append(each.reshape(groups, -1, *each.shape[1:]).mean(axis=1))
        if layer not in layers:
            continue
        sums = (np.abs(matrix).sum(axis=-2) for matrix in (at.context_A(), at.query_A(), at.U, at.V))
        A_context, A_query, u_context, u_query = sums
        theta = A_query.sum(axis=-1) + u_query
        A_context, A_query = A_context.max(axis=-1), A_query.max(axis=-1)
        for name, column in zip(NORMS, (A_context, A_query, u_context, u_query, theta), strict=True):
            norms[name].append(column.max(axis=-1))
    return Descent(
        np.array(layers),
        {name: np.stack(columns, axis=1) for name, columns in norms.items()},
        {algo: np.stack([of_layer[:, i] for of_layer in updates], axis=1) for i, algo in enumerate(ALGOS)},
    )


def constants(rows: Embeddings) -> dict[str, np.ndarray]:
    """beta, zeta, eta, nu and xi of the proof of Lemma 3; beta and nu have ||v||_inf in them, a task's own: (N, 1)."""
    n, gamma = rows.tasks.states, rows.discount
    beta, zeta, eta = n * (1 + gamma) ** 2 * _largest(rows.value), (1 + gamma) ** 2, 1 + gamma
    return {"beta": beta, "zeta": zeta, "eta": eta, "nu": 2 * n * (beta + zeta), "xi": 2 * n * eta}


def lemma_3(rows: Embeddings, done: Descent) -> Inequality:
    """||grad_theta TF_L(Z_0; theta_L^TD)||_1 <= (L^2 + L) / 2 nu + L xi, summed over all entries."""
    return _of_norms(rows, done, "theta", _gradient_bound(rows))


def lemma_3_context_A(rows: Embeddings, done: Descent) -> Inequality:
    """||grad_A y_l^(i)||_1 <= l beta, induced, eq. (Y_l grad A bound)."""
    return _of_norms(rows, done, "A_context", _layers(rows) * constants(rows)["beta"])


def lemma_3_query_A(rows: Embeddings, done: Descent) -> Inequality:
    """||grad_A y_l^q||_1 <= (l^2 + l) / 2 beta, induced, eq. (y_l^q grad A bound)."""
    return _of_norms(rows, done, "A_query", _triangular(rows) * constants(rows)["beta"])


def lemma_3_context_u(rows: Embeddings, done: Descent) -> Inequality:
    """||grad_u Y_l||_1 <= l zeta, induced, eq. (Yl grad u bound)."""
    return _of_norms(rows, done, "u_context", _layers(rows) * constants(rows)["zeta"])


def lemma_3_query_u(rows: Embeddings, done: Descent) -> Inequality:
    """||grad_u y_l^q||_1 <= (l^2 + l) / 2 zeta + l eta, eq. (yl grad u bound)."""
    c = constants(rows)
    right = _triangular(rows) * c["zeta"] + _layers(rows) * c["eta"]
    return _of_norms(rows, done, "u_query", right)


def bounded_gradient(rows: Embeddings, done: Descent) -> Inequality:
    """||grad_theta TF_L(Z_0; theta_L^TD)||_1 <= n ((1 + gamma) / (1 - gamma))^2 ||r||_inf + (1 + gamma) / (1 - gamma),
    whatever L, and in Theta as in Theta^looped.  Not in the paper.

    At theta^TD the gradient for layer l's own A and u is, with m = L - 1 - l,

        X Y_l' (sum_{0<k<m} [(gamma P')^k phi_q; 0] + sum_{0<k<=m} [0; (gamma P')^k phi_q] - [m = 0] x^q)'  and
        X (gamma P')^m phi_q.

    The entries of X x add up to at most 1 + gamma times those of x, those of Y_l to n gamma^l ||r||_inf, and those of
    the bracket to 2 gamma / (1 - gamma) or 1, both at most (1 + gamma) / (1 - gamma).  Sum over l.
    """
    return _of_norms(rows, done, "theta", _uniform_bound(rows))


def sharper_neu(rows: Embeddings) -> dict[str, np.ndarray]:
    """J <= E[||r||_inf gamma^L B] and J' <= E[||v||_inf gamma^L B] at theta_L^TD, B the right side of
    ``bounded_gradient``, in Theta as in Theta^looped: the mean right sides, (L+1,).  Not in the paper."""
    right = _uniform_bound(rows)
    return {"td": (lemma_1(rows).right * right).mean(axis=0), "mc": (lemma_4(rows).right * right).mean(axis=0)}


def theorem_2(rows: Embeddings) -> np.ndarray:
    """J(theta_L^TD) <= E[||r||_inf gamma^L ((L^2 + L) / 2 nu + L xi)]: the mean of the right side, (L+1,).

    The paper takes nu out of the expectation; it has ||v||_inf in it, so here it stays inside.
    """
    return (lemma_1(rows).right * _gradient_bound(rows)).mean(axis=0)


def corollary_1(rows: Embeddings) -> np.ndarray:
    """J'(theta_L^TD) <= E[||v||_inf gamma^L ((L^2 + L) / 2 nu + L xi)]: the mean of the right side, (L+1,)."""
    return (lemma_4(rows).right * _gradient_bound(rows)).mean(axis=0)


def _of_norms(rows: Embeddings, done: Descent, name: str, right: np.ndarray) -> Inequality:
    """An inequality of norms (N, K); a layer's sums of at most 3n + 4 terms round by so many units of the bound."""
    left = done.norms[name]
    right = np.broadcast_to(right, (len(left), rows.k.shape[1]))[:, done.layers]
    units = (3 * rows.tasks.states + 4) * (done.layers + 1)
    return Inequality(left, right, np.finfo(np.float64).eps / 2 * units * right)


def _gradient_bound(rows: Embeddings) -> np.ndarray:
    """(L^2 + L) / 2 nu + L xi, (N, L+1)."""
    c = constants(rows)
    return _triangular(rows) * c["nu"] + _layers(rows) * c["xi"]


def _uniform_bound(rows: Embeddings) -> np.ndarray:
    """n ((1 + gamma) / (1 - gamma))^2 ||r||_inf + (1 + gamma) / (1 - gamma), (N, 1)."""
    ratio = (1 + rows.discount) / (1 - rows.discount)
    return rows.tasks.states * ratio**2 * _largest(rows.tasks.reward) + ratio


def _layers(rows: Embeddings) -> np.ndarray:
    """l = 0, ..., L."""
    return np.arange(rows.k.shape[1])


def _triangular(rows: Embeddings) -> np.ndarray:
    """(l^2 + l) / 2."""
    return (_layers(rows) ** 2 + _layers(rows)) / 2


def _powers(rows: Embeddings) -> np.ndarray:
    """gamma^l."""
    return rows.discount ** _layers(rows)


def _largest_by_layer(rows: np.ndarray) -> np.ndarray:
    """||.||_inf of (N, L+1, n) at each layer, (N, L+1).  NumPy is slow along a last axis that is short."""
    return np.stack([np.abs(of_task.T, order="C").max(axis=0) for of_task in rows])


def _largest(vectors: np.ndarray) -> np.ndarray:
    """||.||_inf of vectors (N, n), as (N, 1)."""
    return np.abs(vectors).max(axis=-1, keepdims=True)


def _rounding(rows: Embeddings) -> np.ndarray:
    """A generous estimate of what rounding may do to a difference of values, (N, L+1).

    A layer's product k_l f rounds by (n + 3) ||k_l||_inf at most, the sum over layers by L of its terms, ||r||_inf
    gamma^l in all; these errors pass through later layers, which shrink them by gamma each.  Solving for v rounds by 3n
    times the condition number (1 + gamma) / (1 - gamma), and twice as much allows for the difference itself.  Measured
    errors are a thirtieth of it or less.
    """
    n, spread = rows.tasks.states, 1 / (1 - rows.discount)
    units = (7 * n + 3) * spread**2 + _layers(rows) * spread
    return np.finfo(np.float64).eps * units * _largest(rows.tasks.reward)


# Those that need the values alone, and those that need the gradients' norms besides.
OF_VALUES = (
    theorem_1, lemma_1, lemma_2_query, lemma_2_context, lemma_2_context_sum, lemma_2_step, lemma_2_step_corrected,
    lemma_4,
)  # fmt: skip
OF_GRADIENTS = (
    lemma_3, lemma_3_context_A, lemma_3_query_A, lemma_3_context_u, lemma_3_query_u, bounded_gradient,
)  # fmt: skip

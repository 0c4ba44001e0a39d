"""The paper's statements on theta^TD as inequalities.  Both sides are computed for each task and layer.

The left sides are computed from the Transformer's embeddings and their gradients.  The right sides are the bounds.
Theorem 2 and Corollary 1 bound a mean over tasks, so their functions return only the right side.

w_l is the vector of TF_l for all query states.  ||.||_inf of a vector is its largest absolute entry.  ||.||_1 is the
induced norm, as in the paper: the largest sum of the absolute entries of a column.  For the row Y_l this is the largest
absolute entry, and for the column grad_theta TF_L it is the sum of all absolute entries.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ictd.theory.recursion import Embeddings
from ictd.theory.updates import GradientSweep

# A left side is well above rounding if it exceeds its estimated rounding error by this factor.
CLEAR = 1000


@dataclass(frozen=True)
class Inequality:
    """left <= right for N tasks and layers 0, ..., L, where the left side is the largest over query states.

    Parameters
    ----------
    left, right : (N, L+1) arrays
    rounding : (N, L+1) array, an upper estimate of the rounding error of the left side
    """

    left: np.ndarray
    right: np.ndarray
    rounding: np.ndarray

    @property
    def violations(self) -> np.ndarray:
        """Whether left - right exceeds the rounding error or is NaN, (N, L+1)."""
        return ~(self.left <= self.right + self.rounding)


def summarise(parts: Sequence[Inequality]) -> dict[str, np.ndarray]:
    """Summarise the sides of an inequality over tasks.

    Parameters
    ----------
    parts : sequence of Inequality, for several sets of tasks

    Returns
    -------
    dict of (L+1,) arrays
        left_mean, left_max, right_mean : over tasks
        tightest : smallest right / left over tasks whose left side is well above rounding, NaN if there is none
        violations : number of tasks
    """
    left = np.concatenate([part.left for part in parts])
    right = np.concatenate([part.right for part in parts])
    clear = np.concatenate([part.left > CLEAR * part.rounding for part in parts])
    ratio = np.divide(right, left, out=np.full_like(left, np.inf), where=clear)
    return {
        "left_mean": left.mean(axis=0),
        "left_max": left.max(axis=0),
        "right_mean": right.mean(axis=0),
        "tightest": np.where(clear.any(axis=0), ratio.min(axis=0), np.nan),
        "violations": sum(part.violations.sum(axis=0) for part in parts),
    }


def theorem_1(Z: Embeddings) -> Inequality:
    """lim TF_L(Z_0; theta_L^TD) = v(s_q), because |v(s_q) - TF_L(Z_0)| <= gamma^L ||v||_inf by Lemma 4."""
    return lemma_4(Z)


def lemma_1(Z: Embeddings) -> Inequality:
    """|E[r(s_q) + gamma TF_L(Z_0') - TF_L(Z_0)]| <= ||r||_inf gamma^L, where the expectation is over s_q'."""
    left = _largest_by_layer(Z.td_errors)
    return Inequality(left, _td_error_bound(Z), _rounding(Z))


def lemma_2_query(Z: Embeddings) -> Inequality:
    """|y_l^q| <= (1 + gamma^l) ||v||_inf."""
    return Inequality(_largest_by_layer(Z.y), (1 + _powers(Z)) * _largest(Z.value), _rounding(Z))


def lemma_2_context(Z: Embeddings) -> Inequality:
    """||Y_l||_1 <= (gamma + gamma^l) ||v||_inf, where the norm is induced, as in the proof."""
    return Inequality(_largest_by_layer(Z.Y), _context_bound(Z), _rounding(Z))


def lemma_2_context_sum(Z: Embeddings) -> Inequality:
    """The inequality of ``lemma_2_context`` for the sum of absolute entries, which the paper does not claim."""
    return Inequality(np.abs(Z.Y).sum(axis=-1), _context_bound(Z), _rounding(Z))


def lemma_2_step(Z: Embeddings) -> Inequality:
    """Y_l = r' - w_l', a step of the proof of Lemma 2, as |Y_l - (r' - w_l')| <= 0."""
    left = _largest_by_layer(Z.Y - (Z.tasks.reward[:, None] - Z.TF))
    return Inequality(left, np.zeros_like(left), _rounding(Z))


def lemma_2_step_corrected(Z: Embeddings) -> Inequality:
    """Y_l = (r + gamma P w_l - w_l)', the correction of ``lemma_2_step``: Y_l has the expected TD errors of the states.

    The proof replaces x^q = [phi_q; 0] in y_l^q with x^(k) = [phi_k; gamma p_k], but drops gamma p_k.  Because
    f(A) = gamma P', Y_{l+1} = gamma Y_l P', so that Y_l = gamma^l (P^l r)'.  Lemma 2 still holds, with a smaller bound:
    ||Y_l||_inf <= gamma^l ||r||_inf <= gamma^l (1 + gamma) ||v||_inf.
    """
    left = _largest_by_layer(Z.Y - Z.td_errors)
    return Inequality(left, np.zeros_like(left), _rounding(Z))


def lemma_4(Z: Embeddings) -> Inequality:
    """|E[G(s_q) - TF_L(Z_0)]| <= ||v||_inf gamma^L, where E[G(s_q)] = v(s_q)."""
    left = _largest_by_layer(Z.mc_errors)
    return Inequality(left, _mc_error_bound(Z), _rounding(Z))


def constants(Z: Embeddings) -> dict[str, float | np.ndarray]:
    """Compute the constants of the proof of Lemma 3.

    Returns
    -------
    dict
        zeta, eta, xi : floats
        beta, nu : (N, 1) arrays, because they depend on ||v||_inf of a task
    """
    n, gamma = Z.tasks.states, Z.discount
    beta = n * (1 + gamma) ** 2 * _largest(Z.value)
    zeta = (1 + gamma) ** 2
    eta = 1 + gamma
    return {"beta": beta, "zeta": zeta, "eta": eta, "nu": 2 * n * (beta + zeta), "xi": 2 * n * eta}


def lemma_3(Z: Embeddings, sweep: GradientSweep) -> Inequality:
    """||grad_theta TF_L(Z_0; theta_L^TD)||_1 <= (L^2 + L) / 2 nu + L xi, where the norm is a sum over all entries."""
    return _inequality_of_norms(Z, sweep, "theta", _gradient_bound(Z))


def lemma_3_context_A(Z: Embeddings, sweep: GradientSweep) -> Inequality:
    """||grad_A y_l^(i)||_1 <= l beta, where the norm is induced, eq. (Y_l grad A bound)."""
    return _inequality_of_norms(Z, sweep, "A_context", _layers(Z) * constants(Z)["beta"])


def lemma_3_query_A(Z: Embeddings, sweep: GradientSweep) -> Inequality:
    """||grad_A y_l^q||_1 <= (l^2 + l) / 2 beta, where the norm is induced, eq. (y_l^q grad A bound)."""
    return _inequality_of_norms(Z, sweep, "A_query", _triangular(Z) * constants(Z)["beta"])


def lemma_3_context_u(Z: Embeddings, sweep: GradientSweep) -> Inequality:
    """||grad_u Y_l||_1 <= l zeta, where the norm is induced, eq. (Yl grad u bound)."""
    return _inequality_of_norms(Z, sweep, "u_context", _layers(Z) * constants(Z)["zeta"])


def lemma_3_query_u(Z: Embeddings, sweep: GradientSweep) -> Inequality:
    """||grad_u y_l^q||_1 <= (l^2 + l) / 2 zeta + l eta, eq. (yl grad u bound)."""
    constant = constants(Z)
    right = _triangular(Z) * constant["zeta"] + _layers(Z) * constant["eta"]
    return _inequality_of_norms(Z, sweep, "u_query", right)


def bounded_gradient(Z: Embeddings, sweep: GradientSweep) -> Inequality:
    """||grad_theta TF_L(Z_0; theta_L^TD)||_1 <= n ((1 + gamma) / (1 - gamma))^2 ||r||_inf + (1 + gamma) / (1 - gamma).

    This bound is not in the paper.  It holds for every L, in Theta and in Theta^looped.

    At theta^TD the gradients with respect to A and u of layer l alone are, with m = L - 1 - l,

        X Y_l' (sum_{0<k<m} [(gamma P')^k phi_q; 0] + sum_{0<k<=m} [0; (gamma P')^k phi_q] - [m = 0] x^q)',
        X (gamma P')^m phi_q.

    Let |x|_1 be the sum of the absolute entries of x.  Then |X x|_1 <= (1 + gamma) |x|_1, and |Y_l|_1 <= n gamma^l
    ||r||_inf.  For the bracket, |.|_1 is at most 2 gamma / (1 - gamma), or 1 for m = 0; both are at most (1 + gamma) /
    (1 - gamma).  The sum over l gives the bound.
    """
    return _inequality_of_norms(Z, sweep, "theta", _uniform_bound(Z))


def theorem_2(Z: Embeddings) -> np.ndarray:
    """J(theta_L^TD) <= E[||r||_inf gamma^L ((L^2 + L) / 2 nu + L xi)]: the right side for each L, (L+1,).

    In the paper, nu is outside the expectation.  Here it is inside, because nu depends on ||v||_inf.
    """
    return (_td_error_bound(Z) * _gradient_bound(Z)).mean(axis=0)


def corollary_1(Z: Embeddings) -> np.ndarray:
    """J'(theta_L^TD) <= E[||v||_inf gamma^L ((L^2 + L) / 2 nu + L xi)]: the right side for each L, (L+1,)."""
    return (_mc_error_bound(Z) * _gradient_bound(Z)).mean(axis=0)


def sharper_theorem_2(Z: Embeddings) -> np.ndarray:
    """J(theta_L^TD) <= E[||r||_inf gamma^L B]: the right side for each L, (L+1,).

    B is the right side of ``bounded_gradient``.  This bound is not in the paper.  It holds in Theta and Theta^looped.
    """
    return (_td_error_bound(Z) * _uniform_bound(Z)).mean(axis=0)


def sharper_corollary_1(Z: Embeddings) -> np.ndarray:
    """J'(theta_L^TD) <= E[||v||_inf gamma^L B]: the right side for each L, (L+1,).

    B is the right side of ``bounded_gradient``.  This bound is not in the paper.  It holds in Theta and Theta^looped.
    """
    return (_mc_error_bound(Z) * _uniform_bound(Z)).mean(axis=0)


def _inequality_of_norms(Z: Embeddings, sweep: GradientSweep, name: str, right: np.ndarray) -> Inequality:
    """The inequality of a norm of gradients, (N, K), with the right side for each layer, (N, L+1) or (L+1,) or (N, 1).

    The sums of at most 3n + 4 terms in each layer round by that many units of the bound.
    """
    left = sweep.norms[name]
    right = np.broadcast_to(right, (len(left), Z.depth + 1))[:, sweep.layers]
    units = (3 * Z.tasks.states + 4) * (sweep.layers + 1)
    return Inequality(left, right, np.finfo(np.float64).eps / 2 * units * right)


def _context_bound(Z: Embeddings) -> np.ndarray:
    """(gamma + gamma^l) ||v||_inf, the right side of Lemma 2 for the context, (N, L+1)."""
    return (Z.discount + _powers(Z)) * _largest(Z.value)


def _td_error_bound(Z: Embeddings) -> np.ndarray:
    """||r||_inf gamma^l, the right side of Lemma 1, (N, L+1)."""
    return _powers(Z) * _largest(Z.tasks.reward)


def _mc_error_bound(Z: Embeddings) -> np.ndarray:
    """||v||_inf gamma^l, the right side of Lemma 4, (N, L+1)."""
    return _powers(Z) * _largest(Z.value)


def _gradient_bound(Z: Embeddings) -> np.ndarray:
    """(L^2 + L) / 2 nu + L xi, (N, L+1)."""
    constant = constants(Z)
    return _triangular(Z) * constant["nu"] + _layers(Z) * constant["xi"]


def _uniform_bound(Z: Embeddings) -> np.ndarray:
    """n ((1 + gamma) / (1 - gamma))^2 ||r||_inf + (1 + gamma) / (1 - gamma), (N, 1)."""
    ratio = (1 + Z.discount) / (1 - Z.discount)
    return Z.tasks.states * ratio**2 * _largest(Z.tasks.reward) + ratio


def _layers(Z: Embeddings) -> np.ndarray:
    """l = 0, ..., L."""
    return np.arange(Z.depth + 1)


def _triangular(Z: Embeddings) -> np.ndarray:
    """(l^2 + l) / 2, (L+1,)."""
    return (_layers(Z) ** 2 + _layers(Z)) / 2


def _powers(Z: Embeddings) -> np.ndarray:
    """gamma^l, (L+1,)."""
    return Z.discount ** _layers(Z)


def _largest_by_layer(vectors: np.ndarray) -> np.ndarray:
    """||.||_inf of vectors (N, L+1, n), as (N, L+1)."""
    return np.abs(vectors).max(axis=-1)


def _largest(vectors: np.ndarray) -> np.ndarray:
    """||.||_inf of vectors (N, n), as (N, 1)."""
    return np.abs(vectors).max(axis=-1, keepdims=True)


def _rounding(Z: Embeddings) -> np.ndarray:
    """An upper estimate of the rounding error of a difference of values, (N, L+1).

    The product k_l f of a layer rounds by at most (n + 3) ||k_l||_inf, and the sum over layers by L units of its terms.
    The terms are at most ||r||_inf gamma^l.  Each later layer multiplies an error by gamma.  The solution for v rounds
    by 3n times the condition number (1 + gamma) / (1 - gamma), and is counted twice to allow for the difference.
    Measured errors are at most a thirtieth of this estimate.
    """
    n = Z.tasks.states
    spread = 1 / (1 - Z.discount)
    units = (7 * n + 3) * spread**2 + _layers(Z) * spread
    return np.finfo(np.float64).eps * units * _largest(Z.tasks.reward)


# Statements that need the embeddings only, and those that need the norms of gradients.
OF_VALUES = (
    theorem_1,
    lemma_1,
    lemma_2_query,
    lemma_2_context,
    lemma_2_context_sum,
    lemma_2_step,
    lemma_2_step_corrected,
    lemma_4,
)
OF_GRADIENTS = (
    lemma_3,
    lemma_3_context_A,
    lemma_3_query_A,
    lemma_3_context_u,
    lemma_3_query_u,
    bounded_gradient,
)

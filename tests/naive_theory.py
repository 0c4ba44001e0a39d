"""The theory's quantities, slow and obvious: whole prompts and loops."""

from contextlib import suppress

import naive
import numpy as np

from ictd.transformer import theta_td

with suppress(ModuleNotFoundError):
    import torch


def embeddings(weights, transition, reward, discount, depth, query):
    """Z_0, ..., Z_L of one prompt, whose attention is not divided."""
    prompt = naive.enumerated_prompt(transition, reward, discount, query)
    return naive.embeddings([weights.P()] * depth, [weights.Q()] * depth, prompt, scaled=False)


def estimates_by(algorithm, transition, reward, discount, updates, step_size):
    """Estimates of the values after 0, 1, ... updates, (updates + 1, n), each algorithm written as in its own paper."""
    n = len(reward)
    uniform = np.full((n, n), 1 / n)
    v = np.zeros(n)
    estimates = [v]
    for _ in range(updates):
        td_error = reward + discount * transition @ v - v
        if algorithm == "theta_td":
            v = v + td_error
        elif algorithm == "residual_gradient":
            # The negative gradient of half the squared norm of the TD errors.
            v = v + step_size * (td_error - discount * transition.T @ td_error)
        else:
            right_side = reward + discount * (transition - uniform) @ v
            v = np.linalg.solve(np.eye(n) - discount * uniform, right_side)
        estimates.append(v)
    return np.array(estimates)


def gradients(weights, transition, reward, discount, depth):
    """grad_A y^(i), grad_A y^q, grad_u Y and grad_u y^q at layer L, by the appendix's recursions as they stand.

    They are for any u and A; with u = 0 and theta^TD's A they equal the appendix's last lines.
    """
    n = len(reward)
    u, A = weights.u, weights.A
    X = np.vstack([np.eye(n), discount * transition.T])
    f, Y = np.eye(n) + X.T @ A @ X, reward.copy()
    context_A, query_A = np.zeros((2, n, 2 * n, 2 * n))
    context_u, query_u = np.zeros((2, n, 2 * n))
    for _ in range(depth):
        next_A, next_u = np.zeros_like(context_A), np.zeros_like(context_u)
        for i in range(n):
            next_A[i] = np.outer(X @ (u @ X + Y), X[:, i])
            next_u[i] = X @ X.T @ A @ X[:, i]
            for j in range(n):
                next_A[i] += f[j, i] * context_A[j]
                next_u[i] += f[j, i] * context_u[j]
        for q in range(n):
            x = np.eye(2 * n)[q]
            g = X.T @ A @ x
            query_A[q] += np.outer(X @ (u @ X + Y), x)
            query_u[q] += X @ g
            for k in range(n):
                query_A[q] += g[k] * context_A[k]
                query_u[q] += g[k] * context_u[k]
        Y = Y + (u @ X + Y) @ X.T @ A @ X
        context_A, context_u = next_A, next_u
    return context_A, query_A, context_u, query_u


def prompt_layer(Z, u, A):
    """P Z M (Z' Q Z) in torch, with P and Q from u and A."""
    P = torch.zeros(len(u) + 1, len(u) + 1, dtype=torch.float64)
    P[-1] = torch.cat([u, torch.ones(1, dtype=torch.float64)])
    Q = torch.nn.functional.pad(A, (0, 1, 0, 1))
    # M leaves the last column, the query, out of the context.
    return P @ Z[..., :-1] @ (Z.mT @ Q @ Z)[..., :-1, :]


def prompts(transition, reward, discount):
    """The enumerated prompts of all query states, in torch."""
    whole = [naive.enumerated_prompt(transition, reward, discount, q) for q in range(len(reward))]
    return torch.from_numpy(np.array(whole))


def separate_update(weights, tasks, task, algo, depth, discount):
    """Expected update of one task in Theta, a row a layer, by torch on whole prompts; layers have own parameters."""
    P, r = tasks.transition[task], tasks.reward[task]
    u, A = (torch.tensor(np.stack([part] * depth), requires_grad=True) for part in (weights.u, weights.A))
    Z = prompts(P, r, discount)
    for layer in range(depth):
        Z = Z + prompt_layer(Z, u[layer], A[layer])
    TF = -Z[:, -1, -1]
    found = TF.detach().numpy()
    target = r + discount * P @ found
    if algo == "mc":
        target = np.linalg.solve(np.eye(len(r)) - discount * P, r)
    e = tasks.stationary[task] * (target - found)
    du, dA = torch.autograd.grad(TF @ torch.from_numpy(e), [u, A])
    return np.concatenate([du.numpy(), dA.numpy().reshape(depth, -1)], axis=1)


def sides(transition, reward, discount, depth):
    """Both sides of each statement on theta^TD for one task, lists over the layers 0, ..., L, as the paper has them."""
    n, gamma, P, r = len(reward), discount, transition, reward
    theta, v = theta_td(n), np.linalg.solve(np.eye(n) - gamma * P, r)
    layers = [embeddings(theta, P, r, gamma, depth, q) for q in range(n)]
    big_r, big_v = max(map(abs, r)), max(map(abs, v))
    beta, zeta, eta = n * (1 + gamma) ** 2 * big_v, (1 + gamma) ** 2, 1 + gamma
    nu, xi = 2 * n * (beta + zeta), 2 * n * eta
    ratio = sum(2 * gamma**k for k in range(10_000)) - 1
    found = {}
    for at in range(depth + 1):
        w, Y = np.array([-layers[q][at][-1, -1] for q in range(n)]), layers[0][at][-1, :-1]
        error, steps = r + gamma * P @ w - w, sum(range(at + 1))
        context_A, query_A, context_u, query_u = gradients(theta, P, r, gamma, at)
        whole = [np.abs(query_A[q]).sum() + np.abs(query_u[q]).sum() for q in range(n)]
        rows = {
            "theorem_1": (np.abs(v - w).max(), gamma**at * big_v),
            "lemma_1": (np.abs(error).max(), big_r * gamma**at),
            "lemma_2_query": (np.abs(w).max(), (1 + gamma**at) * big_v),
            "lemma_2_context": (np.abs(Y).max(), (gamma + gamma**at) * big_v),
            "lemma_2_context_sum": (np.abs(Y).sum(), (gamma + gamma**at) * big_v),
            "lemma_2_step": (np.abs(Y - (r - w)).max(), 0),
            "lemma_2_step_corrected": (np.abs(Y - error).max(), 0),
            "lemma_4": (np.abs(v - w).max(), gamma**at * big_v),
            "lemma_3": (max(whole), steps * nu + at * xi),
            "lemma_3_context_A": (max(np.linalg.norm(part, 1) for part in context_A), at * beta),
            "lemma_3_query_A": (max(np.linalg.norm(part, 1) for part in query_A), steps * beta),
            "lemma_3_context_u": (np.linalg.norm(context_u.T, 1), at * zeta),
            "lemma_3_query_u": (max(np.abs(part).sum() for part in query_u), steps * zeta + at * eta),
            "bounded_gradient": (max(whole), n * ratio**2 * big_r + ratio),
        }
        for name, pair in rows.items():
            found.setdefault(name, []).append(pair)
    return {name: np.array(pairs).T for name, pairs in found.items()}

"""The theory's quantities, slow and obvious: whole prompts, loops, and fractions."""

from fractions import Fraction

import numpy as np
import torch

from ictd.prompts import enumerated_context, prompts_of


def embeddings(weights, transition, reward, discount, depth, query):
    """Z_0, ..., Z_L of one prompt by eq. (embedding evolution)."""
    Z = prompts_of(enumerated_context(transition, reward, discount))[query]
    P, Q, M = weights.P(), weights.Q(), np.diag([1.0] * len(reward) + [0.0])
    layers = [Z]
    for _ in range(depth):
        layers.append(layers[-1] + P @ layers[-1] @ M @ (layers[-1].T @ Q @ layers[-1]))
    return layers


def gradients(weights, transition, reward, discount, depth):
    """grad_A y^(i), grad_A y^q, grad_u Y and grad_u y^q at layer L, by the appendix's recursions as they stand.

    They are those for any u and A: with u = 0 and theta^TD's A they are the appendix's last lines.
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


def context_gradients(weights, transition, reward, discount, depth):
    """grad_A Y_L and grad_u Y_L, a leading axis for the entries of Y_L, by torch on a whole prompt."""
    n = len(reward)
    u, A = torch.tensor(weights.u, requires_grad=True), torch.tensor(weights.A, requires_grad=True)
    Z = torch.from_numpy(prompts_of(enumerated_context(transition, reward, discount))[0])
    M = torch.diag(torch.tensor([1.0] * n + [0.0], dtype=torch.float64))
    for _ in range(depth):
        Z = Z + prompt_layer(Z, M, u, A)
    pairs = [torch.autograd.grad(entry, [A, u], retain_graph=True) for entry in Z[-1, :n]]
    return [np.stack([pair[i].numpy() for pair in pairs]) for i in range(2)]


def prompt_layer(Z, M, u, A):
    """P Z M (Z' Q Z) with P and Q made of u and A."""
    wide = len(u)
    P = torch.zeros(wide + 1, wide + 1, dtype=torch.float64)
    P[-1] = torch.cat([u, torch.ones(1, dtype=torch.float64)])
    Q = torch.nn.functional.pad(A, (0, 1, 0, 1))
    return P @ Z @ M @ (Z.mT @ Q @ Z)


def separate_update(weights, tasks, task, algo, depth, discount):
    """Expected update of one task in Theta, a row a layer, by torch on whole prompts; layers have own parameters."""
    n = tasks.states
    layers = [
        (torch.tensor(weights.u, requires_grad=True), torch.tensor(weights.A, requires_grad=True)) for _ in range(depth)
    ]
    Z = torch.from_numpy(prompts_of(enumerated_context(tasks.transition[task], tasks.reward[task], discount)))
    M = torch.diag(torch.tensor([1.0] * n + [0.0], dtype=torch.float64))
    for u, A in layers:
        Z = Z + prompt_layer(Z, M, u, A)
    TF = -Z[:, -1, -1]
    found, transition = TF.detach().numpy(), tasks.transition[task]
    target = tasks.reward[task] + discount * transition @ found
    if algo == "mc":
        target = np.linalg.solve(np.eye(n) - discount * transition, tasks.reward[task])
    e = tasks.stationary[task] * (target - found)
    parts = torch.autograd.grad(TF @ torch.from_numpy(e), [part for layer in layers for part in layer])
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return np.array([np.concatenate([du.numpy(), dA.numpy().ravel()]) for du, dA in pairs])


def exact_errors(transition, reward, discount, depth):
    """|v - sum_{k<l} (gamma P)^k r| for l = 0, ..., L in exact fractions, v by Cramer's rule for two states."""
    gamma = Fraction(discount)
    P = [[Fraction(p) for p in row] for row in transition]
    r = [Fraction(x) for x in reward]
    (a, b), (c, d) = [[(i == j) - gamma * P[i][j] for j in range(2)] for i in range(2)]
    v = [(d * r[0] - b * r[1]) / (a * d - b * c), (a * r[1] - c * r[0]) / (a * d - b * c)]
    w, errors = [Fraction(0)] * 2, []
    for _ in range(depth + 1):
        errors.append([float(abs(v[s] - w[s])) for s in range(2)])
        w = [r[s] + gamma * sum(P[s][j] * w[j] for j in range(2)) for s in range(2)]
    return np.array(errors)

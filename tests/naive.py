"""Slow, obvious versions of what the package computes fast."""

import itertools

import numpy as np

import ictd
from ictd import evaluation, sampling


def stationary(transition):
    """Solve mu p = mu with the entries summing to one."""
    n = len(transition)
    system = np.vstack([transition.T - np.eye(n), np.ones(n)])
    return np.linalg.lstsq(system, np.append(np.zeros(n), 1.0), rcond=None)[0]


def truncated_value(transition, reward, discount, steps):
    """Expected sum of the first ``steps`` discounted rewards."""
    value, ahead = np.zeros(len(reward)), reward
    for k in range(steps):
        value = value + discount**k * ahead
        ahead = transition @ ahead
    return value


def alias_probabilities(accept, successor):
    """Distribution that one row of an alias table draws from."""
    n = len(accept)
    probability = np.zeros(n)
    for column in range(n):
        # Fractions 0, ..., accept - 1 of the 2^32 keep the column.
        keep = int(accept[column]) / 2**32
        probability[successor[column, 1]] += keep / n
        probability[successor[column, 0]] += (1 - keep) / n
    return probability


def tables(tasks, i):
    """Alias tables of one task."""
    n = tasks.states
    accept, successor = sampling.alias_tables(tasks.transition[i], tasks.stationary[i])
    return accept.reshape(n + 1, n), successor.reshape(n + 1, n, 2)


def step(state, bits, accept, successor):
    """Next state: the column that the bits fall into, then itself or its alias."""
    n = accept.shape[1]
    column, fraction = divmod(int(bits) * n, 2**32)
    return int(successor[state, column, 1 if fraction < int(accept[state, column]) else 0])


def words_of(rng):
    """Endless 64-bit numbers of the stream that a generator starts, by NumPy's own SFC64."""
    source = np.random.SFC64(0)
    state = source.state
    state["state"]["state"][:] = [
        *(int(rng.integers(0, 2**64 - 1, dtype=np.uint64, endpoint=True)) for _ in range(3)),
        1,
    ]
    source.state = state
    source.random_raw(12)
    while True:
        yield int(source.random_raw())


def halves(words, count):
    """The next 32-bit numbers, the lower half of each word first; what is left of the last word is not used."""
    found = [next(words) for _ in range((count + 1) // 2)]
    return [half for word in found for half in (word % 2**32, word // 2**32)][:count]


def paths_from(transition, state, steps):
    """All paths of some steps from a state that can be, in the order of their states, with their probabilities."""
    if not steps:
        return [((), 1.0)]
    return [
        ((j, *rest), transition[state, j] * chance)
        for j in range(len(transition)) if transition[state, j] > 0
        for rest, chance in paths_from(transition, j, steps - 1)
    ]  # fmt: skip


def jump(state, bits, paths):
    """One of the paths from a state, by an alias table of their probabilities."""
    columns = max(map(len, paths))
    chances = np.array([chance for _, chance in paths[state]] + [0.0] * (columns - len(paths[state])))
    accept, outcome = np.empty(columns, np.uint64), np.empty((columns, 2), np.uint16)
    space = np.empty(columns), np.empty(columns, np.int64), np.empty(columns, np.int64)
    sampling.fill_alias_row(chances, accept, outcome, *space)
    column, fraction = divmod(bits * columns, 2**32)
    return paths[state][outcome[column, 1 if fraction < int(accept[column]) else 0]][0]


def unroll(tasks, batch_size, discount, rollout_steps, rng):
    """Algorithm 2's trajectories one after another, from the same random numbers as the kernel."""
    n = tasks.states
    visits, transitions, returns = np.zeros((len(tasks), n)), np.zeros((len(tasks), n, n)), np.zeros((len(tasks), n))
    words = words_of(rng)
    for i in range(len(tasks)):
        table, p, r = tables(tasks, i), tasks.transition[i], tasks.reward[i]
        path = [n]
        for bits in halves(words, batch_size + 1):
            path.append(step(path[-1], bits, *table))
        path = path[1:]
        walks = [[s] for s in path[:-1]]
        while len(walks[0]) < rollout_steps:
            steps, left = 1, rollout_steps - len(walks[0])
            while steps < left and max(len(paths_from(p, s, steps + 1)) for s in range(n)) <= sampling.PATHS:
                steps += 1
            paths = [paths_from(p, s, steps) for s in range(n)]
            for walk, bits in zip(walks, halves(words, 2 * ((batch_size + 2) // 2)), strict=False):
                walk += jump(walk[-1], bits, paths)
        for t, walk in enumerate(walks):
            visits[i, path[t]] += 1
            transitions[i, path[t], path[t + 1]] += 1
            returns[i, path[t]] += sum(discount**k * r[s] for k, s in enumerate(walk))
    return visits, transitions, returns


def transformer(weights, depth, prompt, scaled=True):
    """TF_L of one prompt, layer by layer, products in the paper's order."""
    P, Q, Z = weights.P(), weights.Q(), prompt
    m = prompt.shape[1] - 1
    M = np.diag(np.append(np.ones(m), 0.0))
    for _ in range(depth):
        Z = Z + P @ Z @ M @ (Z.T @ Q @ Z) / (m if scaled else 1)
    return -Z[-1, -1]


def errors(weights, data, length, depth, scaled=True):
    """MSVE of weights on each unseen task, by whole prompts; those of length 0 are enumerated."""
    found = []
    for p, r, path, mu, v in zip(*tasks_of(data), strict=True):
        queries = range(len(r))
        if length:
            prompts = [sampled_prompt(path[: length + 1], r, data.discount, s) for s in queries]
        else:
            prompts = [enumerated_prompt(p, r, data.discount, s) for s in queries]
        values = np.array([transformer(weights, depth, prompt, scaled) for prompt in prompts])
        found.append((mu * (values - v) ** 2).sum())
    return np.array(found)


def tasks_of(data):
    """Transitions, rewards, trajectories, stationary distributions and values of unseen tasks."""
    return data.tasks.transition, data.tasks.reward, data.paths, data.tasks.stationary, data.value


def columns_of_steps(states, rewards, n, discount):
    """The context of a trajectory S_0, ..., S_m with rewards R_1, ..., R_m, column by column."""
    context = np.zeros((2 * n + 1, len(rewards)))
    for t, reward in enumerate(rewards):
        context[states[t], t] = 1
        context[n + states[t + 1], t] = discount
        context[-1, t] = reward
    return context


def sampled_prompt(path, reward, discount, query):
    """Z(i, m, s), column by column."""
    context = columns_of_steps(path, reward[path[:-1]], len(reward), discount)
    return np.column_stack([context, np.eye(2 * len(reward) + 1)[query]])


def enumerated_prompt(transition, reward, discount, query):
    """Z_0 of eq. (Z0 redef), column by column."""
    n = len(reward)
    prompt = np.zeros((2 * n + 1, n + 1))
    for s in range(n):
        prompt[s, s] = 1
        prompt[n : 2 * n, s] = discount * transition[s]
        prompt[-1, s] = reward[s]
    prompt[query, n] = 1
    return prompt


def batch_td(path, reward, discount, step_size, updates):
    """Batch TD, sample by sample."""
    w = np.zeros(len(reward))
    for _ in range(updates):
        change = np.zeros(len(reward))
        for now, following in itertools.pairwise(path):
            change[now] += reward[now] + discount * w[following] - w[now]
        w = w + step_size * change / (len(path) - 1)
    return w


def lstd(path, reward, discount, ridge):
    """LSTD, sample by sample."""
    n = len(reward)
    matrix, vector = ridge * np.eye(n), np.zeros(n)
    for now, following in itertools.pairwise(path):
        phi, ahead = np.eye(n)[now], np.eye(n)[following]
        matrix += np.outer(phi, phi - discount * ahead)
        vector += reward[now] * phi
    return np.linalg.solve(matrix, vector)


def rank_correlation(first, second):
    """Spearman's correlation of two sequences without ties."""
    place = {value: i for i, value in enumerate(sorted(first))}
    other = {value: i for i, value in enumerate(sorted(second))}
    return np.corrcoef([place[v] for v in first], [other[v] for v in second])[0, 1]


def sampled_material(env, states, size, lengths, discount):
    """Tasks, unrolls, the Gram matrices of a context of each, and the paths that the contexts come from."""
    tasks = ictd.sample_tasks(env, states, size, ictd.generator(0, env, states, "tasks"))
    unrolls = ictd.unroll(tasks, 16, discount, 20, ictd.generator(0, env, states, "unrolls"))
    contexts = evaluation.sample_contexts(tasks, lengths, ictd.generator(0, env, states, "contexts"))
    paths = ictd.sample_paths(tasks, int(lengths.max()), ictd.generator(0, env, states, "contexts"))
    return tasks, unrolls, contexts.gram(discount), paths


def larger_weights(states, seed=5):
    """Weights whose layers matter, unlike freshly drawn ones."""
    rng = np.random.default_rng(seed)
    theta = ictd.theta_td(states)
    noise = 0.2 * rng.normal(size=theta.A.shape)
    return ictd.Weights(0.2 * rng.normal(size=theta.u.shape), theta.A + noise)


def stacked(parts):
    """Weights as one object with a leading axis."""
    return ictd.Weights(np.stack([part.u for part in parts]), np.stack([part.A for part in parts]))

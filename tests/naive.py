"""Slow, obvious versions of the package's fast functions, and shared test data."""

import itertools
from contextlib import suppress
from statistics import NormalDist

import numpy as np

import ictd
from ictd import jumps, training_data

# Newer versions of Python are tested without torch.
with suppress(ModuleNotFoundError):
    import torch

    # With matrices this small, several threads are slower than one.
    torch.set_num_threads(1)

# The paper's main setting, and others: environment, states, layers, discount.  Kernels are compiled for each number of
# states, so there are few numbers.
SETTINGS = [("boyan", 5, 30, 0.9), ("boyan", 3, 1, 0.5), ("loop", 3, 7, 0.95), ("loop", 3, 3, 0.0)]


# Markov reward processes


def stationary(transition):
    """Solve mu p = mu with the entries summing to one."""
    n = len(transition)
    system = np.vstack([transition.T - np.eye(n), np.ones(n)])
    return np.linalg.lstsq(system, np.append(np.zeros(n), 1.0), rcond=None)[0]


def eliminated(transition):
    """The elimination of Grassmann, Taksar and Heyman, number by number."""
    p, n = transition.tolist(), len(transition)
    for k in range(n - 1, 0, -1):
        leaving = sum(p[k][:k])
        for i in range(k):
            p[i][k] /= leaving
            for j in range(k):
                p[i][j] += p[i][k] * p[k][j]
    mu = [1.0]
    for k in range(1, n):
        mu.append(sum(mu[i] * p[i][k] for i in range(k)))
    return [entry / sum(mu) for entry in mu]


def truncated_value(transition, reward, discount, steps):
    """Expected sum of the first ``steps`` discounted rewards."""
    value, ahead = np.zeros(len(reward)), reward
    for k in range(steps):
        value = value + discount**k * ahead
        ahead = transition @ ahead
    return value


# Trajectories


def alias_probabilities(accept, outcomes):
    """Distribution of the draws from one row of an alias table, with columns of two outcomes."""
    columns = len(accept)
    probability = np.zeros(columns)
    for column in range(columns):
        # Fractions 0, ..., accept - 1 of the 2^32 keep the column.
        keep = int(accept[column]) / 2**32
        probability[outcomes[column, 1]] += keep / columns
        probability[outcomes[column, 0]] += (1 - keep) / columns
    return probability


def alias_row(chance):
    """Thresholds (k,) and outcomes (k, 2) of the alias table of one distribution."""
    columns = len(chance)
    accept, outcomes = np.empty(columns, np.uint64), np.empty(2 * columns, np.uint16)
    small, large = np.empty((2, columns), np.uint16)
    jumps.fill_alias_row(np.array(chance), accept, outcomes, np.empty(columns), small, large)
    return accept, outcomes.reshape(columns, 2)


def next_state(distribution, u):
    """The first state whose cumulative probability exceeds u."""
    sums = list(itertools.accumulate(distribution))
    return next(state for state, total in enumerate(sums) if total / sums[-1] > u)


def trajectory(transition, initial, steps, rng):
    """States S_0, ..., S_m, one random number for each."""
    path = [next_state(initial, rng.random())]
    for _ in range(steps):
        path.append(next_state(transition[path[-1]], rng.random()))
    return path


def random_words(rng):
    """Endless stream of 64-bit numbers by NumPy's own SFC64, seeded with the next three numbers of a generator."""
    source = np.random.SFC64(0)
    state = source.state
    seed = [int(rng.integers(0, 2**64 - 1, dtype=np.uint64, endpoint=True)) for _ in range(3)]
    state["state"]["state"][:] = [*seed, 1]
    source.state = state
    source.random_raw(jumps.WARM_UP)
    while True:
        yield int(source.random_raw())


def random_halves(words, count):
    """The next 32-bit numbers, the lower half of each word first; the rest of the last word is not used."""
    taken = [next(words) for _ in range((count + 1) // 2)]
    return [half for word in taken for half in (word % 2**32, word // 2**32)][:count]


def paths_from(transition, state, steps):
    """All paths of some steps from a state with a positive probability, in the order of their states."""
    if not steps:
        return [((), 1.0)]
    paths = []
    for j in range(len(transition)):
        if transition[state, j] > 0:
            paths += [((j, *rest), transition[state, j] * p) for rest, p in paths_from(transition, j, steps - 1)]
    return paths


def jump_length(transition, most):
    """Greatest number of steps with at most PATHS paths from all states, from 1 to ``most``."""
    length = 1
    while length < most:
        if sum(len(paths_from(transition, s, length + 1)) for s in range(len(transition))) > jumps.PATHS:
            break
        length += 1
    return length


def jump(bits, paths):
    """One of the paths from a state, by an alias table of their probabilities."""
    accept, outcomes = alias_row([p for _, p in paths])
    column, fraction = divmod(bits * len(paths), 2**32)
    return paths[outcomes[column, int(fraction < int(accept[column]))]][0]


def unroll(tasks, batch_size, discount, rollout_steps, rng):
    """Algorithm 2's trajectories, one at a time, from the same random numbers as the kernels."""
    n = tasks.states
    visits, return_sums = np.zeros((2, len(tasks), n))
    transitions = np.zeros((len(tasks), n, n))
    for_steps, for_returns = rng.spawn(2)
    for i in range(len(tasks)):
        p, r = tasks.transition[i], tasks.reward[i]
        path = trajectory(p, tasks.stationary[i], batch_size, for_steps)
        for state, following in itertools.pairwise(path):
            visits[i, state] += 1
            transitions[i, state, following] += 1
        words, length = random_words(for_returns), jump_length(p, rollout_steps - 1)
        paths = [paths_from(p, s, length) for s in range(n)]
        walks = [[s] for s in sorted(path[:-1])]
        while len(walks[0]) < rollout_steps:
            for walk, bits in zip(walks, random_halves(words, len(walks)), strict=True):
                walk += jump(bits, paths[walk[-1]])
        for walk in walks:
            return_sums[i, walk[0]] += sum(discount**k * r[s] for k, s in enumerate(walk[:rollout_steps]))
    return visits, transitions, return_sums


# Prompts


def columns_of_steps(states, rewards, n, discount):
    """The context of a trajectory S_0, ..., S_m with rewards R_1, ..., R_m, column by column."""
    return columns_of_features(np.eye(n), states[:-1], states[1:], rewards, discount)


def columns_of_features(features, states, next_states, rewards, discount):
    """The context of steps with features (n, d) of the states, column by column."""
    return np.column_stack(
        [
            [*features[state], *(discount * features[following]), reward]
            for state, following, reward in zip(states, next_states, rewards, strict=True)
        ]
    )


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


# Transformer and baselines


def transformer(weights, depth, prompt, scaled=True):
    """TF_L of one prompt."""
    return output([weights.P()] * depth, [weights.Q()] * depth, prompt, scaled)


def output(P, Q, prompt, scaled=True):
    """TF_L of one prompt with the matrices of each layer."""
    return -embeddings(P, Q, prompt, scaled)[-1][-1, -1]


def embeddings(P, Q, prompts, scaled=True):
    """Z_0, ..., Z_L of prompts (..., 2n+1, m+1) with the matrices of each layer, products in the paper's order."""
    layers, m = [prompts], prompts.shape[-1] - 1
    M = np.diag(np.append(np.ones(m), 0.0))
    for layer in range(len(P)):
        Z = layers[-1]
        layers.append(Z + P[layer] @ Z @ M @ (Z.mT @ Q[layer] @ Z) / (m if scaled else 1))
    return layers


def enumerated_values(weights, depth, transition, reward, discount, scaled=True):
    """TF_L of every query state of an enumerated prompt."""
    prompts = [enumerated_prompt(transition, reward, discount, s) for s in range(len(reward))]
    return np.array([transformer(weights, depth, prompt, scaled) for prompt in prompts])


def sampled_values(weights, depth, path, reward, discount, scaled=True):
    """TF_L of every query state of the prompt of a trajectory."""
    prompts = [sampled_prompt(path, reward, discount, s) for s in range(len(reward))]
    return np.array([transformer(weights, depth, prompt, scaled) for prompt in prompts])


def grouped_columns(states, rewards, n, discount, pseudo_steps=0):
    """A column for each state with a step of positive weight, with means over the state's steps.

    Pseudo-steps lead from each state to all states with equal weights; rewards are means over steps of the trajectory.
    """
    columns = []
    for s in range(n):
        followers = [following for now, following in itertools.pairwise(states) if now == s]
        own = [reward for now, reward in zip(states[:-1], rewards, strict=True) if now == s]
        if followers or pseudo_steps:
            feature = sum((np.eye(n)[following] for following in followers), np.full(n, pseudo_steps / n))
            feature = feature / (len(followers) + pseudo_steps)
            columns.append(np.concatenate([np.eye(n)[s], discount * feature, [np.mean(own) if own else 0]]))
    return np.transpose(columns)


def errors(weights, data, length, depth, scaled=True):
    """MSVE of weights on each unseen task, by whole prompts; length 0 stands for enumerated prompts."""
    errors = []
    for p, r, path, mu, v in zip(*tasks_of(data), strict=True):
        if length:
            values = sampled_values(weights, depth, path[: length + 1], r, data.discount, scaled)
        else:
            values = enumerated_values(weights, depth, p, r, data.discount, scaled)
        errors.append((mu * (values - v) ** 2).sum())
    return np.array(errors)


def tasks_of(data):
    """Transitions, rewards, trajectories, stationary distributions and values of unseen tasks."""
    return data.tasks.transition, data.tasks.reward, data.paths, data.tasks.stationary, data.value


def batch_td(states, rewards, n, discount, step_size, updates):
    """Batch TD on a trajectory S_0, ..., S_m with rewards R_1, ..., R_m, sample by sample."""
    w = np.zeros(n)
    for _ in range(updates):
        change = np.zeros(n)
        for (now, following), reward in zip(itertools.pairwise(states), rewards, strict=True):
            change[now] += reward + discount * w[following] - w[now]
        w = w + step_size * change / len(rewards)
    return w


def lstd(states, rewards, n, discount, ridge):
    """LSTD on a trajectory S_0, ..., S_m with rewards R_1, ..., R_m, sample by sample."""
    matrix, vector = ridge * np.eye(n), np.zeros(n)
    for (now, following), reward in zip(itertools.pairwise(states), rewards, strict=True):
        phi, next_phi = np.eye(n)[now], np.eye(n)[following]
        matrix += np.outer(phi, phi - discount * next_phi)
        vector += reward * phi
    return np.linalg.solve(matrix, vector)


def certainty_equivalence(states, rewards, n, discount, pseudo_counts, other_reward):
    """Values of the maximum likelihood model of a trajectory, with pseudo-counts of transitions, by value iteration."""
    counts, sums = np.zeros((n, n)) if pseudo_counts is None else pseudo_counts.copy(), np.zeros(n)
    visits = np.zeros(n)
    for (now, following), reward in zip(itertools.pairwise(states), rewards, strict=True):
        counts[now, following] += 1
        visits[now] += 1
        sums[now] += reward
    value = np.zeros(n)
    for _ in range(1000):
        previous, value = value, np.zeros(n)
        for s in range(n):
            value[s] = sums[s] / visits[s] if visits[s] else other_reward
            for j in range(n):
                if counts[s].sum():
                    value[s] += discount * counts[s, j] / counts[s].sum() * previous[j]
    return value


# Pretraining


def clipped_step(optimizer, loss, clip):
    """Make a step down the gradient of a loss, clipped to a norm unless it is 0; torch's clipping adds 1e-6 to it."""
    optimizer.zero_grad()
    loss.backward()
    gradients = [parameter.grad for group in optimizer.param_groups for parameter in group["params"]]
    norm = torch.cat([gradient.ravel() for gradient in gradients]).norm()
    for gradient in gradients:
        gradient *= min(1, clip / norm) if clip else 1
    optimizer.step()


def step_loss(value, tasks, batches, i, algo, discount):
    """Half the mean squared error of Algorithm 1 or 2 over the steps of a batch; each visit gets the mean return."""
    now, following = torch.from_numpy(batches.paths[i, :-1]), torch.from_numpy(batches.paths[i, 1:])
    target = torch.from_numpy(batches.return_sums[i] / np.maximum(batches.visits[i], 1))[now]
    if algo == "td":
        target = torch.from_numpy(tasks.reward[i])[now] + discount * value.detach()[following]
    return 0.5 * ((target - value[now]) ** 2).mean()


def train_on_paths(tasks, batches, paths, lengths, algo, depth, discount, learning_rate, start, clip):
    """Algorithms 1 and 2 with sampled contexts as prompts, in torch on whole prompts; returns u and A."""
    model = ictd.LinearTransformer(start, depth)
    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate)
    for i in range(len(tasks)):
        context = ictd.sampled_columns(paths[i, : lengths[i] + 1], tasks.reward[i], discount)
        value = model(torch.from_numpy(ictd.prompts_of(context)))
        clipped_step(optimizer, step_loss(value, tasks, batches, i, algo, discount), clip)
    return model.u.detach().numpy(), model.A.detach().numpy()


# Statistics


def discoveries(p, level):
    """Benjamini and Hochberg's rejected hypotheses, by trying every number of rejections."""
    rejections = 0
    for k in range(1, len(p) + 1):
        if sorted(p)[k - 1] <= level * k / len(p):
            rejections = k
    return [sorted(p).index(value) < rejections for value in p]


# Material


def material(env, states, discount, tasks=200, batch=64, tau=50):
    """Tasks, their batches, and initial weights."""
    task_set = ictd.sample_tasks(env, states, tasks, ictd.generator(1, env, states, "tasks"))
    batches = ictd.unroll(task_set, batch, discount, tau, ictd.generator(1, env, states, "batches"))
    return task_set, batches, ictd.initial_weights(states, 0.1, ictd.generator(1, env, states, "weights"))


def sampled_material(env, states, size, lengths, discount):
    """Tasks, their batches, the matrix G of a context of each, and the paths that the contexts come from."""
    tasks = ictd.sample_tasks(env, states, size, ictd.generator(0, env, states, "tasks"))
    batches = ictd.unroll(tasks, 16, discount, 20, ictd.generator(0, env, states, "batches"))
    contexts = training_data.sample_contexts(tasks, lengths, ictd.generator(0, env, states, "contexts"))
    paths = ictd.sample_paths(tasks, int(lengths.max()), ictd.generator(0, env, states, "contexts"))
    return tasks, batches, contexts.gram_matrix(discount), paths


def larger_weights(states, seed=5):
    """Weights so large that layers have an effect, unlike initial weights."""
    rng = np.random.default_rng(seed)
    theta = ictd.theta_td(states)
    noise = 0.2 * rng.normal(size=theta.A.shape)
    return ictd.Weights(0.2 * rng.normal(size=theta.u.shape), theta.A + noise)


def several_weights(states, count=3):
    """Several ``larger_weights`` with a leading axis."""
    return stacked([larger_weights(states, seed) for seed in range(count)])


def stacked(parts):
    """Several Weights as one object with a leading axis."""
    return ictd.Weights(np.stack([part.u for part in parts]), np.stack([part.A for part in parts]))


def bca_interval(samples, statistic, resamples):
    """95% BCa interval of a statistic of the mean of samples (N, ...), one resample at a time (Efron, 1987)."""
    normal, size = NormalDist(), len(samples)
    drawn = np.random.default_rng(0).integers(size, size=(resamples, size))
    estimate = statistic(samples.mean(axis=0))
    resampled = [statistic(samples[draw].mean(axis=0)) for draw in drawn]
    rounding = 1e-12 * max(abs(value) for value in resampled)
    below = sum(value < estimate - rounding for value in resampled)
    below += sum(abs(value - estimate) <= rounding for value in resampled) / 2
    bias = normal.inv_cdf(min(max(below, 0.5), resamples - 0.5) / resamples)
    left_out = [statistic(np.delete(samples, k, axis=0).mean(axis=0)) for k in range(size)]
    influence = [np.mean(left_out) - value for value in left_out]
    acceleration = sum(one**3 for one in influence) / (6 * sum(one**2 for one in influence) ** 1.5)
    ends = []
    for level in (0.025, 0.975):
        z = bias + normal.inv_cdf(level)
        ends.append(np.quantile(resampled, normal.cdf(bias + z / (1 - acceleration * z))))
    return tuple(ends)

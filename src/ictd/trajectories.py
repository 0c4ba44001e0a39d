"""Trajectories of Markov reward processes and the sufficient statistics of their unrolled batches.

Successors are drawn by Walker's alias method (Walker, ACM Transactions on Mathematical Software 3(3), 1977; built as in
Vose, IEEE Transactions on Software Engineering 17(9), 1991): a draw costs one 32-bit random number and two look-ups,
however many outcomes there are.  Probabilities are thereby rounded to multiples of 2^-32 over the number of outcomes,
and one that is zero stays exactly zero.

Returns need no states on the way, only their rewards.  So what is drawn for them is a jump: one of the paths of several
steps that start in a state, with its last state and its discounted sum of rewards.

Row n of a task's table of single steps holds the initial distribution, so a chain starts by a step from the
pseudo-state n.
"""

from dataclasses import dataclass

import numpy as np

from ictd.checks import DISCOUNT, GENERATOR, array, instance, integer, integers, refuse, row_sums, validate
from ictd.kernels import kernel
from ictd.mrp import TaskArrays, Tasks
from ictd.prompts import Context

# Numbers that SFC64 throws away at first, as NumPy's does, until its state is mixed.
WARM_UP = 12
# A jump has as many steps as keep the paths from each state at no more than these, whose tables fit the fastest cache.
PATHS = 48


@dataclass(frozen=True)
class Unrolls(TaskArrays):
    """What the updates of Algorithms 1 and 2 need to know of each task's batch S_0, R_1, ..., S_b.

    The arrays of a single task may be given without the axis N.  The arrays are copied; ``unrolls[a:b]`` is a view of
    some tasks.  ValueError for arrays whose shapes do not fit, counts that do not add up, or returns that are not
    finite.

    Parameters
    ----------
    visits : (N, n) int array
        How often each state occurs among S_0, ..., S_{b-1}.
    transitions : (N, n, n) int array
        How often each pair (S_t, S_{t+1}) occurs, for t = 0, ..., b-1.
    returns : (N, n) array
        Sum of the truncated returns of the visits to each state, one independent return a visit.
    """

    visits: np.ndarray
    transitions: np.ndarray
    returns: np.ndarray

    def __post_init__(self):
        self._validate(visits=integers("..., n", 0), transitions=integers("..., n, n", 0), returns=array("..., n"))
        unequal = (row_sums(self.transitions.astype(np.int64)) != self.visits).any(axis=1)
        refuse("transitions", unequal, "has counts that do not add up to visits")
        refuse("visits", self.visits.sum(axis=1) == 0, "has no visits")


@kernel
def fill_alias_row(probability, accept, successor, height, small, large):
    """Write the alias table of one distribution.

    ``accept`` (n,) uint64 and ``successor`` (n, 2) get column k's threshold and its two outcomes: the alias, and k
    itself, which is taken when the random fraction lies below the threshold.  ``height``, ``small`` and ``large`` are
    work space, which takes longer to find than to use.
    """
    states = probability.shape[0]
    smalls, larges = 0, 0
    for k in range(states):
        height[k] = probability[k] * states
        accept[k] = np.uint64(0xFFFFFFFF)
        successor[k, 0] = k
        successor[k, 1] = k
        if height[k] < 1.0:
            small[smalls] = k
            smalls += 1
        else:
            large[larges] = k
            larges += 1
    while smalls > 0 and larges > 0:
        poor, rich = small[smalls - 1], large[larges - 1]
        accept[poor] = np.uint64(height[poor] * 4294967296.0)
        successor[poor, 0] = rich
        height[rich] -= 1.0 - height[poor]
        smalls -= 1
        if height[rich] < 1.0:
            larges -= 1
            small[smalls] = rich
            smalls += 1


@kernel
def alias_tables(transition, stationary):
    """One task's tables, flattened: row s for p(. | s), row n for the initial distribution.

    Outcomes are of the type that paths need too, so that ``fill_alias_row`` is compiled once.
    """
    states = stationary.shape[0]
    accept, successor = np.empty((states + 1, states), np.uint64), np.empty((states + 1, states, 2), np.uint16)
    space = np.empty(states), np.empty(states, np.int64), np.empty(states, np.int64)
    for s in range(states):
        fill_alias_row(transition[s], accept[s], successor[s], *space)
    fill_alias_row(stationary, accept[states], successor[states], *space)
    return accept.reshape(-1), successor.reshape(-1)


@kernel
def outcome(state, bits, columns, accept):
    """Place of the outcome of ``state`` (uint64) for 32 random bits in tables (n, columns, 2) that are flattened.

    The product bits * columns holds the column in its upper half and the random fraction in its lower half.  The
    outcome is looked up, not branched upon: a mispredicted branch would cost more than all the rest.
    """
    product = np.uint64(bits) * columns
    column = state * columns + (product >> np.uint64(32))
    keep = np.uint64((product & np.uint64(0xFFFFFFFF)) < accept[column])
    return np.uint64(2) * column + keep


@kernel
def step(state, bits, states, accept, successor):
    """Successor of ``state`` (uint64) for 32 random bits; the tables are flattened."""
    return np.uint64(successor[outcome(state, bits, states, accept)])


@kernel
def fill(words, stream):
    """Fill an array with random 64-bit numbers of SFC64, whose state (4,) goes on.

    The generator is Doty-Humphrey's, of the PractRand library, as in ``numpy.random.SFC64``.
    """
    a, b, c, counter = stream[0], stream[1], stream[2], stream[3]
    one = np.uint64(1)
    for i in range(words.shape[0]):
        words[i] = a + b + counter
        counter += one
        a = b ^ (b >> np.uint64(11))
        b = c + (c << np.uint64(3))
        c = ((c << np.uint64(24)) | (c >> np.uint64(40))) + words[i]
    stream[0], stream[1], stream[2], stream[3] = a, b, c, counter


@kernel
def steps_of_jump(transition, most):
    """Number of steps of a jump, from 1 to ``most``, and the largest number of paths that any state has then."""
    states = transition.shape[0]
    paths = np.empty((2, states), np.int64)
    for s in range(states):
        paths[0, s] = 1
    length, largest = 0, 1
    while length < most:
        old, new, longest = length % 2, 1 - length % 2, 0
        for s in range(states):
            paths[new, s] = 0
            for j in range(states):
                if transition[s, j] > 0.0:
                    paths[new, s] += paths[old, j]
            longest = max(longest, paths[new, s])
        if length > 0 and longest > PATHS:
            break
        length, largest = length + 1, longest
    return length, largest


@kernel
def jump_table(transition, reward, discount, length, largest):
    """Alias table of the jumps of ``length`` steps from each state, which have at most ``largest`` paths.

    Returned are thresholds (n, largest), and last states and gains (n, largest, 2) of each column's two outcomes, all
    flattened.  The gain of s_0, ..., s_k is r(s_1) + gamma r(s_2) + ... + gamma^{k-1} r(s_k).
    """
    states = transition.shape[0]
    chance, gain = np.empty((2, states, largest)), np.empty((2, states, largest))
    last, paths = np.empty((2, states, largest), np.uint8), np.empty((2, states), np.int64)
    for s in range(states):
        chance[0, s, 0], gain[0, s, 0], last[0, s, 0], paths[0, s] = 1.0, 0.0, s, 1
    for k in range(length):
        old, new = k % 2, 1 - k % 2
        for s in range(states):
            count = 0
            for j in range(states):
                if transition[s, j] > 0.0:
                    for i in range(paths[old, j]):
                        chance[new, s, count] = transition[s, j] * chance[old, j, i]
                        gain[new, s, count] = reward[j] + discount * gain[old, j, i]
                        last[new, s, count] = last[old, j, i]
                        count += 1
            paths[new, s] = count
    made = length % 2
    accept, path = np.empty((states, largest), np.uint64), np.empty((largest, 2), np.uint16)
    lasts, gains = np.empty((states, largest, 2), np.uint8), np.empty((states, largest, 2))
    space = np.empty(largest), np.empty(largest, np.int64), np.empty(largest, np.int64)
    for s in range(states):
        for i in range(paths[made, s], largest):
            chance[made, s, i], gain[made, s, i], last[made, s, i] = 0.0, 0.0, 0
        fill_alias_row(chance[made, s], accept[s], path, *space)
        for i in range(largest):
            for keep in range(2):
                lasts[s, i, keep] = last[made, s, path[i, keep]]
                gains[s, i, keep] = gain[made, s, path[i, keep]]
    return accept.reshape(-1), lasts.reshape(-1), gains.reshape(-1)


@kernel
def jump(walker, total, weight, bits, columns, accept, last, gain):
    """Let all walkers jump, in place, and add their gains times a weight to their totals.

    They advance together, so that their jumps overlap in the processor.
    """
    for t in range(walker.shape[0]):
        place = outcome(walker[t], bits[t], columns, accept)
        walker[t] = last[place]
        total[t] += weight * gain[place]


@kernel
def unroll_tasks(transition, stationary, reward, discount, batch, steps, stream, visits, transitions, returns):
    """Statistics of tasks, with random numbers of a stream."""
    tasks, states = reward.shape
    n = np.uint64(states)
    start, walker = np.empty(batch, np.uint64), np.empty(batch, np.uint64)
    total, words = np.empty(batch), np.empty((batch + 2) // 2, np.uint64)
    bits = words.view(np.uint32)
    for i in range(tasks):
        accept, successor = alias_tables(transition[i], stationary[i])
        fill(words, stream)
        state = n
        for t in range(batch + 1):
            following = step(state, bits[t], n, accept, successor)
            if t > 0:
                visits[i, state] += 1
                transitions[i, state, following] += 1
            if t < batch:
                start[t] = following
            state = following
        for t in range(batch):
            walker[t] = start[t]
            total[t] = reward[i, start[t]]
        left, weight = steps - 1, discount
        while left > 0:
            length, largest = steps_of_jump(transition[i], left)
            table = jump_table(transition[i], reward[i], discount, length, largest)
            for _ in range(left // length):
                fill(words, stream)
                jump(walker, total, weight, bits, np.uint64(largest), *table)
                weight *= discount**length
            left %= length
        for t in range(batch):
            returns[i, start[t]] += total[t]


@kernel
def paths_block(transition, stationary, bits, paths):
    """Trajectories (N, T) from random bits, at least T in a row."""
    tasks, states = stationary.shape
    n = np.uint64(states)
    for i in range(tasks):
        accept, successor = alias_tables(transition[i], stationary[i])
        state = n
        for t in range(paths.shape[1]):
            state = step(state, bits[i, t], n, accept, successor)
            paths[i, t] = state


def random_bits(rng: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    """Random 32-bit numbers, at least ``columns`` in a row, cut from 64-bit draws, which NumPy makes in half the time.

    Each row takes a whole number of 64-bit draws, so a row's numbers do not depend on how many rows are drawn at once.
    All of them are returned, as a slice has another layout in memory and numba would compile anew for it.
    """
    words = rng.integers(0, 2**64 - 1, (rows, (columns + 1) // 2), dtype=np.uint64, endpoint=True)
    return words.astype("<u8", copy=False).view("<u4")


def stream_of(rng: np.random.Generator) -> np.ndarray:
    """State (4,) of a stream for kernels, that a generator's next three 64-bit numbers start."""
    stream = np.ones(4, np.uint64)
    stream[:3] = rng.integers(0, 2**64 - 1, 3, dtype=np.uint64, endpoint=True)
    fill(np.empty(WARM_UP, np.uint64), stream)
    return stream


@validate(tasks=instance(Tasks), batch_size=integer(1), discount=DISCOUNT, rollout_steps=integer(1), rng=GENERATOR)
def unroll(tasks: Tasks, batch_size: int, discount: float, rollout_steps: int, rng: np.random.Generator) -> Unrolls:
    """Unroll each of N tasks as Algorithms 1 and 2 do, and keep the sufficient statistics.

    A trajectory S_0, ..., S_b, with b the batch size, starts from the stationary distribution; for each of S_0, ...,
    S_{b-1} an independent trajectory of ``rollout_steps`` rewards (tau) from that state gives a truncated return
    (Algorithm 2).  The number of states n is at most 256, and the discount gamma is in [0, 1); ValueError for numbers
    out of range.
    """
    _check_states(tasks)
    shape = tasks.reward.shape
    count = np.uint8 if batch_size < 2**8 else np.uint32
    visits, transitions = np.zeros(shape, count), np.zeros(tasks.transition.shape, count)
    returns = np.zeros(shape)
    of_tasks = tasks.transition, tasks.stationary, tasks.reward
    unroll_tasks(*of_tasks, discount, batch_size, rollout_steps, stream_of(rng), visits, transitions, returns)
    return Unrolls(visits, transitions, returns)


@validate(tasks=instance(Tasks), steps=integer(0), rng=GENERATOR)
def sample_paths(tasks: Tasks, steps: int, rng: np.random.Generator) -> np.ndarray:
    """One trajectory S_0, ..., S_steps of each of N tasks from its stationary distribution.

    The states are an (N, steps + 1) int array.  ``steps`` is the number of transitions, and the number of states n is
    at most 256; ValueError for numbers out of range.
    """
    _check_states(tasks)
    paths = np.empty((len(tasks), steps + 1), np.int64)
    paths_block(tasks.transition, tasks.stationary, random_bits(rng, len(tasks), steps + 1), paths)
    return paths


def sample_contexts(tasks: Tasks, lengths: np.ndarray, rng: np.random.Generator) -> Context:
    """One context of each of N tasks with n states, each of its own length, from the stationary distribution.

    ``lengths`` is an (N,) int array, the numbers of steps m.  The averages are (N, n), with ``length`` (N,).
    """
    paths, n = sample_paths(tasks, int(lengths.max()), rng), tasks.states
    within = np.arange(paths.shape[1] - 1) < lengths[:, None]
    place = (np.arange(len(tasks))[:, None] * n + paths[:, :-1]) * n + paths[:, 1:]
    counts = np.bincount(place[within], minlength=len(tasks) * n * n).reshape(-1, n, n)
    successors = counts / lengths[:, None, None]
    visits = successors.sum(axis=-1)
    return Context(lengths, visits, successors, visits * tasks.reward, np.vecmat(tasks.reward, successors))


def _check_states(tasks: Tasks) -> None:
    if tasks.states > 256:
        raise ValueError(f"tasks have {tasks.states} states; trajectories can be sampled for at most 256.")

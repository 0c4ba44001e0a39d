"""Fast draws of the batches and returns of Algorithms 1 and 2, in compiled kernels.

``ictd.sampling`` says what is drawn.  Successors are drawn by Walker's alias method (Walker, ACM Transactions on
Mathematical Software 3(3), 1977; tables built as in Vose, IEEE Transactions on Software Engineering 17(9), 1991).  A
draw costs one 32-bit random number and two look-ups for any number of outcomes.  The method rounds probabilities by a
few times 2^-32; a probability of zero stays exactly zero.

A return needs the rewards along a trajectory, but not its states.  So a return is drawn in jumps: one draw selects a
whole path of several steps from a table, with its last state and its discounted sum of rewards.

Row n of a task's table of single steps holds the initial distribution, so a trajectory starts with a step from the
pseudo-state n.
"""

import numpy as np

from ictd.kernels import kernel

# Outputs that SFC64 discards after seeding, as NumPy's does, until its state is mixed.
WARM_UP = 12
# Largest number of paths from a state in a table of jumps.  Larger tables leave the fastest cache.
PATHS = 48
# Mask of the lower 32 bits.
HALF = np.uint64(0xFFFFFFFF)


def alias_scratch(columns: int) -> tuple[np.ndarray, ...]:
    """Allocate the scratch arrays of ``fill_alias_row``, for up to so many columns.

    Kernels get their work space as arguments, because its allocation for each task would take as long as the work.
    """
    return np.empty(columns), np.empty(columns, np.uint16), np.empty(columns, np.uint16)


@kernel
def fill_alias_row(columns, accept, successor, height, small, large):
    """Fill the alias table of one distribution, with one column for each outcome.

    ``height`` has the probability of each outcome times the number of columns, and is overwritten.  ``accept``
    (columns,) uint64 gets the threshold of each column k.  ``successor`` (2 columns,) gets its two outcomes: the alias,
    and k itself, which is the outcome if the random fraction is below the threshold.  ``small`` and ``large`` are
    scratch.
    """
    smalls, larges = 0, 0
    for k in range(columns):
        accept[k] = np.uint64(0xFFFFFFFF)
        successor[2 * k] = k
        successor[2 * k + 1] = k
        # Both lists get k, and one of them keeps it, because a branch would be mispredicted half of the time.
        small[smalls] = k
        large[larges] = k
        is_small = np.int64(height[k] < 1.0)
        smalls += is_small
        larges += 1 - is_small
    while smalls > 0 and larges > 0:
        # The last large column fills up small ones until it is small itself.
        larges -= 1
        rich = large[larges]
        rest = height[rich]
        while smalls > 0 and rest >= 1.0:
            smalls -= 1
            poor = small[smalls]
            accept[poor] = np.uint64(height[poor] * 4294967296.0)
            successor[2 * poor] = rich
            rest -= 1.0 - height[poor]
        if rest < 1.0:
            height[rich] = rest
            small[smalls] = rich
            smalls += 1


def steps_space(states: int) -> tuple[np.ndarray, ...]:
    """Allocate thresholds and outcomes of the alias tables of single steps, flattened, and scratch.

    Outcomes have the type that jumps need too, so that ``fill_alias_row`` is compiled once.
    """
    columns = (states + 1) * states
    return np.empty(columns, np.uint64), np.empty(2 * columns, np.uint16), *alias_scratch(states)


@kernel
def fill_step_tables(i, transition, stationary, accept, successor, height, small, large):
    """Fill the alias tables of task i: row s for p(. | s), row n for the initial distribution.

    Like ``steps_of_jump`` and ``fill_jump_table``, it gets the arrays of all tasks and the index of one, because
    counting references to slices took 4% of the time of a batch.
    """
    states = stationary.shape[1]
    for s in range(states + 1):
        for j in range(states):
            height[j] = (transition[i, s, j] if s < states else stationary[i, j]) * states
        first = s * states
        fill_alias_row(states, accept[first:], successor[2 * first :], height, small, large)


@kernel
def outcome(first, bits, columns, accept):
    """Index of the outcome for 32 random bits (uint64) in flattened tables (n, columns, 2).

    ``first`` (uint64) is the first column of the state's row: the state times the number of columns.  The upper half of
    the product bits * columns is the column within the row, and its lower half the random fraction.  A look-up replaces
    a branch, because a misprediction costs more than the draw.
    """
    product = bits * columns
    column = first + (product >> np.uint64(32))
    keep = np.uint64((product & HALF) < accept[column])
    return np.uint64(2) * column + keep


@kernel
def step(state, bits, states, accept, successor):
    """Successor of ``state`` (uint64) for 32 random bits; the tables are flattened."""
    return np.uint64(successor[outcome(state * states, bits, states, accept)])


@kernel
def draw(a, b, c, counter):
    """Draw a random 64-bit number of SFC64; return it and the generator's next state.

    The generator is Doty-Humphrey's, from the PractRand library, as in ``numpy.random.SFC64``.
    """
    word = a + b + counter
    mixed = ((c << np.uint64(24)) | (c >> np.uint64(40))) + word
    return word, b ^ (b >> np.uint64(11)), c + (c << np.uint64(3)), mixed, counter + np.uint64(1)


@kernel
def walk(starts, states, accept, successor, stream, path):
    """Fill a trajectory (T,) from flattened tables of single steps, or the next state of each of ``starts`` (T,).

    ``starts`` is None for a trajectory.  Two steps take the lower and the upper half of one random number.
    """
    a, b, c, counter = stream[0], stream[1], stream[2], stream[3]
    state, bits = states, np.uint64(0)
    for t in range(path.shape[0]):
        if t % 2 == 0:
            bits, a, b, c, counter = draw(a, b, c, counter)
        else:
            bits >>= np.uint64(32)
        if starts is not None:
            state = starts[t]
        state = step(state, bits & HALF, states, accept, successor)
        path[t] = state
    stream[0], stream[1], stream[2], stream[3] = a, b, c, counter


@kernel
def steps_of_jump(i, transition, most, paths):
    """Number of steps of a jump of task i, from 1 to ``most``; paths (2, n) is scratch."""
    states = transition.shape[1]
    for s in range(states):
        paths[0, s] = 1
    length = 0
    while length < most:
        old, new, longest = length % 2, 1 - length % 2, 0
        for s in range(states):
            paths[new, s] = 0
            for j in range(states):
                if transition[i, s, j] > 0.0:
                    paths[new, s] += paths[old, j]
            if paths[new, s] > longest:
                longest = paths[new, s]
        if length > 0 and longest > PATHS:
            break
        length += 1
    return length


def jumps_space(states: int) -> tuple[np.ndarray, ...]:
    """Allocate the arrays that ``fill_jump_table`` fills, and its scratch."""
    most = max(PATHS, states)
    columns = states * most
    table = np.empty(columns, np.uint64), np.empty(2 * columns, np.uint16), np.empty(2 * columns)
    paths = np.empty((2, states, most)), np.empty((2, states, most)), np.empty((2, states, most), np.uint8)
    return *table, *paths, np.empty((2, states), np.int64), *alias_scratch(most)


@kernel
def fill_jump_table(
    i, transition, reward, discount, length, accept, rows, gains, chance, gain, last, paths, height, small, large
):
    """Fill the alias table of task i's jumps of ``length`` steps from each state; return the number of its columns.

    A row has as many columns as the state with the most paths needs.  Fills thresholds (n, columns), and for the two
    outcomes of each column the first columns of the last states' rows, and the gains (n, columns, 2), all flattened.
    The gain of s_0, ..., s_k is r(s_1) + gamma r(s_2) + ... + gamma^{k-1} r(s_k).  The others are scratch.
    """
    states = transition.shape[1]
    for s in range(states):
        chance[0, s, 0], gain[0, s, 0], last[0, s, 0], paths[0, s] = 1.0, 0.0, s, 1
    for step_number in range(length):
        old, new = step_number % 2, 1 - step_number % 2
        for s in range(states):
            count = 0
            for j in range(states):
                if transition[i, s, j] > 0.0:
                    for k in range(paths[old, j]):
                        chance[new, s, count] = transition[i, s, j] * chance[old, j, k]
                        gain[new, s, count] = reward[i, j] + discount * gain[old, j, k]
                        last[new, s, count] = last[old, j, k]
                        count += 1
            paths[new, s] = count
    made = length % 2
    columns = paths[made, 0]
    for s in range(1, states):
        if paths[made, s] > columns:
            columns = paths[made, s]
    for s in range(states):
        for k in range(paths[made, s], columns):
            chance[made, s, k], gain[made, s, k], last[made, s, k] = 0.0, 0.0, 0
        for k in range(columns):
            height[k] = chance[made, s, k] * columns
        first = s * columns
        row, gains_of_row = rows[2 * first :], gains[2 * first :]
        fill_alias_row(columns, accept[first:], row, height, small, large)
        for place in range(2 * columns):
            path = row[place]
            row[place] = last[made, s, path] * columns
            gains_of_row[place] = gain[made, s, path]
    return columns


@kernel
def jump(walker, total, weight, stream, columns, accept, row, gain):
    """Advance all walkers by one jump, in place, and add their gains times a weight to their totals.

    A walker is the first column of its state's row, so that no draw has to multiply.  The walkers advance together, so
    that the processor overlaps their look-ups.  Two walkers take the lower and the upper half of one random number.
    """
    a, b, c, counter = stream[0], stream[1], stream[2], stream[3]
    bits = np.uint64(0)
    for t in range(walker.shape[0]):
        if t % 2 == 0:
            bits, a, b, c, counter = draw(a, b, c, counter)
        else:
            bits >>= np.uint64(32)
        place = outcome(walker[t], bits & HALF, columns, accept)
        walker[t] = row[place]
        total[t] += weight * gain[place]
    stream[0], stream[1], stream[2], stream[3] = a, b, c, counter


@kernel
def unroll_tasks(
    transition, stationary, reward, behaviour, discount, steps, stream, steps_space, jumps_space, walkers, total,
    visits, transitions, return_sums,
):  # fmt: skip
    """Fill the batch statistics of N tasks, with the random numbers of a stream.

    ``behaviour`` is None, or the chains (N, n, n) of the visited states and their stationary distributions (N, n).  The
    functions ``steps_space`` and ``jumps_space`` allocate the arguments with these names.  ``walkers`` (3, b+1) uint64
    and ``total`` (b+1,) are scratch.
    """
    tasks, states = reward.shape
    n = np.uint64(states)
    batch = len(total) - 1
    step_accept, successor, step_height, step_small, step_large = steps_space
    accept, rows, gains, chance, gain, last, paths, height, small, large = jumps_space
    path, walker, following = walkers[0], walkers[1], walkers[0, 1:]
    if behaviour is not None:
        following = walkers[2]
    for i in range(tasks):
        if behaviour is None:
            fill_step_tables(i, transition, stationary, step_accept, successor, step_height, step_small, step_large)
        else:
            chain, visited = behaviour
            fill_step_tables(i, chain, visited, step_accept, successor, step_height, step_small, step_large)
        walk(None, n, step_accept, successor, stream, path)
        if behaviour is not None:
            fill_step_tables(i, transition, stationary, step_accept, successor, step_height, step_small, step_large)
            walk(path, n, step_accept, successor, stream, following)
        # A trajectory of returns starts at each state, also at S_b, whose return is not used: a loop over batch + 1
        # walkers draws as many random numbers as the trajectory.
        for t in range(batch + 1):
            walker[t] = path[t]
            total[t] = reward[i, path[t]]
        # The first reward is r(S_t); the other tau - 1 rewards come from jumps, as long as possible.
        left, weight = steps - 1, discount
        longest = steps_of_jump(i, transition, left, paths)
        columns = np.uint64(1)
        while left > 0:
            length = min(longest, left)
            # Each table has its own number of columns; before the first jump, a walker is its state.
            previous = columns
            width = fill_jump_table(
                i, transition, reward, discount, length, accept, rows, gains, chance, gain, last, paths, height, small,
                large,
            )  # fmt: skip
            columns = np.uint64(width)
            for t in range(batch + 1):
                walker[t] = walker[t] // previous * columns
            for _ in range(left // length):
                jump(walker, total, weight, stream, columns, accept, rows, gains)
                weight *= discount**length
            left %= length
        for t in range(batch):
            visits[i, path[t]] += 1
            transitions[i, path[t], following[t]] += 1
            return_sums[i, path[t]] += total[t]


@kernel
def fill_paths(transition, stationary, bits, space, starts, paths):
    """Fill trajectories (N, T), or the next state of each of ``starts`` (N, T), from random bits (N, T or more).

    ``starts`` is None for trajectories.
    """
    tasks, states = stationary.shape
    n = np.uint64(states)
    for i in range(tasks):
        fill_step_tables(i, transition, stationary, *space)
        state = n
        for t in range(paths.shape[1]):
            if starts is not None:
                state = np.uint64(starts[i, t])
            state = step(state, np.uint64(bits[i, t]), n, space[0], space[1])
            paths[i, t] = state


def random_bits(rng: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    """Draw random 32-bit numbers, at least ``columns`` in a row, as halves of 64-bit numbers, in half the time.

    Each row takes a whole number of 64-bit draws, so its numbers do not depend on the number of rows.  The result is
    not cut to ``columns``: numba compiles again for the memory layout of a slice.
    """
    words = rng.integers(0, 2**64 - 1, (rows, (columns + 1) // 2), dtype=np.uint64, endpoint=True)
    return words.astype("<u8", copy=False).view("<u4")


def stream_of(rng: np.random.Generator) -> np.ndarray:
    """Seed a stream for kernels, with state (4,), from the next three 64-bit numbers of a generator."""
    source = np.random.SFC64(0)
    state = source.state
    stream = state["state"]["state"]
    stream[:3] = rng.integers(0, 2**64 - 1, 3, dtype=np.uint64, endpoint=True)
    stream[3] = 1
    source.state = state
    source.random_raw(WARM_UP)
    return source.state["state"]["state"]

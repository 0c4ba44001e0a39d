"""Monte Carlo returns, drawn fast: the compiled part of ``ictd.sampling.sample_returns``.

A return needs the rewards along a trajectory, but not its states.  So a return is drawn in jumps: one draw selects a
whole path of several steps, with its last state and its discounted sum of rewards, from a table of all paths.

A draw is that of Walker's alias method (Walker, ACM Transactions on Mathematical Software 3(3), 1977; tables built as
in Vose, IEEE Transactions on Software Engineering 17(9), 1991).  It costs one 32-bit random number and two look-ups for
any number of paths, and rounds probabilities by a few times 2^-32; a probability of zero stays exactly zero.
"""

import numpy as np

from ictd.kernels import kernel

# Outputs that SFC64 discards after seeding, as NumPy's does, until its state is mixed.
WARM_UP = 12
# Largest number of paths in a table of jumps of several steps.  Larger tables leave the fastest cache.
PATHS = 256
# Number of bits of half a random number, and the mask of its lower half.
HALF, LOW = np.uint64(32), np.uint64(0xFFFFFFFF)


@kernel
def fill_returns(transition, reward, visits, discount, steps, seeds, return_sums):
    """Fill the sums (N, n) of ``visits`` (N, n) returns of ``steps`` rewards, from each state of N tasks.

    A return from s consists of r(s), of the rewards of jumps, and of the first ``rest`` rewards of one more jump.  The
    random numbers of task i are those of SFC64 with row i of ``seeds`` (N, 3).
    """
    tasks, n = reward.shape
    batch = visits.sum(axis=1).max()
    walker, total = np.empty(batch, np.uint64), np.empty(batch)
    numbers = np.empty(batch + 1, np.uint64)
    # A table has at most PATHS paths, or those of single steps, of which each state has at most n.
    most, row = max(PATHS, n * n), max(PATHS, n)
    paths, chance, gain = np.empty((2, n), np.int64), np.empty((2, n, row)), np.empty((2, 2, n, row))
    last, row_of = np.empty((2, n, row), np.uint16), np.empty(n, np.uint64)
    accept, next_row = np.empty(most, np.uint64), np.empty(2 * most, np.uint64)
    whole, short = np.empty(2 * most), np.empty(2 * most)
    scratch = np.empty(2 * row, np.uint16), np.empty(row), np.empty(row, np.uint16), np.empty(row, np.uint16)
    for i in range(tasks):
        length = jump_length(transition[i], steps - 1, paths)
        jumps, rest = (steps - 1) // length, (steps - 1) % length
        list_paths(transition[i], reward[i], discount, length, rest, paths, chance, gain, last)
        made = length % 2
        fill_table(
            paths[made], chance[made], gain[:, made], last[made], row_of, accept, next_row, whole, short, scratch
        )
        # One walker for each return, in the order of their states.
        count = 0
        for s in range(n):
            for _ in range(visits[i, s]):
                walker[count], total[count] = row_of[s], reward[i, s]
                count += 1
        a, b, c, counter = seeds[i, 0], seeds[i, 1], seeds[i, 2], np.uint64(1)
        for _ in range(WARM_UP):
            _, a, b, c, counter = draw(a, b, c, counter)
        weight = discount
        for number in range(jumps + (rest > 0)):
            for pair in range((count + 1) // 2):
                word, a, b, c, counter = draw(a, b, c, counter)
                numbers[2 * pair], numbers[2 * pair + 1] = word & LOW, word >> HALF
            jump(count, numbers, walker, total, weight, accept, next_row, whole if number < jumps else short)
            weight *= discount**length
        count = 0
        for s in range(n):
            return_sums[i, s] = 0.0
            for _ in range(visits[i, s]):
                return_sums[i, s] += total[count]
                count += 1


@kernel(noalias=True)
def jump(count, numbers, walker, total, weight, accept, next_row, gain):
    """Advance each walker by one jump, with one random number, and add its gain times a weight to its total.

    A walker is a row of the table: its upper half is the row's first column, its lower half the number of columns.  The
    upper half of the product of this number and the random number is the column within the row, the lower half a random
    fraction.  A look-up replaces a branch, because a misprediction costs more than the draw.
    """
    for t in range(count):
        row = walker[t]
        product = numbers[t] * (row & LOW)
        column = np.int64((row >> HALF) + (product >> HALF))
        place = 2 * column + np.int64((product & LOW) < accept[column])
        walker[t] = next_row[place]
        total[t] += weight * gain[place]


@kernel
def draw(a, b, c, counter):
    """Draw a random 64-bit number of SFC64; return it and the generator's next state.

    The generator is Doty-Humphrey's, from the PractRand library, as in ``numpy.random.SFC64``.
    """
    word = a + b + counter
    mixed = ((c << np.uint64(24)) | (c >> np.uint64(40))) + word
    return word, b ^ (b >> np.uint64(11)), c + (c << np.uint64(3)), mixed, counter + np.uint64(1)


@kernel
def jump_length(transition, most, paths):
    """Greatest number of steps, from 1 to ``most``, of which there are at most PATHS paths; paths (2, n) is scratch."""
    n = len(transition)
    paths[0] = 1
    length = 0
    while length < most:
        old, new = paths[length % 2], paths[1 - length % 2]
        for s in range(n):
            new[s] = 0
            for j in range(n):
                if transition[s, j] > 0.0:
                    new[s] += old[j]
        if length > 0 and new.sum() > PATHS:
            break
        length += 1
    return max(length, 1)


@kernel(noalias=True)
def list_paths(transition, reward, discount, length, rest, paths, chance, gain, last):
    """List all paths of ``length`` steps from each state, by adding a first step to shorter paths.

    Index ``length`` % 2 of the arrays gets the number of paths of each state, their chances, gains and last states.
    The gain of s_0, ..., s_k is r(s_1) + gamma r(s_2) + ... + gamma^{k-1} r(s_k); the second gain is that of the first
    ``rest`` steps.
    """
    n = len(reward)
    for s in range(n):
        paths[0, s], chance[0, s, 0], gain[:, 0, s, 0], last[0, s, 0] = 1, 1.0, 0.0, s
    for steps in range(length):
        old, new = steps % 2, 1 - steps % 2
        # The first steps of a path are added last.
        within = 1.0 if steps >= length - rest else 0.0
        for s in range(n):
            count = 0
            for j in range(n):
                p, r = transition[s, j], reward[j]
                if p > 0.0:
                    for k in range(paths[old, j]):
                        chance[new, s, count] = p * chance[old, j, k]
                        gain[0, new, s, count] = r + discount * gain[0, old, j, k]
                        gain[1, new, s, count] = within * (r + discount * gain[1, old, j, k])
                        last[new, s, count] = last[old, j, k]
                        count += 1
            paths[new, s] = count


@kernel(noalias=True)
def fill_table(paths, chance, gain, last, row_of, accept, next_row, whole, short, scratch):
    """Fill the alias table of the paths of all states: one row after the other, with a column for each path.

    ``row_of`` (n,) gets the row of each state, as ``jump`` takes it, and ``accept`` the threshold of each column.  For
    the two outcomes of each column, ``next_row`` gets the row of the last state, ``whole`` and ``short`` the two gains.
    """
    n = len(paths)
    path_of, height, small, large = scratch
    first = 0
    for s in range(n):
        row_of[s] = np.uint64(first) << HALF | np.uint64(paths[s])
        first += paths[s]
    first = 0
    for s in range(n):
        columns = paths[s]
        fill_alias_row(chance[s, :columns], accept[first:], path_of, height, small, large)
        for place in range(2 * columns):
            path = path_of[place]
            next_row[2 * first + place] = row_of[last[s, path]]
            whole[2 * first + place], short[2 * first + place] = gain[0, s, path], gain[1, s, path]
        first += columns


@kernel(noalias=True)
def fill_alias_row(chance, accept, outcomes, height, small, large):
    """Fill the alias table of one distribution, with one column for each outcome.

    ``accept`` (columns,) uint64 gets the threshold of each column k.  ``outcomes`` (2 columns,) gets its two outcomes:
    the alias, and k itself, which is the outcome if the random fraction is below the threshold.
    """
    columns = len(chance)
    smalls, larges = 0, 0
    for k in range(columns):
        height[k] = chance[k] * columns
        accept[k] = LOW
        outcomes[2 * k] = k
        outcomes[2 * k + 1] = k
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
            outcomes[2 * poor] = rich
            rest -= 1.0 - height[poor]
        if rest < 1.0:
            height[rich] = rest
            small[smalls] = rich
            smalls += 1

"""Speed of a TD update in ictd, C and JAX, on one core, measured in one run (``make benchmark-peers``).

n and L are compile-time constants in C, and JAX updates 20 seeds at once.  All three compute the collapsed forward pass
and its adjoint in float64, and must end with the same parameters.
"""

import ctypes
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# These must be set before JAX is imported.
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
import numpy as np

import ictd
from ictd.engine import Engine

jax.config.update("jax_enable_x64", True)
DEPTH, DISCOUNT, BATCH, RATE, SEEDS, TASKS, REPEATS = 30, 0.9, 64, 1e-3, 20, 2000, 5
AGREE = 1e-10


def material(n: int):
    """Task sets, batches and initial parameters of all seeds."""
    found = []
    for seed in range(SEEDS):
        rngs = [ictd.generator(seed, "boyan", n, name) for name in ("tasks", "batches", "weights")]
        tasks = ictd.sample_tasks("boyan", n, TASKS, rngs[0])
        found.append((tasks, ictd.unroll(tasks, BATCH, DISCOUNT, 1, rngs[1]), ictd.initial_weights(n, 0.1, rngs[2])))
    return found


def ours(runs):
    """A pass over all seeds in ictd, and its final parameters."""
    engines = []
    for tasks, batches, start in runs:
        engines.append(Engine(start, "td", DEPTH, DISCOUNT, RATE, True))
        engines[-1].train(tasks.reward, batches, tasks.transition)
    return np.stack([engine.parameter for engine in engines])


def in_c(n: int, folder: str):
    """A pass over all seeds in C, and its final parameters."""
    library = Path(folder, f"engine-{n}.so")
    source = Path(__file__).with_name("engine.c")
    flags = ["-O3", "-march=native", "-shared", "-fPIC", f"-DN={n}", f"-DL={DEPTH}"]
    subprocess.run(["cc", *flags, source, "-o", library, "-lm"], check=True)
    train = ctypes.CDLL(library).train
    double, pointer = ctypes.c_double, lambda array: array.ctypes.data_as(ctypes.c_void_p)

    def run(runs):
        found = []
        for tasks, batches, start in runs:
            parameter = np.concatenate([start.u, start.A.ravel()])
            moments = np.zeros((2, len(parameter)))
            given = tasks.transition, tasks.reward, batches.visits, batches.transitions
            numbers = double(DISCOUNT), double(RATE)
            train(ctypes.c_long(len(tasks)), *map(pointer, given), *numbers, *map(pointer, (parameter, *moments)))
            found.append(parameter)
        return np.stack(found)

    return run


def in_jax(n: int, unroll: int):
    """The same in JAX, for arrays with leading axes of seeds and tasks; layers are unrolled by a factor."""
    wide = 2 * n

    def update(carry, task):
        parameter, mean, square, steps = carry
        p, r, visits, transitions = task
        u, A = parameter[:wide], parameter[wide:].reshape(wide, wide)
        X = jnp.concatenate([jnp.eye(n), DISCOUNT * p.T])
        T, Bq = jnp.eye(n) + X.T @ (A @ X) / n, X.T @ A[:, :n] / n

        def layer(h, _):
            return h @ T, h

        _, h = jax.lax.scan(layer, u @ X + r, None, length=DEPTH, unroll=unroll)
        g = h.sum(axis=0)
        estimate = -g @ Bq
        e = (visits * r + DISCOUNT * (transitions @ estimate) - visits * estimate) / -visits.sum()
        q = Bq @ e

        def back(lam, _):
            return q + T @ lam, lam

        lam, following = jax.lax.scan(back, q, None, length=DEPTH - 1, unroll=unroll)
        dT = h[: DEPTH - 1].T @ following[::-1]
        D = (dT @ X.T + jnp.pad(jnp.outer(g, e), ((0, 0), (0, n)))) / n
        gradient = jnp.concatenate([-X @ lam, -(X @ D).ravel()])
        mean = mean + 0.1 * (gradient - mean)
        square = 0.999 * square + 0.001 * gradient**2
        root = jnp.sqrt(1 - 0.999**steps)
        parameter = parameter - RATE * root / (1 - 0.9**steps) * mean / (jnp.sqrt(square) + 1e-8 * root)
        return (parameter, mean, square, steps + 1), None

    def train(parameter, task_set):
        zero = jnp.zeros_like(parameter)
        return jax.lax.scan(update, (parameter, zero, zero, 1.0), task_set)[0][0]

    compiled = jax.jit(jax.vmap(train))

    def prepared(runs):
        """The pass over arrays that are already on JAX's device."""
        start = jnp.stack([jnp.concatenate([w.u, w.A.ravel()]) for _, _, w in runs])
        arrays = [(t.transition, t.reward, b.visits.astype(float), b.transitions.astype(float)) for t, b, _ in runs]
        task_sets = tuple(jnp.stack(parts) for parts in zip(*arrays, strict=True))
        return lambda: np.asarray(compiled(start, task_sets))

    return prepared


def main() -> None:
    """Print microseconds per task and ratios to ictd; exit with an error if parameters differ."""
    print(f"TD update, L = {DEPTH}, microseconds a task on one core ({jax.__name__} {jax.__version__})")
    print(f"{'n':>3} {'ictd':>8} {'C':>8} {'JAX':>8}   C / ictd   JAX / ictd")
    with tempfile.TemporaryDirectory() as folder:
        for n in map(int, sys.argv[1:] or (3, 5, 10, 20)):
            runs = material(n)
            c = in_c(n, folder)
            ways = {"ictd": [lambda runs=runs: ours(runs)], "C": [lambda runs=runs, c=c: c(runs)]}
            ways["JAX"] = [in_jax(n, unroll)(runs) for unroll in (1, 5, DEPTH)]
            wanted, least = ours(runs), {}
            for name, variants in ways.items():
                for variant in variants:
                    if not np.abs(variant() - wanted).max() < AGREE:
                        sys.exit(f"error: {name} ends with other parameters at n = {n}.")
            for name in [*ways] * REPEATS:
                for variant in ways[name]:
                    started = time.perf_counter()
                    variant()
                    least[name] = min(least.get(name, np.inf), time.perf_counter() - started)
            times = [least[name] / SEEDS / TASKS * 1e6 for name in ways]
            ratios = times[1] / times[0], times[2] / times[0]
            print(f"{n:3} " + " ".join(f"{one:8.2f}" for one in times) + f"   {ratios[0]:8.2f}   {ratios[1]:10.2f}")


if __name__ == "__main__":
    main()

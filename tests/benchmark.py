"""Speed of the engines and of sampling, measured side by side in one run (``make benchmark``)."""

import timeit

import torch
from naive import material

import ictd
from ictd.engine import Engine
from ictd.training_data import training_blocks

STATES, DEPTH, DISCOUNT, BATCH, STEPS = 5, 30, 0.9, 64, 200
# Numbers of states n, features d and layers L.
FEATURES = [(5, 5, 30), (10, 5, 30), (50, 5, 30), (20, 20, 30), (50, 50, 30), (10, 5, 5), (10, 5, 100)]


def seconds(function, repeats=3):
    """Shortest of several runs."""
    return min(timeit.repeat(function, number=1, repeat=repeats))


def main():
    """Print times per task and per step, and the engines' ratio."""
    torch.set_num_threads(1)
    tasks, batches, start = material("boyan", STATES, DISCOUNT, 20_000, BATCH, STEPS)

    def sample():
        return ictd.unroll(tasks, BATCH, DISCOUNT, STEPS, ictd.generator(0, "boyan", STATES, "batches"))

    def pretrain(algo, engine, count):
        arguments = (algo, DEPTH, DISCOUNT, 1e-3, start, engine)
        return lambda: ictd.pretrain_history(tasks[:count], batches[:count], *arguments)

    pretrain("td", "compiled", 10)()
    step = seconds(sample) / (len(tasks) * BATCH * STEPS)
    print(f"n = {STATES}, L = {DEPTH}, batch {BATCH}, one core")
    print(f"Monte Carlo sampling  {step * 1e9:10.2f} ns a step")
    for algo in ("td", "mc"):
        compiled = seconds(pretrain(algo, "compiled", len(tasks))) / len(tasks)
        by_torch = seconds(pretrain(algo, "torch", 100), repeats=2) / 100
        print(f"{algo}, compiled engine      {compiled * 1e6:10.2f} microseconds a task")
        print(
            f"{algo}, torch engine   {by_torch * 1e6:10.0f} microseconds a task: {by_torch / compiled:.0f} times that"
        )
    print("\nan update with features on sampled prompts, against one with one-hot features (n = 5)")
    usual = update(5, None, DEPTH)
    for states, dimension, depth in FEATURES:
        taken = update(states, dimension, depth)
        sizes = f"n = {states}, d = {dimension}, L = {depth}"
        print(f"{sizes:24}{taken * 1e6:10.2f} microseconds: {taken / usual:.2f} times that")


def update(states, dimension, depth, count=1000):
    """Seconds of an update on prompts of 20 steps."""
    distribution = ictd.TaskDistribution("boyan", states, dimension)
    prompts = ictd.SampledPrompts(20, 20)
    (block,) = training_blocks(distribution, prompts, "td", DISCOUNT, count, 0, BATCH, STEPS)
    start = ictd.initial_weights(dimension or states, 0.1, ictd.generator(0, "boyan", states, "weights"))
    gram = block.contexts.gram_matrix(DISCOUNT)

    def train(tasks):
        engine = Engine(start, depth, DISCOUNT, 1e-3)
        queries = None if dimension is None else block.tasks.features[:tasks]
        engine.train(block.tasks.reward[:tasks], block.targets[:tasks], gram[:tasks], queries)

    train(1)
    return seconds(lambda: train(count), repeats=9) / count


if __name__ == "__main__":
    main()

"""Speed of the engines and of Monte Carlo sampling, measured side by side in one run (``make benchmark``)."""

import time

import torch

import ictd

STATES, DEPTH, DISCOUNT, BATCH, STEPS = 5, 30, 0.9, 64, 200


def seconds(function, repeats=3):
    """Shortest of several runs."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def material(count=20_000):
    """Task sets and batches of the main setting, and initial weights."""
    tasks = ictd.sample_tasks("boyan", STATES, count, ictd.generator(0, "boyan", STATES, "tasks"))
    batches = ictd.unroll(tasks, BATCH, DISCOUNT, STEPS, ictd.generator(0, "boyan", STATES, "unrolls"))
    return tasks, batches, ictd.initial_weights(STATES, 0.1, ictd.generator(0, "boyan", STATES, "weights"))


def main():
    """Print times per task and per step, and the engines' ratio."""
    torch.set_num_threads(1)
    tasks, batches, start = material()

    def sample():
        return ictd.unroll(tasks, BATCH, DISCOUNT, STEPS, ictd.generator(0, "boyan", STATES, "unrolls"))

    def pretrain(algo, engine, count):
        arguments = (algo, DEPTH, DISCOUNT, 1e-3, start, engine)
        return lambda: ictd.pretrain_history(tasks[:count], batches[:count], *arguments)

    pretrain("td", "fused", 10)()
    step = seconds(sample) / (len(tasks) * BATCH * STEPS)
    print(f"n = {STATES}, L = {DEPTH}, batch {BATCH}, one core")
    print(f"Monte Carlo sampling  {step * 1e9:10.2f} ns a step")
    for algo in ("td", "mc"):
        fused = seconds(pretrain(algo, "fused", len(tasks))) / len(tasks)
        autograd = seconds(pretrain(algo, "autograd", 100), repeats=2) / 100
        print(f"{algo}, fused engine      {fused * 1e6:10.2f} microseconds a task")
        print(
            f"{algo}, autograd engine   {autograd * 1e6:10.0f} microseconds a task: {autograd / fused:.0f} times that"
        )


if __name__ == "__main__":
    main()

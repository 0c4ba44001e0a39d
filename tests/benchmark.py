"""Speed of the engines and of Monte Carlo sampling, measured side by side in one run (``make benchmark``)."""

import time

import numpy as np
import torch

import ictd
from ictd.context_engine import GramEngine, agent_material
from ictd.gram import sampled_gram
from studies.agents.attention_engine import KINDS, Attention, AttentionEngine, columns_of
from studies.emergence.batched_engine import Transformers, initial_matrices, pretrain_runs, theta_masks

STATES, DEPTH, DISCOUNT, BATCH, STEPS = 5, 30, 0.9, 64, 200
RUNS, FEW = 40, 50


def seconds(function, repeats=3):
    """Shortest of several runs."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def main():
    """Print times per task and per step, and the engines' ratio."""
    torch.set_num_threads(1)
    tasks = ictd.sample_tasks("boyan", STATES, 20_000, ictd.generator(0, "boyan", STATES, "tasks"))

    def sample():
        return ictd.unroll(tasks, BATCH, DISCOUNT, STEPS, ictd.generator(0, "boyan", STATES, "unrolls"))

    unrolls = sample()
    start = ictd.initial_weights(STATES, 0.1, ictd.generator(0, "boyan", STATES, "weights"))

    def pretrain(algo, engine, count):
        arguments = (algo, DEPTH, DISCOUNT, 1e-3, start.u, start.A, engine)
        return lambda: ictd.pretrain(tasks[:count], unrolls[:count], *arguments)

    pretrain("td", "fused", 10)()
    step = seconds(sample) / (len(tasks) * BATCH * STEPS)
    print(f"n = {STATES}, L = {DEPTH}, batch {BATCH}, one core")
    print(f"Monte Carlo sampling  {step * 1e9:10.2f} ns a step")
    for algo in ("td", "mc"):
        fused = seconds(pretrain(algo, "fused", len(tasks))) / len(tasks)
        autograd = seconds(pretrain(algo, "autograd", 100), repeats=1) / 100
        print(f"{algo}, fused engine      {fused * 1e6:10.2f} microseconds a task")
        print(
            f"{algo}, autograd engine   {autograd * 1e6:10.0f} microseconds a task: {autograd / fused:.0f} times that"
        )
    for algo in ("mc", "td"):
        material = agent_material(algo, "boyan", STATES, 0, [5, 100], DISCOUNT, BATCH, STEPS)
        seen, batches, context = material(10_000)
        drawing = seconds(lambda draw=material: draw(10_000)) / len(seen)
        print(f"{algo}, contexts of 5 to 100 steps, their tasks and batches {drawing * 1e6:6.1f} microseconds a task")
    gram = sampled_gram(context, seen.reward, DISCOUNT)
    columns = columns_of(context, seen, DISCOUNT, seen.reward)
    engines = {"by Gram matrices": (GramEngine(start, "td", DEPTH, DISCOUNT, 1e-3, 1), gram)}
    for kind in KINDS:
        attention = Attention(kind, 1 if kind == "linear" else -0.3)
        engines[f"{kind} attention"] = AttentionEngine(start, "td", DEPTH, DISCOUNT, 1e-3, 1, attention), columns
    for name, (engine, given) in engines.items():
        engine.train(seen[:9], batches[:9], given[:9])
        one = seconds(lambda engine=engine, given=given: engine.train(seen, batches, given)) / len(seen)
        print(f"td, sampled contexts, {name:18}{one * 1e6:8.2f} microseconds a task")
    matrices = initial_matrices(STATES, 0.1, 1, False, ictd.generator(0, "boyan", STATES, "weights"))
    model = Transformers(*np.stack([matrices] * RUNS, axis=1), DEPTH, True)
    arguments = (["td"] * RUNS, [tasks[:FEW]] * RUNS, [unrolls[:FEW]] * RUNS, DISCOUNT, 1e-3, theta_masks(STATES))
    batched = seconds(lambda: pretrain_runs(model, *arguments), repeats=1) / (RUNS * FEW)
    alone = seconds(pretrain("td", "autograd", FEW), repeats=1) / FEW
    print(f"td, autograd engine, {RUNS} runs side by side {batched * 1e6:6.0f} microseconds a task and run: ", end="")
    print(f"{alone / batched:.0f} times as fast as one by itself")


if __name__ == "__main__":
    main()

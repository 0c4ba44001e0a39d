"""Speed of pretraining on sampled contexts, by Gram matrices and by each kind of attention (``make benchmark``)."""

from benchmark import BATCH, DEPTH, DISCOUNT, STATES, STEPS, material, seconds

from ictd.engine import Engine
from studies.sampled_prompts.attention_engine import KINDS, Attention, AttentionEngine, WeightedColumns
from studies.sampled_prompts.training_data import training_data


def main():
    """Print times per task."""
    *_, start = material(1)
    for algo in ("mc", "td"):
        draw = training_data("boyan", STATES, 0, [5, 100], DISCOUNT, BATCH, STEPS)
        tasks, context, batches = draw(10_000, [algo])
        drawing = seconds(lambda draw=draw, algo=algo: draw(10_000, [algo])) / len(tasks)
        print(f"{algo}, contexts of 5 to 100 steps, their tasks and batches {drawing * 1e6:6.1f} microseconds a task")
    gram = context.gram_matrix(DISCOUNT)
    columns = WeightedColumns.sampled(context, tasks.reward, DISCOUNT)
    engines = {"by Gram matrices": (Engine(start, "td", DEPTH, DISCOUNT, 1e-3, clip=1), gram)}
    for kind in KINDS:
        attention = Attention(kind, 1 if kind == "linear" else -0.3)
        engines[f"{kind} attention"] = AttentionEngine(start, "td", DEPTH, DISCOUNT, 1e-3, 1, attention), columns
    for name, (engine, prompts) in engines.items():
        engine.train(tasks.reward[:9], batches["td"][:9], prompts[:9])
        update = seconds(lambda engine=engine, prompts=prompts: engine.train(tasks.reward, batches["td"], prompts))
        print(f"td, sampled contexts, {name:18}{update / len(tasks) * 1e6:8.2f} microseconds a task")


if __name__ == "__main__":
    main()

"""Speed of pretraining on sampled contexts, by Gram matrices and by each kind of attention (``make benchmark``)."""

from benchmark import BATCH, DEPTH, DISCOUNT, STATES, STEPS, material, seconds

from ictd.engine import Engine
from studies.sampled_prompts.attention_engine import KINDS, Attention, AttentionEngine, columns_of
from studies.sampled_prompts.material import draw_material


def main():
    """Print times per task."""
    *_, start = material(1)
    for algo in ("mc", "td"):
        drawn = draw_material(algo, "boyan", STATES, 0, [5, 100], DISCOUNT, BATCH, STEPS)
        seen, batches, context = drawn(10_000)
        drawing = seconds(lambda draw=drawn: draw(10_000)) / len(seen)
        print(f"{algo}, contexts of 5 to 100 steps, their tasks and batches {drawing * 1e6:6.1f} microseconds a task")
    gram = context.gram(DISCOUNT)
    columns = columns_of(seen, DISCOUNT, seen.reward, context)
    engines = {"by Gram matrices": (Engine(start, "td", DEPTH, DISCOUNT, 1e-3, 1), gram)}
    for kind in KINDS:
        attention = Attention(kind, 1 if kind == "linear" else -0.3)
        engines[f"{kind} attention"] = AttentionEngine(start, "td", DEPTH, DISCOUNT, 1e-3, 1, attention), columns
    for name, (engine, given) in engines.items():
        engine.train(seen.reward[:9], batches[:9], given[:9])
        one = seconds(lambda engine=engine, given=given: engine.train(seen.reward, batches, given)) / len(seen)
        print(f"td, sampled contexts, {name:18}{one * 1e6:8.2f} microseconds a task")


if __name__ == "__main__":
    main()

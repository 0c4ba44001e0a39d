"""Speed of the engine for any P and Q, compared with the engine in Theta (``make benchmark``)."""

from benchmark import DEPTH, DISCOUNT, STATES, material, seconds

import ictd
from ictd.prompt import enumerated_columns, query_columns
from studies.emergence.linear_attention import Engine, context_rows
from studies.emergence.parameters import theta_masks

TASKS = 2000


def main():
    """Print times per task, and their ratio."""
    tasks, batches, start = material(TASKS)
    contexts = context_rows(enumerated_columns(tasks.transition, tasks.reward, DISCOUNT))
    options = "td", DEPTH, DISCOUNT, 1e-3
    masks = theta_masks(STATES)[:, None]

    def train():
        engine = Engine(start.P()[None], start.Q()[None], query_columns(STATES).T, *options, masks)
        engine.train(tasks.reward, batches, contexts)

    whole = seconds(train) / TASKS
    theta = seconds(lambda: ictd.pretrain_history(tasks, batches, *options, start)) / TASKS
    print(f"td, all of P and Q    {whole * 1e6:10.2f} microseconds a task: {whole / theta:.0f} times that in Theta")


if __name__ == "__main__":
    main()

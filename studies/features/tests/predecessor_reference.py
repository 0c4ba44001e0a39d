"""Make predecessor_reference.csv: run the predecessor's public code on our tasks, and write what it computes.

    python -P studies/features/tests/predecessor_reference.py CHECKOUT

CHECKOUT is a clone of https://github.com/Sequential-Intelligence-Lab/InContextTD at the commit below.  Its training
loop runs unchanged, in double precision, with tasks, trajectories and initial P and Q of ours.  It needs scipy and
tqdm.
"""

import csv
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch

from studies.features.tests import predecessor_cases as cases

COMMIT = "81145541d6bacce6f59e6235c032b1d14c5df733"
OUTPUT = Path(__file__).parent / "predecessor_reference.csv"


class Replay:
    """A chain of ours with the predecessor's methods: ``step`` follows given trajectories."""

    def __init__(self, tasks, i, paths, discount):
        self.reward, self.transition = tasks.reward[i], tasks.transition[i]
        self.v = np.linalg.solve(np.eye(len(self.reward)) - discount * self.transition, self.reward)[:, None]
        self.steady_d = tasks.stationary[i]
        self.paths, self.place = iter(paths), None

    def reset(self):
        self.path = iter(next(self.paths))
        return int(next(self.path))

    def step(self, state):
        if cases.is_deterministic(self.transition):
            return int(self.transition[state].argmax()), self.reward[state]
        return int(next(self.path)), self.reward[state]

    def copy(self):
        return self


def run(checkout: Path, case: cases.Case) -> list[tuple[str, float]]:
    """Train the predecessor's Transformer on a case, and return the numbers that it logs."""
    import experiment.model
    import experiment.prompt
    import experiment.train

    # Its prompts convert to float32; double precision shows agreement to more digits.
    double = SimpleNamespace(**{name: getattr(np, name) for name in dir(np)} | {"float32": np.float64})
    experiment.prompt.np = double
    torch.set_default_dtype(torch.float64)
    tasks, paths, start = case.data()
    number = iter(range(len(tasks)))

    class Generator:
        def __init__(self, *_):
            pass

        def reset_feat(self):
            self.i = next(number)
            self.feat = SimpleNamespace(phi=tasks.features[self.i], s=tasks.features.shape[1])

        def reset_mrp(self, sample_weight):
            self.mrp = Replay(tasks, self.i, paths[self.i], case.discount)

        def get_prompt(self):
            feature = experiment.prompt.Feature(tasks.features.shape[2], tasks.features.shape[1])
            feature.phi = tasks.features[self.i]
            prompt = experiment.prompt.MRPPrompt(tasks.features.shape[2], case.length, case.discount, self.mrp, feature)
            self.mrp.prompt = prompt
            return prompt

    class Transformer(experiment.model.Transformer):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            layers = [self.attn] if case.mode == "auto" else self.layers
            for layer, P, Q in zip(layers, *start, strict=True):
                layer.P.data, layer.Q.data = torch.tensor(P), torch.tensor(Q)

    experiment.train.MRPPromptGenerator, experiment.train.Transformer = Generator, Transformer
    with tempfile.TemporaryDirectory() as folder:
        experiment.train.train(
            tasks.features.shape[2], tasks.features.shape[1], case.length, case.depth, case.discount, mode=case.mode,
            lr=case.learning_rate, weight_decay=case.decay, n_mrps=len(tasks), mini_batch_size=case.batch,
            n_batch_per_mrp=case.batches, log_interval=case.interval, save_dir=folder, random_seed=0,
            training_loss=case.loss,
        )  # fmt: skip
        log = np.load(Path(folder) / "data.npz")
        numbers = []
        for k, seen in enumerate(log["xs"]):
            numbers += cases.numbers(
                int(seen), log["P"][k], log["Q"][k], log["alpha"][k], log["v_tf v_td msve"][k],
                log["sensitivity cos sim"][k], log["implicit_weight_sim"][k],
            )  # fmt: skip
    return numbers


if __name__ == "__main__":
    folder = Path(sys.argv[1]).resolve()
    sys.path.append(str(folder))
    with OUTPUT.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["commit", "case", "tasks", "quantity", "value"])
        for name, case in cases.CASES.items():
            for tasks_seen, quantity, value in run(folder, case):
                writer.writerow([COMMIT, name, tasks_seen, quantity, repr(float(value))])

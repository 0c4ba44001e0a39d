"""The autograd engine: Algorithms 1 and 2 written out on whole prompts, in torch."""

import numpy as np
import torch
from torch.optim.adam import adam

from ictd.mrp import Tasks
from ictd.prompts import enumerated_context, prompts_of
from ictd.trajectories import Unrolls
from ictd.transformer import LinearTransformer

# As Kingma and Ba have it (ICLR 2015), without what torch can add.
ADAM = {"beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "weight_decay": 0.0, "amsgrad": False, "maximize": False}


class AutogradEngine:
    """Training state: the Transformer and Adam's."""

    def __init__(self, weights, algo, depth, discount, learning_rate, scaled):
        torch.set_num_threads(1)  # The matrices are too small to share out.
        self.model = LinearTransformer(weights, depth, scaled)
        self.parameters = [*self.model.parameters()]
        # Both moments, no maxima, numbers of updates.  The class Adam would import torch's compiler, for a second.
        mean, square = ([*map(torch.zeros_like, self.parameters)] for _ in range(2))
        self.state = mean, square, [], [torch.tensor(0.0) for _ in self.parameters]
        self.algo, self.states = algo, weights.states
        self.discount, self.learning_rate = discount, learning_rate

    def train(self, tasks: Tasks, unrolls: Unrolls) -> tuple[np.ndarray, int]:
        """As ``FusedEngine.train``."""
        estimates = np.full_like(tasks.reward, np.nan)
        for i in range(len(tasks)):
            context = enumerated_context(tasks.transition[i], tasks.reward[i], self.discount)
            prompts = torch.from_numpy(prompts_of(context))
            state, following, mean_return = batch_of(unrolls, i)
            reward = torch.from_numpy(tasks.reward[i])[state]
            value = self.model(prompts, queries=1)[:, 0]
            estimates[i] = value.detach().numpy()
            if not np.isfinite(estimates[i]).all():
                return estimates, i
            target = reward + self.discount * value.detach()[following] if self.algo == "td" else mean_return
            loss = 0.5 * ((target - value[state]) ** 2).mean()
            gradient = [*torch.autograd.grad(loss, self.parameters)]
            with torch.no_grad():
                adam(self.parameters, gradient, *self.state, foreach=False, lr=self.learning_rate, **ADAM)
        return estimates, len(tasks)

    def weights(self) -> tuple[np.ndarray, np.ndarray]:
        """Copies of u and A."""
        return self.model.u.detach().numpy().copy(), self.model.A.detach().numpy().copy()


def batch_of(unrolls: Unrolls, task: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The batch of one task, in some order: states S_t, their successors, and returns.

    Each visit gets the mean of its state's returns: the update is linear in them, so only their sum per state counts.
    """
    counts = unrolls.transitions[task]
    state, following = np.divmod(np.repeat(np.arange(counts.size), counts.ravel()), counts.shape[1])
    mean_return = unrolls.returns[task] / np.maximum(unrolls.visits[task], 1)
    return torch.from_numpy(state), torch.from_numpy(following), torch.from_numpy(mean_return[state])

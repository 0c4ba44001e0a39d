"""Agents that act in unseen processes, one in each, with all their observations as data, and their regret.

The regret is the sum over steps of v*(s) - q*(s, a).  With estimates q after t steps, n(s, a) of them at a pair, and a
number c, the rule

- "epsilon" takes a random action with probability c / (c + t), and the greedy action otherwise;
- "optimistic" takes the action with the greatest q + c / sqrt(1 + n).

N agents act at the same time.  A learner changes the agents' estimates after each step, and returns their next actions.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

from ictd.rng import generator
from ictd.statistics import log_spaced
from ictd.storage import load_arrays, save_arrays
from ictd.transformer import Weights
from studies.control.evaluators import (
    Evaluator,
    InContext,
    LeastSquares,
    SmoothedModel,
    improve,
    in_context_td,
    observed_rewards,
)
from studies.control.grid import FORMATS
from studies.control.processes import TIE, Processes, max_last, sum_last, uniform, unseen_processes

# Number c of "epsilon" for methods that always, or never, take random actions.  These methods have no other rule.
WITHOUT_RULE = {"uniform": 1e9, "posterior": 0.0}


class Agents:
    """Knowledge of N agents.

    Parameters
    ----------
    processes : Processes
        Agents know the rewards of these processes; learners use only the rewards of observed pairs.
    discount : float, gamma
    rng : numpy.random.Generator

    Attributes
    ----------
    counts : (N, S, A, S) array, observed transitions
    q : (N, S, A) array, estimates
    policy : (N, S, A) array, the policy of a planner
    trace : (N, S, A) array, eligibility traces of SARSA
    """

    def __init__(self, processes: Processes, discount: float, rng: np.random.Generator):
        shape = processes.reward.shape
        self.reward = processes.reward
        self.discount = discount
        self.rng = rng
        self.counts = np.zeros(processes.transition.shape)
        self.q = np.zeros(shape)
        self.policy = uniform(shape)
        self.trace = np.zeros(shape)


@dataclass(frozen=True)
class Step:
    """A step of N agents: states, actions and next states (N,), and a function that chooses the next actions (N,)."""

    state: np.ndarray
    action: np.ndarray
    next_state: np.ndarray
    choose: Callable[[], np.ndarray]


Learner = Callable[[Agents, Step], np.ndarray]


@dataclass(frozen=True)
class Planner:
    """A planner that evaluates its policy on all observations and improves the policy, once in each step."""

    evaluate: Evaluator

    def __call__(self, agents: Agents, step: Step) -> np.ndarray:
        """Learn from a step, and return the next actions (N,)."""
        agents.q, agents.policy = improve(self.evaluate, agents.counts, agents.reward, agents.policy, agents.discount)
        return step.choose()


@dataclass(frozen=True)
class PosteriorSampling:
    """Posterior sampling: plans in a model that is redrawn at intervals (Osband, Russo and Van Roy, NeurIPS 2013).

    Parameters
    ----------
    concentration : float, of the Dirichlet prior
    interval : int, number of steps with one model
    """

    concentration: float
    interval: int

    def __call__(self, agents: Agents, step: Step) -> np.ndarray:
        """Learn from a step, and return the next actions (N,)."""
        visits = sum_last(agents.counts)
        steps_before = visits[0].sum() - 1
        if steps_before % self.interval == 0:
            # Gamma variates can underflow to zero in a whole row.
            gammas = agents.rng.standard_gamma(agents.counts + self.concentration) + 1e-300
            drawn_reward = agents.rng.uniform(-1, 1, visits.shape)
            reward = np.where(visits == 0, drawn_reward, agents.reward)
            model = Processes(gammas / sum_last(gammas)[..., None], reward)
            agents.q = model.values(model.optimal(agents.discount), agents.discount)
        return step.choose()


@dataclass(frozen=True)
class Tabular:
    """Q-learning (Watkins, 1989) or SARSA(lambda) with replacing traces, without replay.

    Parameters
    ----------
    step_size : float
        The step size at the n-th visit to a pair is step_size / n^power.
    power : float
    start : float, first value of all estimates
    decay : float, optional
        lambda of SARSA; by default the learner is Q-learning.
    """

    step_size: float
    power: float
    start: float
    decay: float | None = None

    def __call__(self, agents: Agents, step: Step) -> np.ndarray:
        """Learn from a step, and return the next actions (N,)."""
        agent = np.arange(len(step.state))
        pair = agent, step.state, step.action
        if agents.counts[0].sum() == 1:
            agents.q += self.start
        if self.decay is None:
            next_action = None
            next_value = max_last(agents.q[agent, step.next_state])
        else:
            next_action = step.choose()
            next_value = agents.q[agent, step.next_state, next_action]
        error = agents.reward[pair] + agents.discount * next_value - agents.q[pair]
        step_size = self.step_size / sum_last(agents.counts[pair]) ** self.power
        agents.trace *= agents.discount * (self.decay or 0.0)
        agents.trace[pair] = 1.0
        agents.q += (step_size * error)[:, None, None] * agents.trace
        return step.choose() if next_action is None else next_action


def simulate(
    learner: Learner, processes: Processes, discount: float, steps: int, rule: str, c: float | np.ndarray, seed: int
) -> np.ndarray:
    """Simulate one agent in each of N processes.

    Parameters
    ----------
    learner : Learner
    processes : Processes
    discount : float, gamma
    steps : int, T
    rule : "epsilon" or "optimistic"
    c : float, number of the rule, or an (N,) array of them
    seed : int

    Returns
    -------
    regret : (N, T) array, the regret up to each step
    """
    best = processes.values(processes.optimal(discount), discount)
    gaps = best.max(axis=-1, keepdims=True) - best
    cumulative = processes.transition.cumsum(axis=-1)
    size, states, actions = best.shape
    c = np.broadcast_to(c, size)
    rng = generator(seed, rule, states, "control online")
    agents = Agents(processes, discount, rng)
    agent = np.arange(size)
    state = rng.integers(states, size=size)
    action = rng.integers(actions, size=size)
    regret = np.empty((size, steps))
    for t in range(1, steps + 1):
        regret[:, t - 1] = gaps[agent, state, action]
        above = rng.random((size, 1)) >= cumulative[agent, state, action, :-1]
        next_state = sum_last(above.astype(int))
        agents.counts[agent, state, action, next_state] += 1
        explores = rng.random(size) < c / (c + t)
        random_action = rng.integers(actions, size=size)
        ties = TIE * rng.random((size, actions))

        def choose(next_state=next_state, explores=explores, random_action=random_action, ties=ties):
            q = agents.q[agent, next_state] + ties
            if rule == "optimistic":
                visits = sum_last(agents.counts[agent, next_state])
                return (q + c[:, None] / np.sqrt(1 + visits)).argmax(axis=-1)
            return np.where(explores, random_action, q.argmax(axis=-1))

        action = learner(agents, Step(state, action, next_state, choose))
        state = next_state
    return regret.cumsum(axis=-1)


@dataclass(frozen=True)
class Method:
    """A method, and the grids of its parameters.

    Parameters
    ----------
    learners : list of functions, one for each seed, that make a learner of parameters
    grids : list of lists of the values that each parameter can have
    """

    learners: list[Callable[..., Learner]]
    grids: list


def baseline_methods(
    online: dict, ridges: dict, states: int, actions: int, depth: int, seeds: int
) -> dict[str, Method]:
    """Methods without pretraining, with the same learner for all seeds.

    Parameters
    ----------
    online : dict, the settings of acting
    ridges : dict, arguments of ``ictd.statistics.log_spaced``
    states, actions : int, S and A
    depth : int, number of updates of theta^TD
    seeds : int
    """

    def method(learner, *grids):
        return Method([learner] * seeds, [*grids])

    pairs = states * actions
    steps = online["step_sizes"], online["powers"], online["starts"]
    return {
        "lspi": method(lambda ridge: Planner(LeastSquares(ridge)), log_spaced(**ridges)),
        "smoothed": method(lambda number: Planner(SmoothedModel(number, 1 / states)), online["pseudo_counts"]),
        "theta_td": method(
            lambda step_size: Planner(in_context_td(step_size, depth, pairs)), online["theta_step_sizes"]
        ),
        "rewards": method(lambda: Planner(observed_rewards)),
        "posterior": method(PosteriorSampling, online["concentrations"], online["intervals"]),
        "q_learning": method(Tabular, *steps),
        "sarsa": method(Tabular, *steps, online["decays"]),
        "uniform": method(lambda: Tabular(0.0, 0.0, 0.0)),
    }


def transformer_methods(runs: list[Path], variants: dict, seeds: int, pseudo_counts: list[float]) -> dict[str, Method]:
    """Transformers with the last weights of each seed, with prompts in all formats.

    Prompts with a column for each observed pair are tried with pseudo-counts too.
    """
    methods = {}
    for path in runs:
        u, A = load_arrays(path, "u", "A")
        depth = variants[path.stem]["depth"]
        all_weights = [Weights(u[seed, -1], A[seed, -1]) for seed in range(seeds)]
        for format in FORMATS:
            learners = [
                lambda number, weights=weights, depth=depth, grouped=bool(format): Planner(
                    InContext(weights, depth, number, grouped)
                )
                for weights in all_weights
            ]
            methods[path.stem + format] = Method(learners, [[0.0]])
        methods[f"{path.stem} grouped pseudo_counts"] = Method(learners, [pseudo_counts])
    return methods


def main(
    place: dict,
    variants: dict,
    depth: int,
    seeds: int,
    concentrations: list[float],
    ridges: dict,
    online: dict,
    runs: list[Path],
    output: Path,
) -> None:
    """Write the regret (rows, N, checkpoints) of all methods.

    Each row has a method, a rule, a seed, and the chosen parameters, with c of the rule last.  The chosen parameters
    have the lowest regret on tuning processes; a star marks the end of a grid.  All methods have as many runs as
    Transformers have seeds.
    """
    discount, steps = place["discount"], online["steps"]
    test, _ = unseen_processes(place, online["test_processes"], concentrations, "online test")
    tuning, _ = unseen_processes(place, online["tuning_processes"], concentrations, "online tuning")
    methods = baseline_methods(online, ridges, place["states"], place["actions"], depth, seeds)
    methods |= transformer_methods(runs, variants, seeds, online["pseudo_counts"])
    checkpoints = np.unique(np.linspace(1, steps, online["checkpoints"]).round().astype(int))
    rows = []
    for (name, method), rule in product(methods.items(), ("epsilon", "optimistic")):
        if name in WITHOUT_RULE and rule != "epsilon":
            continue
        grids = [*method.grids, rule_numbers(name, rule, online)]
        candidates = list(product(*grids))
        regrets = []
        for parameters in product(*method.grids):
            learner = method.learners[0](*parameters)
            regrets += tuning_regrets(learner, tuning, discount, steps, rule, grids[-1], seeds)
        chosen = candidates[int(np.argmin(regrets))]
        *parameters, c = chosen
        for seed, make_learner in enumerate(method.learners):
            regret = simulate(make_learner(*parameters), test, discount, steps, rule, c, seed)
            rows.append(
                {
                    "method": name,
                    "rule": rule,
                    "seed": seed,
                    "choices": shown_choices(chosen, grids),
                    "regret": regret[:, checkpoints - 1],
                }
            )
    arrays = {name: np.stack([row[name] for row in rows]) for name in rows[0]}
    save_arrays(output, **arrays, steps=checkpoints)


def tuning_regrets(
    learner: Learner, processes: Processes, discount: float, steps: int, rule: str, numbers: list[float], seed: int
) -> list[float]:
    """Mean regret after all steps for each number c of the rule; the other parameters are those of ``simulate``.

    The agents for all numbers act at the same time, which is faster.
    """
    tiled = Processes(*(np.concatenate([array] * len(numbers)) for array in processes))
    c = np.repeat(numbers, len(processes.reward))
    regret = simulate(learner, tiled, discount, steps, rule, c, seed)[:, -1]
    return regret.reshape(len(numbers), -1).mean(axis=1).tolist()


def rule_numbers(method: str, rule: str, online: dict) -> list[float]:
    """Candidates for the number c of a method."""
    if method in WITHOUT_RULE:
        return [WITHOUT_RULE[method]]
    return online["epsilons"] if rule == "epsilon" else online["bonuses"]


def shown_choices(chosen: tuple[float, ...], grids: list) -> str:
    """The chosen values as text, with a star after the least or greatest value of a grid."""
    texts = []
    for value, grid in zip(chosen, grids, strict=True):
        at_end = len(grid) > 1 and value in (min(grid), max(grid))
        texts.append(f"{value:.3g}{'*' if at_end else ''}")
    return ", ".join(texts)

"""Markov reward processes (MRPs), and the environments that random MRPs are drawn from.

A task is an MRP (p, r) with n states and a discount gamma (section "Policy Evaluation").  Row s of ``transition`` is
p(. | s), and ``reward[s]`` is r(s).  With the stationary distribution mu = mu p,

    v = (I - gamma p)^{-1} r,    MSVE(w) = sum_s mu(s) (v(s) - w(s))^2.

Every function takes any number of leading axes, so that one call handles a whole task set.

``register_environment`` adds an environment to those that are known by name.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Annotated, Self

import numpy as np

from ictd.checks import (
    ArrayLike,
    Count,
    Discount,
    abbreviated,
    array,
    choice,
    either,
    function_or,
    integer,
    number,
    optional,
    probabilities,
    refuse,
    row_sum_tolerance,
    validate,
    validate_fields,
    validated,
)

States = Annotated[int, integer(2)]
Threshold = Annotated[float, number(math.nextafter(0, 1), math.nextafter(1, 0), "between 0 and 1, both excluded")]


class TaskArrays:
    """Base of dataclasses whose fields are arrays with a leading axis of N tasks."""

    @classmethod
    def unchecked(cls, **fields: np.ndarray) -> Self:
        """Make an object of these fields without validation."""
        instance = object.__new__(cls)
        vars(instance).update(fields)
        return instance

    def __len__(self) -> int:
        return len(next(iter(vars(self).values())))

    def __getitem__(self, tasks: slice) -> Self:
        if not isinstance(tasks, slice):
            raise ValueError(f"{abbreviated(tasks)} is no slice of tasks; write [3:4] for task 3.")
        return self.unchecked(**{name: np.ascontiguousarray(field[tasks]) for name, field in vars(self).items()})

    def _validate(self) -> None:
        """Validate arrays with leading axes "...": one axis of tasks, or none for a single task, which gets one."""
        lead = validate_fields(self)["..."]
        if len(lead) > 1 or 0 in lead:
            raise ValueError(f"the arrays have leading axes {lead}; give one axis of tasks, or none for a single task.")
        if not lead:
            vars(self).update({name: field[None] for name, field in vars(self).items() if field is not None})


@dataclass(frozen=True)
@validated
class Tasks(TaskArrays):
    """A set of N Markov reward processes with n states.

    The arrays of a single task may be given without the axis N.  The arrays are copied.  ``tasks[a:b]`` selects tasks.

    Parameters
    ----------
    transition : (N, n, n) array, row-stochastic
    reward : (N, n) array
    stationary : (N, n) array, optional
        Stationary distributions mu.  By default they are computed from ``transition``.
    features : (n, d) array for all tasks, or (N, n, d) array, optional
        Features phi(s) of the states.  By default they are one-hot, with d = n.  Shared features are stored for each
        task.
    behaviour : (N, n) array or (N, n, n) array, optional
        Distribution of the states that batches and contexts visit, or a chain of these states; their next states come
        from ``transition`` all the same.  By default the states are those of the task's own chain (on-policy).
        It is stored as a chain; a distribution is the chain that draws each state from it.

    Raises
    ------
    ValueError
        If shapes do not match, an entry is not finite or not a probability, a row does not sum to one, a chain is
        reducible, ``stationary`` is not stationary, all features of a task are zero, or a behaviour never visits some
        state.

    Examples
    --------
    >>> import ictd
    >>> tasks = ictd.Tasks(transition=[[0.9, 0.1], [0.2, 0.8]], reward=[1.0, 0.0])
    >>> tasks.stationary.round(3)
    array([[0.667, 0.333]])
    >>> ictd.value_function(tasks.transition, tasks.reward, discount=0.9).round(2)
    array([[7.57, 4.86]])
    """

    transition: Annotated[ArrayLike, probabilities("..., n, n")]
    reward: Annotated[ArrayLike, array("..., n")]
    stationary: Annotated[ArrayLike, optional(probabilities("..., n"))] = None
    features: Annotated[ArrayLike, optional(array("..., n, d"))] = None
    behaviour: Annotated[ArrayLike, optional(probabilities("..., n, n"))] = None

    def __post_init__(self):
        given = [self.transition] if self.stationary is None else [self.transition, self.stationary]
        self._spread_out()
        self._validate()
        integer(2)("the number of states", self.states, {})
        if self.stationary is None:
            vars(self)["stationary"] = stationary_distribution(self.transition)
        moved = np.einsum("is,isj->ij", self.stationary, self.transition)
        rounding = max(row_sum_tolerance(np.asarray(rows)) for rows in given)
        off = (np.abs(moved - self.stationary) > rounding).any(axis=1)
        refuse("stationary", off, "is not stationary: its transitions change it")
        if self.features is not None:
            refuse("features", (self.features == 0).all(axis=(1, 2)), "are all zero")
        if self.behaviour is not None:
            never = (self.behaviour == 0).all(axis=1)  # (N, n)
            refuse("behaviour", never, "never visits this state (task, state); every state must be visited")
            vars(self)["_visited"] = stationary_distribution(self.behaviour, "behaviour")
        # Fields that are None remain class attributes, so that vars(tasks) holds arrays only, which slices select.
        for name in ("features", "behaviour"):
            if getattr(self, name) is None:
                del vars(self)[name]

    def _spread_out(self) -> None:
        """Give each task its own features, and write a distribution of visited states as a chain."""
        for name in ("transition", "features", "behaviour"):
            optional(array("...", finite=False))(name, getattr(self, name), {})
        lead = np.shape(self.transition)[:-2]
        features, behaviour = self.features, self.behaviour
        if features is not None and np.ndim(features) == 2 and lead:
            vars(self)["features"] = np.broadcast_to(features, (*lead, *np.shape(features)))
        if behaviour is not None and np.ndim(behaviour) == len(lead) + 1:
            rows = np.asarray(behaviour)[..., None, :]
            vars(self)["behaviour"] = np.broadcast_to(rows, (*rows.shape[:-2], rows.shape[-1], rows.shape[-1]))

    def __repr__(self) -> str:
        features = "" if self.features is None else f", {self.dimension} features"
        behaviour = "" if self.behaviour is None else ", with a behaviour"
        return f"<Tasks: {len(self)} tasks, {self.states} states{features}{behaviour}>"

    @property
    def states(self) -> int:
        """Number of states n."""
        return self.transition.shape[1]

    @property
    def dimension(self) -> int:
        """Number of features d, which is n with one-hot features."""
        return self.states if self.features is None else self.features.shape[2]

    @property
    def visited(self) -> np.ndarray:
        """Distribution (N, n) of the states that batches and contexts visit, which is mu without a behaviour."""
        return self.stationary if self.behaviour is None else vars(self)["_visited"]


@validate
def stationary_distribution(
    transition: Annotated[ArrayLike, probabilities("..., n, n")], name: str = "transition"
) -> np.ndarray:
    """Compute the stationary distributions of irreducible chains, with mu p = mu.

    The Grassmann-Taksar-Heyman elimination adds, multiplies and divides non-negative numbers only, so each entry has
    full relative precision (Grassmann, Taksar and Heyman, Operations Research 33(5), 1985).

    Parameters
    ----------
    transition : (..., n, n) array, row-stochastic
    name : str, what a message calls the array

    Returns
    -------
    stationary : (..., n) array

    Raises
    ------
    ValueError
        If a row is not a distribution, or a chain is reducible.  The message has its index.
    """
    states = transition.shape[-1]
    # (n, n, chains): NumPy is fast along the last axis if it is long.  Python's sum adds the rows in order, so that the
    # rounding of one chain does not depend on the number of chains.
    work = np.array(transition.reshape(-1, states, states).transpose(1, 2, 0), order="C")
    with np.errstate(divide="ignore", invalid="ignore"):
        for k in range(states - 1, 0, -1):
            work[:k, k] /= sum(work[k, :k])
            work[:k, :k] += work[:k, k, None] * work[k, None, :k]
        mu = np.ones((states, work.shape[-1]))
        for k in range(1, states):
            mu[k] = sum(mu[:k] * work[:k, k])
        mu /= sum(mu)
    stationary = np.array(mu.T, order="C").reshape(transition.shape[:-1])
    refuse(name, ~(stationary > 0).all(axis=-1), "is reducible: some state cannot be reached from every other")
    return stationary


@validate
def value_function(
    transition: Annotated[ArrayLike, probabilities("*, n, n")],
    reward: Annotated[ArrayLike, array("*, n")],
    discount: Discount,
) -> np.ndarray:
    """Compute the true values v = (I - gamma p)^{-1} r (appendix, proof of Theorem 1).

    Parameters
    ----------
    transition : (..., n, n) array, row-stochastic
    reward : (..., n) array; leading axes broadcast
    discount : float, gamma, from 0 to 1 - 2^-26
        Closer to 1, the rounding error of a value is larger than a reward.

    Returns
    -------
    value : (..., n) array

    Raises
    ------
    ValueError
        If a row is not a distribution, a reward is not finite, or the discount is out of range.
    """
    identity = np.eye(transition.shape[-1])
    return np.linalg.solve(identity - discount * transition, reward[..., None])[..., 0]


@validate
def msve(
    stationary: Annotated[ArrayLike, probabilities("*, n")],
    value: Annotated[ArrayLike, array("*, n", finite=False)],
    estimate: Annotated[ArrayLike, array("*, n", finite=False)],
) -> np.ndarray:
    """Compute the mean square value error sum_s mu(s) (v(s) - w(s))^2 (section "Policy Evaluation").

    Parameters
    ----------
    stationary : (..., n) array, mu
    value : (..., n) array, v
    estimate : (..., n) array, w
        Leading axes of the three arrays broadcast.  Values that are not finite give errors that are not finite.

    Returns
    -------
    msve : (...) array
    """
    return (stationary * (value - estimate) ** 2).sum(axis=-1)


def truncation_bias(transition: np.ndarray, value: np.ndarray, discount: float, steps: int) -> np.ndarray:
    """Compute the bias of returns that are truncated after tau rewards, E[G~(s)] - v(s) = -gamma^tau (p^tau v)(s).

    Parameters
    ----------
    transition : (..., n, n) array, row-stochastic
    value : (..., n) array, v
    discount : float, gamma
    steps : int, tau of Algorithm 2

    Returns
    -------
    bias : (..., n) array
    """
    value_after = np.linalg.matrix_power(transition, steps) @ value[..., None]  # (..., n, 1)
    return -(discount**steps) * value_after[..., 0]


def boyan(states: int, size: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw random Boyan's chains (Algorithm 3).

    Each state leads to the next two states, the last but one to the last, and the last state to all states.

    Parameters
    ----------
    states : int, n
    size : int, number of tasks N
    rng : numpy.random.Generator

    Returns
    -------
    transition : (N, n, n) array
    reward : (N, n) array, uniform in [-1, 1]
    """
    reward = rng.uniform(-1, 1, (size, states))
    transition = np.zeros((size, states, states))
    epsilon = rng.uniform(0, 1, (size, states - 2))
    inner = np.arange(states - 2)
    transition[:, inner, inner + 1] = epsilon
    transition[:, inner, inner + 2] = 1 - epsilon
    transition[:, states - 2, states - 1] = 1
    transition[:, states - 1] = _normalise(rng.uniform(0, 1, (size, states)))
    return transition, reward


@validate
def loop(
    states: States, size: Count, rng: np.random.Generator, threshold: Threshold = 0.5
) -> tuple[np.ndarray, np.ndarray]:
    """Draw random Loops (Algorithm 4): a cycle through all states with random chords.

    A chord is a transition from i to j other than a self-loop and the step of the cycle.  Each chord exists with
    probability 1 - ``threshold``.  Parameters and returned arrays are those of ``boyan``.
    """
    reward = rng.uniform(-1, 1, (size, states))
    connected = rng.uniform(0, 1, (size, states, states)) > threshold
    state = np.arange(states)
    connected[:, state, state] = False
    connected[:, state, (state + 1) % states] = True
    return _normalise(rng.uniform(0, 1, (size, states, states)) * connected), reward


def _normalise(rows: np.ndarray) -> np.ndarray:
    """Rows divided by their sums."""
    return rows / rows.sum(axis=-1, keepdims=True)


# An environment draws random MRPs: f(states, size, rng, **options) -> transition (size, states, states), reward (size,
# states).
Environment = Callable[..., tuple[np.ndarray, np.ndarray]]


def relabelled(environment: Environment) -> Environment:
    """Make an environment that permutes the labels of the states of each task of another environment.

    The permutations are uniform and independent, so the distribution of tasks does not depend on the labels: it is
    that of the tasks (Pi p Pi', Pi r) for every permutation matrix Pi.

    Parameters
    ----------
    environment : function f(states, size, rng, **options), as ``register_environment`` takes it

    Returns
    -------
    function of the same form
        Its name, for random number streams, is that of the other function after ``relabelled_``.

    Examples
    --------
    >>> from ictd.mrp import boyan, relabelled
    >>> relabelled(boyan).__name__
    'relabelled_boyan'
    """

    def permuted(states, size, rng, **options):
        transition, reward = environment(states, size, rng, **options)
        order = rng.permuted(np.tile(np.arange(states), (size, 1)), axis=1)
        transition = np.take_along_axis(transition, order[:, :, None], axis=1)
        transition = np.take_along_axis(transition, order[:, None, :], axis=2)
        return transition, np.take_along_axis(reward, order, axis=1)

    permuted.__name__ = f"relabelled_{environment.__name__}"
    return permuted


ENVIRONMENTS: dict[str, Environment] = {
    "boyan": boyan,
    "loop": loop,
    "relabelled_boyan": relabelled(boyan),
    "relabelled_loop": relabelled(loop),
}
# The files that environments read, by the names of the environments.
FILES_READ: dict[str, tuple[str, ...]] = {}


def environment(name: str, value: object, sizes: dict) -> object:
    """Validate an environment, which is a function or a key of ``ENVIRONMENTS``."""
    return function_or(choice(ENVIRONMENTS))(name, value, sizes)


Env = Annotated[str | Environment, environment]


def register_environment(name: str, reads: Iterable[str] = ()) -> Callable[[Environment], Environment]:
    """Make a decorator that adds an environment to those that are known by name.

    Parameters
    ----------
    name : str, a Python identifier that is not in use
    reads : list of str
        Files that the function reads, such as tables and modules, relative to the folder of its own file.  In the
        workflow, an edit of one of them reruns the jobs of this environment.

    Returns
    -------
    decorator of a function
        The function ``f(states, size, rng, **options)`` draws ``size`` MRPs from a numpy.random.Generator, and returns
        their transition probabilities (size, states, states) and rewards (size, states).

    Raises
    ------
    ValueError
        If the name is no identifier, or another function has it.

    Examples
    --------
    >>> import numpy as np
    >>> import ictd
    >>> @ictd.register_environment("walk")
    ... def walk(states, size, rng):
    ...     forward = rng.uniform(0.1, 0.9, (size, states, 1))
    ...     identity = np.eye(states)
    ...     transition = forward * np.roll(identity, 1, axis=1) + (1 - forward) * np.roll(identity, -1, axis=1)
    ...     return transition, rng.uniform(-1, 1, (size, states))
    >>> ictd.sample_tasks("walk", states=4, size=2, rng=np.random.default_rng(0)).states
    4
    """
    if not isinstance(name, str) or not name.isidentifier():
        raise ValueError(f"name is {abbreviated(name)}; give letters, digits and underscores, such as 'ring'.")
    if isinstance(reads, str):
        raise ValueError(f"reads is {reads!r}; give a list of files.")

    def register(function: Environment) -> Environment:
        known = ENVIRONMENTS.setdefault(name, function)
        if (known.__module__, known.__qualname__) != (function.__module__, function.__qualname__):
            raise ValueError(f"there is an environment {name!r} already, in {known.__module__}; choose another name.")
        ENVIRONMENTS[name] = function
        FILES_READ[name] = tuple(reads)
        return function

    return register


@validate
def sample_tasks(env: Env, states: States, size: Count, rng: np.random.Generator, **options) -> Tasks:
    """Draw a task set from an environment.

    Parameters
    ----------
    env : str, a key of ``ENVIRONMENTS``, or a function as ``register_environment`` takes it
    states : int, n, at least 2
    size : int, number of tasks N, at least 1
    rng : numpy.random.Generator
    **options : options of the environment, such as Loop's ``threshold``

    Returns
    -------
    Tasks

    Raises
    ------
    ValueError
        If the environment or an option is unknown, a number is out of range, or the environment returns arrays of
        other shapes.

    Examples
    --------
    >>> from ictd import generator, sample_tasks
    >>> tasks = sample_tasks("boyan", 5, 1000, generator(0, "boyan", 5, "tasks"))
    >>> tasks.transition.shape, tasks.reward.shape
    ((1000, 5, 5), (1000, 5))
    """
    function = env if callable(env) else ENVIRONMENTS[env]
    try:
        drawn = function(states, size, rng, **options)
    except TypeError as error:
        if options and "argument" in str(error):
            raise ValueError(
                f"environment {name_of(env)!r} does not take the options {sorted(options)}: {error}."
            ) from None
        raise
    if not isinstance(drawn, tuple) or len(drawn) != 2:
        raise ValueError(f"environment {name_of(env)!r} returned {type(drawn).__name__}; return (transition, reward).")
    transition, reward = drawn
    if np.shape(transition) != (size, states, states) or np.shape(reward) != (size, states):
        raise ValueError(
            f"environment {name_of(env)!r} returned arrays of shapes {np.shape(transition)} and {np.shape(reward)};"
            f" they must be {(size, states, states)} and {(size, states)}."
        )
    return Tasks(transition, reward)


def name_of(env: str | Environment) -> str:
    """Name of an environment, for random number streams and messages."""
    return env if isinstance(env, str) else getattr(env, "__name__", type(env).__name__)


class TaskDistribution:
    """Distribution of random tasks: an environment, features of its states, and the states that behaviour visits.

    Parameters
    ----------
    env : str, a key of ``ENVIRONMENTS``, or a function as ``register_environment`` takes it
    states : int, n, at least 2
    features : int, (n, d) array, or function, optional
        A number d draws features for each task, with independent standard normal entries divided by sqrt(d).  An array
        has the features of all tasks.  A function f(size, states, rng) returns those of ``size`` tasks, (size, n, d).
        By default features are one-hot.
    behaviour : (n,) or (n, n) array, or function, optional
        Distribution of the visited states of all tasks, or chain of these states, as in ``Tasks``.  A function
        f(transition, rng) returns those of N tasks, (N, n) or (N, n, n), from the chains (N, n, n) of the tasks.  By
        default tasks are on-policy.
    **options : options of the environment, such as Loop's ``threshold``

    Raises
    ------
    ValueError
        If the environment is unknown, or a number is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> import ictd
    >>> tasks = ictd.TaskDistribution("boyan", states=10, features=4).sample(100, np.random.default_rng(0))
    >>> tasks.features.shape
    (100, 10, 4)
    """

    @validate
    def __init__(
        self,
        env: Env,
        states: States,
        features: Annotated[int | ArrayLike | Callable, function_or(either(integer(1), array("n, d")))] | None = None,
        behaviour: Annotated[ArrayLike | Callable, function_or(probabilities("..., n"))] | None = None,
        **options,
    ):
        self.env, self.states, self.options = env, states, options
        self.features, self.behaviour = features, behaviour
        self.name = name_of(env)
        for name in ("features", "behaviour"):
            given = getattr(self, name)
            if isinstance(given, np.ndarray) and len(given) != states:
                raise ValueError(f"{name} has {len(given)} rows; give one for each of the {states} states.")
        # A draw finds errors in functions, options and shapes.
        self.dimension = self.sample(1, np.random.default_rng(0)).dimension

    def __repr__(self) -> str:
        options = "".join(f", {name}={value!r}" for name, value in self.options.items())
        behaviour = "" if self.behaviour is None else ", with a behaviour"
        return f"TaskDistribution({self.name!r}, states={self.states}{options}; d={self.dimension}{behaviour})"

    def sample(self, size: int, rng: np.random.Generator) -> Tasks:
        """Draw ``size`` tasks."""
        tasks = sample_tasks(self.env, self.states, size, rng, **self.options)
        features, behaviour = self.features, self.behaviour
        if isinstance(features, int):
            features = rng.normal(0, 1 / np.sqrt(features), (size, self.states, features))
        elif callable(features):
            features = features(size, self.states, rng)
            shape = np.shape(features)
            if len(shape) != 3 or shape[:2] != (size, self.states):
                raise ValueError(
                    f"the function features returned an array of shape {shape}; return (size, states, d) with size ="
                    f" {size} and states = {self.states}."
                )
        if callable(behaviour):
            behaviour = behaviour(tasks.transition, rng)
        elif behaviour is not None:
            behaviour = np.broadcast_to(behaviour, (size, *behaviour.shape))
        if features is None and behaviour is None:
            return tasks
        return Tasks(tasks.transition, tasks.reward, tasks.stationary, features, behaviour)

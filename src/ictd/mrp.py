"""Markov reward processes (MRPs), and the environments that random MRPs are drawn from.

A task is an MRP (p, r) with n states and a discount gamma (section "Policy Evaluation").  Row s of ``transition`` is
p(. | s), and ``reward[s]`` is r(s).  With the stationary distribution mu = mu p, ::

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
    LARGEST_DISCOUNT,
    ROW_SUM_TOLERANCE,
    SINGLE,
    ArrayLike,
    Count,
    Discount,
    Flag,
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
    refuse_other,
    row_sums,
    validate,
    validate_fields,
    validated,
)
from ictd.elimination import closed_classes, stationary_rows

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
        return self.unchecked(**self._of_arrays(lambda field: np.ascontiguousarray(field[tasks])))

    def _of_arrays(self, function: Callable) -> dict:
        """The fields, with a function of each array in its place."""
        fields = vars(self).items()
        return {name: function(field) if isinstance(field, np.ndarray) else field for name, field in fields}

    def _validate(self) -> None:
        """Validate arrays with leading axes "...": one axis of tasks, or none for a single task, which gets one."""
        lead = validate_fields(self)["..."]
        if len(lead) > 1 or 0 in lead:
            raise ValueError(f"the arrays have leading axes {lead}; give one axis of tasks, or none for a single task.")
        if not lead:
            vars(self).update(self._of_arrays(lambda field: field[None]))


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
        Stationary distributions mu.  By default they are computed by ``stationary_distribution``.  A chain with several
        closed classes needs them.
    features : (n, d) array for all tasks, or (N, n, d) array, optional
        Features phi(s) of the states.  By default they are one-hot, with d = n.  Shared features are stored for each
        task.
    behaviour : (N, n) array or (N, n, n) array, optional
        Distribution of the states that batches and contexts visit, or a chain of these states; their next states come
        from ``transition`` all the same.  By default the states are those of the task's own chain (on-policy).
        It is stored as a chain; a distribution is the chain that draws each state from it.
    episodic : bool
        Whether rows of ``transition`` may sum to less than one.  The rest is the probability that the episode ends
        after the step from this state, as in ``stationary_distribution``.
    start : (n,) array for all tasks, or (N, n) array, optional
        Distribution of the first states of episodes, uniform by default.

    Raises
    ------
    ValueError
        If shapes do not match, an entry is not finite or not a probability, a row does not sum to one, ``stationary``
        is not stationary, or missing for a chain with several closed classes, all features of a task are zero, or a
        behaviour never visits some state.  If a chain without episodes or behaviour ends in one state forever.  If an
        episode may go on forever.

    Examples
    --------
    >>> import ictd
    >>> tasks = ictd.Tasks(transition=[[0.9, 0.1], [0.2, 0.8]], reward=[1.0, 0.0])
    >>> tasks.stationary.round(3)
    array([[0.667, 0.333]])
    >>> ictd.value_function(tasks.transition, tasks.reward, discount=0.9).round(2)
    array([[7.57, 4.86]])
    """

    transition: Annotated[ArrayLike, probabilities("..., n, n", may_end=True)]
    reward: Annotated[ArrayLike, array("..., n")]
    stationary: Annotated[ArrayLike, optional(probabilities("..., n"))] = None
    features: Annotated[ArrayLike, optional(array("..., n, d"))] = None
    behaviour: Annotated[ArrayLike, optional(probabilities("..., n, n"))] = None
    episodic: Flag = False
    start: Annotated[ArrayLike, optional(probabilities("..., n"))] = None

    def __post_init__(self):
        self._spread_out()
        self._validate()
        integer(2)("the number of states", self.states, {})
        chain = self.transition
        if self.episodic:
            start = np.full(self.reward.shape, 1 / self.states) if self.start is None else self.start
            vars(self)["start"] = start
            chain = restarting(self.transition, start)
        stationary = stationary_rows(chain, "transition", self.stationary)
        if self.stationary is None:
            vars(self)["stationary"] = stationary
        off = (np.abs(self.stationary - stationary) > SINGLE).any(axis=1)
        refuse("stationary", off, "is not stationary; leave it out, or give that of the chain, {}", stationary)
        if self.behaviour is None and not self.episodic:
            remedy = "for episodes, set the row to 0 and give episodic=True; otherwise give a behaviour"
            forever = (self.stationary > 0).sum(axis=1) == 1
            problem = f"stays in state {{}} forever, which contexts would show alone; {remedy}"
            refuse("transition", forever, problem, self.stationary.argmax(axis=1))
        if self.features is not None:
            refuse("features", (self.features == 0).all(axis=(1, 2)), "are all zero")
        if self.behaviour is not None:
            vars(self)["_visited"] = stationary_rows(self.behaviour, "behaviour")
            never = self.visited == 0
            refuse("behaviour", never, "never visits this state (task, state); every state must be visited")
        # Fields with default values remain class attributes, so that on-policy tasks of the paper have three arrays.
        for name in ("features", "behaviour", "start", "episodic"):
            if getattr(self, name) is None or getattr(self, name) is False:
                del vars(self)[name]

    def _spread_out(self) -> None:
        """Give each task its own features and first states, and write a distribution of visited states as a chain."""
        labels = {}
        for name in ("transition", "reward", "features", "behaviour", "start"):
            optional(array("*", finite=False))(name, getattr(self, name), labels)
        lead = np.shape(self.transition)[:-2]
        for name, axes in (("features", 2), ("start", 1)):
            shared = getattr(self, name)
            if shared is not None and np.ndim(shared) == axes and lead:
                vars(self)[name] = np.broadcast_to(shared, (*lead, *np.shape(shared)))
        behaviour = self.behaviour
        if behaviour is not None and np.ndim(behaviour) == len(lead) + 1:
            rows = np.asarray(behaviour)[..., None, :]
            vars(self)["behaviour"] = np.repeat(rows, rows.shape[-1], axis=-2)
        if self.start is not None and not self.episodic:
            raise ValueError("start is the distribution of the first states of episodes; give episodic=True, too.")

    def __repr__(self) -> str:
        features = "" if self.features is None else f", {self.dimension} features"
        behaviour = "" if self.behaviour is None else ", with a behaviour"
        episodes = ", with episodes" if self.episodic else ""
        return f"<Tasks: {len(self)} tasks, {self.states} states{features}{behaviour}{episodes}>"

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


def restarting(transition: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Chains (..., n, n) of the states of all episodes: after the end of one, the next begins.

    Raises a ValueError if an episode may go on forever.
    """
    _refuse_endless(transition)
    return transition + end_probabilities(transition)[..., None] * start[..., None, :]


def end_probabilities(transition: np.ndarray) -> np.ndarray:
    """Probabilities (..., n) that the episode ends after a step, by the row sums of an array (..., n, n)."""
    rest = 1 - row_sums(transition)
    return np.where(rest > ROW_SUM_TOLERANCE, rest, 0.0)


def _refuse_endless(transition: np.ndarray) -> None:
    """Raise a ValueError if a state of a chain (..., n, n) does not reach the end of an episode."""
    ends = end_probabilities(transition)
    for place in np.ndindex(ends.shape[:-1]):
        # If all states follow an end, a closed class without an end shows that each closed class is without.
        classes = closed_classes(transition[place] + ends[place][:, None])
        if not ends[place][classes[0]].any():
            raise ValueError(
                f"transition{list(place) or ''} has closed classes of states, {abbreviated(classes)}, in which episodes"
                " never end; if these states are terminal, set their rows to zeros."
            )


@validate
def stationary_distribution(
    transition: Annotated[ArrayLike, probabilities("..., n, n", may_end=True)],
    episodic: Flag = False,
    start: Annotated[ArrayLike, probabilities("*, n")] | None = None,
) -> np.ndarray:
    """Compute the stationary distributions of chains, with mu p = mu.

    Transient states have the probability 0.  The elimination of Grassmann, Taksar and Heyman gives each entry full
    relative precision (``ictd.elimination``).

    The stationary distribution of a task with episodes is that of the states in a long series of episodes, which all
    begin with a state from ``start``.

    Parameters
    ----------
    transition : (..., n, n) array, row-stochastic
    episodic : bool
        Whether rows may sum to less than one.  The rest is the probability that the episode ends.  A rest below 10^-9,
        or 2.5 10^-7 in float32, counts as rounding.  A rest of at most 0.001 gives a warning.  Rows in float16 are
        refused.
    start : (..., n) array, optional
        Distribution of the first states of episodes, uniform by default; leading axes broadcast.

    Returns
    -------
    stationary : (..., n) array

    Raises
    ------
    ValueError
        If a row is not a distribution, a chain has several closed classes, which are sets of states that are never
        left, or an episode may go on forever.  The message has the index of the chain.  If a probability is smaller
        than a float can be during the elimination; those below 2.3e-308 in the end are 0.

    Examples
    --------
    >>> import ictd
    >>> ictd.stationary_distribution([[0.0, 0.5], [0.0, 0.0]], episodic=True, start=[1.0, 0.0]).round(3)
    array([0.667, 0.333])
    """
    if episodic:
        states = transition.shape[-1]
        transition = restarting(transition, np.full(states, 1 / states) if start is None else start)
    elif start is not None:
        raise ValueError("start is the distribution of the first states of episodes; give episodic=True, too.")
    return stationary_rows(transition, "transition")


@validate
def value_function(
    transition: Annotated[ArrayLike, probabilities("*, n, n", may_end=True)],
    reward: Annotated[ArrayLike, array("*, n")],
    discount: Discount,
    episodic: Flag = False,
) -> np.ndarray:
    """Compute the true values v = (I - gamma p)^{-1} r (appendix, proof of Theorem 1).

    Parameters
    ----------
    transition : (..., n, n) array, row-stochastic
    reward : (..., n) array; leading axes broadcast
        An array of the shape of ``transition`` is refused, as it may be r(s, s') as well as n vectors r(s).  Give
        (transition * reward).sum(axis=-1) for the first, and transition[None] for the second.
    discount : float, gamma, from 0 to 1 - 2^-26
        Closer to 1, the rounding error of a value is larger than a reward.  With ``episodic`` it may be up to 1.
    episodic : bool
        Whether rows may sum to less than one.  The rest is the probability that the episode ends; the value is 0 then.
        A rest below 10^-9, or 2.5 10^-7 in float32, counts as rounding.  A rest of at most 0.001 gives a warning.  Rows
        in float16 are refused.

    Returns
    -------
    value : (..., n) array

    Raises
    ------
    ValueError
        If a row is not a distribution, a reward or a value is not finite, or the discount is out of range.  If
        ``reward`` has the shape of ``transition``.  If the discount is above 1 - 2^-26, and an episode may go on
        forever or has an expected length of more than 2^26 steps.

    Examples
    --------
    The random walk of 5 states, which ends at both sides (Sutton and Barto, Reinforcement Learning, example 6.2):

    >>> import numpy as np
    >>> import ictd
    >>> walk = (np.eye(5, k=1) + np.eye(5, k=-1)) / 2
    >>> reward = [0, 0, 0, 0, 0.5]  # The expected reward of each step.
    >>> (6 * ictd.value_function(walk, reward, discount=1, episodic=True)).round(6)
    array([1., 2., 3., 4., 5.])
    """
    if reward.shape[-transition.ndim :] == transition.shape:
        raise ValueError(
            f"reward has shape {reward.shape}; give (transition * reward).sum(axis=-1) if it is r(s, s'),"
            " (policy * reward).sum(axis=-1) if it is r(s, a), or transition[None] if each row is a vector r(s)."
        )
    system = np.eye(transition.shape[-1]) - discount * transition
    if discount > LARGEST_DISCOUNT:
        _refuse_endless(transition)
        _refuse_long_episodes(system)
    value = np.linalg.solve(system, reward[..., None])[..., 0]
    refuse("value", ~np.isfinite(value), "is beyond the range of floats; give smaller rewards")
    return value


def _refuse_long_episodes(system: np.ndarray) -> None:
    """Raise a ValueError if rounding errors exceed rewards in values of tasks (..., n, n), for I - gamma p."""
    try:
        lengths = np.linalg.solve(system, np.ones((*system.shape[:-1], 1)))[..., 0]
    except np.linalg.LinAlgError:
        lengths = np.full(system.shape[:-1], np.inf)
    long = ~((lengths > 0.5) & (lengths <= 1 / (1 - LARGEST_DISCOUNT)))
    problem = "is the row of a state from which episodes take more than 2^26 steps on average; give a lower discount"
    refuse("transition", long, problem)


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


@validate
def boyan(states: States, size: Count, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw random Boyan's chains (Algorithm 3).

    Each state leads to the next two states, the last but one to the last, and the last state to all states.

    Parameters
    ----------
    states : int, n, at least 2
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
        task = np.arange(size)[:, None]
        return transition[task[:, None], order[:, :, None], order[:, None]], reward[task, order]

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
    if not isinstance(value, str) and not callable(value):
        raise ValueError(
            f"{name} is {abbreviated(value)}; give the name of an environment or a function that draws tasks, such as"
            " lambda states, size, rng: ([p] * size, [r] * size) for one chain p with the rewards r."
        )
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
        refuse_other("an environment", name, known, function)
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
    return Tasks(*_drawn(env, states, size, rng, options))


def _drawn(env: str | Environment, states: int, size: int, rng: np.random.Generator, options: dict) -> tuple:
    """Transition probabilities and rewards that an environment draws."""
    function = env if callable(env) else ENVIRONMENTS[env]
    try:
        drawn = function(states, size, rng, **options)
    except TypeError as error:
        if options and "argument" in str(error):
            raise ValueError(
                f"environment {name_of(env)!r} does not take the options {sorted(options)}: {str(error).rstrip('.')}."
            ) from None
        raise
    except (StopIteration, IndexError, RuntimeError) as error:  # Such as the end of a list of tasks.
        if isinstance(error, RuntimeError) and not isinstance(error.__cause__, StopIteration):
            raise
        raise ValueError(
            f"environment {name_of(env)!r} stopped by {error.__cause__ or error!r} when asked for {size} more tasks;"
            " give a function that can draw tasks without end, or ask for fewer."
        ) from error
    if not isinstance(drawn, tuple) or len(drawn) != 2:
        raise ValueError(f"environment {name_of(env)!r} returned {type(drawn).__name__}; return (transition, reward).")
    transition, reward = drawn
    if np.shape(transition) != (size, states, states) or np.shape(reward) != (size, states):
        raise ValueError(
            f"environment {name_of(env)!r} returned arrays of shapes {np.shape(transition)} and {np.shape(reward)};"
            f" they must be {(size, states, states)} and {(size, states)}."
        )
    return drawn


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
        If the environment is unknown, or a number is out of range.  What a function draws is validated by ``sample``.

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
        self.states, self.options = states, options
        self.features, self.behaviour = features, behaviour
        self.name = name_of(env)
        # A draw finds errors in options and shapes.  Loop stands for a function, which may have few tasks to give.
        self.env = (lambda *given, **_: loop(*given)) if callable(env) else env
        self.dimension = self.sample(1, np.random.default_rng(0)).dimension
        self.env = env

    def __repr__(self) -> str:
        options = "".join(f", {name}={value!r}" for name, value in self.options.items())
        behaviour = "" if self.behaviour is None else ", with a behaviour"
        return f"TaskDistribution({self.name!r}, states={self.states}{options}; d={self.dimension}{behaviour})"

    @validate
    def sample(self, size: Count, rng: np.random.Generator) -> Tasks:
        """Draw ``size`` tasks."""
        transition, reward = _drawn(self.env, self.states, size, rng, self.options)
        features, behaviour = self.features, self.behaviour
        if isinstance(features, int):
            features = rng.normal(0, 1 / np.sqrt(features), (size, self.states, features))
        elif callable(features):
            features = features(size, self.states, rng)
            if np.ndim(features) != 3:
                raise ValueError(
                    f"the function features returned an array of shape {np.shape(features)}; return (size, states, d)."
                )
        if callable(behaviour):
            behaviour = behaviour(np.asarray(transition), rng)
        elif behaviour is not None:
            behaviour = np.broadcast_to(behaviour, (size, *behaviour.shape))
        return Tasks(transition, reward, features=features, behaviour=behaviour)

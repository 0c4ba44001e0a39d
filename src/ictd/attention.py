"""Attention of one's own: linear attention with any P and Q in torch, and a trainer for any module like it.

A layer of TF_L maps a prompt Z = [X, q], with context columns X (D, m) and query columns q (D, k), to (section "Linear
Attention", eq. (embedding evolution), here with several heads h) ::

    Z + (1/m) sum_h P_h X X' Q_h Z = T Z,    T = I + sum_h P_h G Q_h,    G = X X' / m.

So a layer multiplies all columns by T, and G becomes T G T'.  The estimates are minus the last entries of the query
columns [phi(s); 0; 0].  They depend on a context of any length only through its Gram matrix G (D, D), which is
``ictd.Context.gram_matrix``, with D = 2d + 1 for d features.  G is a mean over columns, so attention is divided by the
context length.

G has no order and no single columns, so other attention, such as softmax attention or attention with a causal mask,
needs the columns X themselves.  ``pretrain_attention`` trains modules of both kinds.

``ictd.transformer.transformer_output`` has the same layers, with one head, on whole prompts.  The compiled
updates of ``ictd.pretrain``, for u and A of Theta^looped, are faster.
"""

import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from ictd.algorithms import Targets
from ictd.checks import Count, Discount, Flag, NotNegative, Positive, Seeds, abbreviated, first_line, validate
from ictd.pretraining import Target, progress_bar, report_divergence
from ictd.rng import generator
from ictd.storage import replacing, user_path
from ictd.torch_twin import Adam, torch
from ictd.training_data import Block, Distribution, EnumeratedPrompts, SampledPrompts, training_blocks

# Number of tasks whose values are computed at once.
AT_ONCE = 50


class GramAttention(torch.nn.Module):
    """Linear attention with any P and Q, as a function of Gram matrices of contexts.

    Parameters have a leading axis of S seeds, so all seeds are trained at once.  A subclass overrides ``matrices`` to
    constrain P and Q, ``layer`` for other layers, or ``forward``.

    Parameters
    ----------
    dimension : int, number of features d, which is n with one-hot features
    depth : int, number of layers L
    heads : int, number of heads H of a layer
    looped : bool
        Whether all layers share their parameters.
    seeds : int, or S of them
        Seeds of the initial values, which do not depend on each other.
    initial_gain : float, factor of the standard deviation of the initial values

    Attributes
    ----------
    P : (S, K, H, 2d+1, 2d+1) parameter, of K = 1 or L layers, in float64
    Q : parameter of the same shape
        Initial values are Xavier normal as in ``initial_weights``, except that P of the first head ends with 1, as in
        Theta^looped.  With many layers, such as 30, estimates overflow with some of these values, or later in
        pretraining, because a layer with any P and Q can also multiply the rewards.

    Raises
    ------
    ValueError
        If an argument has the wrong type or is out of range.

    Examples
    --------
    >>> import ictd, torch
    >>> attention = ictd.GramAttention(dimension=2, depth=3, heads=4, seeds=range(10))
    >>> contexts = ictd.Context.enumerated([[[0.9, 0.1], [0.2, 0.8]]], [[1.0, 0.0]])
    >>> attention(torch.from_numpy(contexts.gram_matrix(0.9)), torch.eye(2, dtype=torch.float64)).shape
    torch.Size([10, 1, 2])
    """

    @validate
    def __init__(
        self,
        dimension: Count,
        depth: Count,
        heads: Count = 1,
        looped: Flag = True,
        seeds: Seeds = 0,
        initial_gain: NotNegative = 0.1,
    ):
        super().__init__()
        self.dimension, self.depth = dimension, depth
        height = 2 * dimension + 1
        shape = 2, 1 if looped else depth, heads, height, height
        streams = [generator(seed, "attention", dimension, "weights") for seed in np.atleast_1d(seeds).tolist()]
        P, Q = np.stack([rng.normal(0, initial_gain / np.sqrt(height), shape) for rng in streams], axis=1)
        P[:, :, 0, -1, -1] = 1
        self.P, self.Q = torch.nn.Parameter(torch.tensor(P)), torch.nn.Parameter(torch.tensor(Q))

    def matrices(self, layer: int) -> tuple[torch.Tensor, torch.Tensor]:
        """P and Q of a layer, (S, H, D, D) each, with any number of heads H."""
        own = layer % self.P.shape[1]
        return self.P[:, own], self.Q[:, own]

    def layer(self, layer: int, G: torch.Tensor, q: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Apply a layer to G (S, N, D, D) and to query columns q (S, N, D, k)."""
        P, Q = self.matrices(layer)
        expected = len(G), P.shape[1] if P.ndim > 1 else 1, *G.shape[-2:]
        for name, matrix in (("P", P), ("Q", Q)):
            if matrix.shape != expected:
                raise ValueError(
                    f"matrices returns {name} of shape {tuple(matrix.shape)}; return (S, H, D, D), here {expected}."
                )
        T = torch.eye(G.shape[-1]).to(G) + torch.einsum("shij,snjk,shkl->snil", P, G, Q)
        return T @ G @ T.mT, T @ q

    def forward(self, G: torch.Tensor, queries: torch.Tensor) -> torch.Tensor:
        """Estimate the values of k query states in each of N contexts.

        Parameters
        ----------
        G : (N, D, D) or (S, N, D, D) tensor or array, with D = 2d + 1
            Gram matrices of contexts (``Context.gram_matrix``), for all seeds or of each seed.
        queries : (k, d), (N, k, d) or (S, N, k, d) tensor or array
            Features of the query states.

        Returns
        -------
        estimates : (S, N, k) tensor

        Raises
        ------
        ValueError
            If shapes do not match.
        """
        G, queries = torch.as_tensor(G).to(self.P), torch.as_tensor(queries).to(self.P)
        d, seeds = self.dimension, len(self.P)
        given = queries.shape[-1] if queries.ndim else 0
        if given != d and G.shape[-2:] == (2 * given + 1, 2 * given + 1):
            raise ValueError(
                f"G and queries have {given} features, and the attention was made for {d}; make it with"
                f" dimension={given}."
            )
        if G.ndim not in (3, 4) or G.shape[-2:] != (2 * d + 1, 2 * d + 1) or given != d:
            raise ValueError(
                f"G has shape {tuple(G.shape)} and queries {tuple(queries.shape)}; give (..., N, {2 * d + 1},"
                f" {2 * d + 1}) and (..., k, {d}) for {d} features."
            )
        G = G.expand(seeds, *G.shape[-3:])
        q = torch.nn.functional.pad(queries.mT, (0, 0, 0, d + 1))
        q = q.expand(*G.shape[:2], *q.shape[-2:])
        for layer in range(self.depth):
            G, q = self.layer(layer, G, q)
        return -q[..., -1, :]


@validate
def pretrain_attention(
    module: torch.nn.Module | list,
    tasks: Distribution,
    discount: Discount,
    prompts: EnumeratedPrompts | SampledPrompts | None = None,
    target: Target = "td",
    updates: Count = 20_000,
    seeds: Seeds = 0,
    tasks_per_update: Count = 1,
    learning_rate: Positive = 0.001,
    batch_size: Count = 64,
    rollout_steps: Count = 200,
    clip: NotNegative = 0.0,
    progress: Flag = True,
    columns: Flag = False,
) -> torch.nn.Module | list[torch.nn.Module]:
    """Pretrain modules on random tasks, with all seeds side by side.

    Updates are those of ``ictd.pretrain``, and a seed has the same tasks, contexts and batches.  With one task for each
    update this is Algorithm 1 or 2.  With K tasks, an update is the mean over them.  Up to about 100 tasks, counted
    over all seeds, more tasks cost almost no time.  Memory grows with the number of seeds.

    Parameters
    ----------
    module : any ``torch.nn.Module``, a list with one for each seed, or GramAttention, which has an axis of seeds
        Parameters change in place.  Modules of a list must have one class and parameters of the same shapes; torch.func
        computes all of them at once.  ``forward`` returns estimates (K, n) of the values of query states in K tasks,
        from arguments in the type of the first parameter.  There are two kinds of modules:

        - ``forward(G, queries)`` with Gram matrices G (K, D, D) and queries (K, n, d).
        - ``forward(columns, queries, padding=None)``, for ``columns=True``, with the context columns
          [phi_t; gamma phi_{t+1}; R_{t+1}] in rows, (K, m, D), and queries (K, n, d).  Columns of sampled prompts are
          in the order of the steps.  If contexts of an update have different lengths, the shorter ones end with rows of
          zeros, and ``padding`` (K, m) is True there, as ``key_padding_mask`` in torch.

        The arguments and the estimates of a single module on Gram matrices have an axis of S seeds in front, and so has
        each of its trained parameters if there are several seeds.
    tasks, discount, prompts, target, updates, learning_rate, batch_size, rollout_steps, clip, progress
        As in ``ictd.pretrain``.
    seeds : int, or S of them
        Seeds of the tasks, contexts and batches.  Modules have their initial values already.
    tasks_per_update : int, K
    columns : bool
        Whether modules read whole columns in place of Gram matrices.

    Returns
    -------
    torch.nn.Module, or a list of them
        Those that were given.  The parameters of a seed that diverges are NaN.

    Raises
    ------
    ValueError
        If an argument has the wrong type or is out of range, or the module fails on its arguments, or returns another
        shape or no real numbers.

    Examples
    --------
    >>> import ictd
    >>> attention = ictd.pretrain_attention(
    ...     ictd.GramAttention(dimension=3, depth=2, seeds=range(2)), ictd.TaskDistribution("loop", states=3),
    ...     discount=0.9, updates=50, seeds=range(2), tasks_per_update=8, progress=False,
    ... )
    >>> attention.P.shape
    torch.Size([2, 1, 1, 7, 7])
    """
    seeds = np.atleast_1d(seeds).tolist()
    several = isinstance(module, list)
    seeds_axis = several or not columns
    if several and len(module) != len(seeds):
        raise ValueError(
            f"module is a list of {len(module)}, and there are {len(seeds)} seeds; give one for each seed."
        )
    if not seeds_axis and len(seeds) > 1:
        raise ValueError(f"seeds are {len(seeds)}, and a module on columns has one; give a list of modules.")
    trained = SideBySide(module) if several else module
    if several and _share(module):
        raise ValueError("modules of the list share parameters; make a module for each seed.")
    parameters = _trained_parameters(trained, len(seeds))
    optimizer = Adam(parameters, learning_rate)
    settings = prompts or EnumeratedPrompts(), target, discount, updates
    draws = [training_blocks(tasks, *settings, seed, batch_size, rollout_steps, tasks_per_update) for seed in seeds]
    diverged_at = np.zeros(len(seeds), int)
    with progress_bar(updates * len(seeds), progress) as bar, one_thread():
        drawn = _updates(draws, discount, tasks_per_update, columns, seeds_axis, parameters[0])
        for update, (given, targets) in enumerate(drawn, 1):
            estimates = _called(trained, given, columns).reshape(targets.sums.shape)
            if not estimates.is_floating_point() or not estimates.requires_grad:
                raise ValueError(
                    f"module returns a tensor of type {estimates.dtype} without a gradient; return real numbers that"
                    " torch computes from the trained parameters."
                )
            numbers = estimates.detach().cpu().double().numpy()
            with np.errstate(all="ignore"):  # Trials may diverge.
                errors = targets.errors(numbers)
            # Adam descends, and the update ascends along the mean over tasks of (1/b) sum_t delta_t grad TF_L(S_t).
            weights = torch.from_numpy(-errors / tasks_per_update).to(estimates)
            gradient = torch.autograd.grad(estimates, parameters, weights, materialize_grads=True)
            optimizer.step(_clipped(gradient, clip, len(seeds)))
            diverged_at[(diverged_at == 0) & ~np.isfinite(errors).all(axis=(1, 2))] = update
            bar.update(len(seeds))
            if diverged_at.all():
                break
    diverged_at[(diverged_at == 0) & ~_finite(parameters, len(seeds))] = updates + 1
    for i in np.flatnonzero(diverged_at):
        report_divergence(seeds[i], diverged_at[i])
        for parameter in parameters:
            parameter.data.view(len(seeds), -1)[i] = torch.nan
    if several:
        trained.copy_to(module)
    return module


def _share(modules: list[torch.nn.Module]) -> bool:
    """Whether a parameter is in more than one of the modules, such as those of ``[module] * 2``."""
    parameters = [parameter for module in modules for parameter in module.parameters()]
    return len(set(parameters)) < len(parameters)


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch use one thread: these matrices are too small to share out."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


class SideBySide(torch.nn.Module):
    """Modules of S seeds as one module, whose parameters and arguments have an axis of seeds in front.

    ValueError if the modules differ in class or in the shapes of parameters.
    """

    def __init__(self, modules: list[torch.nn.Module]):
        super().__init__()
        try:
            parameters, self.buffers_ = torch.func.stack_module_state(modules)
        except (AttributeError, RuntimeError, ValueError) as error:
            problem = first_line(error)
            raise ValueError(f"the modules of the list cannot be computed at once: {problem}.") from error
        self.names = [*parameters]
        frozen = [parameter.detach() for parameter in parameters.values()]
        trains = [parameter.requires_grad for parameter in modules[0].parameters()]
        self.stacked = torch.nn.ParameterList(map(torch.nn.Parameter, frozen, trains))
        self.one = (modules[0],)  # In a tuple, its parameters are not parameters of this module.

    def forward(self, *given: torch.Tensor) -> torch.Tensor:
        """Estimates (S, K, n) from the arguments of all seeds."""

        def of_seed(parameters, buffers, *own):
            return torch.func.functional_call(self.one[0], (parameters, buffers), own)

        parameters = dict(zip(self.names, self.stacked, strict=True))
        return torch.vmap(of_seed, randomness="different")(parameters, self.buffers_, *given)

    @torch.no_grad()
    def copy_to(self, modules: list[torch.nn.Module]) -> None:
        """Give each module the parameters of its seed."""
        for i, module in enumerate(modules):
            for own, stacked in zip(module.parameters(), self.stacked, strict=True):
                own.copy_(stacked[i])


def module_values(module: torch.nn.Module | list, block: Block, discount: float, columns: bool) -> np.ndarray:
    """Estimates (N, n), or (S, N, n) of several modules, for the tasks of a block.

    The modules are as in ``pretrain_attention``.
    """
    several = isinstance(module, list)
    run = SideBySide(module) if several else module
    like = next(run.parameters(), torch.empty(0, dtype=torch.float64))  # Without parameters, estimates are of float64.
    found = []
    with one_thread(), torch.no_grad():
        slices = _slices(len(block.tasks), AT_ONCE)
        for given in _arguments([block], slices, discount, columns, several or not columns, like):
            if several:
                given = [tensor.expand(len(module), *tensor.shape[1:]) for tensor in given]
            found.append(_called(run, given, columns).cpu().double().numpy())
    return np.concatenate(found, axis=-2)


def save_module(module: torch.nn.Module | list, path: str | Path, **settings) -> None:
    """Write the parameters of a module, or of a list of modules, and the settings that made them, to a file.

    Parameters
    ----------
    module : torch.nn.Module, or a list of them
    path : str or Path
    **settings : numbers, texts and lists, the arguments of the module's class, which ``load_module`` gives to it

    Raises
    ------
    ValueError
        If there are other settings, or the file cannot be written.
    """
    several = isinstance(module, list)
    states = [one.state_dict() for one in (module if several else [module])]
    try:
        with replacing(user_path(path)) as temporary:
            torch.save({"settings": settings, "several": several, "states": states}, temporary)
            torch.load(temporary, weights_only=True)  # It reads no other settings.
    except pickle.UnpicklingError as error:
        raise ValueError(
            f"settings are {abbreviated(settings)}; give numbers, texts and lists of them, such as by array.tolist()."
        ) from error
    except OSError as error:
        raise ValueError(f"{path} cannot be written: {error.strerror}; give the name of another file.") from None


def load_module(path: str | Path, make: Callable) -> torch.nn.Module | list[torch.nn.Module]:
    """Read the modules that ``save_module`` wrote.

    Parameters
    ----------
    path : str or Path
    make : the class of the modules, or a function that makes one of the settings in the file

    Returns
    -------
    torch.nn.Module, or a list of them, as given to ``save_module``

    Raises
    ------
    ValueError
        If the file is missing or damaged, or ``make`` makes a module of other parameters.
    """
    try:
        saved = torch.load(user_path(path), weights_only=True)
        modules = [make(**saved["settings"]) for _ in saved["states"]]
        for module, state in zip(modules, saved["states"], strict=True):
            module.load_state_dict(state)
    except (OSError, EOFError, RuntimeError, TypeError, LookupError, pickle.UnpicklingError) as error:
        problem = abbreviated(error).rstrip(".") or type(error).__name__
        raise ValueError(f"{path} cannot be loaded: {problem}; give a file and a class as in save_module.") from error
    return modules if saved["several"] else modules[0]


def _trained_parameters(module: torch.nn.Module, seeds: int) -> list[torch.Tensor]:
    """Parameters of a module that have a gradient, each with a leading axis of seeds if there are several."""
    trained = {name: parameter for name, parameter in module.named_parameters() if parameter.requires_grad}
    if not trained:
        raise ValueError("module has no parameters that are trained; give it a torch.nn.Parameter.")
    for name, parameter in trained.items():
        if seeds > 1 and parameter.shape[:1] != (seeds,):
            raise ValueError(f"{name} has shape {tuple(parameter.shape)}; give it a leading axis of {seeds} seeds.")
    return [*trained.values()]


def _updates(
    draws: list[Iterator[Block]],
    discount: float,
    tasks_per_update: int,
    columns: bool,
    seeds_axis: bool,
    like: torch.Tensor,
) -> Iterator[tuple[list[torch.Tensor], Targets]]:
    """Arguments of the module and targets of each update, with axes of S seeds and K tasks.

    ``draws`` has the blocks of each seed; the other parameters are those of ``_arguments``.
    """
    for blocks in zip(*draws, strict=True):
        parts = [vars(block.targets) for block in blocks]
        fields = {name: np.stack([part[name] for part in parts]) for name in parts[0]}
        slices = _slices(len(blocks[0].tasks), tasks_per_update)
        arguments = _arguments(blocks, slices, discount, columns, seeds_axis, like)
        for some, given in zip(slices, arguments, strict=True):
            yield given, Targets(**{name: array[:, some] for name, array in fields.items()})


def _slices(tasks: int, size: int) -> list[slice]:
    """Slices of a number of tasks, with ``size`` tasks in each."""
    return [slice(first, first + size) for first in range(0, tasks, size)]


def _arguments(
    blocks: Sequence[Block], slices: list[slice], discount: float, columns: bool, seeds_axis: bool, like: torch.Tensor
) -> Iterator[list[torch.Tensor]]:
    """Arguments of a module for the tasks of each slice, in the type of ``like``.

    They have an axis of the S blocks in front, which is left out of those of one block if ``seeds_axis`` is False.
    """
    make = _columns if columns else _gram_matrices
    for given in make(blocks, slices, discount):
        tensors = [torch.tensor(array if seeds_axis else array[0]) for array in given]
        yield [tensor.to(like if tensor.is_floating_point() else like.device) for tensor in tensors]


def _gram_matrices(
    blocks: Sequence[Block], slices: list[slice], discount: float
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Gram matrices (S, K, D, D) and queries (S, K, n, d) of the tasks of each slice."""
    G = np.stack([block.contexts.gram_matrix(discount) for block in blocks])
    queries = np.stack([block.queries for block in blocks])
    for some in slices:
        yield G[:, some], queries[:, some]


def _columns(blocks: Sequence[Block], slices: list[slice], discount: float) -> Iterator[tuple[np.ndarray, ...]]:
    """Columns (S, K, m, D), queries (S, K, n, d), and padding (S, K, m) if there is any, of the tasks of each slice."""
    for some in slices:
        drawn = [block.columns(some, discount) for block in blocks]
        tasks, height, _ = drawn[0][0].shape
        shape = len(blocks), tasks, max(ended.shape[1] for _, ended in drawn)
        columns, padding = np.zeros((*shape, height)), np.ones(shape, bool)
        for i, (own, ended) in enumerate(drawn):
            steps = ended.shape[1]
            columns[i, :, :steps], padding[i, :, :steps] = own.mT, ended
        queries = np.stack([block.queries[some] for block in blocks])
        yield columns, queries, *([padding] if padding.any() else [])


def _called(module: torch.nn.Module, given: list[torch.Tensor], columns: bool) -> torch.Tensor:
    """Call a module, and check the shape of what it returns."""
    shape = tuple(given[1].shape[:-1])  # That of the queries.
    names = ("columns", "queries", "padding") if columns else ("G", "queries")
    shapes = " and ".join(f"{name} {tuple(argument.shape)}" for name, argument in zip(names, given, strict=False))
    try:
        estimates = module(*given)
    except (RuntimeError, TypeError, IndexError, AssertionError) as error:
        problem = first_line(error)
        dtype = given[0].dtype
        remedy = f"; give all its tensors this type, such as by module.to({dtype})" if "type" in problem else ""
        remedy += "; a module on whole columns needs columns=True" if "G" in names else ""
        raise ValueError(f"module fails on {shapes} of {dtype}: {problem}{remedy}.") from error
    if not isinstance(estimates, torch.Tensor) or estimates.shape != shape:
        found = tuple(estimates.shape) if isinstance(estimates, torch.Tensor) else type(estimates).__name__
        raise ValueError(f"module returns {found} for {shapes}; return a tensor of shape {shape}.")
    return estimates


def _clipped(gradient: Sequence[torch.Tensor], clip: float, seeds: int) -> list[torch.Tensor]:
    """Gradients whose norm over all parameters of a seed is shortened to ``clip`` if it is larger."""
    if clip == 0:
        return [*gradient]
    rows = [part.reshape(seeds, -1) for part in gradient]
    norm = sum(row.square().sum(dim=1) for row in rows).sqrt()
    factor = torch.where(norm > clip, clip / norm, 1.0)[:, None]
    return [(row * factor).reshape(part.shape) for row, part in zip(rows, gradient, strict=True)]


def _finite(parameters: list[torch.Tensor], seeds: int) -> np.ndarray:
    """Whether all parameters of each seed are finite, (S,)."""
    rows = [parameter.detach().reshape(seeds, -1).isfinite().all(dim=1).cpu().numpy() for parameter in parameters]
    return np.all(rows, axis=0)

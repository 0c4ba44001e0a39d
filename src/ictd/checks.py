"""What public functions and objects take: one check for each kind of argument.

A kind checks an argument, given its name, its value, and what the arguments before it make known: it returns the value
as the code needs it, or raises a ValueError of one sentence.  Shapes are written as in docstrings, such as
"..., 2n+1, m": a letter is a size of at least 1, the same in all arguments of a call, "..." stands for axes that are
alike in all of them, and "*" for leading axes that broadcast, for which NumPy has the sentence.
"""

import inspect
import math
import re
import sys
from collections.abc import Callable
from functools import cache, wraps
from numbers import Integral, Real

import numpy as np

# Largest deviation of a row sum from one that is put down to rounding in float64.
ROW_SUM_TOLERANCE = 1e-9
# Counts are stored in 32 bits, and products of two such numbers fit the 64 bits of an index.
LARGEST = 2**31 - 1
MAX = sys.float_info.max
# Values grow as 1 / (1 - gamma), and rounding moves them by up to 2^-52 / (1 - gamma)^2: above this discount by more
# than a reward, and so by more than what tells states apart.  It also outweighs what rows may be off.
LARGEST_DISCOUNT = 1 - 2.0**-26


def checked(**kinds: Callable):
    """Decorator of a function whose arguments, by name, are of these kinds, which are checked in this order."""

    def decorate(function):
        parameters = inspect.signature(function).parameters
        needed = {name for name, one in parameters.items() if one.default is one.empty and one.kind != one.VAR_KEYWORD}

        @wraps(function)
        def call(*args, **kwargs):
            given = dict(zip(parameters, args, strict=False), **kwargs)
            if len(given) < len(args) + len(kwargs) or not needed <= given.keys():
                return function(*args, **kwargs)  # Python says what is wrong with the call.
            _check(given, kinds)
            return function(**given)

        return call

    return decorate


def own(made: object, **kinds: Callable) -> dict:
    """Check the fields of an object, which gets contiguous copies of its arrays; returns what is known then."""
    fields = vars(made)
    known = _check(fields, kinds)
    fields.update((name, np.array(value, order="C")) for name, value in fields.items() if isinstance(value, np.ndarray))
    return known


def _check(given: dict, kinds: dict) -> dict:
    known = {}
    for name, kind in kinds.items():
        if name in given:
            given[name] = kind(name, given[name], known)
    return known


def unchecked(kind: type, **fields):
    """A dataclass object made without its checks, from fields that have passed them before."""
    made = object.__new__(kind)
    vars(made).update(fields)
    return made


def part(whole, tasks: slice):
    """A slice of an object whose fields are arrays with a leading axis of tasks."""
    if not isinstance(tasks, slice) or not all(
        end is None or isinstance(end, Integral) for end in (tasks.start, tasks.stop, tasks.step)
    ):
        raise ValueError(f"{shown(tasks)} is no slice of tasks; write [3:4] for task 3.")
    return unchecked(type(whole), **{name: np.ascontiguousarray(array[tasks]) for name, array in vars(whole).items()})


def picked(whole, lead: tuple[int, ...], index) -> dict:
    """Fields of an object at an index of their leading axes alone; a number stays as it is.  IndexError as NumPy's."""
    at = np.arange(math.prod(lead)).reshape(lead)[index]
    fields = vars(whole).items()
    return {name: one.reshape(-1, *one.shape[len(lead) :])[at] if np.ndim(one) else one for name, one in fields}


def refuse(name: str, bad: np.ndarray, what: str) -> None:
    """Raise a ValueError that names the first entry that ``bad`` marks in an array."""
    if bad.any():
        raise ValueError(f"{name}{np.argwhere(bad)[0].tolist() if bad.ndim else ''} {what}.")


def row_sums(array: np.ndarray) -> np.ndarray:
    """Sums along the last axis, of the entries' type; ``sum`` takes four times as long where that axis is short."""
    return np.einsum("...s->...", array)


def shown(value: object) -> str:
    """A value in a sentence, without the middle of a long one."""
    text = " ".join((repr(value) if isinstance(value, str) else str(value)).split())
    return text if len(text) <= 100 else f"{text[:70]} ... {text[-20:]}"


def _kind(check: Callable) -> Callable:
    """From a check to a function of its limits that makes kinds."""
    return lambda *limits, **more: lambda name, value, known: check(name, value, known, *limits, **more)


@_kind
def whole(name, value, known, least: int, most: int | str = LARGEST) -> int:
    """A whole number from ``least`` to ``most``, which may be a size, as in "m" or "N-1"."""
    most = _largest(most, known)
    if isinstance(value, bool) or not isinstance(value, Integral) or not least <= value <= most:
        raise ValueError(f"{name} is {shown(value)}; give a whole number from {least} to {most}.")
    return int(value)


@_kind
def real(name, value, known, holds: Callable[[float], bool], what: str) -> float:
    """A number for which ``holds``; ``what`` ends the sentence that asks for it."""
    if isinstance(value, bool) or not isinstance(value, Real) or not holds(value):
        raise ValueError(f"{name} is {shown(value)}; give a number {what}.")
    return float(value)


@_kind
def one_of(name, value, known, names, what: str) -> str:
    """One of some names; ``what`` they are names of."""
    if not isinstance(value, str) or value not in names:
        raise ValueError(f"there is no {what} {shown(value)}; choose from {', '.join(names)}.")
    return value


@_kind
def of(name, value, known, kind: type, /, **sizes: str):
    """An object of a type, some of whose fields are arrays of these shapes, or numbers that are these sizes."""
    if not isinstance(value, kind):
        raise ValueError(f"{name} is {shown(value)}; give a {getattr(kind, '__name__', kind)}.")
    for field, spec in sizes.items():
        size = getattr(value, field)
        _fit(f"{name}.{field}", getattr(size, "shape", (size,)), spec, known)
    return value


@_kind
def each(name, value, known, kind: Callable) -> list:
    """A list of values of a kind."""
    if not isinstance(value, list | tuple) or not value:
        raise ValueError(f"{name} is {shown(value)}; give a list of at least one.")
    return [kind(f"{name}[{i}]", one, known) for i, one in enumerate(value)]


@_kind
def either(name, value, known, one: Callable, several: Callable):
    """A number of one kind, or an array of another."""
    return (several if isinstance(value, np.ndarray | list | tuple) else one)(name, value, known)


@_kind
def optional(name, value, known, kind: Callable):
    """A value of a kind, or None."""
    return None if value is None else kind(name, value, known)


@_kind
def wholes(name, value, known, spec: str, least: int = 0, most: int | str = LARGEST) -> np.ndarray:
    """An array of whole numbers, native ints of any width, with limits as in ``whole``."""
    array, most = _array(name, value, known, spec, "iu"), _largest(most, known)
    refuse(name, (array < least) | (array > most), f"is not from {least} to {most}")
    return array.astype(array.dtype.newbyteorder("="), copy=False)


@_kind
def reals(name, value, known, spec: str, finite: bool = True) -> np.ndarray:
    """An array of float64; ``finite`` is False where NaN has a meaning, as that of a run that diverged."""
    array = _array(name, value, known, spec, "iuf").astype(np.float64, copy=False)
    if finite:
        refuse(name, ~np.isfinite(array), "is not finite")
    return array


@_kind
def rows(name, value, known, spec: str) -> np.ndarray:
    """An array of float64 whose last axis has probability distributions.

    Those of a narrower type are normalised, as their rounding, which is known afterwards, is larger than float64's.
    """
    given = _array(name, value, known, spec, "iuf")
    precision = np.finfo(given.dtype if given.dtype.kind == "f" else np.float64).eps
    rounding = max(ROW_SUM_TOLERANCE, given.shape[-1] * float(precision))
    known["rounding"] = max(known.get("rounding", 0.0), rounding)
    array = given.astype(np.float64, copy=False)
    refuse(name, ~(array >= 0), "is not a probability")
    sums = row_sums(array)
    refuse(name, np.abs(sums - 1) > rounding, "does not sum to one")
    return array / sums[..., None] if rounding > ROW_SUM_TOLERANCE else array


@_kind
def one_or_more(name, value, known, kind: Callable, spec: str, *limits) -> np.ndarray:
    """An array of a kind, or one without its first axis, which it gets."""
    try:
        alone = np.ndim(value) == spec.count(",")
    except ValueError:  # It is no array, of which the kind has a sentence.
        alone = False
    if alone:
        value = kind(spec.partition(", ")[2], *limits)(name, value, known)[None]
    return kind(spec, *limits)(name, value, known)


FINITE = real(lambda x: abs(x) <= MAX, "that is finite")
# Not so small that dividing it gives 0.
POSITIVE = real(lambda x: sys.float_info.min <= x <= MAX, "above 0, and not a subnormal one")
NOT_NEGATIVE = real(lambda x: 0 <= x <= MAX, "of at least 0")
DISCOUNT = real(lambda x: 0 <= x <= LARGEST_DISCOUNT, "from 0 to 1 - 2^-26, as nearer to 1 rounding outweighs rewards")
FLAG, TEXT, GENERATOR = of(bool | np.bool_), of(str), of(np.random.Generator)


def _largest(most: int | str, known: dict) -> int:
    return known[most[0]] - most.endswith("-1") if isinstance(most, str) else most


def _array(name: str, value: object, known: dict, spec: str, kinds: str) -> np.ndarray:
    """A value as an array of a shape, of one of some kinds of NumPy's types."""
    try:
        array = np.asarray(value)
    except Exception:
        array = np.empty(0, object)
    if array.dtype.kind not in kinds or np.ma.isMaskedArray(value):
        what = "real" if "f" in kinds else "whole"
        raise ValueError(f"{name} is {shown(value)} of {array.dtype}; give an array of {what} numbers.")
    _fit(name, array.shape, spec, known)
    return array


def _fit(name: str, shape: tuple[int, ...], spec: str, known: dict) -> None:
    """Refuse a shape that is not as specified; the sizes in it are known afterwards."""
    head, tail, mark = _parsed(spec)
    cut = len(shape) - len(tail)
    found, fits = {}, cut >= len(head) if mark else cut == len(head)
    if fits:
        for (factor, letter, more), size in zip(head + tail, shape[: len(head)] + shape[cut:], strict=True):
            count, left = divmod(size - more, factor)
            fits &= left == 0 and 1 <= count == found.setdefault(letter, count)
        if mark == "...":
            found[mark] = shape[len(head) : cut]
    if not fits or any(size != known.get(letter, size) for letter, size in found.items()):
        sizes = ", ".join(f"{letter} = {size}" for letter, size in known.items() if letter in spec and size != ())
        other = fits and {"n"} <= found.keys() & known.keys() and found["n"] != known["n"]
        states = f", that of {found['n']} states, not {known['n']} states" if other else ""
        raise ValueError(f"{name} has shape {shape}{states}; give ({spec}){' with ' if sizes else ''}{sizes}.")
    known.update(found)


@cache
def _parsed(spec: str) -> tuple[tuple, tuple, str]:
    """Sizes before and after the axes that may be any, each as (factor, letter, what is added), and the axes' mark."""
    before, mark, after = spec.partition("*" if "*" in spec else "...")
    parts = (re.findall(r"(\d*)([A-Za-z])\+?(\d*)", side) for side in (before, after))
    return *(tuple((int(factor or 1), letter, int(more or 0)) for factor, letter, more in part) for part in parts), mark

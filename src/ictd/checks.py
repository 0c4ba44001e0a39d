"""Validators for the arguments of public functions and for the fields of public dataclasses.

A validator is a function of an argument's name, its value, and a dict of the sizes bound so far.  It returns the value
as the function needs it, or raises a ValueError of one sentence: the argument, what is wrong, and what to give.  The
functions below make validators; ``integer(1)`` makes one for whole numbers from 1.

A shape is written as in docstrings, such as "..., 2n+1, m".  A letter is a size of at least 1: the first argument with
that letter binds it, and later ones must agree.  "..." stands for leading axes, the same in all arguments of a call,
and "*" for leading axes that broadcast, which NumPy itself checks.  For example:

    @validate(transition=probabilities("..., n, n"), reward=array("..., n"), discount=DISCOUNT)
    def enumerated_context(transition, reward, discount):
"""

import inspect
import re
import sys
from collections.abc import Callable, Iterable
from functools import wraps
from numbers import Integral, Real

import numpy as np

# Largest deviation of a row sum from one that is put down to rounding in float64.
ROW_SUM_TOLERANCE = 1e-9
# Counts are stored in 32 bits, and products of two such numbers fit the 64 bits of an index.
LARGEST = 2**31 - 1
MAX = sys.float_info.max
# Values grow as 1 / (1 - gamma), and rounding moves them by up to 2^-52 / (1 - gamma)^2: above this discount by more
# than a reward, which exceeds the differences between states.
LARGEST_DISCOUNT = 1 - 2.0**-26


def validate(**validators: Callable) -> Callable:
    """Decorator of a function, with validators for some arguments by their names, which are called in this order."""

    def decorate(function):
        signature = inspect.signature(function)

        @wraps(function)
        def call(*args, **kwargs):
            given = signature.bind(*args, **kwargs)
            _apply(validators, given.arguments)
            return function(*given.args, **given.kwargs)

        return call

    return decorate


def validate_fields(made: object, **validators: Callable) -> dict:
    """Validate the fields of a dataclass object, which keeps contiguous copies of arrays; returns the bound sizes."""
    fields = vars(made)
    sizes = _apply(validators, fields)
    fields.update({name: np.array(value, order="C") for name, value in fields.items() if isinstance(value, np.ndarray)})
    return sizes


def _apply(validators: dict[str, Callable], values: dict) -> dict:
    sizes = {}
    for name, validator in validators.items():
        if name in values:
            values[name] = validator(name, values[name], sizes)
    return sizes


def integer(least: int, most: int = LARGEST) -> Callable:
    """A whole number from ``least`` to ``most``, as an int."""

    def check(name, value, sizes):
        if isinstance(value, bool) or not isinstance(value, Integral) or not least <= value <= most:
            raise ValueError(f"{name} is {shown(value)}; give a whole number from {least} to {most}.")
        return int(value)

    return check


def number(least: float = -MAX, most: float = MAX, words: str = "that is finite") -> Callable:
    """A number from ``least`` to ``most``, as a float; ``words`` describe the range."""

    def check(name, value, sizes):
        value = float(value) if isinstance(value, np.floating) else value
        if isinstance(value, bool) or not isinstance(value, Real) or not least <= value <= most:
            raise ValueError(f"{name} is {shown(value)}; give a number {words}.")
        return float(value)

    return check


def choice(names: Iterable[str]) -> Callable:
    """One of some names."""

    def check(name, value, sizes):
        if not isinstance(value, str) or value not in names:
            raise ValueError(f"{name} is {shown(value)}; choose from {', '.join(names)}.")
        return value

    return check


def instance(*kinds: type, **shapes: str) -> Callable:
    """An object of one of some types, whose array fields named in ``shapes`` have these shapes."""

    def check(name, value, sizes):
        if not isinstance(value, kinds):
            words = " or ".join(dict.fromkeys(kind.__name__ for kind in kinds))
            raise ValueError(f"{name} is {shown(value)}; give an object of type {words}.")
        for field, shape in shapes.items():
            _bind(f"{name}.{field}", getattr(value, field).shape, shape, sizes)
        return value

    return check


def optional(validator: Callable) -> Callable:
    """None, or what another validator takes."""
    return lambda name, value, sizes: None if value is None else validator(name, value, sizes)


def either(single: Callable, several: Callable) -> Callable:
    """An array or a list by the validator ``several``, anything else by ``single``."""
    return lambda name, value, sizes: (several if np.iterable(value) else single)(name, value, sizes)


def integers(shape: str, least: int = -LARGEST, most: int = LARGEST) -> Callable:
    """An array of whole numbers from ``least`` to ``most``, of the integer type that it was given in."""

    def check(name, value, sizes):
        found = _as_array(name, value, shape, sizes, "iu")
        refuse(name, (found < least) | (found > most), f"is not from {least} to {most}")
        return found.astype(found.dtype.newbyteorder("="), copy=False)

    return check


def array(shape: str, finite: bool = True) -> Callable:
    """An array of float64; ``finite`` is False where NaN has a meaning, such as a run that diverged."""

    def check(name, value, sizes):
        found = _as_array(name, value, shape, sizes, "iuf").astype(np.float64, copy=False)
        if finite:
            refuse(name, ~np.isfinite(found), "is not finite")
        return found

    return check


def probabilities(shape: str) -> Callable:
    """An array of float64 with probability distributions along its last axis; narrower types are normalised."""

    def check(name, value, sizes):
        given = _as_array(name, value, shape, sizes, "iuf")
        found, tolerance = given.astype(np.float64, copy=False), row_sum_tolerance(given)
        refuse(name, ~(found >= 0), "is not a probability")
        sums = row_sums(found)
        refuse(name, np.abs(sums - 1) > tolerance, "does not sum to one")
        return found / sums[..., None] if tolerance > ROW_SUM_TOLERANCE else found

    return check


# Subnormal numbers are left out, as dividing them can give 0.
POSITIVE = number(least=sys.float_info.min, words="above 0 (at least 2.3e-308)")
DISCOUNT = number(0, LARGEST_DISCOUNT, "from 0 to 1 - 2^-26, as rounding errors exceed rewards above that")
FLAG, TEXT, GENERATOR = instance(bool, np.bool_), instance(str), instance(np.random.Generator)


def refuse(name: str, bad: np.ndarray, what: str) -> None:
    """Raise a ValueError that names the first entry of an array that ``bad`` marks."""
    if bad.any():
        raise ValueError(f"{name}{np.argwhere(bad)[0].tolist() if bad.ndim else ''} {what}.")


def row_sum_tolerance(given: np.ndarray) -> float:
    """Largest deviation of a row sum from one that is put down to rounding in the type of an array."""
    narrow = given.dtype.kind == "f" and given.dtype.itemsize < 8
    return given.shape[-1] * float(np.finfo(given.dtype).eps) if narrow else ROW_SUM_TOLERANCE


def row_sums(array: np.ndarray) -> np.ndarray:
    """Sums along the last axis, of the entries' type; ``sum`` takes four times as long where that axis is short."""
    return np.einsum("...s->...", array)


def shown(value: object) -> str:
    """A value as text on one line for a message, at most about 100 characters long."""
    text = " ".join((repr(value) if isinstance(value, str) else str(value)).split())
    return text if len(text) <= 100 else f"{text[:70]} ... {text[-20:]}"


def _as_array(name: str, value: object, shape: str, sizes: dict, kinds: str) -> np.ndarray:
    """A value as an array of a shape whose type is of some of NumPy's kinds: "i" and "u" for ints, "f" for floats."""
    try:
        found = np.asarray(value)
    except Exception:
        found = np.empty(0, object)
    if found.dtype.kind not in kinds or np.ma.isMaskedArray(value):
        words = "real" if "f" in kinds else "whole"
        raise ValueError(f"{name} is {shown(value)} of type {found.dtype}; give an array of {words} numbers.")
    _bind(name, found.shape, shape, sizes)
    return found


def _bind(name: str, given: tuple[int, ...], shape: str, sizes: dict) -> None:
    """Compare the shape of an array with the one that it must have, and add its letters to ``sizes``."""
    axes = shape.split(", ")
    lead = axes.pop(0) if axes[0] in ("...", "*") else ""
    cut = len(given) - len(axes)
    fits = cut >= 0 if lead else cut == 0
    found = {"...": given[:cut]} if lead == "..." else {}
    if fits:
        for axis, size in zip(axes, given[cut:], strict=True):
            factor, letter, extra = re.fullmatch(r"(\d*)(\w)\+?(\d*)", axis).groups()
            count, left = divmod(size - int(extra or 0), int(factor or 1))
            fits &= left == 0 and 1 <= count == found.setdefault(letter, count)
    if not fits or any(sizes.get(letter, size) != size for letter, size in found.items()):
        known = ", ".join(f"{letter} = {size}" for letter, size in sizes.items() if letter in shape)
        known = known.replace("... =", "leading axes")
        raise ValueError(f"{name} has shape {given}; give ({shape}){' with ' if known else ''}{known}.")
    sizes.update(found)

"""Validators for the arguments of public functions and for the fields of public dataclasses.

A validator is a function of an argument's name, its value, and a dict of the sizes bound so far.  It returns the
converted value, or raises a ValueError of one sentence that names the argument, the problem, and the allowed values.
The functions below make validators: ``integer(1)`` makes a validator of whole numbers from 1.  The annotation of an
argument holds its validator; an argument that is annotated with a class must be an object of this class; and "| None"
allows None:

    @validate
    def enumerated_columns(
        transition: Annotated[ArrayLike, probabilities("..., n, n")],
        reward: Annotated[ArrayLike, array("..., n")],
        discount: Discount,
        features: Annotated[ArrayLike, array("*, n, d")] | None = None,
    ) -> np.ndarray:

Shapes are written as in docstrings, such as "..., 2n+1, m".  A letter is a size of at least 1.  The first argument with
the letter binds its size, and later arguments must have the same size.  "..." stands for leading axes that are the same
in all arguments of a call.  "*" stands for leading axes that broadcast; NumPy checks them.  An axis with
"!" is not 1 after leading axes, because a column (T, 1) may be one context of T steps or T contexts of one.
"""

import inspect
import math
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

if not hasattr(np, "matvec"):  # Older versions also come first in the path of Python, where pip does not see them.
    raise ImportError(f"ictd needs NumPy 2.2 or later; {np.__file__} is {np.__version__}")

# Type of arguments and fields that validators convert to arrays.  A type checker lets callers give anything, such as
# lists of numbers, and checks the use of the argument or field as that of an array.
ArrayLike = np.ndarray | Any
Function = TypeVar("Function", bound=Callable)
Class = TypeVar("Class", bound=type)
# Largest deviation of a row sum from one that counts as rounding in float64, in float32, and to decimal digits.
ROW_SUM_TOLERANCE, SINGLE, LARGEST_TOLERANCE = 1e-9, 2.5e-7, 1e-3 + 1e-9
# A smaller rest of a row may come from rounding in float32 before a conversion.
SMALL_END = 1e-6
# Words of other libraries for arguments, and what to do where an argument has no place.
WORDS = {
    "gamma": "discount",
    "alpha": "step_size",
    "terminated": "terminals",
    "dones": "terminals",
    "truncated": "truncations",
    "timeouts": "truncations",
    "seed": "seeds",
    "seeds": "seed",
}
REMEDIES = {
    "terminals": "give the ends of episodes to Context.from_transitions",
    "truncations": "leave out time limits, after which the value of the next state counts",
}
# Counts are stored in 32 bits, so products of two counts fit in the 64 bits of an index.
LARGEST = 2**31 - 1
# Stands for a missing whole number.
MISSING = -LARGEST
MAX = sys.float_info.max
# Rounding errors of values are up to 2^-52 / (1 - gamma)^2.  Above this discount they exceed a reward, and with it the
# differences between states.
LARGEST_DISCOUNT = 1 - 2.0**-26


def validate(function: Function) -> Function:
    """Validate the arguments of a function by their annotations, in the order of the parameters."""
    validators = _take_validators(function)
    signature = inspect.signature(function)
    defaults = {name: each.default for name, each in signature.parameters.items() if isinstance(each.default, bool)}

    @wraps(function)
    def call(*args, **kwargs):
        try:
            given = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(_of_wrong_call(function, [*signature.parameters], kwargs, error)) from None
        _apply(validators, given.arguments, defaults)
        return function(*given.args, **given.kwargs)

    return call


def _of_wrong_call(function: Callable, names: list[str], named: dict, error: TypeError) -> str:
    """Sentence on a call without the arguments of the function, with the right word for a wrong one."""
    problem, remedy = error, f"its arguments are {', '.join(name for name in names if name not in ('self', 'cls'))}"
    wrong = [name for name in named if name not in names]
    if wrong and "options" not in names:
        right = WORDS.get(wrong[0], wrong[0])
        problem = f"has no argument {wrong[0]}"
        remedy = f"its name is {right}" if right in names else REMEDIES.get(right, remedy)
    return f"{function.__qualname__} {problem}; {remedy}."


def validated(dataclass: Class) -> Class:
    """Prepare a dataclass, before its decorator ``dataclass``, for ``validate_fields``; objects can be compared."""
    dataclass._validators = _take_validators(dataclass)
    dataclass.__eq__ = equal_fields
    dataclass.__array_ufunc__ = None  # NumPy would compare each entry of an array with the object.
    return dataclass


def equal_fields(record: Any, other: object) -> bool:
    """Whether two objects of one class have equal public fields, of which some are arrays; NaN equals NaN."""
    if type(record) is not type(other):
        return NotImplemented
    fields, others = ({name: vars(each)[name] for name in vars(each) if name[0] != "_"} for each in (record, other))
    return fields.keys() == others.keys() and all(_equal(fields[name], others[name]) for name in fields)


def _equal(value: object, other: object) -> bool:
    if isinstance(value, np.ndarray) or isinstance(other, np.ndarray):
        return np.array_equal(value, other, equal_nan=True)
    return value == other


def validate_fields(record: Any) -> dict:
    """Validate the fields of a dataclass object by their annotations, and return the bound sizes.

    Arrays are replaced by contiguous copies.
    """
    fields = vars(record)
    sizes = _apply(record._validators, fields, {})
    fields.update({name: np.array(value, order="C") for name, value in fields.items() if isinstance(value, np.ndarray)})
    return sizes


def _take_validators(annotated: Any) -> dict[str, Callable]:
    """Validators in the annotations of a function or a class, which keeps plain types for ``help``."""
    hints = get_type_hints(annotated, include_extras=True)
    annotated.__annotations__ = get_type_hints(annotated)
    order = sorted(hints, key=lambda name: hints[name] != Flag)  # Flags first, on which other arguments depend.
    return {name: _validator(hints[name]) for name in order if name != "return"}


def _validator(hint: Any) -> Callable:
    """The validator in an annotation, or one of objects of the class or classes that it names."""
    kinds = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    first, *others = (kind for kind in kinds if kind is not NoneType)
    validator = get_args(first)[1] if get_origin(first) is Annotated else instance(first, *others)
    return optional(validator) if NoneType in kinds else validator


def _apply(validators: dict[str, Callable], values: dict, defaults: dict[str, bool]) -> dict:
    """Replace values by validated ones, and return the bound sizes and the flags of the call, with their defaults."""
    values.update({name: _scalar(value) for name, value in values.items()})
    sizes = defaults | {name: value for name, value in values.items() if isinstance(value, bool)}
    for name, validator in validators.items():
        if name in values:
            values[name] = validator(name, values[name], sizes)
    return sizes


def _scalar(value: object) -> object:
    """The number in an array without axes, such as one from a file or a torch scalar; other values as they are."""
    return value.item() if getattr(value, "ndim", None) == 0 and not np.ma.is_masked(value) else value


def integer(least: int, most: int = LARGEST) -> Callable:
    """Make a validator of whole numbers from ``least`` to ``most``; it returns an int."""

    def check(name, value, sizes):
        if isinstance(value, bool) or not isinstance(value, Integral) or not least <= value <= most:
            raise ValueError(f"{name} is {abbreviated(value)}; give a whole number from {least} to {most}.")
        return int(value)

    return check


def number(least: float = -MAX, most: float = MAX, words: str = "that is finite") -> Callable:
    """Make a validator of numbers from ``least`` to ``most``, a range described by ``words``; it returns a float."""

    def check(name, value, sizes):
        if isinstance(value, bool) or not isinstance(value, Real) or not least <= value <= most:
            raise ValueError(f"{name} is {abbreviated(value)}; give a number {words}.")
        return float(value)

    return check


def discount_of(name: str, value: object, sizes: dict) -> float:
    """Validate a discount, which may be above ``LARGEST_DISCOUNT`` if the call has ``episodic=True``."""
    if sizes.get("episodic"):
        return number(0, 1, "from 0 to 1")(name, value, sizes)
    words = "from 0 to 1 - 2^-26 (closer to 1, rounding errors exceed rewards)"
    if "episodic" in sizes:
        words += ", or up to 1 with episodic=True if all episodes end"
    return number(0, LARGEST_DISCOUNT, words)(name, value, sizes)


def choice(names: Iterable[str]) -> Callable:
    """Make a validator of texts that must be one of some names."""

    def check(name, value, sizes):
        if not isinstance(value, str) or value not in names:
            raise ValueError(f"{name} is {abbreviated(value)}; choose from {', '.join(names)}.")
        return value

    return check


def instance(*kinds: type, **shapes: str) -> Callable:
    """Make a validator of objects of some types; ``shapes`` are the shapes of array fields, by name."""

    def check(name, value, sizes):
        if not isinstance(value, kinds):
            words = " or ".join(dict.fromkeys(kind.__name__ for kind in kinds))
            example = ", such as numpy.random.default_rng(0)" if np.random.Generator in kinds else ""
            raise ValueError(f"{name} is {abbreviated(value)}; give an object of type {words}{example}.")
        for field, shape in shapes.items():
            _bind(f"{name}.{field}", getattr(value, field).shape, shape, sizes)
        return value

    return check


def optional(validator: Callable) -> Callable:
    """Make a validator that allows None in addition to the values that another validator allows."""
    return lambda name, value, sizes: None if value is None else validator(name, value, sizes)


def either(single: Callable, several: Callable) -> Callable:
    """Make a validator that uses ``several`` for arrays and lists, and ``single`` for all other values."""
    return lambda name, value, sizes: (several if np.iterable(value) else single)(name, value, sizes)


def function_or(validator: Callable) -> Callable:
    """Make a validator that allows functions in addition to the values that another validator allows."""
    return lambda name, value, sizes: value if callable(value) else validator(name, value, sizes)


def distinct(validator: Callable) -> Callable:
    """Make a validator of arrays that are not empty and have no number twice."""

    def check(name, value, sizes):
        if np.size(value) == 0:
            raise ValueError(f"{name} is empty; give at least one.")
        numbers = validator(name, value, sizes)
        unique, counts = np.unique(numbers, return_counts=True)
        if (counts > 1).any():
            raise ValueError(f"{name} has {unique[counts > 1][0]} twice; give each number once.")
        return numbers

    return check


def integers(shape: str, least: int = -LARGEST, most: int = LARGEST, may_miss: bool = False) -> Callable:
    """Make a validator of arrays of whole numbers from ``least`` to ``most``; the integer type does not change.

    If ``may_miss`` is True, entries may be missing, as in a column of pandas by ``shift``, which is then of floats.
    They become ``MISSING``.
    """

    def check(name, value, sizes):
        numbers = _as_array(name, value, shape, sizes, "iuf" if may_miss else "iu")
        if numbers.dtype.kind == "f":
            numbers = np.where(np.isnan(numbers), MISSING, numbers)
        bad = (numbers < least) | (numbers > most) | (numbers != np.floor(numbers))
        refuse(name, bad, f"is {{}}, no whole number from {least} to {most}", numbers)
        if may_miss:
            return numbers.astype(np.int64)
        return numbers.astype(numbers.dtype.newbyteorder("="), copy=False)

    return check


def flags(shape: str) -> Callable:
    """Make a validator of arrays of truth values, which may also be written as 0 and 1; it returns them as bool."""

    def check(name, value, sizes):
        given = _as_array(name, value, shape, sizes, "biuf")
        refuse(name, (given != 0) & (given != 1), "is neither 0 nor 1")
        return given.astype(bool, copy=False)

    return check


def array(shape: str, finite: bool = True, least: float = -np.inf, most: float = np.inf) -> Callable:
    """Make a validator that takes arrays of numbers from ``least`` to ``most`` and returns them as float64.

    ``finite`` is False if NaN has a meaning, such as a run that diverged.
    """

    def check(name, value, sizes):
        numbers = _as_array(name, value, shape, sizes, "fiu").astype(np.float64, copy=False)
        if finite:
            refuse(name, ~np.isfinite(numbers), "is {}, which is not finite", numbers)
        refuse(name, (numbers < least) | (numbers > most), f"is {{}}, not from {least} to {most}", numbers)
        return numbers

    return check


def probabilities(shape: str, may_end: bool = False) -> Callable:
    """Make a validator that takes probability distributions along the last axis and returns them as float64.

    Rows whose sums differ from one by at most ``LARGEST_TOLERANCE``, or by what rounding of their entries to three or
    more decimal digits explains, such as those of a CSV file, are divided by their sums, with a warning unless rounding
    in float32 explains it.  Negative numbers that rounding explains become 0.

    If ``may_end`` is True, and the call has ``episodic=True``, rows may sum to less than one: the rest is the
    probability that the episode ends.  A rest that is rounding in the type of the array is none.  A larger rest is one,
    with a warning if rounding to decimal digits or in float32 may explain it.  In float16, rounding is as large, so
    that such rows are refused.
    """

    def check(name, value, sizes):
        given = _as_array(name, value, shape, sizes, "fiu")
        rows = given.astype(np.float64, copy=False)
        refuse(name, ~((rows >= -SINGLE) & (rows < np.inf)), "is {}, which is not a probability", rows)
        rows = np.maximum(rows, 0)
        sums = np.asarray(row_sums(rows))
        error = np.abs(sums - 1)
        off = error > ROW_SUM_TOLERANCE
        explained = explained_by_rounding(rows) if off.any() else error
        if may_end and sizes.get("episodic"):
            if given.dtype.type is np.float16:
                raise ValueError(f"{name} is of type float16, whose rounding looks like ends; give float32 or float64.")
            ends = 1 - sums > (SINGLE if given.dtype.type is np.float32 else ROW_SUM_TOLERANCE)
            off &= ~ends
            small = sums[ends & ((error <= explained) | (error < SMALL_END))]
            if small.size:
                words = "the rest counts as the end of an episode; if rows are rounded, divide them by their sums"
                warnings.warn(f"a row of {name} sums to {small[0]:.10g}; {words}.", stacklevel=4)
        if not off.any():
            return rows
        far = off & (error > np.maximum(LARGEST_TOLERANCE, explained))
        words = "sums to {}, not to one; correct the row, or divide it by its sum"
        if may_end and (sums[far][:1] < 1).any():
            words += "; if the rest ends an episode, give episodic=True, which environments cannot"
        refuse(name, far, words, sums)
        if (error[off] > SINGLE).any():
            warnings.warn(f"rows of {name} do not sum to one and are divided by their sums.", stacklevel=4)
        return rows / np.where(off, sums, 1)[..., None]

    return check


def explained_by_rounding(rows: np.ndarray) -> np.ndarray:
    """Largest deviations of row sums from one that rounding to 3 to 6 decimal digits explains; 0 for more digits."""
    explained = np.zeros(rows.shape[:-1])
    for digits in (6, 5, 4, 3):
        multiples = rows * 10.0**digits
        rounded = (np.abs(multiples - np.rint(multiples)) < 1e-6).all(axis=-1)
        explained = np.where(rounded, 0.5 * (rows > 0).sum(axis=-1) / 10.0**digits + ROW_SUM_TOLERANCE, explained)
    return explained


# Types of arguments that many functions have.
Count = Annotated[int, integer(1)]
Discount = Annotated[float, discount_of]
# Subnormal numbers are excluded, because dividing them can give 0.
Positive = Annotated[float, number(least=sys.float_info.min, words="above 0 (at least 2.3e-308)")]
NotNegative = Annotated[float, number(least=0, words="of at least 0")]
UpToOne = Annotated[float, number(0, 1, "from 0 to 1")]
Flag = Annotated[bool, instance(bool, np.bool_)]
Seeds = Annotated[int | Sequence[int], either(integer(0), distinct(integers("S", 0)))]
Features = Annotated[ArrayLike, array("*, n, d")]


def refuse(name: str, bad: np.ndarray, problem: str, values: np.ndarray | None = None) -> None:
    """Raise a ValueError that names the first entry of an array that ``bad`` marks, if there is such an entry.

    The entry of ``values`` takes the place of "{}" in ``problem``.
    """
    if bad.any():
        place = tuple(np.argwhere(bad)[0])
        problem = problem if values is None else problem.format(abbreviated(values[place]))
        raise ValueError(f"{name}{np.argwhere(bad)[0].tolist() if bad.ndim else ''} {problem}.")


def row_sums(array: np.ndarray) -> np.ndarray:
    """Sum along the last axis, in the type of the entries, four times as fast as ``sum`` on a short axis."""
    return np.einsum("...s->...", array)


def abbreviated(value: object) -> str:
    """Write a value as a text of one line for a message, of at most about 100 characters."""
    text = " ".join((repr(value) if isinstance(value, str) else str(value)).split())
    return text if len(text) <= 100 else f"{text[:70]} ... {text[-20:]}"


def first_line(error: Exception) -> str:
    """The first line of an error's message without a full stop, or the error's type if there is no message."""
    return str(error).partition("\n")[0].rstrip(".") or type(error).__name__


def refuse_other(kind: str, name: str, known: Callable, function: Callable) -> None:
    """Raise a ValueError if a name is to be that of another function; a module may be loaded again."""
    if (known.__module__, known.__qualname__) != (function.__module__, function.__qualname__):
        raise ValueError(f"there is {kind} {name!r} already, in {known.__module__}; choose another name.")


def _as_array(name: str, value: object, shape: str, sizes: dict, kinds: str) -> np.ndarray:
    """Convert a value to an array, and check its shape and the kind of its type.

    ``kinds`` are characters of NumPy's ``dtype.kind``: "i" and "u" for whole numbers, "f" for floats.  The first one
    names the kind that the message asks for.
    """
    try:
        converted = np.asarray(value)
        if converted.dtype == object:  # Such as columns of a DataFrame.
            entries = _missing_as_nan(converted) if kinds == "iuf" else converted
            converted = np.array(entries.tolist())
    except (RuntimeError, TypeError) as error:  # Such as torch's for a tensor with a gradient.
        raise ValueError(f"{name} cannot be an array: {abbreviated(error).rstrip('.')}.") from None
    except Exception as error:
        if "inhomogeneous" in str(error):
            raise ValueError(f"{name} has rows of different lengths; give rows of one length.") from None
        converted = np.array(None)
    if converted.shape[-1:] == (0,) and shape != "...":
        raise ValueError(f"{name} is empty; give at least one entry.")
    if converted.dtype.kind not in kinds:
        asked = {"b": "truth values", "f": "real numbers", "i": "whole numbers; pandas.factorize numbers labels"}
        problem = f"is {abbreviated(value)} of type {converted.dtype}"
        raise ValueError(f"{name} {problem}; give an array of {asked[kinds[0]]}.")
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise ValueError(f"{name} is {abbreviated(value)} with masked entries; give an array without them.")
    _bind(name, converted.shape, shape, sizes)
    for table in value if isinstance(value, (list, tuple)) else [value]:
        _compare_labels(name, table, shape, sizes)
    return converted


_missing_as_nan = np.frompyfunc(lambda entry: np.nan if str(entry) in ("None", "<NA>", "NaT") else entry, 1, 1)


def _compare_labels(name: str, table: object, shape: str, sizes: dict) -> None:
    """Refuse a pandas table or series with other labels of states, axes "n", than those seen before in a call.

    Labels of other axes may differ, such as those of the next steps, but not in their order alone.
    """
    # With next states, as many states, axis k, as steps, axis m.
    letters = shape.replace("!", "").replace("k", "m").split(", ")
    for letter, labels in zip(letters[::-1], map(list, getattr(table, "axes", [])[::-1]), strict=False):
        known = sizes.setdefault(f"labels of {letter}", labels)
        if labels != known and (letter == "n" or set(labels) == set(known)):
            raise ValueError(
                f"{name} has the labels {abbreviated(labels)} after {abbreviated(known)}; order both alike, or give"
                f" arrays without labels ({name}.to_numpy())."
            )


def _bind(name: str, given: tuple[int, ...], shape: str, sizes: dict) -> None:
    """Compare the shape of an array with the required one, and add the sizes of its letters to ``sizes``."""
    axes = shape.split(", ")
    lead = axes.pop(0) if axes[0] in ("...", "*") else ""
    leading_axes = len(given) - len(axes)
    fits = leading_axes >= 0 if lead else leading_axes == 0
    bound = {"...": given[:leading_axes]} if lead == "..." else {}
    if fits:
        for axis, size in zip(axes, given[leading_axes:], strict=True):
            # An axis such as "2n+1" or "m!": a factor, a letter, a summand and a mark.
            factor, letter, summand, mark = re.fullmatch(r"(\d*)(\w)\+?(\d*)(!?)", axis).groups()
            count, rest = divmod(size - int(summand or 0), int(factor or 1))
            fits &= rest == 0 and 1 <= count == bound.setdefault(letter, count)
            fits &= not mark or size > 1 or math.prod(given[:leading_axes]) == 1
    if not fits or any(sizes.get(letter, size) != size for letter, size in bound.items()):
        known = ", ".join(f"{letter} = {size}" for letter, size in sizes.items() if letter in shape)
        known = known.replace("... =", "leading axes")
        if "!" in shape:
            shape = shape.replace("!", "")
            known += f" several steps in each context, or ({shape.removeprefix('..., ')}) for one context"
        raise ValueError(f"{name} has shape {given}; give ({shape}){' with ' if known else ''}{known.strip()}.")
    sizes.update(bound)

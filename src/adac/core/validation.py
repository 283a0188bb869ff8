"""Types and ranges of settings, each failure one sentence.

Every part of an agent names its ranges with these; each first looks that all settings of the part
have the types that their class declares, so that no wrong one gets as far as JAX.
"""

import dataclasses
import functools
import math
import types
import typing
from collections.abc import Mapping
from typing import Any, Literal

from adac.errors import UserError

MOST_COPIES, MOST_LAYERS = 100, 100


def typed(owner: Any) -> None:
    """Refuse values of another type than a dataclass declares; what is meant is made so.

    A list becomes a tuple, because settings are hashed; 1e3 and NumPy's numbers become Python's,
    which JSON and JAX's caches know.
    """
    part: Any = type(owner)
    for name, kind in _kinds(part).items():
        value = getattr(owner, name)
        try:
            fitting = _fit(value, kind)
        except _WRONG:
            raise ValueError(f"{name} must be {_in_words(kind)}, not {value!r}") from None
        if fitting is not value:
            object.__setattr__(owner, name, fitting)


_WRONG = (TypeError, ValueError, OverflowError, UserError)


@functools.cache
def _kinds(part: Any) -> dict[str, Any]:
    try:
        hints = typing.get_type_hints(part)
    except (NameError, TypeError):  # of a class that is not adac's own
        return {}
    return {f.name: hints[f.name] for f in dataclasses.fields(part)}


def _fit(value: Any, kind: Any) -> Any:
    """The value as one of this kind, or an exception."""
    origin, options = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        return _fit_one(value, options)
    if origin is Literal:
        return _only(value, isinstance(value, str) and value in options)
    if origin is tuple and options[1:] == (...,):
        several = isinstance(value, list | tuple) or getattr(value, "ndim", 0) == 1
        fitting = tuple(_fit(one, options[0]) for one in _only(value, several))
        return value if type(value) is tuple and all(map(_is, fitting, value)) else fitting
    if kind in (str, type(None)) or (isinstance(kind, type) and dataclasses.is_dataclass(kind)):
        return _only(value, isinstance(value, kind))
    if kind is bool:
        return _only(bool(value), value in (False, True))
    if kind is int:
        return value if type(value) is int else whole("", value)
    if kind is float:
        number = value if type(value) in (int, float) else float(_only(value, _is_number(value)))
        return _only(number, not math.isnan(number))
    return value


def _fit_one(value: Any, options: tuple[Any, ...]) -> Any:
    for kind in options:
        try:
            return _fit(value, kind)
        except _WRONG:
            continue
    raise ValueError


def _only(value: Any, right: bool) -> Any:
    if not right:
        raise ValueError
    return value


def _is(one: Any, other: Any) -> bool:
    return one is other


def _is_number(value: Any) -> bool:
    """NumPy's too, but no texts and no truths."""
    return not isinstance(value, bool | str | bytes) and getattr(value, "ndim", 0) == 0


def _in_words(kind: Any) -> str:
    origin, options = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        return " or ".join(_in_words(option) for option in options)
    if origin is Literal:
        return f"one of {', '.join(map(repr, options))}"
    if origin is tuple:
        return f"a list of {_PLURAL.get(options[0], 'values')}"
    return _SINGULAR.get(kind) or f"of the type {getattr(kind, '__name__', kind)}"


_SINGULAR: dict[Any, str] = {
    bool: "true or false", int: "a whole number", float: "a number", str: "a text",
    type(None): "None",
}  # fmt: skip
_PLURAL: dict[Any, str] = {int: "whole numbers", float: "numbers"}


def at_least(owner: Any, low: float, *names: str) -> None:
    typed(owner)
    for name in names:
        value = getattr(owner, name)
        if not (low <= value < math.inf):
            raise ValueError(f"{name} must be at least {low:g}, not {value:g}")


def above(owner: Any, low: float, *names: str) -> None:
    typed(owner)
    for name in names:
        value = getattr(owner, name)
        if not value > low:
            raise ValueError(f"{name} must be above {low:g}, not {value:g}")


def below(owner: Any, high: float, *names: str) -> None:
    for name in names:
        value = getattr(owner, name)
        if not -math.inf < value < high:
            raise ValueError(f"{name} must be below {high:g}, not {value:g}")


def sizes(owner: Any, *names: str) -> None:
    """Layers, each of at least one unit."""
    typed(owner)
    for name in names:
        if any(size < 1 for size in getattr(owner, name)):
            raise ValueError(f"{name} must name layers of at least 1 unit")
        if len(getattr(owner, name)) > MOST_LAYERS:
            raise ValueError(f"{name} must name at most {MOST_LAYERS} layers")


def between(owner: Any, low: float, high: float, *names: str) -> None:
    typed(owner)
    for name in names:
        value = getattr(owner, name)
        if not low <= value <= high:
            raise ValueError(f"{name} must be between {low:g} and {high:g}, not {value}")


def one_of(owner: Any, name: str, options: tuple[str, ...]) -> None:
    typed(owner)
    value = getattr(owner, name)
    if value not in options:
        raise ValueError(f"{name} must be one of {', '.join(options)}, not '{value}'")


def whole(name: str, value: Any) -> int:
    """A whole number, also where a program has it as 1e6 or as a NumPy integer."""
    try:
        number = int(value)
        if number == value and not isinstance(value, bool):
            return number
    except (TypeError, ValueError, OverflowError):
        pass
    raise UserError(f"{name} must be a whole number, not '{value}'")


def named(name: str, given: Any) -> dict[str, Any]:
    """Values by their names."""
    if given is not None and not (
        isinstance(given, Mapping) and all(isinstance(key, str) for key in given)
    ):
        raise UserError(f"{name} must be a dictionary of names and values, not {given!r}")
    return dict(given or {})


def counts(owner: Any, low: int, *names: str) -> None:
    """Whole numbers of at least `low`."""
    typed(owner)
    at_least(owner, low, *names)


def copies(owner: Any, low: int, *names: str) -> None:
    """Networks side by side; each is traced by itself, so thousands would take hours."""
    between(owner, low, MOST_COPIES, *names)


def tuples(owner: Any, *names: str) -> None:
    """Lists become tuples, because settings are hashed."""
    typed(owner)

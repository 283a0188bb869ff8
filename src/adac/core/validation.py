"""Types and ranges of settings, each failure one sentence."""

import math
from typing import Any

from adac.errors import UserError


def at_least(owner: Any, low: float, *names: str) -> None:
    for name in names:
        value = getattr(owner, name)
        if not (low <= value < math.inf):
            raise ValueError(f"{name} must be at least {low:g}, not {value:g}")


def above(owner: Any, low: float, *names: str) -> None:
    for name in names:
        value = getattr(owner, name)
        if not value > low:
            raise ValueError(f"{name} must be above {low:g}, not {value:g}")


def sizes(owner: Any, *names: str) -> None:
    """Layers: any number of them, each of at least one unit."""
    for name in names:
        if any(size < 1 for size in getattr(owner, name)):
            raise ValueError(f"{name} must name layers of at least 1 unit")


def between(owner: Any, low: float, high: float, *names: str) -> None:
    for name in names:
        value = getattr(owner, name)
        if not low <= value <= high:
            raise ValueError(f"{name} must be between {low:g} and {high:g}, not {value:g}")


def one_of(owner: Any, name: str, options: tuple[str, ...]) -> None:
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


def counts(owner: Any, low: int, *names: str) -> None:
    """Whole numbers of at least `low`; kept as Python's, which JSON and JAX's caches know."""
    for name in names:
        value = getattr(owner, name)
        try:
            object.__setattr__(owner, name, whole(name, value))
        except UserError as error:
            raise ValueError(str(error)) from None
    at_least(owner, low, *names)


def tuples(owner: Any, *names: str) -> None:
    """Lists become tuples, because settings are hashed."""
    for name in names:
        value = getattr(owner, name)
        if isinstance(value, list):
            object.__setattr__(owner, name, tuple(value))

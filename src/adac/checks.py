"""Ranges of settings, each failure one sentence."""

import math
from typing import Any


def at_least(owner: Any, low: float, *names: str) -> None:
    for name in names:
        value = getattr(owner, name)
        if not (low <= value < math.inf):
            raise ValueError(f"{name} must be at least {low:g}, not {value:g}")


def between(owner: Any, low: float, high: float, *names: str) -> None:
    for name in names:
        value = getattr(owner, name)
        if not low <= value <= high:
            raise ValueError(f"{name} must be between {low:g} and {high:g}, not {value:g}")


def one_of(owner: Any, name: str, options: tuple[str, ...]) -> None:
    value = getattr(owner, name)
    if value not in options:
        raise ValueError(f"{name} must be one of {', '.join(options)}, not '{value}'")

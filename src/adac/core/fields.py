"""Settings that explain themselves: a field's default, its sentence and its range, in one place."""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Span:
    """Numbers that are worth trying, spread evenly or, where `log`, over their magnitudes."""

    low: float
    high: float
    log: bool = False


@dataclass(frozen=True)
class Choice:
    """Values that are worth trying, as `--set` takes them."""

    options: tuple[str | int | float, ...]


Range = Span | Choice


def log(low: float, high: float) -> Range:
    return Span(low, high, log=True)


def linear(low: float, high: float) -> Range:
    return Span(low, high)


def choices(*options: str | int | float) -> Range:
    return Choice(options)


NOISE = log(0.03, 1.0)  # σ, where actions are in [-1, 1]


def setting(default: T, sentence: str, tune: Range | None = None) -> T:
    """A dataclass field whose meaning is data: shown in help, in errors and in the reference.

    `tune` says where `adac tune` looks for better values; without it, it leaves the setting alone.
    """
    made: T = dataclasses.field(default=default, metadata={"sentence": sentence, "tune": tune})
    return made


def part(make: Callable[[], T], sentence: str) -> T:
    """A setting that is itself made of settings; `make` makes its default."""
    made: T = dataclasses.field(default_factory=make, metadata={"sentence": sentence})
    return made


def needed(sentence: str) -> Any:
    """A setting without a default."""
    return dataclasses.field(metadata={"sentence": sentence})


def sentence(field: "dataclasses.Field[Any]") -> str:
    return str(field.metadata.get("sentence", ""))


def tuned(field: "dataclasses.Field[Any]") -> Range | None:
    found: Range | None = field.metadata.get("tune")
    return found

"""Settings that explain themselves: a field's default and its sentence, in one place."""

import dataclasses
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


def setting(default: T, sentence: str) -> T:
    """A dataclass field whose meaning is data: shown in help, in errors and in the reference."""
    made: T = dataclasses.field(default=default, metadata={"sentence": sentence})
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

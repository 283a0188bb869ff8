"""Settings that explain themselves: a field's default and its sentence, in one place."""

import dataclasses
from typing import Any, TypeVar

T = TypeVar("T")


def setting(default: T, sentence: str) -> T:
    """A dataclass field whose meaning is data: shown in help, in errors and in the reference."""
    made: T = dataclasses.field(default=default, metadata={"sentence": sentence})
    return made


def sentence(field: "dataclasses.Field[Any]") -> str:
    return str(field.metadata.get("sentence", ""))

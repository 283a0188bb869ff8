"""Which settings of an agent are tuned, and where: as each setting itself says."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adac.core import settings
from adac.core.agent import Agent
from adac.core.fields import Choice, Range, Span
from adac.errors import UserError


@dataclass(frozen=True)
class Dimension:
    """One tuned setting. Its range is widened where the agent's own value lies outside."""

    name: str
    range: Range
    value: str | int | float  # the agent's own
    sentence: str

    @property
    def whole(self) -> bool:
        return isinstance(self.value, int)

    def __str__(self) -> str:
        if isinstance(self.range, Choice):
            return " | ".join(map(str, self.range.options))
        spread = "by magnitude" if self.range.log else "evenly"
        return f"{self.range.low:g} to {self.range.high:g}, {spread}"


def space(agent: Agent, fixed: Collection[str], only: Sequence[str]) -> dict[str, Dimension]:
    """Every setting that says where to look, but those that somebody has fixed.

    With `only`, these and no others.
    """
    found = {}
    for one in settings.describe(agent):
        if one.tune is not None and not _is_off(one.value, one.tune):
            value = settings.typed(one.value) if isinstance(one.value, tuple) else one.value
            found[one.name] = Dimension(one.name, _with(value, one.tune), value, one.sentence)
    unknown = [name for name in only if name not in found]
    if unknown:
        raise UserError(
            f"'{unknown[0]}' cannot be tuned: choose among {', '.join(sorted(found))}, or change "
            "it with --set"
        )
    chosen = {n: d for n, d in found.items() if n not in fixed and (not only or n in only)}
    if not chosen:
        raise UserError("nothing is left to tune: fix fewer settings with --set")
    return chosen


def _is_off(value: Any, given: Range) -> bool:
    """Nothing, or a 0 that no magnitude comes near: this agent does without."""
    return value is None or (isinstance(given, Span) and given.log and value <= 0)


def _with(value: Any, given: Range) -> Range:
    if isinstance(given, Choice):
        return given if value in given.options else Choice((value, *given.options))
    return Span(min(given.low, value), max(given.high, value), given.log)


def distributions(space: Mapping[str, Dimension]) -> dict[str, Any]:
    from optuna.distributions import (
        CategoricalDistribution,
        FloatDistribution,
        IntDistribution,
    )

    found: dict[str, Any] = {}
    for name, dimension in space.items():
        given = dimension.range
        if isinstance(given, Choice):
            found[name] = CategoricalDistribution(given.options)
        elif dimension.whole:
            found[name] = IntDistribution(int(given.low), int(given.high), log=given.log)
        else:
            found[name] = FloatDistribution(given.low, given.high, log=given.log)
    return found

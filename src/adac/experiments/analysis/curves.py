"""A curve: one quantity over the steps that all its seeds have; what is drawn of it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Limits(NamedTuple):
    low: float
    high: float


class Curve(NamedTuple):
    steps: NDArray[np.int64]
    values: Floats  # [seeds, steps]
    hours: Floats | None = None  # of training at these steps, where they are drawn over that

    @property
    def x(self) -> NDArray[np.int64] | Floats:
        return self.steps if self.hours is None else self.hours

    @property
    def mean(self) -> Floats:
        mean: Floats = self.values.mean(axis=0)
        return mean

    @property
    def std(self) -> Floats | None:
        """Of the sample; a single seed has none."""
        if len(self.values) < 2:
            return None
        std: Floats = self.values.std(axis=0, ddof=1)
        return std

    def smoothed(self, reach: int) -> "Curve":
        """Each seed's running mean over `reach` points on either side, fewer at the ends."""
        if not reach:
            return self
        count = len(self.steps)
        near = [slice(max(0, i - reach), i + reach + 1) for i in range(count)]
        means = [self.values[:, window].mean(axis=1) for window in near]
        return self._replace(values=np.stack(means, axis=1))

    def band(self, limits: Limits) -> tuple[Floats, Floats] | None:
        """Mean ± standard deviation, but never beyond what some run has reached.

        Returns and shares have a bound that the sum of the two does not know of.
        """
        if self.std is None:
            return None
        low, high = self.mean - self.std, self.mean + self.std
        return np.clip(low, *limits), np.clip(high, *limits)


def common_curve(series: Sequence[Mapping[int, float]]) -> Curve | None:
    """Over the steps that every seed has; None where there is no such step."""
    common = sorted(set.intersection(*(set(s) for s in series))) if series else []
    if not common:
        return None
    values = [[s[step] for step in common] for s in series]
    return Curve(np.array(common, np.int64), np.array(values, np.float64))


def limits(curves: Iterable[Curve]) -> Limits:
    """The lowest and the highest value of any seed of these."""
    lows, highs = zip(*((curve.values.min(), curve.values.max()) for curve in curves), strict=True)
    return Limits(float(min(lows)), float(max(highs)))

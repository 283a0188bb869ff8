"""What may be said about returns over seeds: pure functions of numbers, no files.

The score of a run is the mean return of the evaluations in the last tenth of its steps: one
evaluation is noisy, and the mean over a whole run rewards speed rather than the policy found.
Everything below takes the scores of one agent on one task, one number per seed.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from adac.errors import missing_extra

Scores = NDArray[np.float64]
LEVEL = 0.05  # of the t-test, as in the paper's Table 2
LAST = 0.1  # the share of a run whose evaluations make its score

Claim = Literal["spread", "test", "interval", "paper"]
# Seeds per agent that a claim needs, counted on normal scores. "test": with 5 seeds Welch's test
# finds a gap of 2 standard deviations in 77 % of cases, with 3 in 37 %. "interval": a 95 %
# bootstrap interval of the IQM on one task covers the truth in 94 % of cases with 10 seeds, 88 %
# with 5, 75 % with 3. "paper": its tables are over 20 trials, which finds 1 standard deviation in
# 87 % of cases.
SEEDS_FOR: dict[Claim, int] = {"spread": 2, "test": 5, "interval": 10, "paper": 20}


def enough(seeds: int, claim: Claim) -> bool:
    """Whether this many seeds of each agent carry the claim; see SEEDS_FOR."""
    return seeds >= SEEDS_FOR[claim]


def final_score(steps: ArrayLike, returns: ArrayLike) -> float:
    """The mean of the returns evaluated after 90 % of the last step."""
    when, values = np.asarray(steps, np.float64), np.asarray(returns, np.float64)
    if not when.size:
        return math.nan
    late = when >= when.max() if when.max() <= 0 else when > (1.0 - LAST) * when.max()
    return float(values[late].mean())


class Moments(NamedTuple):
    mean: float
    std: float  # of the sample (n − 1); nan for one seed
    seeds: int


def moments(scores: ArrayLike) -> Moments:
    values = np.asarray(scores, np.float64)
    std = float(values.std(ddof=1)) if values.size > 1 else math.nan
    return Moments(float(values.mean()) if values.size else math.nan, std, int(values.size))


def welch(a: Moments, b: Moments) -> float:
    """p of the two-sided t-test without equal variances; nan where a side has no spread to test.

    From moments, so that the paper's printed mean ± std can be tested in the same way.
    """
    if min(a.seeds, b.seeds) < SEEDS_FOR["spread"]:
        return math.nan
    if a.std == 0.0 and b.std == 0.0:
        return 1.0 if a.mean == b.mean else 0.0
    test = _stats().ttest_ind_from_stats(*a, *b, equal_var=False)
    return float(test.pvalue)


def _stats() -> Any:
    try:
        from scipy import stats
    except ImportError:
        raise missing_extra("a test or an interquartile mean", "experiments") from None
    return stats


def iqm(scores: ArrayLike, axis: int | None = None) -> Any:
    """The interquartile mean: a quarter is cut from either end (of 3 or fewer, nothing)."""
    return _stats().trim_mean(np.asarray(scores, np.float64), 0.25, axis=axis)


def improvement(a: ArrayLike, b: ArrayLike) -> float:
    """P(a run of A beats a run of B), ties half: Mann and Whitney's U over all pairs."""
    left, right = np.asarray(a, np.float64), np.asarray(b, np.float64)
    if not left.size or not right.size:
        return math.nan
    return float(_wins(left, right))


def _wins(left: Scores, right: Scores) -> Any:
    """Over the last axis of each, for any leading axes."""
    sign = np.sign(left[..., :, None] - right[..., None, :])
    return 0.5 + 0.5 * sign.mean(axis=(-2, -1))


class Interval(NamedTuple):
    value: float
    low: float
    high: float


Statistic = Callable[[Sequence[Scores]], Any]  # of strata [..., seeds] → [...]


def bootstrap(
    strata: Sequence[ArrayLike],
    statistic: Statistic,
    *,
    level: float = 0.95,
    repeats: int = 2_000,
    seed: int = 0,
) -> Interval:
    """A percentile interval; seeds are drawn again within each stratum (task, agent), never across.

    With a stratum of one seed there is nothing to draw: the ends are nan.
    """
    groups = [np.asarray(stratum, np.float64) for stratum in strata]
    value = float(statistic(groups))
    if any(len(group) < SEEDS_FOR["spread"] for group in groups) or not groups:
        return Interval(value, math.nan, math.nan)
    random = np.random.default_rng(seed)
    drawn = [group[random.integers(0, len(group), (repeats, len(group)))] for group in groups]
    tail = 50.0 * (1.0 - level)
    low, high = np.percentile(statistic(drawn), [tail, 100.0 - tail])
    return Interval(value, float(low), float(high))


def pooled_iqm(strata: Sequence[Scores]) -> Any:
    """The interquartile mean over all runs of all tasks, on normalised scores."""
    return iqm(np.concatenate(list(strata), axis=-1), axis=-1)


def iqm_interval(strata: Sequence[ArrayLike], **options: Any) -> Interval:
    """IQM of one agent over its tasks' scores, with its stratified bootstrap interval."""
    return bootstrap(strata, pooled_iqm, **options)


def improvement_interval(pairs: Sequence[tuple[ArrayLike, ArrayLike]], **options: Any) -> Interval:
    """Mean over tasks of P(A > B), both sides drawn again within each task."""
    flat = [side for pair in pairs for side in pair]
    return bootstrap(flat, _mean_improvement, **options)


def _mean_improvement(groups: Sequence[Scores]) -> Any:
    pairs = zip(groups[::2], groups[1::2], strict=True)
    return np.mean([_wins(a, b) for a, b in pairs], axis=0)


def normalise(scores: Mapping[str, ArrayLike]) -> dict[str, Scores]:
    """One task's scores with its worst agent's mean at 0 and its best agent's at 1.

    Only so can tasks be pooled; the numbers are relative to the agents that are compared.
    """
    values = {name: np.asarray(s, np.float64) for name, s in scores.items()}
    means = [float(s.mean()) for s in values.values() if s.size]
    low, high = (min(means), max(means)) if means else (0.0, 0.0)
    span = high - low
    return {n: (s - low) / span if span > 0 else np.ones_like(s) for n, s in values.items()}


# The marks of Table 2.

PAIRS: dict[str, tuple[str, str]] = {"†": ("adac-td3", "td3"), "*": ("adac-ddpg", "ddpg")}


class Marks(NamedTuple):
    bold: bool = False
    signs: str = ""  # "†", "*", or nothing


def marks(row: Mapping[str, Moments], names: Mapping[str, str] | None = None) -> dict[str, Marks]:
    """Table 2's marks for one task: bold over all agents, † and * within their pairs.

    `names` maps a column to the agent's name that PAIRS knows, where the two differ. What has a
    single seed is neither marked nor compared: there is no test on one number. Where such a column
    has the best mean, nobody is bold.
    """
    tested = {column: m for column, m in row.items() if m.seeds >= SEEDS_FOR["spread"]}
    bold = leaders(tested) if best(tested) == best(row) else set()
    signs = dict.fromkeys(row, "")
    for sign, pair in PAIRS.items():
        members = {c: m for c, m in tested.items() if (names or {}).get(c, c) in pair}
        # Exactly one column each: among variants of one agent a pair has no meaning.
        if sorted((names or {}).get(c, c) for c in members) == sorted(pair):
            for column in leaders(members):
                signs[column] += sign
    return {column: Marks(column in bold, signs[column]) for column in row}


def best(row: Mapping[str, Moments]) -> str | None:
    return max(row, key=lambda column: row[column].mean, default=None)


def leaders(row: Mapping[str, Moments]) -> set[str]:
    """The best mean, and what Welch's test does not tell from it at 0.05."""
    first = best(row)
    if first is None:
        return set()
    alike = {c for c, m in row.items() if welch(m, row[first]) > LEVEL}
    return alike | {first}

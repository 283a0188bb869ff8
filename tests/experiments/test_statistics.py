"""Statistics against numbers worked by hand, against SciPy, and at their limits."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from adac.experiments.analysis import statistics
from adac.experiments.analysis.statistics import Marks, Moments, moments, welch
from adac.experiments.paper import numbers as paper_numbers

stats = pytest.importorskip("scipy.stats")

finite = st.floats(-1e4, 1e4, allow_nan=False).map(lambda x: round(x, 3))
samples = st.integers(2, 12).flatmap(lambda n: arrays(np.float64, n, elements=finite))


def test_final_score_is_the_mean_of_the_last_tenth() -> None:
    steps = [10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 100]
    assert statistics.final_score(steps, range(11)) == 9.5  # 95 and 100; 90 is not after 90 %
    assert statistics.final_score([5], [3.0]) == 3.0
    assert math.isnan(statistics.final_score([], []))


def test_moments_use_the_sample_deviation() -> None:
    assert moments([2.0, 4.0, 6.0]) == Moments(4.0, 2.0, 3)
    assert moments([7.0])[::2] == (7.0, 1)
    assert math.isnan(moments([7.0]).std)


def test_welch_by_hand() -> None:
    # means 2 and 5, variances 1 and 4, three each: t = -3 / √(5/3), ν = (5/3)² / (1/18 + 16/18)
    a, b = [1.0, 2.0, 3.0], [3.0, 5.0, 7.0]
    t, freedom = -3 / math.sqrt(5 / 3), (5 / 3) ** 2 / (17 / 18)
    assert welch(moments(a), moments(b)) == pytest.approx(2 * stats.t.cdf(t, freedom), rel=1e-12)


@given(samples, samples)
def test_welch_is_scipys(a: np.ndarray, b: np.ndarray) -> None:
    if min(a.std(), b.std()) < 1e-3:  # SciPy warns of lost precision; see the limits below
        return
    expected = stats.ttest_ind(a, b, equal_var=False).pvalue
    assert welch(moments(a), moments(b)) == pytest.approx(expected, rel=1e-6, abs=1e-12)


def test_welch_at_its_limits() -> None:
    same = moments([3.0, 3.0])
    assert welch(same, same) == 1.0
    assert welch(same, moments([4.0, 4.0])) == 0.0
    assert math.isnan(welch(same, moments([3.0])))
    spread = moments([1.0, 2.0, 4.0])
    assert welch(spread, spread) == pytest.approx(1.0)


def test_iqm_ignores_outliers() -> None:
    assert statistics.iqm([1.0, 2.0, 3.0, 4.0]) == 2.5
    assert statistics.iqm([-1e9, 2.0, 3.0, 1e9]) == 2.5
    assert statistics.iqm([1.0, 2.0, 30.0]) == 11.0  # of three, nothing is cut


@given(samples)
def test_pooled_iqm_is_the_mean_of_the_middle_half(a: np.ndarray) -> None:
    cut = len(a) // 4
    middle = np.sort(a)[cut : len(a) - cut]
    assert statistics.pooled_iqm([a]) == pytest.approx(middle.mean(), abs=1e-9)


def test_improvement_counts_pairs() -> None:
    assert statistics.improvement([1.0, 3.0], [2.0, 2.0]) == 0.5
    assert statistics.improvement([3.0, 4.0], [1.0, 2.0]) == 1.0
    assert statistics.improvement([2.0, 1.0], [2.0]) == 0.25  # a tie is half


@given(samples, samples)
def test_improvement_is_mann_and_whitneys_u(a: np.ndarray, b: np.ndarray) -> None:
    u = stats.mannwhitneyu(a, b, method="asymptotic").statistic if np.ptp([*a, *b]) else None
    p = statistics.improvement(a, b)
    assert p == pytest.approx(0.5 if u is None else u / (len(a) * len(b)))
    assert p + statistics.improvement(b, a) == pytest.approx(1.0)
    assert statistics.improvement(a, a) == 0.5


@settings(max_examples=20)
@given(samples, samples)
def test_intervals_hold_their_value_and_repeat(a: np.ndarray, b: np.ndarray) -> None:
    interval = statistics.iqm_interval([a, b], repeats=200)
    assert interval.low - 1e-9 <= interval.high
    assert min(a.min(), b.min()) - 1e-9 <= interval.low
    assert interval.high <= max(a.max(), b.max()) + 1e-9
    assert interval == statistics.iqm_interval([a, b], repeats=200)


def test_intervals_are_stratified() -> None:
    """Two tasks without spread inside them: nothing varies, however far apart they lie."""
    assert statistics.iqm_interval([[0.0, 0.0], [100.0, 100.0]], repeats=50) == (50.0, 50.0, 50.0)


def test_interval_of_normal_scores_has_the_width_of_theory() -> None:
    scores = np.random.default_rng(0).normal(size=400)
    low, high = statistics.iqm_interval([scores])[1:]
    # The IQM's standard error is about 1.09 σ/√n for normal scores.
    assert high - low == pytest.approx(2 * 1.96 * 1.09 / 20, rel=0.15)


def test_one_seed_has_no_interval() -> None:
    interval = statistics.iqm_interval([[3.0]])
    assert interval.value == 3.0
    assert math.isnan(interval.low)
    assert math.isnan(interval.high)


def test_improvement_over_tasks_is_their_mean() -> None:
    pairs = [([2.0, 3.0], [0.0, 1.0]), ([0.0, 0.0], [1.0, 1.0])]
    assert statistics.improvement_interval(pairs, repeats=20) == (0.5, 0.5, 0.5)


def test_normalise_puts_worst_at_0_and_best_at_1() -> None:
    scaled = statistics.normalise({"a": [10.0, 30.0], "b": [0.0, 0.0], "c": [10.0]})
    assert scaled["a"].tolist() == [0.5, 1.5]
    assert scaled["b"].tolist() == [0.0, 0.0]
    assert scaled["c"].tolist() == [0.5]
    assert statistics.normalise({"a": [5.0], "b": [5.0]})["a"].tolist() == [1.0]


def test_marks_of_a_table_worked_by_hand() -> None:
    """Five seeds, std 1: two means differ at 0.05 when they lie 1.46 or more apart (t = 2.306)."""
    row = {
        "adac-td3": Moments(10.0, 1.0, 5),
        "td3": Moments(8.0, 1.0, 5),  # 2.0 below the best: told apart
        "adac-ddpg": Moments(5.0, 1.0, 5),
        "ddpg": Moments(6.0, 1.0, 5),  # 1.0 above: not told apart, both get *
        "sac": Moments(9.0, 1.0, 5),  # 1.0 below the best: bold too
    }
    assert statistics.marks(row) == {
        "adac-td3": Marks(True, "†"),
        "td3": Marks(False, ""),
        "adac-ddpg": Marks(False, "*"),
        "ddpg": Marks(False, "*"),
        "sac": Marks(True, ""),
    }
    edge = {"a": Moments(0.0, 1.0, 5), "b": Moments(1.45, 1.0, 5), "c": Moments(-0.02, 1.0, 5)}
    assert {k for k, m in statistics.marks(edge).items() if m.bold} == {"a", "b"}


def test_marks_go_by_the_agents_name_and_need_two_seeds() -> None:
    row = {"Ours": Moments(2.0, 0.1, 3), "Theirs": Moments(1.0, 0.1, 3)}
    names = {"Ours": "adac-td3", "Theirs": "td3"}
    assert statistics.marks(row, names)["Ours"] == Marks(True, "†")
    assert statistics.marks(row)["Ours"] == Marks(True, "")
    row = {"td3": Moments(1.0, 0.1, 3), "ddpg": Moments(0.1, 0.1, 3)}
    lower, higher = Moments(0.5, math.nan, 1), Moments(9.0, math.nan, 1)
    assert statistics.marks(row | {"adac-td3": lower})["td3"] == Marks(True, "")
    assert not any(m.bold for m in statistics.marks(row | {"adac-td3": higher}).values())


def test_enough_seeds() -> None:
    assert not statistics.enough(4, "test")
    assert statistics.enough(5, "test")
    assert not statistics.enough(5, "interval")
    assert statistics.enough(20, "paper")


def test_the_papers_table() -> None:
    table = paper_numbers.TABLE_2
    assert len(table) == 14
    assert all(len(row) == 6 for row in table.values())
    assert table["Hopper"]["adac-td3"] == (Moments(3598.0, 374.0, 20), Marks(True, "†"))
    assert table["BipedalWalkerHardcore"]["ddpg"] == (Moments(-50.05, 10.27, 20), Marks(False, "*"))
    # The text counts them: bold 10 of 14 and † 11 of 14 for ADAC (TD3), * 13 of 14.
    assert sum(row["adac-td3"][1].bold for row in table.values()) == 10
    assert sum("†" in row["adac-td3"][1].signs for row in table.values()) == 11
    assert sum("*" in row["adac-ddpg"][1].signs for row in table.values()) == 13


def test_welch_on_the_papers_numbers_gives_its_marks_but_for_seven() -> None:
    extra = set()
    for task, row in paper_numbers.TABLE_2.items():
        ours = statistics.marks({agent: cell[0] for agent, cell in row.items()})
        for agent, (_, printed) in row.items():
            assert ours[agent].signs == printed.signs
            assert ours[agent].bold or not printed.bold
            if ours[agent].bold and not printed.bold:
                extra.add((task, agent))
    assert extra == {
        *((task, "sac") for task in
          ("RoboschoolHopper", "InvertedDoublePendulum", "LunarLanderContinuous")),
        *((task, "td3") for task in ("Ant", "HalfCheetah", "Walker2d", "BipedalWalker")),
    }  # fmt: skip


def test_paper_names() -> None:
    assert paper_numbers.paper_name("adac/RoboschoolAnt-v1") == "RoboschoolAnt"
    assert paper_numbers.paper_name("LunarLanderContinuous-v3") == "LunarLanderContinuous"

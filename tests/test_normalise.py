"""Running statistics are those of all the observations, however they came in."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adac.core.normalise import CLIP, empty, normalise, observe, restore

pytestmark = pytest.mark.usefixtures("strict_dtypes")
merge = jax.jit(observe)


@settings(max_examples=25)
@given(
    st.lists(st.sampled_from([1, 2, 5]), min_size=1, max_size=8),
    st.floats(-100.0, 100.0),
    st.floats(0.1, 10.0),
    st.integers(0, 1000),
)
def test_statistics_do_not_depend_on_the_splits(
    blocks: list[int], centre: float, scale: float, seed: int
) -> None:
    rows = np.random.default_rng(seed).normal(centre, scale, (sum(blocks), 3)).astype(np.float32)
    statistics = empty(3)
    for block in np.split(rows, np.cumsum(blocks)[:-1]):
        statistics = merge(statistics, block)
    assert float(statistics.seen) == len(rows)
    np.testing.assert_allclose(statistics.mean, rows.mean(0, float), rtol=1e-4, atol=1e-4)
    variance = statistics.squares / statistics.seen
    np.testing.assert_allclose(variance, rows.var(0, float), rtol=1e-2, atol=1e-3)


def test_normalised_observations_have_mean_zero_and_deviation_one() -> None:
    rows = np.random.default_rng(0).normal([5.0, -300.0], [0.1, 40.0], (500, 2)).astype(np.float32)
    result = np.asarray(normalise(merge(empty(2), rows), jnp.asarray(rows)))
    np.testing.assert_allclose(result.mean(0), 0.0, atol=1e-3)
    np.testing.assert_allclose(result.std(0), 1.0, atol=1e-3)


def test_a_constant_entry_is_only_centred_and_a_wild_one_is_cut() -> None:
    rows = jnp.array([[7.0, 1.0], [7.0, -1.0]])
    statistics = merge(empty(2), rows)
    seen = normalise(statistics, jnp.array([[7.5, 1e6]]))
    np.testing.assert_allclose(seen, [[0.5, CLIP]])


def test_without_statistics_nothing_happens() -> None:
    rows = jnp.array([[3.0, 4.0]])
    assert normalise((), rows) is rows


def test_restoring_undoes_it() -> None:
    rows = np.random.default_rng(0).normal([5.0, -300.0], [0.1, 40.0], (50, 2)).astype(np.float32)
    rows[:, 1] = 7.0  # an entry that does not vary
    statistics = merge(empty(2), rows)
    back = restore(statistics, normalise(statistics, jnp.asarray(rows)))
    np.testing.assert_allclose(back, rows, rtol=1e-5)

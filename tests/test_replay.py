"""The ring keeps the newest transitions, and gives back what was put in."""

import numpy as np
import pytest

from adac.training.replay import Replay, unpack, width


def ring(capacity: int = 5, seed: int = 0) -> Replay:
    return Replay(capacity, 2, 1, np.random.SeedSequence(seed))


def transitions(*numbers: float) -> tuple[np.ndarray, ...]:
    """Transitions told apart by their number, which every column shows."""
    n = np.array(numbers, np.float32)
    obs = np.stack([n, n + 0.1], axis=1)
    return obs, n[:, None] + 0.2, n + 0.3, n + 0.4, n % 2, obs + 0.5


def test_a_row_is_what_was_added() -> None:
    replay = ring()
    added = transitions(1.0, 2.0)
    replay.add(*added)
    batch = unpack(replay.rows[:2], 2, 1)
    assert replay.rows.shape == (5, width(2, 1))
    for column, wanted in zip(batch, added, strict=True):
        np.testing.assert_array_equal(column, wanted)
    assert batch._fields == ("obs", "action", "reward", "bonus", "continues", "next_obs")


def test_the_oldest_are_overwritten() -> None:
    replay = ring()
    for number in range(12):
        replay.add(*transitions(number))
        assert len(replay) == min(number + 1, 5)
    assert replay.inserted == 12
    np.testing.assert_array_equal(replay.rows[:, 0], [10, 11, 7, 8, 9])


def test_a_block_may_cross_the_end() -> None:
    replay = ring()
    replay.add(*transitions(0, 1, 2))
    replay.add(*transitions(3, 4, 5, 6))
    np.testing.assert_array_equal(replay.rows[:, 0], [5, 6, 2, 3, 4])
    assert len(replay) == 5


def test_columns_of_unequal_length_are_refused() -> None:
    obs, *rest = transitions(1.0, 2.0)
    with pytest.raises(ValueError, match="argument"):
        ring().add(obs[:1], *rest)


def test_only_what_was_stored_is_sampled_and_all_of_it() -> None:
    replay = ring(capacity=100)
    replay.rows[:] = np.nan
    replay.add(*transitions(*range(10)))
    sample = replay.sample(1000)
    assert sample.shape == (1000, width(2, 1))
    assert sample.dtype == np.float32
    counts = np.bincount(sample[:, 0].astype(int), minlength=10)
    assert len(counts) == 10
    assert counts.min() > 50  # uniform: 100 ± 30


def test_a_sample_is_a_copy() -> None:
    replay = ring(capacity=2)
    replay.add(*transitions(1.0, 2.0))
    sample = replay.sample(8)
    before = sample.copy()
    replay.add(*transitions(8.0, 9.0))
    np.testing.assert_array_equal(sample, before)


def test_sampling_follows_its_own_random_state() -> None:
    replay, other = ring(seed=1), ring(seed=2)
    for one in (replay, other):
        one.add(*transitions(0, 1, 2, 3, 4))
    state = replay.random_state()
    first = replay.sample(20)
    assert not np.array_equal(first, replay.sample(20))
    assert not np.array_equal(first, other.sample(20))
    other.set_random_state(state)
    np.testing.assert_array_equal(first, other.sample(20))

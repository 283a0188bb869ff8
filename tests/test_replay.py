"""The ring keeps the newest transitions, and gives back what was put in."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from adac.core.batch import Batch
from adac.errors import UserError
from adac.training.replay import Replay, RowSpec
from helpers import row_spec

SPEC = row_spec(2, 1)


def ring(capacity: int = 5, seed: int = 0) -> Replay:
    return Replay(capacity, SPEC, np.random.SeedSequence(seed))


def transitions(*numbers: float) -> dict[str, NDArray[np.float32]]:
    """Transitions told apart by their number, which every column shows."""
    n = np.array(numbers, np.float32)
    obs = np.stack([n, n + 0.1], axis=1)
    return {
        "obs": obs,
        "action": n[:, None] + 0.2,
        "reward": n + 0.3,
        "bonus": n + 0.4,
        "continues": n % 2,
        "next_obs": obs + 0.5,
        "ahead": n + 0.6,
    }


def test_a_row_is_what_was_added() -> None:
    replay, added = ring(), transitions(1.0, 2.0)
    replay.add(**added)
    found = SPEC.unpack(replay.rows[:2], list(added))
    assert replay.rows.shape == (5, SPEC.width) == (5, 2 + 1 + 1 + 1 + 1 + 2 + 1)
    for name, wanted in added.items():
        np.testing.assert_array_equal(found[name], wanted)


def test_a_row_holds_every_field_of_a_batch_in_columns_of_its_own() -> None:
    assert set(SPEC.fields) == {*Batch._fields, "ahead"}
    columns = [column for slices in SPEC.columns.values() for column in range(SPEC.width)[slices]]
    assert sorted(columns) == list(range(SPEC.width))


def test_a_field_of_any_shape_can_be_stored() -> None:
    spec = RowSpec({"picture": (2, 3), "mark": ()})
    picture = np.arange(12, dtype=np.float32).reshape(2, 2, 3)
    rows = spec.pack({"mark": np.array([1.0, 2.0]), "picture": picture})
    found = spec.unpack(rows, ["mark", "picture"])
    np.testing.assert_array_equal(found["picture"], picture)
    np.testing.assert_array_equal(found["mark"], [1.0, 2.0])


def test_the_oldest_are_overwritten() -> None:
    replay = ring()
    for number in range(12):
        replay.add(**transitions(number))
        assert len(replay) == min(number + 1, 5)
    assert replay.inserted == 12
    np.testing.assert_array_equal(replay.rows[:, 0], [10, 11, 7, 8, 9])


def test_a_block_may_cross_the_end() -> None:
    replay = ring()
    replay.add(**transitions(0, 1, 2))
    replay.add(**transitions(3, 4, 5, 6))
    np.testing.assert_array_equal(replay.rows[:, 0], [5, 6, 2, 3, 4])
    assert len(replay) == 5


def test_only_what_was_stored_is_sampled_and_all_of_it() -> None:
    replay = ring(capacity=100)
    replay.rows[:] = np.nan
    replay.add(**transitions(*range(10)))
    sample = replay.take(replay.draw(1000))
    assert sample.shape == (1000, SPEC.width)
    assert sample.dtype == np.float32
    counts = np.bincount(sample[:, 0].astype(int), minlength=10)
    assert len(counts) == 10
    assert counts.min() > 50  # uniform: 100 ± 30


def test_a_sample_is_a_copy() -> None:
    replay = ring(capacity=2)
    replay.add(**transitions(1.0, 2.0))
    sample = replay.take(replay.draw(8))
    before = sample.copy()
    replay.add(**transitions(8.0, 9.0))
    np.testing.assert_array_equal(sample, before)


def test_sampling_follows_its_own_random_state() -> None:
    replay, other = ring(seed=1), ring(seed=2)
    for one in (replay, other):
        one.add(**transitions(0, 1, 2, 3, 4))
    state = replay.random_state()
    first = replay.draw(20)
    assert not np.array_equal(first, replay.draw(20))
    assert not np.array_equal(first, other.draw(20))
    other.set_random_state(state)
    np.testing.assert_array_equal(first, other.draw(20))


@pytest.mark.parametrize(
    "wrong",
    [
        {"obs": np.zeros((2, 3))},
        {"obs": np.zeros((2, 3)), "next_obs": np.zeros((2, 1))},  # as wide as it should be, in all
        {"reward": np.zeros(3)},
        {"obs": np.zeros((1, 2))},
        {"reward": 5.0},
        {"reward": None},
        {"reward": ["a", "b"]},
        {"colour": np.zeros(2)},
    ],
)
def test_transitions_of_another_shape_are_one_sentence(wrong: dict[str, Any]) -> None:
    replay = ring()
    with pytest.raises(UserError, match=r"transitions are arrays of numbers, obs \[n, 2\], "):
        replay.add(**(transitions(1.0, 2.0) | wrong))
    fewer = {name: column for name, column in transitions(1.0).items() if name != "reward"}
    with pytest.raises(UserError, match="transitions are arrays of numbers"):
        replay.add(**fewer)
    with pytest.raises(UserError, match="not nothing"):
        replay.add()
    with pytest.raises(UserError, match="must be finite"):
        replay.add(**transitions(np.nan))
    assert not len(replay)

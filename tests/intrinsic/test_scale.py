"""The scale that every bonus is divided by: a typical collected step is worth η, come what may."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array

from adac.core.intrinsic import scale
from adac.core.intrinsic.interface import Novelty


class State(NamedTuple):
    scale: scale.Scale


class Told(Novelty):
    """A bonus whose novelty is the first entry of the next observation."""

    def init(self, obs_dim: int, action_dim: int, key: Array) -> State:
        return State(scale.none_yet())

    def novelty(self, state: State, obs: Array, action: Array, next_obs: Array) -> Array:
        return next_obs[:, 0]

    def update(
        self, state: State, obs: Array, action: Array, next_obs: Array, key: Array
    ) -> tuple[State, dict[str, Array]]:
        return state, {}


def collected(bonus: Told, novelties: Array) -> np.ndarray:
    """Bonuses of transitions collected one by one, [T]."""

    def one(state: State, novelty: Array) -> tuple[State, Array]:
        row = jnp.reshape(novelty, (1, 1))
        state, found = bonus.collect(state, row, row, row)
        return state, found[0]

    _, found = jax.lax.scan(one, bonus.init(1, 1, jax.random.key(0)), novelties)
    return np.asarray(found)


TOLD = Told(eta=0.5, bonus_after=100)
STEPS = jnp.arange(6_000)
DRAWN = jax.random.exponential(jax.random.key(0), (6_000,))


@pytest.mark.parametrize(
    "fall",
    [jnp.ones(6_000), 10.0 ** (-STEPS / 1_000.0), 10.0 ** (-8.0 * (STEPS > 3_000))],
    ids=["steady", "a tenth each thousand steps", "at once, by eight orders of magnitude"],
)
@pytest.mark.parametrize("unit", [1e-12, 1.0, 1e6])
def test_a_mean_step_stays_between_a_third_of_eta_and_three_times_it(
    fall: Array, unit: float
) -> None:
    found = collected(TOLD, unit * fall * DRAWN)
    for begin in range(500, 6_000, 500):
        if 3_000 <= begin < 4_500:  # after a fall at once the memory has to fill anew
            continue
        assert 0.3 < found[begin : begin + 500].mean() / TOLD.eta < 3.0


def test_there_is_no_bonus_until_so_many_transitions_have_been_collected() -> None:
    found = collected(TOLD, DRAWN[:300])
    assert not found[:99].any()
    assert (found[99:] > 0.0).all()


def test_a_bonus_is_at_most_the_clip() -> None:
    wild = DRAWN.at[2_000].set(1e30)
    found = collected(TOLD, wild)
    assert found.max() <= TOLD.eta * TOLD.bonus_clip * (1 + 1e-6)
    np.testing.assert_allclose(found[2_000], TOLD.eta * TOLD.bonus_clip)
    calm = collected(TOLD, DRAWN)
    assert (
        found[2_001:2_200].mean() > 0.9 * calm[2_001:2_200].mean()
    )  # one outlier is soon forgotten


def test_several_at_once_are_as_one_by_one() -> None:
    together, single = scale.none_yet(), scale.none_yet()
    for block in DRAWN[:400].reshape(100, 4):
        together = scale.observe(together, block, 200.0)
        for one in block:
            single = scale.observe(single, one[None], 200.0)
    assert together.seen == single.seen == 400
    np.testing.assert_allclose(together.log, single.log, atol=0.05)


def test_looking_at_a_bonus_changes_nothing() -> None:
    state = State(scale.Scale(jnp.float32(500.0), jnp.float32(0.0)))
    row = jnp.ones((3, 1))
    np.testing.assert_allclose(TOLD.bonus(state, row, row, row), TOLD.eta)
    moved, found = TOLD.collect(state, row, row, 2.0 * row)
    assert moved.scale.log > state.scale.log
    assert (found < 2.0 * TOLD.eta).all()


@pytest.mark.parametrize("name", ["eta", "bonus_after", "bonus_clip", "scale_memory"])
def test_bad_settings_are_named(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        Told(**{name: -1})

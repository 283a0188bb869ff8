"""RND's bonus: small where the predictor has been, and never moves the random network."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array

from adac.core.intrinsic import Rnd, scale
from adac.core.intrinsic.rnd import RndState
from helpers import assert_same_bits, unmoved

RND = Rnd(eta=1.0, model_hidden=(32,), model_features=16)
ACTION = jnp.zeros((100, 1))
bonus, collect = jax.jit(RND.bonus), jax.jit(RND.collect)


def region(centre: float, seed: int | Array) -> Array:
    return centre + jax.random.normal(jax.random.key(seed), (100, 3))


@jax.jit
def learn(state: RndState, updates: int) -> RndState:
    def body(number: Array, state: RndState) -> RndState:
        obs = region(0.0, number)
        return RND.update(state, obs, ACTION, obs, jax.random.key(0))[0]

    learned: RndState = jax.lax.fori_loop(0, updates, body, state)
    return learned


def trained(updates: int) -> RndState:
    """After so many updates, and 1,000 transitions collected where it has learned."""
    state = learn(RND.init(3, 1, jax.random.key(0)), updates)
    for number in range(10):
        obs = region(0.0, 7_000 + number)
        state, _ = collect(state, obs, ACTION, obs)
    return state


def value(state: RndState, obs: Array) -> Array:
    return bonus(state, obs, ACTION, obs)


def test_no_bonus_before_500_transitions_have_been_collected() -> None:
    """Updates draw the same transitions many times over: they do not count."""
    state = learn(RND.init(3, 1, jax.random.key(0)), 50)
    for number in range(5):
        assert not jnp.any(value(state, region(0.0, 99)))
        obs = region(0.0, number)
        state, _ = collect(state, obs, ACTION, obs)
    assert jnp.all(value(state, region(0.0, 99)) > 0.0)


def test_a_typical_transition_is_worth_eta_however_long_the_predictor_has_learned() -> None:
    known = region(0.0, 5_000)
    for updates in (20, 600, 3_000):
        assert 0.7 < float(jnp.median(value(trained(updates), known))) < 1.3


def test_the_error_falls_with_training_and_the_bonus_is_larger_elsewhere() -> None:
    early, late = trained(10), trained(600)
    known, unknown = region(0.0, 5_000), region(4.0, 5_000)
    assert scale.value(late.scale) < 0.1 * scale.value(early.scale)
    assert jnp.mean(value(late, unknown)) > 3.0 * jnp.mean(value(late, known))


def test_the_random_network_stays_and_the_predictor_learns() -> None:
    before, after = trained(0), trained(3)
    assert_same_bits(before.target, after.target)
    assert not unmoved(before.predictor, after.predictor)


def test_the_bonus_is_normalised() -> None:
    """The units of the observations do not matter, once their statistics know them."""
    state = trained(50)
    wanted = value(state, region(0.0, 1))
    statistics = state.observations
    wide = statistics._replace(mean=7.0 + 30.0 * statistics.mean, squares=900 * statistics.squares)
    found = value(state._replace(observations=wide), 7.0 + 30.0 * region(0.0, 1))
    np.testing.assert_allclose(found, wanted, rtol=1e-2)
    twice = state._replace(scale=state.scale._replace(log=state.scale.log + jnp.log(2.0)))
    free = np.asarray(wanted) < RND.eta * RND.bonus_clip
    assert free.mean() > 0.9
    np.testing.assert_allclose(2.0 * value(twice, region(0.0, 1))[free], wanted[free], rtol=1e-5)


def test_the_bonus_is_bounded_and_nan_is_not_hidden() -> None:
    state = trained(50)
    assert float(jnp.max(value(state, 1e20 * region(0.0, 1)))) <= RND.bonus_clip
    assert jnp.all(jnp.isnan(value(state, jnp.nan * region(0.0, 1))))


def test_it_has_no_model_of_the_next_observation() -> None:
    assert RND.predict(trained(0), region(0.0, 0), ACTION, jax.random.key(0)) is None


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("eta", -1.0),
        ("model_lr", float("nan")),
        ("model_features", 0),
        ("model_hidden", (0,)),
        ("bonus_after", -1),
        ("bonus_clip", 0.0),
    ],
)
def test_bad_settings_are_named(name: str, bad: object) -> None:
    with pytest.raises(ValueError, match=name):
        Rnd(**{name: bad})  # type: ignore[arg-type]

"""VIME's bonus: when it starts, what it falls for, and its scale; and its settings."""

from dataclasses import replace
from functools import lru_cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array

from adac.core.intrinsic import Vime, bayes
from adac.core.intrinsic.bayes import Posterior
from adac.core.intrinsic.vime import VimeState, transitions
from adac.core.normalise import Statistics

OBS, ACTION, BATCH = 2, 1, 100
VIME = Vime(eta=1.0, likelihood_std=1.0, model_samples=2)
gain = jax.jit(VIME.novelty)
bonus, collect = jax.jit(VIME.bonus), jax.jit(VIME.collect)


def region(centre: float, seed: int | Array) -> tuple[Array, Array, Array]:
    """Transitions of s' = (0.9 s₁ + 0.3 a, s₂ − s₁ / 2), from around (centre, centre)."""
    drawn = jax.random.normal(jax.random.key(seed), (BATCH, OBS + ACTION))
    obs, action = centre + 0.3 * drawn[:, :OBS], jnp.tanh(drawn[:, OBS:])
    x, y = obs[:, :1], obs[:, 1:]
    return obs, action, jnp.concatenate([0.9 * x + 0.3 * action, y - 0.5 * x], axis=1)


@jax.jit
def learn(state: VimeState, begin: int, end: int, one: bool) -> VimeState:
    """Updates on fresh minibatches around 0, or on `repeated` alone."""

    def body(number: Array, state: VimeState) -> VimeState:
        batch = [
            jnp.where(one, *pair) for pair in zip(repeated(), region(0.0, number), strict=True)
        ]
        key = jax.random.fold_in(jax.random.key(1), number)
        new, _ = VIME.update(state, *batch, key)
        # The statistics of one point alone have no width: then only the posterior learns.
        keep = jax.tree.map(partial(jnp.where, one), state, new)
        return new._replace(inputs=keep.inputs, targets=keep.targets)

    learned: VimeState = jax.lax.fori_loop(begin, end, body, state)
    return learned


def repeated() -> list[Array]:
    return [jnp.repeat(column[:1], BATCH, axis=0) for column in region(0.5, 0)]


def learned(updates: int) -> VimeState:
    start = jax.jit(VIME.init, static_argnums=(0, 1))(OBS, ACTION, jax.random.key(0))
    return learn(start, 0, updates, False)


@lru_cache
def trained(updates: int) -> VimeState:
    """After so many updates, and 1,000 transitions collected where it has learned."""
    state = learned(updates)
    for number in range(10):
        state, _ = collect(state, *region(0.0, 7_000 + number))
    return state


def test_no_bonus_before_500_transitions_have_been_collected() -> None:
    """Updates draw the same transitions many times over: they do not count."""
    assert Vime().bonus_after == 500
    state = learned(20)
    for number in range(5):
        found = bonus(state, *region(0.0, 99))
        assert found.shape == (BATCH,)
        assert not jnp.any(found)
        state, _ = collect(state, *region(0.0, number))
    assert jnp.all(bonus(state, *region(0.0, 99)) > 0.0)


def test_a_transition_seen_again_and_again_teaches_less_and_less() -> None:
    state, gains, widths = trained(20), [], []
    for _ in range(4):
        gains.append(float(gain(state, *repeated())[0]))
        widths.append(float(jnp.mean(bayes.std(state.posterior.rho[0][0]))))
        state = learn(state, 0, 300, True)
    assert np.all(np.diff(gains) < 0.0)
    assert np.all(np.diff(widths) < 0.0)
    assert gains[-1] < 0.2 * gains[0]


def test_an_unseen_region_is_worth_more() -> None:
    state = trained(1000)
    known, unknown = bonus(state, *region(0.0, 5_000)), bonus(state, *region(1.5, 5_000))
    assert float(jnp.median(unknown)) > 3.0 * float(jnp.median(known))
    assert 0.3 < float(jnp.mean(known)) / VIME.eta < 3.0  # what the scale is for


def test_the_bonus_is_bounded() -> None:
    """However far the next observation, and however small the scale."""
    state = trained(30)
    obs, action, next_obs = region(0.0, 0)
    found = bonus(state, obs, action, 1e20 * jnp.ones_like(next_obs))
    assert np.all((found > 0.0) & (found <= VIME.eta * VIME.bonus_clip))
    small = state.scale._replace(log=state.scale.log - 20.0)
    found = bonus(state._replace(scale=small), obs, action, next_obs)
    np.testing.assert_array_equal(found, VIME.eta * VIME.bonus_clip)


def test_eta_scales_and_the_information_step_cancels() -> None:
    batch, state = region(0.0, 7), trained(30)
    other = replace(VIME, eta=0.25, information_step=0.02)
    scaled = state.scale._replace(log=state.scale.log + jnp.log(4.0))  # the gain goes with λ²
    wider = state._replace(scale=scaled)
    found = jax.jit(other.bonus)(wider, *batch)
    np.testing.assert_allclose(found, 0.25 * bonus(state, *batch), rtol=1e-5)


def test_nan_is_not_hidden() -> None:
    obs, action, next_obs = region(0.0, 0)
    assert jnp.all(jnp.isnan(bonus(trained(10), obs, action, next_obs * jnp.nan)))


def test_transitions_are_counted_once_each() -> None:
    """n grows by one per update, whatever the size of a minibatch, from one minibatch on."""
    count = jax.vmap(partial(transitions, batch=100))
    np.testing.assert_array_equal(count(jnp.array([100.0, 1e4, 1e6])), [100.0, 100.0, 1e4])


def test_every_weight_learns() -> None:
    before, after = trained(0), trained(3)
    for old, new in zip(
        jax.tree.leaves(before.posterior), jax.tree.leaves(after.posterior), strict=True
    ):
        assert np.all(np.asarray(old) != np.asarray(new))


def statistics(mean: list[float], variance: list[float]) -> Statistics:
    return Statistics(jnp.array(4.0), jnp.array(mean), 4.0 * jnp.array(variance))


def test_predictions_are_in_the_units_of_observations() -> None:
    """A network that repeats its normalised input predicts s with its own mean and width."""
    repeat = Vime(model_hidden=())
    state = repeat.init(OBS, ACTION, jax.random.key(0))
    sure = Posterior(
        ((jnp.eye(3)[:, :2], jnp.zeros(2)),), ((jnp.full((3, 2), -20.0), -20.0 * jnp.ones(2)),)
    )
    inputs = Statistics(
        jnp.array(4.0), jnp.array([1.0, 2.0, 0.0]), 4.0 * jnp.array([4.0, 9.0, 1.0])
    )
    targets = Statistics(jnp.array(4.0), jnp.array([100.0, 200.0]), 4.0 * jnp.array([25.0, 0.0]))
    state = state._replace(posterior=sure, inputs=inputs, targets=targets)
    found = repeat.predict(state, jnp.array([[3.0, 5.0]]), jnp.zeros((1, 1)), jax.random.key(0))
    np.testing.assert_allclose(found, [[105.0, 201.0]], atol=1e-3)


@pytest.mark.usefixtures("strict_dtypes")
def test_nothing_changes_its_dtype() -> None:
    state = trained(0)
    batch = region(0.0, 0)
    assert jax.eval_shape(VIME.bonus, state, *batch).dtype == jnp.float32
    x = jnp.concatenate(batch[:2], axis=1)
    value, _ = jax.eval_shape(
        VIME.loss, state.posterior, x, batch[2], jnp.float32(9), jax.random.key(0)
    )
    assert value.dtype == jnp.float32


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("eta", -1.0),
        ("eta", float("nan")),
        ("information_step", 0.0),
        ("prior_std", 0.0),
        ("likelihood_std", -1.0),
        ("model_lr", -1e-3),
        ("model_samples", 0),
        ("model_hidden", (32, 0)),
        ("bonus_after", -1),
        ("bonus_clip", 0.0),
    ],
)
def test_bad_settings_are_named(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=name):
        Vime(**{name: value})  # type: ignore[arg-type]

"""What each bonus is high for, and what it falls with."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array

from adac.core.intrinsic import Counts, Ex2, Icm, InformationGain, Intrinsic, Rnd, Sum
from adac.core.intrinsic.counts import visited


def learn(
    intrinsic: Any, state: Any, columns: tuple[Array, Array, Array], steps: int, batch: int = 64
) -> Any:
    """Many minibatches of the same transitions."""
    count = columns[0].shape[0]

    def step(state: Any, key: Array) -> tuple[Any, None]:
        draw_key, update_key = jax.random.split(key)
        rows = jax.random.choice(draw_key, count, (batch,))
        return intrinsic.update(state, *(c[rows] for c in columns), update_key)[0], None

    keys = jax.random.split(jax.random.key(7), steps)
    return jax.jit(lambda state: jax.lax.scan(step, state, keys)[0])(state)


def line(count: int, seed: int = 0, low: float = -1.0, high: float = 1.0) -> Any:
    """s' = s + 0.5 a on the states (x, 0) and actions in [−1, 1]."""
    draw = np.random.default_rng(seed)
    x, a = draw.uniform(low, high, (count, 1)), draw.uniform(-1, 1, (count, 1))
    obs = np.concatenate([x, np.zeros_like(x)], axis=1)
    after = obs + 0.5 * np.concatenate([a, np.zeros_like(a)], axis=1)
    return tuple(jnp.asarray(c, jnp.float32) for c in (obs, a, after))


def resting(place: float, count: int) -> Any:
    """The same state, or nearly, before and after."""
    x = place + np.random.default_rng(0).uniform(-0.05, 0.05, count)
    obs = jnp.asarray(np.stack([x, np.zeros(count)], axis=1), jnp.float32)
    return obs, jnp.zeros((count, 1)), obs


def test_an_ensemble_agrees_where_it_has_learned_and_not_elsewhere() -> None:
    intrinsic = InformationGain(measure="variance", model_hidden=(32,), model_lr=3e-3)
    state = intrinsic.init(2, 1, jax.random.key(0))
    known, unknown = line(256), line(64, low=4.0, high=6.0)
    before = jnp.mean(intrinsic.novelty(state, *known))
    state = learn(intrinsic, state, known, 800)
    on, off = (jnp.mean(intrinsic.novelty(state, *data)) for data in (known, unknown))
    assert on < 1e-2
    assert on < before / 10
    assert off > 10 * on


def test_the_information_gain_is_maxinforl_s_formula() -> None:
    intrinsic = InformationGain(model_hidden=(8,))
    state, data = intrinsic.init(2, 1, jax.random.key(0)), line(5)
    x = jnp.concatenate(data[:2], axis=-1)  # nothing seen yet: the inputs are as they are
    w1, w2 = (np.asarray(layer.weight) for layer in state.models)
    b1, b2 = (np.asarray(layer.bias) for layer in state.models)
    hidden = np.maximum(np.einsum("bi,mij->mbj", x, w1) + b1[:, None], 0.0)
    outcome = np.einsum("mbj,mjo->mbo", hidden, w2) + b2[:, None]
    expected = np.mean(np.log(1 + (np.std(outcome, axis=0) / 1e-3) ** 2), axis=-1)
    np.testing.assert_allclose(intrinsic.novelty(state, *data), expected, rtol=1e-4)


def test_an_action_s_promise_has_a_slope() -> None:
    intrinsic = InformationGain(model_hidden=(8,))
    state, (obs, action, _) = intrinsic.init(2, 1, jax.random.key(0)), line(5)

    def promised(a: Array) -> Array:
        return jnp.sum(intrinsic.promise(state, obs, a, jax.random.key(1)))

    assert np.all(np.abs(jax.grad(promised)(action)) > 0)


def test_counts_are_exact_on_a_small_grid() -> None:
    intrinsic = Counts(eta=1.0, bonus_after=0)
    state = intrinsic.init(2, 1, jax.random.key(0))
    cells = jnp.array([[x, y] for x in (-1.0, 0.0, 1.0) for y in (-1.0, 0.0, 1.0)])
    visits = np.array([1, 2, 3, 4, 5, 6, 7, 8, 9])
    path = np.random.default_rng(0).permutation(np.repeat(np.arange(9), visits))
    met = np.zeros(9, int)
    for cell in path:
        s = cells[cell][None]
        state, bonus = intrinsic.collect(state, s, jnp.zeros((1, 1)), s)
        met[cell] += 1
        assert float(bonus[0]) == pytest.approx(met[cell] ** -0.5)
    np.testing.assert_array_equal(visited(state, cells), visits)
    assert float(intrinsic.bonus(state, cells, cells, cells)[3]) == pytest.approx(0.5)


def test_counting_begins_when_the_unit_is_set_and_cells_stay() -> None:
    intrinsic = Counts(eta=1.0, bonus_after=20)
    state = intrinsic.init(2, 1, jax.random.key(0))
    draw = np.random.default_rng(0)
    for _ in range(40):
        s = jnp.asarray(draw.normal(size=(1, 2)) * [1.0, 1e-3], jnp.float32)
        state, bonus = intrinsic.collect(state, s, jnp.zeros((1, 1)), s)
    assert float(state.observations.seen) == 20
    assert int(jnp.sum(state.visits[0])) == 20
    assert float(bonus[0]) > 0.0


@pytest.mark.parametrize("intrinsic", [Ex2(model_hidden=(32,)), Icm(model_hidden=(32,))])
def test_the_bonus_falls_on_repeated_data(intrinsic: Ex2 | Icm) -> None:
    """At a place that was rare among others, and then is all there is."""
    wide, place = line(256, low=-4.0, high=4.0), resting(3.0, 32)
    state = learn(intrinsic, intrinsic.init(2, 1, jax.random.key(0)), wide, 300)
    before = float(jnp.mean(intrinsic.novelty(state, *place)))
    state = learn(intrinsic, state, place, 300)
    assert float(jnp.mean(intrinsic.novelty(state, *place))) < 0.8 * before


def test_ex2_knows_how_rare_a_state_is() -> None:
    """Of two places that can be told apart, p is the part of the data that each has."""
    intrinsic = Ex2(model_hidden=(32,))
    often, rare = resting(-1.0, 480), resting(1.0, 32)
    both = tuple(jnp.concatenate(pair) for pair in zip(often, rare, strict=True))
    state = learn(intrinsic, intrinsic.init(2, 1, jax.random.key(0)), both, 900)
    for data, part in ((often, 15 / 16), (rare, 1 / 16)):
        found = float(jnp.mean(intrinsic.novelty(state, *data)))
        assert found == pytest.approx(np.log(1 + 1 / part), rel=0.15)


def test_icm_keeps_what_the_agent_can_influence() -> None:
    """The inverse model learns to tell the action from the two states."""
    intrinsic, data = Icm(model_hidden=(32,)), line(256)
    state = intrinsic.init(2, 1, jax.random.key(0))
    first = intrinsic.update(state, *data, jax.random.key(1))[1]["inverse_loss"]
    state = learn(intrinsic, state, data, 500)
    last = intrinsic.update(state, *data, jax.random.key(2))[1]["inverse_loss"]
    assert float(last) < 0.05 * float(first)


def test_a_sum_is_the_sum_of_its_bonuses() -> None:
    parts: tuple[Intrinsic, ...] = (Counts(bonus_after=0), Rnd(bonus_after=0, model_hidden=(8,)))
    both, data = Sum(bonuses=parts), line(6)
    state = both.init(2, 1, jax.random.key(0))
    alone = []
    for part, key in zip(parts, jax.random.split(jax.random.key(0)), strict=True):
        own = part.init(2, 1, key)
        for _ in range(3):
            own, _ = part.collect(own, *data)
        alone.append(part.bonus(own, *data))
    for _ in range(3):
        state, collected = both.collect(state, *data)
    np.testing.assert_allclose(both.bonus(state, *data), alone[0] + alone[1], rtol=1e-6)
    np.testing.assert_allclose(both.each(state, *data), jnp.stack(alone), rtol=1e-6)
    np.testing.assert_allclose(collected, both.bonus(state, *data), rtol=1e-5)
    _, metrics = both.update(state, *data, jax.random.key(1))
    assert {"counts_cells_visited", "rnd_model_loss"} <= set(metrics)

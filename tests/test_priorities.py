"""Prioritised replay: what is drawn, how the loss is weighted, and resuming to the bit."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from adac.core import agent as core
from adac.core.critics import TD_ERROR, Quantiles
from adac.core.explorers import GaussianNoise
from adac.core.soft_value import SoftValue
from adac.training.learner import Learner
from adac.training.priorities import EPSILON, Priorities
from adac.training.replay import Replay
from helpers import TD3, assert_same_bits, random_batch, row_spec, start, tiny

AGENT = tiny(TD3, GaussianNoise(), warmup=10)
PRIORITISED = replace(AGENT, priority_alpha=0.6, n_steps=3)


def buffer(capacity: int, rows: int) -> Replay:
    replay = Replay(capacity, row_spec(), np.random.SeedSequence(0))
    insert(replay, rows)
    return replay


def insert(replay: Replay, rows: int) -> None:
    shape = {name: (rows, *shape) for name, shape in replay.spec.fields.items()}
    if rows:
        replay.add(**{name: np.zeros(size) for name, size in shape.items()})


def leaves(priorities: Priorities) -> Any:
    return priorities.tree[priorities.leaves :][: len(priorities.replay)]


@pytest.mark.parametrize("rows", [5, 8, 13])
def test_rows_are_drawn_in_proportion(rows: int) -> None:
    priorities = Priorities(buffer(8, rows), 0.5, 0.4)
    count = min(rows, 8)
    errors = (np.arange(1.0, count + 1.0) / 3.0) ** 2  # below and above the first priority, 1
    priorities.draw(1)
    priorities.expect(np.arange(count), errors)
    drawn = np.bincount(priorities.draw(20_000), minlength=count) / 20_000
    expected = (errors + EPSILON) ** 0.5
    np.testing.assert_allclose(drawn, expected / expected.sum(), atol=1e-3)
    np.testing.assert_allclose(leaves(priorities), expected, rtol=1e-6)
    weights = priorities.weights(np.arange(count), 0.0)
    np.testing.assert_allclose(weights, (expected / expected.min()) ** -0.4, rtol=1e-5)
    full = priorities.weights(np.arange(count), 1.0)
    np.testing.assert_allclose(full * expected, expected.min(), rtol=1e-5)  # unbiased


def test_every_node_is_the_sum_of_two() -> None:
    priorities, draw = Priorities(buffer(13, 4), 1.0, 1.0), np.random.default_rng(0)
    for _ in range(30):
        insert(priorities.replay, int(draw.integers(0, 4)))
        priorities.expect(priorities.draw(6), draw.exponential(size=6))
    inner = np.arange(1, priorities.leaves)
    tree = priorities.tree
    np.testing.assert_array_equal(tree[inner], tree[2 * inner] + tree[2 * inner + 1])
    assert (leaves(priorities) > 0).all()


def test_new_rows_get_the_largest_and_overwritten_ones_keep_theirs() -> None:
    priorities = Priorities(buffer(4, 4), 1.0, 1.0)
    priorities.draw(1)
    priorities.expect(np.array([0, 1]), np.array([5.0, 7.0]))
    insert(priorities.replay, 1)  # over row 0, while its error was on the way
    priorities.draw(1)
    np.testing.assert_allclose(leaves(priorities), [7.0, 7.0, 1.0, 1.0], rtol=1e-5)


def test_a_row_drawn_twice_has_its_larger_error() -> None:
    priorities = Priorities(buffer(4, 4), 1.0, 1.0)
    priorities.draw(1)
    priorities.expect(np.array([2, 2]), np.array([9.0, 3.0]))
    priorities.settle()
    assert leaves(priorities)[2] == pytest.approx(9.0, rel=1e-5)


@pytest.mark.parametrize("critic", [AGENT.critic, Quantiles(quantiles=5), SoftValue()])
def test_weights_scale_each_transition_s_loss(critic: Any) -> None:
    """Weights of one change nothing; a weight of zero is a transition that is not there."""
    agent = replace(AGENT, critic=critic)
    state, batch, progress = start(agent), random_batch(), jnp.float32(0.5)

    def losses(weights: Any) -> tuple[float, Any]:
        _, metrics = core.update(
            agent, state, batch, _key(), progress, improve=False, weights=weights
        )
        return float(metrics["critic_loss"]), metrics.get(TD_ERROR)

    plain, none = losses(None)
    alike, errors = losses(jnp.ones(8))
    assert none is None
    assert alike == pytest.approx(plain, rel=1e-5)
    assert errors.shape == (8,)
    assert (np.asarray(errors) > 0).all()
    each = [losses(jnp.eye(8)[row])[0] for row in range(8)]
    assert sum(each) == pytest.approx(plain, rel=1e-4)


def _key() -> Any:
    return jax.random.key(0)


def test_td_errors_are_those_of_the_task_s_critics() -> None:
    state, batch = start(AGENT), random_batch()
    batch = batch._replace(continues=jnp.zeros(8))  # y = r
    _, metrics = core.update(
        AGENT, state, batch, _key(), jnp.float32(0), improve=False, weights=jnp.ones(8)
    )
    values = [
        np.asarray(AGENT.critic.at(q, batch.obs)(batch.action)) for q in state.critic.params[0]
    ]
    expected = np.max([np.abs(batch.reward - value) for value in values], axis=0)
    np.testing.assert_allclose(metrics[TD_ERROR], expected, rtol=1e-4)


def test_an_interrupted_run_ends_in_the_same_bits(tmp_path: Path) -> None:
    """Small enough that rows are overwritten while their errors are on the way."""
    agent = replace(PRIORITISED, replay_size=16)
    whole = Learner("Pendulum-v1", agent, num_envs=3)
    whole.loop.horizon = 90
    half = Learner("Pendulum-v1", agent, num_envs=3)
    half.loop.horizon = 90
    while whole.step < 60:
        whole.loop.advance()
    while half.step < 33:
        half.loop.advance()
    half.save(tmp_path)
    loaded = Learner.load(tmp_path)
    for learner in (half, loaded):  # a save changes nothing either
        while learner.step < 60:
            learner.loop.advance()
        assert_same_bits(learner.state, whole.state)
        np.testing.assert_array_equal(learner.replay.rows, whole.replay.rows)
    uniform = Learner("Pendulum-v1", replace(agent, priority_alpha=0.0), num_envs=3)
    uniform.loop.horizon = 90
    while uniform.step < 60:
        uniform.loop.advance()
    differs = np.asarray(uniform.state.actor.params.trunk[0].weight)
    assert not np.array_equal(differs, np.asarray(whole.state.actor.params.trunk[0].weight))


def test_priorities_can_be_switched_on_and_off_on_load(tmp_path: Path) -> None:
    Learner("Pendulum-v1", AGENT).learn(20).save(tmp_path / "run")
    switched = Learner.load(tmp_path / "run", overrides={"per_alpha": 0.6, "n_steps": 3}).learn(5)
    assert "td_error" not in switched.diagnose()
    switched.save(tmp_path / "on")
    assert Learner.load(tmp_path / "on", overrides={"priority_alpha": 0.0}).learn(3).step == 28


FORGED: dict[str, tuple[Any, dict[str, Any]]] = {
    "none of them drawn": (0.0, {}),
    "a sum that overflows": (1e308, {"largest": 1e308}),
    "a share that vanishes": (5e-324, {}),
    "above the largest": (2.0, {"largest": 1.0}),
    "no largest": (1.0, {"largest": float("nan")}),
    "an endless one": (1.0, {"largest": float("inf")}),
    "a negative one": (1.0, {"largest": -1.0}),
}


@pytest.mark.parametrize("how", FORGED)
def test_priorities_that_no_run_has_are_refused(how: str) -> None:
    value, facts = FORGED[how]
    priorities = Priorities(buffer(8, 5), 0.6, 0.4)
    priorities.draw(1)
    arrays, told = priorities.snapshot()
    Priorities(buffer(8, 5), 0.6, 0.4).restore(arrays, told)
    with pytest.raises(ValueError, match="not those of its replay buffer"):
        Priorities(buffer(8, 5), 0.6, 0.4).restore({"rows": np.full(5, value)}, told | facts)

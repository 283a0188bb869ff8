"""Schedules, clipping and weight decay do what their names say, and nothing by default."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from adac.core.agent import Agent, update
from adac.core.bases import SAC, Deterministic
from adac.core.critics import Scalar
from adac.core.explorers import GaussianNoise
from adac.core.networks import Networks
from adac.core.renorm import RenormQNetwork
from adac.training.learner import Learner
from helpers import (
    MadeUp,
    assert_same_bits,
    first_moment,
    leaves,
    random_batch,
    run,
    start,
    step,
    tiny,
)

SMALL = Networks(actor_hidden=(8,), critic_hidden=(8,))


def agent(**base: Any) -> Agent:
    return tiny(Deterministic(policy_delay=1, **base), GaussianNoise(), networks=SMALL)


def moved(agent: Agent, progress: float = 0.0, updates: int = 1) -> Any:
    """How far critics and π went in the last of these updates."""
    state = start(agent)
    for number in range(updates):
        before = state
        key = jax.random.key(number)
        state, _ = update(
            agent, state, random_batch(number), key, jnp.float32(progress), improve=True
        )
    pairs = (before.critic.params, before.actor.params), (state.critic.params, state.actor.params)
    return jax.tree.map(lambda old, new: new - old, *pairs)


def assert_times(factor: float, one: Any, other: Any) -> None:
    for name, leaf in leaves(one).items():
        np.testing.assert_allclose(leaves(other)[name], factor * leaf, atol=2e-7, err_msg=name)


@pytest.mark.parametrize(
    ("schedule", "progress", "left"),
    [("linear", 0.0, 1.0), ("linear", 0.25, 0.75), ("linear", 1.0, 0.0), ("linear", 2.0, 0.0),
     ("cosine", 0.0, 1.0), ("cosine", 0.25, 0.5 + 0.5**1.5), ("cosine", 1.0, 0.0)],
)  # fmt: skip
def test_a_schedule_takes_its_part_of_every_step(
    schedule: Any, progress: float, left: float
) -> None:
    falling = moved(agent(lr_schedule=schedule), progress)
    assert_times(left, moved(agent()), falling)
    half = moved(agent(lr_schedule=schedule, lr_end=0.5), progress)
    assert_times((1 + left) / 2, moved(agent()), half)


def test_a_schedule_over_updates_does_not_look_at_the_run() -> None:
    """The n-th of N updates has 1 − (n−1)/N of the rate, however long the run; none after."""
    falling = agent(lr_schedule="linear", lr_updates=4)
    for number, left in ((1, 1.0), (5, 0.0), (6, 0.0)):
        found = moved(falling, progress=0.9, updates=number)
        largest = max(np.abs(leaf).max() for leaf in leaves(found).values())
        assert (largest > 5e-4) == (left > 0)
        assert left or largest == 0.0


def norms(opt: Any) -> list[float]:
    """Of each network's first gradient, which Adam's first moment is a tenth of."""
    networks = [network for stream in first_moment(opt) for network in stream]
    return [10 * float(optax.tree.norm(network)) for network in networks]


def test_each_network_s_gradient_is_cut_where_it_is_longer() -> None:
    batch = random_batch()
    free, _ = step(agent(), start(agent()), batch)
    long = norms(free.critic.opts[0])
    between = (min(long) + max(long)) / 2
    cut, _ = step(agent(max_grad_norm=between), start(agent()), batch)
    np.testing.assert_allclose(norms(cut.critic.opts[0]), np.minimum(long, between), rtol=1e-5)
    loose, _ = step(agent(max_grad_norm=1e9), start(agent()), batch)
    assert_times(1.0, free, loose)


def test_a_bonus_cannot_reach_the_task_s_critics_through_a_norm() -> None:
    disentangled = tiny(Deterministic(max_grad_norm=0.1), intrinsic=MadeUp())
    ends = [
        run(disentangled, start(disentangled), [random_batch()._replace(bonus=jnp.full(8, bonus))])
        for bonus in (0.0, 1e6)
    ]
    assert_same_bits(ends[0].critic.params[0], ends[1].critic.params[0])


def test_weight_decay_is_decoupled() -> None:
    """AdamW: Adam's step, and lr · decay of the weights less."""
    before, batch = start(agent()), random_batch()
    plain, _ = step(agent(), before, batch)
    decayed, _ = step(agent(weight_decay=10.0), before, batch)
    for net in ("critic", "actor"):
        old, one, other = (leaves(getattr(s, net).params) for s in (before, plain, decayed))
        for name, leaf in old.items():
            np.testing.assert_allclose(other[name], one[name] - 1e-3 * 10.0 * leaf, atol=1e-6)
    assert_same_bits(plain.critic.opts, decayed.critic.opts)


@pytest.mark.parametrize("critic", [Scalar(), Scalar(batch_renorm=True)])
def test_an_activation_is_that_of_every_network(critic: Scalar) -> None:
    """tanh bounds what a layer passes on: a network's output cannot leave what its last layer
    makes of numbers in [−1, 1]; rectified, it can."""
    for activation, bounded in (("tanh", True), ("relu", False)):
        networks = Networks((8,), (8,), activation=activation)  # type: ignore[arg-type]
        one = tiny(SAC(), GaussianNoise(), networks=networks, critic=critic)
        state, far = start(one), jnp.full((1, 3), 1e4)
        network, actor = state.critic.params[0][0], state.actor.params
        assert isinstance(network, RenormQNetwork) == critic.batch_renorm
        for values, last in (
            (network(far, jnp.ones((1, 2))), network.body[-1]),
            (actor(far), actor.head[-1]),
        ):
            most = jnp.sum(jnp.abs(last.weight), axis=0) + jnp.abs(last.bias) + 1e-3
            assert bool((jnp.abs(values) <= most).all()) == bounded


def test_a_run_that_falls_resumes_to_the_same_bits(tmp_path: Any) -> None:
    words = {"lr_schedule": "cosine", "max_grad_norm": 1.0, "weight_decay": 1e-3, "warmup": 10,
             "activation": "silu", "net_arch": "8", "batch_size": 8}  # fmt: skip
    whole = Learner("Pendulum-v1", "td3", overrides=words).learn(60)
    Learner("Pendulum-v1", "td3", overrides=words).learn(30, horizon=60).save(tmp_path)
    resumed = Learner.load(tmp_path).learn(30)
    assert_same_bits(whole.state, resumed.state)

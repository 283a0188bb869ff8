"""Critics as parts: networks with running statistics, and what a Q-network's numbers mean."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from adac.core.critics import Bootstrap, Critic, Scalar, lowest
from adac.core.explorers import GaussianNoise
from adac.core.networks import Networks, QNetwork, Running, split_trained
from adac.training.learner import Learner
from helpers import (
    TD3,
    assert_same_bits,
    first_moment,
    leaves,
    random_batch,
    start,
    step,
    tiny,
    unmoved,
)

RATE = 0.1


class Means(Running):
    value: Array


class Centred(eqx.Module):
    """A Q-network whose observations are centred by a mean that follows the data."""

    inner: QNetwork
    means: Means

    def embed(self, obs: Array) -> Array:
        return self.inner.embed(obs - self.means.value)

    def decode(self, embedding: Array, action: Array) -> Array:
        return self.inner.decode(embedding, action)

    def __call__(self, obs: Array, action: Array) -> Array:
        return self.decode(self.embed(obs), action)

    def seen(self, obs: Array) -> "Centred":
        new = self.means.value + RATE * (jnp.mean(obs, axis=0) - self.means.value)
        return eqx.tree_at(lambda net: net.means.value, self, new)


@final
@dataclass(frozen=True)
class CentredScalar(Critic):
    """`Scalar` on networks with running statistics."""

    @property
    def outputs(self) -> int:
        return 1

    def value(self, out: Array) -> Array:
        return jnp.squeeze(out, -1)

    def target(self, outs: Sequence[Array], step: Bootstrap) -> Array:
        return step.reward + step.discount * lowest([self.value(out) for out in outs])

    def loss(self, out: Array, target: Array) -> Array:
        return jnp.mean((self.value(out) - target) ** 2)

    def network(self, networks: Networks, obs_dim: int, action_dim: int, key: Array) -> Centred:
        return Centred(
            super().network(networks, obs_dim, action_dim, key), Means(jnp.ones(obs_dim))
        )

    def regress(
        self, members: Sequence[Centred], targets: Sequence[Centred], step: Bootstrap
    ) -> tuple[Array, tuple[Array, Sequence[Centred]]]:
        total, (q, _) = super().regress(members, targets, step)
        return total, (q, tuple(member.seen(step.obs) for member in members))


AGENT = tiny(TD3, GaussianNoise(), critic=CentredScalar(), warmup=5)


def test_running_statistics_follow_the_data_and_not_the_optimiser() -> None:
    before, batch = start(AGENT), random_batch()
    after, _ = step(AGENT, before, batch)
    moved = 1.0 + RATE * (np.mean(batch.obs, axis=0) - 1.0)
    for old, new in zip(before.critic.params[0], after.critic.params[0], strict=True):
        np.testing.assert_allclose(new.means.value, moved, rtol=1e-6)
        assert not unmoved(old.inner, new.inner)  # the weights are trained all the same
    slow = 1.0 + AGENT.base.tau * (moved - 1.0)
    for target in after.critic.target[0]:
        np.testing.assert_allclose(target.means.value, slow, rtol=1e-6)


def test_the_optimiser_has_no_state_for_running_statistics() -> None:
    moments = leaves(first_moment(start(AGENT).critic.opts[0]))
    assert moments
    assert not [name for name in moments if "means" in name]


def test_the_gradient_is_taken_through_statistics_as_they_are() -> None:
    """What the pass leaves behind does not change the step that it is left by."""
    plain = tiny(TD3, GaussianNoise(), critic=Scalar(), warmup=5)
    batch = random_batch()
    centred = batch._replace(obs=batch.obs - 1.0, next_obs=batch.next_obs - 1.0)
    state = start(AGENT)
    bare = start(plain)._replace(actor=state.actor)
    inner = jax.tree.map(lambda net: net.inner, state.critic.params, is_leaf=_is_centred)
    bare = bare._replace(critic=bare.critic._replace(params=inner, target=inner))
    # π sees raw observations either way, so it must not depend on them: only the critics differ.
    still = jax.tree.map(jnp.zeros_like, state.actor)
    one, _ = step(AGENT, state._replace(actor=still), batch, improve=False)
    other, _ = step(plain, bare._replace(actor=still), centred, improve=False)
    for mine, theirs in zip(one.critic.params[0], other.critic.params[0], strict=True):
        for name, value in leaves(mine.inner).items():
            np.testing.assert_allclose(value, leaves(theirs)[name], rtol=1e-4, atol=1e-6)


def _is_centred(node: Any) -> bool:
    return isinstance(node, Centred)


def test_running_statistics_are_in_the_checkpoint(tmp_path: Path) -> None:
    whole = Learner("Pendulum-v1", AGENT).learn(40)
    Learner("Pendulum-v1", AGENT).learn(40, callback=lambda seen: seen.step < 20).save(tmp_path)
    resumed = Learner.load(tmp_path)
    resumed.learn(40 - resumed.step)
    assert_same_bits(whole.state, resumed.state)
    assert not unmoved(
        start(AGENT).critic.params[0][0].means, whole.state.critic.params[0][0].means
    )


def test_splitting_and_joining_loses_nothing() -> None:
    network = start(AGENT).critic.params
    trained, still = split_trained(network)
    assert_same_bits(eqx.combine(trained, still), network)
    assert len(jax.tree.leaves(still)) == 2
    assert all("means" in name for name in leaves(still))
    assert jax.tree.leaves(split_trained(start(tiny()).critic.params)[1]) == []

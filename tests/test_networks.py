"""The factored networks are plain ones: the same function as with concatenated inputs."""

import dataclasses
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array

from adac.core.critics import Scalar
from adac.core.networks import Actor, Joint, Linear, Networks, QNetwork

pytestmark = pytest.mark.usefixtures("strict_dtypes")
SIZES = Networks(actor_hidden=(7, 6), critic_hidden=(8, 7), latent=4, latent_hidden=(5, 6))
BATCH, K, OBS, ACTION = 3, 5, 4, 2


def draw(seed: int, *shape: int) -> Array:
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape), jnp.float32)


def concatenated(joint: Joint) -> tuple[Array, Array]:
    """One weight matrix for (x, y), and its bias."""
    return jnp.concatenate([joint.first.weight, joint.second]), joint.first.bias


def plain(layers: Sequence[tuple[Array, Array]], x: Array) -> Array:
    """A textbook network: affine maps with ReLU between them."""
    for weight, bias in layers[:-1]:
        x = jax.nn.relu(x @ weight + bias)
    weight, bias = layers[-1]
    return x @ weight + bias


def affine(layers: Sequence[Linear]) -> list[tuple[Array, Array]]:
    return [(layer.weight, layer.bias) for layer in layers]


def plain_actor(actor: Actor, obs: Array, xi: Array) -> Array:
    assert actor.joint is not None
    embedded = jax.nn.relu(plain(affine(actor.trunk), obs))
    layers = [concatenated(actor.joint), *affine(actor.head)]
    return plain(layers, jnp.concatenate([embedded, xi], axis=-1))


def plain_critic(critic: QNetwork, obs: Array, action: Array) -> Array:
    layers = [concatenated(critic.joint), *affine(critic.body)]
    return plain(layers, jnp.concatenate([obs, action], axis=-1))


@pytest.fixture(scope="module")
def actor() -> Actor:
    return Actor(SIZES, OBS, ACTION, jax.random.key(0))


@pytest.fixture(scope="module")
def critic() -> QNetwork:
    return SIZES.critic(OBS, ACTION, 1, jax.random.key(1))


def test_actor_is_a_concatenated_network(actor: Actor) -> None:
    obs, xi = draw(0, BATCH, OBS), draw(1, BATCH, SIZES.latent)
    np.testing.assert_allclose(actor(obs, xi), plain_actor(actor, obs, xi), rtol=1e-5, atol=1e-6)


def test_particles_of_one_state_share_its_embedding(actor: Actor) -> None:
    obs, xi = draw(2, BATCH, OBS), draw(3, BATCH, K, SIZES.latent)
    shared = actor.decode(actor.embed(obs)[:, None, :], xi)
    assert shared.shape == (BATCH, K, ACTION)
    repeated = jnp.repeat(obs[:, None, :], K, axis=1)
    np.testing.assert_allclose(shared, plain_actor(actor, repeated, xi), rtol=1e-5, atol=1e-6)


def test_leaving_xi_out_is_xi_zero(actor: Actor) -> None:
    obs = draw(4, BATCH, OBS)
    np.testing.assert_array_equal(actor(obs), actor(obs, jnp.zeros((BATCH, SIZES.latent))))


def test_without_latent_the_actor_is_a_plain_network() -> None:
    actor = Actor(dataclasses.replace(SIZES, latent=0), OBS, ACTION, jax.random.key(0))
    obs = draw(5, BATCH, OBS)
    layers = [*affine(actor.trunk), *affine(actor.head)]
    assert [weight.shape for weight, _ in layers] == [(OBS, 7), (7, 6), (6, ACTION)]
    np.testing.assert_allclose(actor(obs), plain(layers, obs), rtol=1e-5, atol=1e-6)


def test_critic_is_a_concatenated_network(critic: QNetwork) -> None:
    obs, action = draw(6, BATCH, OBS), draw(7, BATCH, ACTION)
    value = critic(obs, action)
    assert value.shape == (BATCH, 1)
    np.testing.assert_allclose(value, plain_critic(critic, obs, action), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("states", "particles"), [(BATCH, K), (30, 40), (7, 401)])
def test_action_gradient_is_autodiff_through_the_plain_network(
    critic: QNetwork, states: int, particles: int
) -> None:
    """In one block of rows, in three, and with more particles to a state than fit a block."""
    obs, action = draw(8, states, OBS), draw(9, states, particles, ACTION)

    def total(a: Array) -> Array:
        return jnp.sum(plain_critic(critic, jnp.repeat(obs[:, None, :], particles, axis=1), a))

    gradient = Scalar().at(critic, obs).gradient(action)
    np.testing.assert_allclose(gradient, jax.grad(total)(action), rtol=1e-4, atol=1e-6)


def test_weights_start_within_one_over_root_fan_in() -> None:
    """Where two inputs meet, the fan-in is that of the concatenation."""
    sizes = Networks(actor_hidden=(64, 48), latent=16, latent_hidden=(32,))
    wide = Actor(sizes, 11, 3, jax.random.key(2))
    assert wide.joint is not None
    for array, fan_in in (
        (wide.trunk[0].weight, 11),
        (wide.trunk[1].bias, 64),
        (wide.joint.first.weight, 64),
        (wide.joint.second, 64),
        (wide.head[-1].weight, 32),
    ):
        bound = fan_in**-0.5
        assert float(jnp.max(jnp.abs(array))) <= bound
        np.testing.assert_allclose(jnp.std(array), bound / 3**0.5, rtol=0.2)


def test_a_latent_without_a_layer_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one layer"):
        Networks(latent=4, latent_hidden=())


def test_without_hidden_layers_networks_are_linear() -> None:
    """f(x) + f(z) = f(x + z) + f(0), of the action before its squash and of Q."""
    sizes = Networks(actor_hidden=(), critic_hidden=())
    actor, critic = sizes.actor(3, 2, jax.random.key(0)), sizes.critic(3, 2, 1, jax.random.key(3))
    x, z = jax.random.normal(jax.random.key(1), (2, 5, 3))
    np.testing.assert_allclose(actor(x) + actor(z), actor(x + z) + actor(0 * x), atol=1e-5)
    a, b = jax.random.normal(jax.random.key(2), (2, 5, 2))
    both = critic(x + z, a + b) + critic(0 * x, 0 * a)
    np.testing.assert_allclose(critic(x, a) + critic(z, b), both, atol=1e-5)

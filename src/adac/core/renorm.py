"""A Q-network with batch renormalisation: what lets CrossQ do without target networks.

Bhatt et al. 2024, after Ioffe 2017. While training, each layer's input is normalised by the batch's
own mean and deviation, corrected towards the running ones by r and d:

    x̂ = (x − μ_B)/σ_B · r + d,   r = clip(σ_B/σ, 1/3, 3),   d = clip((μ_B − μ)/σ, −5, 5)

with r = 1, d = 0 for the first WARMUP passes. When a policy climbs the critic, it is normalised by
the running statistics, so that ∇_a Q of one action does not depend on the others in the batch.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from adac.core.activations import ACTIVATIONS, Activation
from adac.core.networks import Joint, Linear, Networks, Running, stack

MOMENTUM, EPSILON = 0.99, 1e-3
R_MAX, D_MAX, WARMUP = 3.0, 5.0, 100_000


class BatchStatistics(Running):
    mean: Array
    variance: Array
    passes: Array


class BatchRenorm(eqx.Module):
    scale: Array
    shift: Array
    running: BatchStatistics

    def __init__(self, size: int):
        self.scale, self.shift = jnp.ones(size), jnp.zeros(size)
        self.running = BatchStatistics(jnp.zeros(size), jnp.ones(size), jnp.zeros(()))

    def __call__(self, x: Array) -> Array:
        """By the running statistics."""
        deviation = jnp.sqrt(self.running.variance + EPSILON)
        return (x - self.running.mean) / deviation * self.scale + self.shift

    def train(self, x: Array) -> tuple[Array, "BatchRenorm"]:
        """By the batch's own, [B, size]; and the layer with its running statistics moved on."""
        known = self.running
        mean, variance = jnp.mean(x, axis=0), jnp.var(x, axis=0)
        deviation, running = jnp.sqrt(variance + EPSILON), jnp.sqrt(known.variance + EPSILON)
        warm = known.passes >= WARMUP
        r = jnp.where(warm, jnp.clip(deviation / running, 1.0 / R_MAX, R_MAX), 1.0)
        d = jnp.where(warm, jnp.clip((mean - known.mean) / running, -D_MAX, D_MAX), 0.0)
        r, d = jax.lax.stop_gradient((r, d))
        out = ((x - mean) / deviation * r + d) * self.scale + self.shift
        moved = BatchStatistics(
            MOMENTUM * known.mean + (1.0 - MOMENTUM) * mean,
            MOMENTUM * known.variance + (1.0 - MOMENTUM) * variance,
            known.passes + 1.0,
        )
        return out, eqx.tree_at(lambda layer: layer.running, self, jax.lax.stop_gradient(moved))


class RenormQNetwork(eqx.Module):
    """(s, a) → [..., outputs], with the input and every hidden layer's output renormalised."""

    obs: BatchRenorm
    action: BatchRenorm
    joint: Joint
    norms: tuple[BatchRenorm, ...]
    body: tuple[Linear, ...]
    activation: Activation = eqx.field(static=True)

    def __init__(self, sizes: Networks, obs_dim: int, action_dim: int, outputs: int, key: Array):
        if not sizes.critic_hidden:
            raise ValueError("batch_renorm needs critic_hidden of at least one layer")
        joint_key, body_key = jax.random.split(key)
        self.obs, self.action = BatchRenorm(obs_dim), BatchRenorm(action_dim)
        self.joint = Joint(obs_dim, action_dim, sizes.critic_hidden[0], joint_key)
        self.norms = tuple(BatchRenorm(size) for size in sizes.critic_hidden)
        self.body = stack((*sizes.critic_hidden, outputs), body_key)
        self.activation = sizes.activation

    def _active(self, x: Array) -> Array:
        return ACTIVATIONS[self.activation](x)

    def embed(self, obs: Array) -> Array:
        return self.joint.embed(self.obs(obs))

    def decode(self, embedding: Array, action: Array) -> Array:
        x = self._active(self.joint.join(embedding, self.action(action)))
        for norm, layer in zip(self.norms[:-1], self.body[:-1], strict=True):
            x = self._active(layer(norm(x)))
        return self.body[-1](self.norms[-1](x))

    def __call__(self, obs: Array, action: Array) -> Array:
        return self.decode(self.embed(obs), action)

    def train(self, obs: Array, action: Array) -> tuple[Array, "RenormQNetwork"]:
        """A batch's numbers, normalised by itself; and the network, its statistics moved on."""
        s, new_obs = self.obs.train(obs)
        a, new_action = self.action.train(action)
        x = self._active(self.joint.join(self.joint.embed(s), a))
        norms = []
        for norm, layer in zip(self.norms, self.body, strict=True):
            x, moved = norm.train(x)
            norms.append(moved)
            x = layer(x)
            x = self._active(x) if layer is not self.body[-1] else x
        moved_parts = (new_obs, new_action, tuple(norms))
        return x, eqx.tree_at(lambda net: (net.obs, net.action, net.norms), self, moved_parts)

"""The two networks, each in two steps so that K particles of one state share that state's work.

The actor is f(s, ξ): `embed(s)` once, then `decode(embedding, ξ)` for every ξ; leaving ξ out is
ξ = 0, the target policy. The critic is Q(s, a): `embed(s)` once, then `value(embedding, a)`.
Where two inputs meet, their weight matrices are separate and the results add up: the same function
as a concatenation. All methods take any leading axes.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from adac.core.validation import counts, tuples


@dataclass(frozen=True)
class Networks:
    """Sizes. The paper's program: s → 400 → 300, then with ξ (16) → 100 → a; critic 400 → 300."""

    actor_hidden: tuple[int, ...] = (400, 300)
    critic_hidden: tuple[int, ...] = (400, 300)
    latent: int = 0  # dimensions of ξ; 0: a plain policy network
    latent_hidden: tuple[int, ...] = (100,)  # layers after ξ has come in; unused without ξ

    def __post_init__(self) -> None:
        counts(self, 0, "latent")
        tuples(self, "actor_hidden", "critic_hidden", "latent_hidden")
        if min(*self.actor_hidden, *self.critic_hidden, *self.latent_hidden, 1) < 1:
            raise ValueError("actor_hidden, critic_hidden and latent_hidden must be positive sizes")
        if self.latent and not self.latent_hidden:
            raise ValueError("latent_hidden must name at least one layer where ξ comes in")
        if not self.critic_hidden or not self.actor_hidden:
            raise ValueError("actor_hidden and critic_hidden must name at least one layer")


def _uniform(key: Array, shape: tuple[int, ...], fan_in: int) -> Array:
    """U(±1/√fan_in) for weights and biases, as the published TD3 starts."""
    bound = fan_in**-0.5
    return jax.random.uniform(key, shape, minval=-bound, maxval=bound)


class Linear(eqx.Module):
    weight: Array
    bias: Array

    def __init__(self, inputs: int, outputs: int, key: Array):
        weight_key, bias_key = jax.random.split(key)
        self.weight = _uniform(weight_key, (inputs, outputs), inputs)
        self.bias = _uniform(bias_key, (outputs,), inputs)

    def __call__(self, x: Array) -> Array:
        return x @ self.weight + self.bias


class Joint(eqx.Module):
    """A linear layer on (x, y) whose x part can be kept for many y."""

    first: Linear
    second: Array

    def __init__(self, first: int, second: int, outputs: int, key: Array):
        first_key, second_key = jax.random.split(key)
        fan_in = first + second
        whole = Linear(fan_in, outputs, first_key)
        self.first = eqx.tree_at(lambda m: m.weight, whole, whole.weight[:first])
        self.second = _uniform(second_key, (second, outputs), fan_in)

    def embed(self, x: Array) -> Array:
        return self.first(x)

    def join(self, embedding: Array, y: Array) -> Array:
        return embedding + y @ self.second


def _stack(sizes: Sequence[int], key: Array) -> tuple[Linear, ...]:
    keys = jax.random.split(key, max(len(sizes) - 1, 1))
    pairs = zip(sizes[:-1], sizes[1:], keys[: len(sizes) - 1], strict=True)
    return tuple(Linear(inputs, outputs, k) for inputs, outputs, k in pairs)


def _hidden(layers: Sequence[Linear], x: Array) -> Array:
    for layer in layers:
        x = jax.nn.relu(layer(x))
    return x


class Actor(eqx.Module):
    """f(s, ξ) before the squash; `outputs` per action dimension are the base's to interpret."""

    trunk: tuple[Linear, ...]
    joint: Joint | None
    head: tuple[Linear, ...]

    def __init__(self, sizes: Networks, obs_dim: int, outputs: int, key: Array):
        trunk_key, joint_key, head_key = jax.random.split(key, 3)
        self.trunk = _stack((obs_dim, *sizes.actor_hidden), trunk_key)
        width = sizes.actor_hidden[-1]
        if sizes.latent:
            self.joint = Joint(width, sizes.latent, sizes.latent_hidden[0], joint_key)
            self.head = _stack((*sizes.latent_hidden, outputs), head_key)
        else:
            self.joint = None
            self.head = _stack((width, outputs), head_key)

    def embed(self, obs: Array) -> Array:
        x = _hidden(self.trunk, obs)
        return x if self.joint is None else self.joint.embed(x)

    def decode(self, embedding: Array, xi: Array | None = None) -> Array:
        if self.joint is None:
            return self.head[-1](_hidden(self.head[:-1], embedding))
        joined = embedding if xi is None else self.joint.join(embedding, xi)
        return self.head[-1](_hidden(self.head[:-1], jax.nn.relu(joined)))

    def __call__(self, obs: Array, xi: Array | None = None) -> Array:
        return self.decode(self.embed(obs), xi)


class Critic(eqx.Module):
    """Q(s, a), one number per row."""

    joint: Joint
    body: tuple[Linear, ...]

    def __init__(self, sizes: Networks, obs_dim: int, action_dim: int, key: Array):
        joint_key, body_key = jax.random.split(key)
        self.joint = Joint(obs_dim, action_dim, sizes.critic_hidden[0], joint_key)
        self.body = _stack((*sizes.critic_hidden, 1), body_key)

    def embed(self, obs: Array) -> Array:
        return self.joint.embed(obs)

    def value(self, embedding: Array, action: Array) -> Array:
        x = _hidden(self.body[:-1], jax.nn.relu(self.joint.join(embedding, action)))
        return jnp.squeeze(self.body[-1](x), -1)

    def __call__(self, obs: Array, action: Array) -> Array:
        return self.value(self.embed(obs), action)

"""What makes the networks, and the two that are made.

Each network works in two steps, so that K particles of one state share that state's work. The actor
is f(s, ξ): `embed(s)` once, then `decode(embedding, ξ)` for every ξ; leaving ξ out is ξ = 0, the
target policy. The critic is Q(s, a): `embed(s)` once, then `decode(embedding, a)` for every a.
Where two inputs meet, their weight matrices are separate and the results add up: the same function
as a concatenation. All methods take any leading axes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
from jax import Array

from adac.core.activations import ACTIVATIONS, Activation
from adac.core.fields import choices, setting
from adac.core.validation import counts, sizes


@dataclass(frozen=True)
class Networks:
    """Makes an agent's networks; the sizes are the paper's program's.

    A kind of network of one's own is a subclass with another `actor` or `critic`.
    """

    actor_hidden: tuple[int, ...] = setting(
        (400, 300), "Hidden layers of the policy network.", choices("64,64", "256,256")
    )
    critic_hidden: tuple[int, ...] = setting(
        (400, 300), "Hidden layers of each critic.", choices("64,64", "256,256", "512,512")
    )
    latent: int = setting(0, "Dimensions of ξ in f(s, ξ); 0 makes a plain policy network.")
    latent_hidden: tuple[int, ...] = setting(
        (100,), "Layers after ξ has joined the state's features; unused without ξ."
    )
    activation: Activation = setting(
        "relu", "Between the layers of policies and critics: relu, tanh, elu, silu or gelu."
    )

    def __post_init__(self) -> None:
        counts(self, 0, "latent")
        sizes(self, "actor_hidden", "critic_hidden", "latent_hidden")
        if self.latent and not self.latent_hidden:
            raise ValueError("latent_hidden must name at least one layer where ξ comes in")

    def actor(self, obs_dim: int, outputs: int, key: Array) -> "Actor":
        return Actor(self, obs_dim, outputs, key)

    def critic(self, obs_dim: int, action_dim: int, outputs: int, key: Array) -> "QNetwork":
        return QNetwork(self, obs_dim, action_dim, outputs, key)


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


Layers = tuple[Linear, ...]


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


def stack(sizes: Sequence[int], key: Array) -> tuple[Linear, ...]:
    """Linear layers between these sizes."""
    keys = jax.random.split(key, max(len(sizes) - 1, 1))
    pairs = zip(sizes[:-1], sizes[1:], keys[: len(sizes) - 1], strict=True)
    return tuple(Linear(inputs, outputs, k) for inputs, outputs, k in pairs)


def hidden(layers: Sequence[Linear], x: Array, activation: Activation = "relu") -> Array:
    for layer in layers:
        x = ACTIVATIONS[activation](layer(x))
    return x


def perceptron(layers: Sequence[Linear], x: Array, activation: Activation = "relu") -> Array:
    """The activation after every layer but the last."""
    return layers[-1](hidden(layers[:-1], x, activation))


class Actor(eqx.Module):
    """f(s, ξ) before the squash; `outputs` per action dimension are the base's to interpret."""

    trunk: tuple[Linear, ...]
    joint: Joint | None
    head: tuple[Linear, ...]
    latent: int = eqx.field(static=True)
    outputs: int = eqx.field(static=True)
    activation: Activation = eqx.field(static=True)

    def __init__(self, sizes: Networks, obs_dim: int, outputs: int, key: Array):
        trunk_key, joint_key, head_key = jax.random.split(key, 3)
        self.trunk = stack((obs_dim, *sizes.actor_hidden), trunk_key)
        self.latent, self.outputs, self.activation = sizes.latent, outputs, sizes.activation
        width = (obs_dim, *sizes.actor_hidden)[-1]  # without a layer π is linear before its squash
        if sizes.latent:
            self.joint = Joint(width, sizes.latent, sizes.latent_hidden[0], joint_key)
            self.head = stack((*sizes.latent_hidden, outputs), head_key)
        else:
            self.joint = None
            self.head = stack((width, outputs), head_key)

    def embed(self, obs: Array) -> Array:
        x = hidden(self.trunk, obs, self.activation)
        return x if self.joint is None else self.joint.embed(x)

    def features(self, embedding: Array, xi: Array | None = None) -> Array:
        """The last hidden layer."""
        if self.joint is None:
            return hidden(self.head[:-1], embedding, self.activation)
        joined = embedding if xi is None else self.joint.join(embedding, xi)
        return hidden(self.head[:-1], ACTIVATIONS[self.activation](joined), self.activation)

    def decode(self, embedding: Array, xi: Array | None = None) -> Array:
        return self.head[-1](self.features(embedding, xi))

    def __call__(self, obs: Array, xi: Array | None = None) -> Array:
        return self.decode(self.embed(obs), xi)


class QNetwork(eqx.Module):
    """(s, a) → the numbers that a critic makes a value of, [..., outputs]."""

    joint: Joint
    body: tuple[Linear, ...]
    activation: Activation = eqx.field(static=True)

    def __init__(self, sizes: Networks, obs_dim: int, action_dim: int, outputs: int, key: Array):
        joint_key, body_key = jax.random.split(key)
        widths = (*sizes.critic_hidden, outputs)
        self.joint = Joint(obs_dim, action_dim, widths[0], joint_key)
        self.body = stack(widths, body_key)  # () of a linear Q
        self.activation = sizes.activation

    def embed(self, obs: Array) -> Array:
        return self.joint.embed(obs)

    def decode(self, embedding: Array, action: Array) -> Array:
        first = self.joint.join(embedding, action)
        if not self.body:
            return first
        return perceptron(self.body, ACTIVATIONS[self.activation](first), self.activation)

    def __call__(self, obs: Array, action: Array) -> Array:
        return self.decode(self.embed(obs), action)


class Running(eqx.Module):
    """Numbers of a network that follow the data and are never differentiated."""


def split_trained(tree: Any) -> tuple[Any, Any]:
    """What gradient descent moves, and what stays; `eqx.combine` joins them again."""

    def is_running(node: Any) -> bool:
        return isinstance(node, Running)

    def mark(node: Any) -> Any:
        return jax.tree.map(lambda _: not is_running(node), node)

    return eqx.partition(tree, jax.tree.map(mark, tree, is_leaf=is_running))


def with_statistics(trained: Any, passed: Any) -> Any:
    """Weights from the optimiser, running statistics from the pass through the networks."""
    return eqx.combine(split_trained(trained)[0], split_trained(passed)[1])

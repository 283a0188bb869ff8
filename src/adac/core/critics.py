"""Critics: what the numbers that a Q-network ends in mean, and how they are learned.

A critic is frozen settings plus four pure functions: how many numbers per (s, a), how they become
a value, what they are trained towards, and the loss. `Scalar` is the textbook's critic.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol, final

import jax
import jax.numpy as jnp
from jax import Array

from adac.core.networks import Networks


class Value(Protocol):
    """Q(s, ·) at some states: all that a base or an explorer knows of a critic."""

    def __call__(self, action: Array) -> Array:
        """Q of one action a state, [B, d] → [B]."""

    def gradient(self, action: Array) -> Array:
        """∇_a Q of K actions a state, [B, K, d] → [B, K, d]."""


class Bootstrap(NamedTuple):
    """Where a critic's target comes from: transitions, and what π does after them."""

    obs: Array  # [B, o]
    action: Array  # [B, d]
    reward: Array  # [B], of this critic's stream
    discount: Array  # [B], γ where the episode goes on, 0 after a termination
    next_obs: Array  # [B, o]
    next_action: Array  # [B, d]
    extra: Array | float  # [B], added to the value of next_action: SAC's entropy


@dataclass(frozen=True)
class Critic(ABC):
    """What every critic is asked. The methods below are all that `update` knows of one."""

    target_network: ClassVar[bool] = True  # targets come from slowly following copies

    @property
    @abstractmethod
    def outputs(self) -> int:
        """Numbers per (s, a) that the network ends in."""

    @abstractmethod
    def value(self, out: Array) -> Array:
        """What policies climb, [..., outputs] → [...]."""

    @abstractmethod
    def target(self, outs: Sequence[Array], step: Bootstrap) -> Array:
        """What each member is trained towards, from all members' numbers at (s', a')."""

    @abstractmethod
    def loss(self, out: Array, target: Array) -> Array:
        """Of one member, a scalar."""

    def network(self, networks: Networks, obs_dim: int, action_dim: int, key: Array) -> Any:
        return networks.critic(obs_dim, action_dim, self.outputs, key)

    def regress(
        self, members: Sequence[Any], targets: Sequence[Any], step: Bootstrap
    ) -> tuple[Array, tuple[Array, Sequence[Any]]]:
        """The loss of one stream's members; its mean value; the members, if statistics moved."""
        target = self.target([net(step.next_obs, step.next_action) for net in targets], step)
        outs = [net(step.obs, step.action) for net in members]
        total = sum((self.loss(out, target) for out in outs), jnp.zeros(()))
        return total, (jnp.mean(self.value(outs[0])), members)

    def at(self, network: Any, obs: Array) -> "NetworkValue":
        """Q(s, ·) at these states, with a network as it stands."""
        return NetworkValue(self, network, obs)


BLOCK = 400  # rows: their hidden layers fit a core's cache, and the blocks run side by side


class NetworkValue(NamedTuple):
    """A network's `Value`; the state's part of Q is computed once for all its actions."""

    critic: Critic
    network: Any
    obs: Array

    def __call__(self, action: Array) -> Array:
        return self.critic.value(self.network(self.obs, action))

    def gradient(self, action: Array) -> Array:
        def of(obs: Array, action: Array) -> Array:
            embedding = self.network.embed(obs)[:, None, :]
            value = lambda a: jnp.sum(self.critic.value(self.network.decode(embedding, a)))  # noqa: E731
            gradient: Array = jax.grad(value)(action)
            return gradient

        states, particles, _ = action.shape
        blocks = min(states, math.ceil(states * particles / BLOCK))
        parts = zip(jnp.array_split(self.obs, blocks), jnp.array_split(action, blocks), strict=True)
        return jnp.concatenate([of(*part) for part in parts])


def lowest(values: Sequence[Array]) -> Array:
    found = values[0]
    for value in values[1:]:
        found = jnp.minimum(found, value)
    return found


@final
@dataclass(frozen=True)
class Scalar(Critic):
    """One number, the lowest of the members in the target, squared error (TD3, SAC, DDPG)."""

    @property
    def outputs(self) -> int:
        return 1

    def value(self, out: Array) -> Array:
        return jnp.squeeze(out, -1)

    def target(self, outs: Sequence[Array], step: Bootstrap) -> Array:
        """r + γ (min_i Q_i(s', a') + extra)."""
        values = [self.value(out) for out in outs]
        return step.reward + step.discount * (lowest(values) + step.extra)

    def loss(self, out: Array, target: Array) -> Array:
        return jnp.mean((self.value(out) - target) ** 2)

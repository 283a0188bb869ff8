"""Critics: what the numbers that a Q-network ends in mean, and how they are learned.

A critic is frozen settings plus four pure functions: how many numbers per (s, a), how they become
a value, what they are trained towards, and the loss. `Scalar` is the textbook's critic.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol, final

import jax
import jax.numpy as jnp
from jax import Array

from adac.core.fields import setting
from adac.core.networks import Networks
from adac.core.renorm import RenormQNetwork
from adac.core.validation import counts, typed

TD_ERROR = "td_error"  # a metric: of each transition [B], where transitions have weights


class Value(Protocol):
    """Q(s, ·) at some states: all that a base or an explorer knows of a critic."""

    def __call__(self, action: Array) -> Array:
        """Q of one action a state, [B, d] → [B]."""

    def gradient(self, action: Array) -> Array:
        """∇_a Q of K actions a state, [B, K, d] → [B, K, d]."""

    def at(self, states: int) -> "Value":
        """The same at the first `states` of its states."""


class Bootstrap(NamedTuple):
    """Where a critic's target comes from: transitions, and what π does after them."""

    obs: Array  # [B, o]
    action: Array  # [B, d]
    reward: Array  # [B], of this critic's stream
    discount: Array  # [B], γ where the episode goes on, 0 after a termination
    next_obs: Array  # [B, o]
    next_action: Array  # [B, d]
    extra: Array | float  # [B], added to the value of next_action: SAC's entropy
    key: Array | None = None  # for critics that draw actions of their own
    weights: Array | None = None  # [B], of the transitions in the loss; None: all alike


@dataclass(frozen=True)
class Critic(ABC):
    """What every critic is asked. The methods below are all that `update` knows of one."""

    batch_renorm: bool = setting(
        False,
        "CrossQ: batch renormalisation, (s, a) and (s', a') in one pass, no target networks.",
    )

    def __post_init__(self) -> None:
        typed(self)

    @property
    def target_network(self) -> bool:
        """Whether targets come from slowly following copies."""
        return not self.batch_renorm

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
        if self.batch_renorm:
            return RenormQNetwork(networks, obs_dim, action_dim, self.outputs, key)
        return networks.critic(obs_dim, action_dim, self.outputs, key)

    def regress(
        self, members: Sequence[Any], targets: Sequence[Any], step: Bootstrap
    ) -> tuple[Array, tuple[Array, Sequence[Any]]]:
        """The loss of one stream's members; its mean value; the members, if statistics moved."""
        outs, target, members = self.outs_and_target(members, targets, step)
        target = jax.lax.stop_gradient(target)
        total = sum((self._weighted(out, target, step.weights) for out in outs), jnp.zeros(()))
        return total, (jnp.mean(self.value(outs[0])), members)

    def outs_and_target(
        self, members: Sequence[Any], targets: Sequence[Any], step: Bootstrap
    ) -> tuple[Sequence[Array], Array, Sequence[Any]]:
        """Each member's numbers at (s, a), what they are to be, and the members as in `regress`."""
        if self.batch_renorm:
            outs, nexts, members = _joint_pass(members, step)
        else:
            nexts = [net(step.next_obs, step.next_action) for net in targets]
            outs = [net(step.obs, step.action) for net in members]
        return outs, self.target(nexts, step), members

    def _weighted(self, out: Array, target: Array, weights: Array | None) -> Array:
        if weights is None:
            return self.loss(out, target)
        each = jax.vmap(lambda o, t: self.loss(o[None], t[None]))(out, target)
        return jnp.mean(weights * each)

    def error(self, members: Sequence[Any], targets: Sequence[Any], step: Bootstrap) -> Array:
        """|y − Q| of each transition, [B], the largest of the members."""
        outs, target, _ = self.outs_and_target(members, targets, step)
        y = jnp.mean(target.reshape(len(target), -1), axis=-1)
        return jnp.max(jnp.stack([jnp.abs(y - self.value(out)) for out in outs]), axis=0)

    def at(self, network: Any, obs: Array) -> "NetworkValue":
        """Q(s, ·) at these states, with a network as it stands."""
        return NetworkValue(self, network, obs)


def _joint_pass(
    members: Sequence[RenormQNetwork], step: Bootstrap
) -> tuple[list[Array], list[Array], list[RenormQNetwork]]:
    """(s, a) and (s', a') as one batch, whose statistics both share (Bhatt et al. 2024, Eq. 2)."""
    obs = jnp.concatenate([step.obs, step.next_obs])
    action = jnp.concatenate([step.action, step.next_action])
    passed = [net.train(obs, action) for net in members]
    count = step.obs.shape[0]
    outs = [out[:count] for out, _ in passed]
    return outs, [out[count:] for out, _ in passed], [net for _, net in passed]


BLOCK = 400  # rows: their hidden layers fit a core's cache, and the blocks run side by side


class NetworkValue(NamedTuple):
    """A network's `Value`; the state's part of Q is computed once for all its actions."""

    critic: Critic
    network: Any
    obs: Array

    def __call__(self, action: Array) -> Array:
        return self.critic.value(self.network(self.obs, action))

    def at(self, states: int) -> "NetworkValue":
        return self._replace(obs=self.obs[:states])

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


class Raised(NamedTuple):
    """A value with a term on top: Q(s, a) + term(s, a)."""

    value: Value
    term: Callable[[Array, Array], Array]
    obs: Array

    def __call__(self, action: Array) -> Array:
        return self.value(action) + self.term(self.obs, action)

    def at(self, states: int) -> "Raised":
        return Raised(self.value.at(states), self.term, self.obs[:states])

    def gradient(self, action: Array) -> Array:
        term = jax.vmap(self.term, in_axes=(None, 1))
        slope: Array = jax.grad(lambda a: jnp.sum(term(self.obs, a)))(action)
        return self.value.gradient(action) + slope


def ensembles(
    make: Callable[[Array], Any], sizes: Sequence[int], key: Array
) -> tuple[tuple[Any, ...], ...]:
    """Networks for each stream, as many as its size; every one from a key of its own."""
    keys = jax.random.split(key, (len(sizes), max(sizes)))
    return tuple(tuple(make(k) for k in row[:size]) for row, size in zip(keys, sizes, strict=True))


def lowest(values: Sequence[Array]) -> Array:
    found = values[0]
    for value in values[1:]:
        found = jnp.minimum(found, value)
    return found


@dataclass(frozen=True)
class Scalar(Critic):
    """One number, the lowest of the members in the target, squared error (TD3, SAC, DDPG)."""

    aliases: ClassVar[tuple[str, ...]] = ("q",)

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


@final
@dataclass(frozen=True)
class Quantiles(Critic):
    """A distribution of the return as quantiles, the highest of all members' dropped (TQC).

    Kuznetsov et al. 2020: members' quantiles are pooled and sorted, the top `drop` per member left
    out, and each member's quantiles regressed on the rest by the quantile Huber loss.
    """

    aliases: ClassVar[tuple[str, ...]] = ("tqc", "quantile")
    quantiles: int = setting(25, "Quantiles of each critic.")
    drop: int = setting(2, "Highest quantiles per critic that the target leaves out.")

    def __post_init__(self) -> None:
        counts(self, 1, "quantiles")
        counts(self, 0, "drop")
        if self.drop >= self.quantiles:
            raise ValueError(f"drop must be below quantiles, {self.quantiles}, not {self.drop}")

    @property
    def outputs(self) -> int:
        return self.quantiles

    def value(self, out: Array) -> Array:
        return jnp.mean(out, axis=-1)

    def target(self, outs: Sequence[Array], step: Bootstrap) -> Array:
        """r + γ (z + extra) for the lowest pooled quantiles z, [B, M]."""
        pooled = jnp.sort(jnp.concatenate(outs, axis=-1), axis=-1)
        kept = pooled[:, : pooled.shape[-1] - self.drop * len(outs)]
        extra = jnp.broadcast_to(jnp.asarray(step.extra), step.reward.shape)[:, None]
        return step.reward[:, None] + step.discount[:, None] * (kept + extra)

    def loss(self, out: Array, target: Array) -> Array:
        """Σ_i mean_j |τ_i − 1{y_j < z_i}| Huber(y_j − z_i), averaged over the batch."""
        levels = (jnp.arange(self.quantiles, dtype=out.dtype) + 0.5) / self.quantiles
        error = target[:, None, :] - out[:, :, None]  # [B, quantiles, M]
        size = jnp.abs(error)
        huber = jnp.where(size > 1.0, size - 0.5, 0.5 * error**2)
        weight = jnp.abs(levels[:, None] - (error < 0.0).astype(out.dtype))
        return jnp.mean(jnp.sum(jnp.mean(weight * huber, axis=-1), axis=-1))

"""The target policy π as plain numbers: what is left of an agent when nobody learns any more.

Every form in which a policy leaves (NumPy, ONNX, C, its own small file) is written from this.
"""

from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np
from jax import Array
from numpy.typing import NDArray

from adac.core import agent as core
from adac.core.activations import PLAIN, Activation
from adac.core.agent import Agent
from adac.core.explorers import Policy
from adac.core.networks import Actor
from adac.core.normalise import CLIP, Statistics, std

Floats = NDArray[np.float32]
LARGEST = float(np.finfo(np.float32).max)
TOLERANCE = 1e-4  # between π and its plain form, of actions in [-1, 1]


class NotPlainPolicyError(ValueError):
    """A policy that is more than layers and a tanh."""


@dataclass(frozen=True)
class Layer:
    weight: Floats  # [inputs, outputs]
    bias: Floats  # [outputs]


@dataclass(frozen=True)
class PlainPolicy:
    """action = low + (tanh(layers(clip((obs − mean) / std))) + 1) · half, cut at low and high.

    The activation stands after every layer but the last. Without normalisation mean is 0, std 1,
    clip the largest number there is.
    """

    mean: Floats  # [o]
    std: Floats  # [o]
    clip: float
    layers: tuple[Layer, ...]
    low: Floats  # [d]
    high: Floats  # [d]
    activation: Activation = "relu"
    half: Floats = field(init=False)  # of the range

    def __post_init__(self) -> None:
        range_ = self.high.astype(np.float64) - self.low.astype(np.float64)
        object.__setattr__(self, "half", (range_ / 2).astype(np.float32))

    @property
    def obs_dim(self) -> int:
        return len(self.mean)

    @property
    def action_dim(self) -> int:
        return len(self.low)

    @property
    def normalises(self) -> bool:
        return self.clip < LARGEST

    def squashed(self, obs: Floats) -> Floats:
        """[n, o] → [n, d] in [-1, 1]."""
        x = np.clip((obs - self.mean) / self.std, -self.clip, self.clip)
        for layer in self.layers[:-1]:
            x = PLAIN[self.activation](x @ layer.weight + layer.bias)
        squashed: Floats = np.tanh(x @ self.layers[-1].weight + self.layers[-1].bias)
        return squashed

    def __call__(self, obs: Floats) -> Floats:
        """[n, o] → [n, d] in the task's units."""
        scaled = self.low + (self.squashed(obs) + np.float32(1)) * self.half
        action: Floats = np.minimum(np.maximum(scaled, self.low), self.high)
        return action


def plain(agent: Agent, policy: Policy, low: NDArray[Any], high: NDArray[Any]) -> PlainPolicy:
    """π with its normalisation and the task's bounds; compared with `greedy` before it is given."""
    actor = policy.actor
    if not isinstance(actor, Actor):
        raise NotPlainPolicyError(f"its network is a {type(actor).__name__}, not an Actor")
    mean, deviation, clip = _normalisation(policy.statistics, _obs_dim(actor))
    noise = np.random.default_rng(0).standard_normal((16, len(mean)), np.float32)
    obs = mean + deviation * noise
    last, wanted = _ask(agent, policy, obs)
    layers = (*_hidden(actor), last)
    found = PlainPolicy(mean, deviation, clip, layers, *_inside(low, high), actor.activation)
    _require_same(found, obs, wanted)
    return found


def _obs_dim(actor: Actor) -> int:
    joint = () if actor.joint is None else (actor.joint.first,)
    return int((*actor.trunk, *joint, *actor.head)[0].weight.shape[0])


def _normalisation(statistics: Any, obs_dim: int) -> tuple[Floats, Floats, float]:
    if not isinstance(statistics, Statistics):
        return np.zeros(obs_dim, np.float32), np.ones(obs_dim, np.float32), LARGEST
    return np.array(statistics.mean), np.array(std(statistics)), CLIP


def _hidden(actor: Actor) -> list[Layer]:
    """At ξ = 0 the latent's own matrix adds nothing, so the joint is one more linear layer."""
    joint = () if actor.joint is None else (actor.joint.first,)
    layers = (*actor.trunk, *joint, *actor.head[:-1])
    return [Layer(np.array(layer.weight), np.array(layer.bias)) for layer in layers]


def _ask(agent: Agent, policy: Policy, obs: Floats) -> tuple[Layer, Floats]:
    """The last layer as the base reads it, and π(obs); in one call, which compiles once.

    A location picks among the raw outputs, so it picks the same columns of the last matrix.
    """

    def answer(policy: Policy, obs: Array) -> tuple[Array, Array, Array]:
        last, read = policy.actor.head[-1], agent.base.location
        return read(last.weight), read(last.bias), core.greedy(agent, policy, obs)

    weight, bias, action = jax.jit(answer)(policy, obs)
    return Layer(np.array(weight), np.array(bias)), np.asarray(action)


def _inside(low: NDArray[Any], high: NDArray[Any]) -> tuple[Floats, Floats]:
    """The bounds in single precision, rounded inwards: no action may lie outside of the task's."""
    infinity = np.float32(np.inf)
    least, most = low.astype(np.float32), high.astype(np.float32)
    least = np.where(least < low, np.nextafter(least, infinity), least)
    most = np.where(most > high, np.nextafter(most, -infinity), most)
    return np.minimum(least, most), most


def _require_same(found: PlainPolicy, obs: Floats, wanted: Floats) -> None:
    """A network or a base of one's own may do more than the classes here say."""
    if not np.isfinite(wanted).all():
        raise NotPlainPolicyError("its weights are not finite")
    if not np.allclose(found.squashed(obs), wanted, rtol=0.0, atol=TOLERANCE):
        raise NotPlainPolicyError("it computes something else than layers and a tanh")

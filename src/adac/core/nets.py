"""A network in training: online and target weights, and the optimisers' states."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import Array

from adac.core.bases import Base
from adac.core.networks import split_trained


class Optimiser(NamedTuple):
    """Adam at one moment of a run, and what goes round it.

    Whatever goes round it, its state is Adam's: any run's optimisers can be changed later.
    """

    rate: Array | float
    b1: float
    max_norm: float | None  # of each network's gradient
    decay: float  # decoupled, as AdamW has it

    def step(self, gradient: Any, opt: optax.OptState, params: Any) -> tuple[Any, optax.OptState]:
        if self.max_norm is not None:
            gradient = each_network(partial(shortened, self.max_norm), gradient)
        step, opt = optax.adam(self.rate, b1=self.b1).update(gradient, opt)
        if self.decay:
            step = jax.tree.map(lambda s, p: s - self.rate * self.decay * p, step, params)
        return step, opt


def each_network(function: Callable[[Any], Any], tree: Any) -> Any:
    """Of one policy or of all critics. Not of all at once: the length of one stream's gradient
    would change another's step, and the task's critics must not feel a bonus."""
    return jax.tree.map(function, tree, is_leaf=lambda node: isinstance(node, eqx.Module))


def shortened(max_norm: float, gradient: Any) -> Any:
    """g · min(1, max_norm / |g|)."""
    scale = max_norm / jnp.maximum(optax.tree.norm(gradient), max_norm)
    return jax.tree.map(lambda leaf: leaf * scale, gradient)


Adam = Callable[[float], Optimiser]  # of a learning rate


def optimisers(base: Base, critic: "Net", progress: Array) -> Adam:
    """The agent's optimisers at this update, by their learning rates.

    Critics move in every update, so their optimiser's count is the number of updates before.
    """
    part: Array | float = 1.0
    if base.lr_schedule != "constant":
        done = critic.opts[0][0].count / base.lr_updates if base.lr_updates else progress
        part = falling(base.lr_schedule, base.lr_end, jnp.clip(done, 0.0, 1.0))
    return lambda rate: Optimiser(rate * part, base.adam_b1, base.max_grad_norm, base.weight_decay)


def falling(schedule: str, end: float, progress: Array) -> Array:
    """From 1 to `end` while `progress` goes from 0 to 1."""
    left = 0.5 * (1.0 + jnp.cos(jnp.pi * progress)) if schedule == "cosine" else 1.0 - progress
    return end + (1.0 - end) * left


class Net(NamedTuple):
    """Online and target weights, and one optimiser state for each loss on them."""

    params: Any
    target: Any
    opts: tuple[optax.OptState, ...]


def begin(network: Any) -> optax.OptState:
    """Adam's state, which is the same for every learning rate."""
    return optax.adam(1.0).init(split_trained(network)[0])


def copied(tree: Any) -> Any:
    """Buffers of their own, because the state is donated to `update`."""
    return jax.tree.map(jnp.copy, tree)


def follow(net: Net, tau: float) -> Net:
    """The target a step of τ after the online weights, where there is one."""
    if not jax.tree.leaves(net.target):
        return net
    step = jax.tree.map(lambda t, p: t + tau * (p - t), net.target, net.params)
    return net._replace(target=step)


def descend(
    loss: Callable[[Any], tuple[Array, Any]],
    optimiser: Optimiser,
    net: Net,
    opt: int = 0,
) -> tuple[Net, tuple[Array, Any]]:
    """One step on the trained part of `net.params`, with the optimiser state number `opt`."""
    trained, still = split_trained(net.params)
    (value, extra), gradient = jax.value_and_grad(
        lambda part: loss(eqx.combine(part, still)), has_aux=True
    )(trained)
    opts = list(net.opts)
    step, opts[opt] = optimiser.step(gradient, opts[opt], trained)
    params = eqx.combine(optax.apply_updates(trained, step), still)
    return net._replace(params=params, opts=tuple(opts)), (value, extra)

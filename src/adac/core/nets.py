"""A network in training: online and target weights, and the optimisers' states."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import Array

from adac.core.networks import split_trained


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
    optimiser: optax.GradientTransformation,
    net: Net,
    opt: int = 0,
) -> tuple[Net, tuple[Array, Any]]:
    """One step on the trained part of `net.params`, with the optimiser state number `opt`."""
    trained, still = split_trained(net.params)
    (value, extra), gradient = jax.value_and_grad(
        lambda part: loss(eqx.combine(part, still)), has_aux=True
    )(trained)
    opts = list(net.opts)
    step, opts[opt] = optimiser.update(gradient, opts[opt])
    params = eqx.combine(optax.apply_updates(trained, step), still)
    return net._replace(params=params, opts=tuple(opts)), (value, extra)

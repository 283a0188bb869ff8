"""What `Analogous` may tune itself: β to an entropy of μ, and its bonus to its own past.

β is the temperature of μ: as SAC's α, it descends log β · (H(μ) − H*), with the entropy of the
particles as it is estimated from their distances. The bonus in μ's stream gets MaxInfoRL's weight
λ, which makes μ as curious as its slowly following copy; the task's critic never sees it.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array

from adac.core import svgd
from adac.core.explorers.curious import gains
from adac.core.explorers.interface import View
from adac.core.multiplier import Multiplier, begin, descend

RATE = 3e-4  # of both logarithms, as SAC's and MaxInfoRL's
MOST = 0.693  # nats: a uniform action's entropy per dimension, log 2


class Tuned(NamedTuple):
    beta: Multiplier | tuple[()]
    weight: Multiplier | tuple[()]  # λ


def nothing_tuned(beta: bool, weight: bool, start: float) -> Tuned | tuple[()]:
    """Before anything is learned; () where nothing is tuned."""
    if not (beta or weight):
        return ()
    return Tuned(begin(max(start, 1e-3)) if beta else (), begin(1.0) if weight else ())


def entropy(view: View, obs: Array, xi: Array) -> Array:
    """Of μ's actions, per dimension, averaged over the states."""
    action = jnp.tanh(view.particles(obs, xi))
    return jnp.mean(svgd.entropy(action)) / action.shape[-1]


def curiosity(view: View, obs: Array, xi: Array, key: Array) -> dict[str, Array]:
    """μ against its slow copy, for one ξ a state, [B, l]."""
    actions = view.action(obs, xi), view.slowly.action(obs, xi)
    return {"curiosity": view.learned.weight.value, **gains(view, obs, actions, key)}


def improve(learned: Any, metrics: dict[str, Array], wanted: float | None) -> Any:
    if not isinstance(learned, Tuned):
        return learned
    beta, weight = learned
    if isinstance(beta, Multiplier) and wanted is not None:
        beta = descend(beta, metrics["entropy_mu"] - wanted, RATE)
    if isinstance(weight, Multiplier):
        weight = descend(weight, metrics["gain_over_slow"], RATE)
    return Tuned(beta, weight)

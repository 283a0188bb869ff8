"""OAC: act where an upper bound of the value is higher, within a divergence of the policy.

Ciosek et al. 2019, "Better Exploration with Optimistic Actor-Critic". With m and Σ = diag(s²) of
the Gaussian policy before the squash:

    Q_UB = mean(Q₁, Q₂) + β_UB |Q₁ − Q₂| / 2
    g = ∇_u Q_UB(s, tanh u) at u = m
    m_E = m + √(2δ) Σ g / √(gᵀ Σ g),   a = tanh(m_E + s ε)

which maximises the bound's tangent among Gaussians with KL(N(m_E, Σ) ‖ N(m, Σ)) ≤ δ. β_UB = 4.66
and δ = 23.53 are theirs. With more critics the half difference is their standard deviation, which
is the same of two. A base without a Gaussian gets a fixed s.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, final

import jax
import jax.numpy as jnp
from jax import Array

from adac.core.explorers.interface import Explorer, View
from adac.core.fields import setting
from adac.core.validation import at_least


@final
@dataclass(frozen=True)
class Optimistic(Explorer):
    """OAC: the policy shifted along the gradient of an upper bound of the value."""

    optimism: float = setting(4.66, "β_UB, the critics' deviations that the bound lies above.")
    reach: float = setting(23.53, "δ, the divergence from the policy that the shift may have.")
    noise: float = setting(0.1, "Deviation s before the squash; a Gaussian base has its own.")

    aliases: ClassVar[tuple[str, ...]] = ("oac",)
    sees_values: ClassVar[bool] = True

    def __post_init__(self) -> None:
        at_least(self, 0.0, "optimism", "reach", "noise")

    def act(
        self, view: View, obs: Array, memory: Any, first: Array, key: Array
    ) -> tuple[Array, Any]:
        raw = view.output(obs)
        mean, std = view.base.location(raw), view.base.deviation(raw)
        std = jnp.full_like(mean, self.noise) if std is None else std
        gradient = jax.grad(lambda u: jnp.sum(self.upper_bound(view, obs, jnp.tanh(u))))(mean)
        shifted = mean + self.shift(gradient, std)
        return jnp.tanh(shifted + std * jax.random.normal(key, mean.shape)), memory

    def shift(self, gradient: Array, std: Array) -> Array:
        """√(2δ) Σ g / √(gᵀ Σ g), and 0 where the bound is flat."""
        squared = jnp.sum((std * gradient) ** 2, axis=-1, keepdims=True)
        length = jnp.sqrt(jnp.where(squared > 0.0, squared, 1.0))
        return jnp.sqrt(2.0 * self.reach) * std**2 * gradient / length

    def upper_bound(self, view: View, obs: Array, action: Array) -> Array:
        values = jnp.stack([q(action) for q in view.values(obs)])
        spread = jnp.var(values, axis=0)
        deviation = jnp.sqrt(jnp.where(spread > 0.0, spread, 1.0))  # √ has no slope at 0
        return jnp.mean(values, axis=0) + self.optimism * jnp.where(spread > 0.0, deviation, 0.0)

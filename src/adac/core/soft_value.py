"""Soft Q-learning's critic: the value of a state is the softmax over all actions, not π's.

Haarnoja et al. 2017, "Reinforcement Learning with Deep Energy-Based Policies":

    V(s') = α log ∫ exp(Q(s', a) / α) da
          ≈ α log (2^d / M) Σ_j exp(Q(s', a_j) / α),   a_j ~ U(−1, 1)^d
    y = r + γ V(s')

with Q the lowest of the members, and M = 16. Their α is 1 and their reward 30 times the task's,
which is the same as α = 1/30. Its policy is ADAC's sampler (`Analogous`) with β = α and ∇Q as it
is: ADAC has it from there. They evaluate that sampler; here π, which climbs the same soft Q, is
evaluated as with every agent.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, final

import jax
from jax import Array

from adac.core.critics import Bootstrap, Scalar, lowest
from adac.core.fields import setting
from adac.core.validation import above, counts

TEMPERATURE = 1.0 / 30.0


@final
@dataclass(frozen=True)
class SoftValue(Scalar):
    """y = r + γ α log ∫ exp(Q(s', a) / α) da, by uniform sampling; what π does does not enter."""

    aliases: ClassVar[tuple[str, ...]] = ("soft", "soft-q")
    soft_temperature: float = setting(
        TEMPERATURE, "α; the explorer samples exp(Q/α) if its β is the same."
    )
    value_samples: int = setting(16, "M, the actions that the integral is estimated from.")

    def __post_init__(self) -> None:
        above(self, 0.0, "soft_temperature")
        counts(self, 1, "value_samples")
        if self.batch_renorm:
            raise ValueError("soft values need target networks: set batch_renorm to false")

    def outs_and_target(
        self, members: Sequence[Any], targets: Sequence[Any], step: Bootstrap
    ) -> tuple[Sequence[Array], Array, Sequence[Any]]:
        value = self.soft_value(targets, step)
        outs = [net(step.obs, step.action) for net in members]
        return outs, step.reward + step.discount * value, members

    def soft_value(self, networks: Sequence[Any], step: Bootstrap) -> Array:
        """V(s'), [B]."""
        assert step.key is not None
        states, dims = step.next_action.shape
        shape = (self.value_samples, states, dims)
        actions = jax.random.uniform(step.key, shape, minval=-1.0, maxval=1.0)
        each = [jax.vmap(net, in_axes=(None, 0))(step.next_obs, actions) for net in networks]
        q = lowest([self.value(out) for out in each]) / self.soft_temperature  # [M, B]
        volume = dims * math.log(2.0) - math.log(self.value_samples)
        return self.soft_temperature * (jax.nn.logsumexp(q, axis=0) + volume)

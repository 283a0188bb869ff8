"""`action_gap`: how much more bonus μ's actions promise than π's, at the same states.

`adac.training.bonus_gap` measures the same over whole episodes, and says what it is good for.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from adac.core.intrinsic.interface import Intrinsic


def action_gap(
    intrinsic: Intrinsic, state: Any, obs: Array, mu: Array, pi: Array, key: Array
) -> dict[str, Array]:
    """Mean bonus of actions `mu` minus that of `pi` at the same obs; nothing without a model.

    Both next observations are the model's, drawn with the same noise: a real one would make μ's
    surprise real and π's imagined.
    """
    actions = jnp.stack([mu, pi])
    expected = jax.vmap(lambda action: intrinsic.predict(state, obs, action, key))(actions)
    if expected is None:
        return {}
    bonus = jax.vmap(lambda a, s: intrinsic.bonus(state, obs, a, s))(actions, expected)
    mean_mu, mean_pi = jnp.mean(bonus, axis=1)
    return {"bonus_gap": mean_mu - mean_pi, "bonus_mu": mean_mu, "bonus_pi": mean_pi}

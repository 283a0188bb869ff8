"""MaxInfoRL: the information gain as a term of the value, with a weight that tunes itself.

Sukhija et al. 2024, "MaxInfoRL: Boosting Exploration in Reinforcement Learning through Information
Gain Maximization". With I(s, a) the standardised gain of an ensemble:

    y = r + γ [min Q̄(s', a') + λ I(s', a') − α log π(a'|s')],   a' ~ π(s')
    π maximises  min Q(s, a) + λ I(s, a) − α log π(a|s),   I differentiated through a
    log λ descends  log λ · (E I(s, a) − E I(s, ā)),   a ~ π, ā ~ its slowly following copy

λ = 1 at the start, learning rate 3·10⁻⁴. So λ grows while the policy is less curious than its own
past, and shrinks while it is more so: there is no η to choose. The bonus is never a reward.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, final

import jax
import jax.numpy as jnp
from jax import Array

from adac.core.explorers.interface import Explorer, Sizes, Streams, View
from adac.core.fields import setting
from adac.core.multiplier import Multiplier, begin, descend
from adac.core.normalise import Statistics, empty, normalise, observe
from adac.core.validation import above, at_least


class Curiosity(NamedTuple):
    weight: Multiplier  # λ
    gain: Statistics  # of I as the ensemble says it


def gains(view: View, obs: Array, actions: tuple[Array, Array], key: Array) -> dict[str, Array]:
    """What a policy's actions promise, and its slow copy's, in deviations of the two."""
    both = jax.vmap(lambda action: view.promise(obs, action, key))(jnp.stack(actions))
    mine, slow = jnp.mean(both, axis=1)
    std = jnp.std(both)
    more = (mine - slow) / jnp.maximum(std, 1e-8)
    return {"gain": jnp.mean(both), "gain_std": std, "gain_over_slow": more}


@final
@dataclass(frozen=True)
class MaxInfo(Explorer):
    """The base's own policy, drawn to where the information gain is, as much as it was before."""

    initial_weight: float = setting(1.0, "λ at the start, the weight of the information gain.")
    weight_lr: float = setting(3e-4, "Learning rate of log λ.")

    sees_bonus: ClassVar[bool] = True
    raises: ClassVar[bool] = True

    def __post_init__(self) -> None:
        above(self, 0.0, "initial_weight")
        at_least(self, 0.0, "weight_lr")

    @property
    def weighs(self) -> bool:
        return True

    @property
    def follows(self) -> bool:
        return True

    def act(
        self, view: View, obs: Array, memory: Any, first: Array, key: Array
    ) -> tuple[Array, Any]:
        return view.sample(obs, key), memory

    def streams(self, reward: Array, bonus: Array | None, learned: Any) -> Streams:
        return (reward,)

    def init_learned(self, sizes: Sizes, key: Array) -> Curiosity:
        return Curiosity(begin(self.initial_weight), empty(1))

    def raised(self, view: View, obs: Array, action: Array, key: Array) -> Array:
        """λ I(s, a), and 0 before I has a unit."""
        weight, gain = view.learned
        promised = normalise(gain, view.promise(obs, action, key)[:, None])[:, 0]
        return jnp.where(gain.seen > 0, weight.value * promised, 0.0)

    def measure(self, view: View, obs: Array, key: Array) -> dict[str, Array]:
        keys = jax.random.split(key, 3)
        actions = view.sample(obs, keys[0]), view.slowly.sample(obs, keys[1])
        return {"curiosity": view.learned.weight.value, **gains(view, obs, actions, keys[2])}

    def improve_learned(self, learned: Curiosity, metrics: dict[str, Array]) -> Curiosity:
        weight = descend(learned.weight, metrics["gain_over_slow"], self.weight_lr)
        # Two numbers with the minibatch's mean and deviation stand for it.
        ends = metrics["gain"] + jnp.array([[-1.0], [1.0]]) * metrics["gain_std"]
        return Curiosity(weight, observe(learned.gain, ends))

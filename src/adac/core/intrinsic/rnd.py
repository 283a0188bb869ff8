"""RND: the bonus of a transition is how badly a network predicts a fixed random one at s'.

Burda et al. 2018. The error falls where the predictor has been trained, which is where the agent
has been. No model of the dynamics: s and a are not looked at.
"""

from dataclasses import dataclass
from typing import NamedTuple, final

import jax
import jax.numpy as jnp
import optax
from jax import Array

from adac.core.fields import setting
from adac.core.intrinsic.interface import Intrinsic
from adac.core.intrinsic.scale import none_yet, relative, remember, scale
from adac.core.networks import Linear, perceptron, stack
from adac.core.normalise import Statistics, empty, normalise, observe
from adac.core.validation import above, at_least, counts, sizes, tuples

Layers = tuple[Linear, ...]


class RndState(NamedTuple):
    target: Layers  # random, and never trained
    predictor: Layers
    opt: optax.OptState
    observations: Statistics  # of next_obs; `seen` counts the transitions learned from
    medians: Array  # of the prediction error, for its scale


@final
@dataclass(frozen=True)
class Rnd(Intrinsic):
    """η · error / scale, where scale is a running median of the error.

    Not the standard deviation of all errors so far: the first ones, of a predictor that has learned
    nothing yet, would soon leave a hundredth of η and less (docs/intrinsic.md).
    """

    eta: float = setting(0.1, "η, the bonus of a typical transition.")
    model_hidden: tuple[int, ...] = setting((128,), "Hidden layers of both networks.")
    model_features: int = setting(64, "Outputs of the random network.")
    model_lr: float = setting(1e-3, "Learning rate of the predictor.")
    bonus_after: int = setting(500, "No bonus until so many transitions have been learned from.")
    bonus_clip: float = setting(1_000.0, "Upper bound of the error over the scale.")

    def __post_init__(self) -> None:
        tuples(self, "model_hidden")
        above(self, 0.0, "bonus_clip")
        at_least(self, 0.0, "eta", "model_lr", "bonus_after")
        counts(self, 1, "model_features")
        sizes(self, "model_hidden")

    def init(self, obs_dim: int, action_dim: int, key: Array) -> RndState:
        target_key, predictor_key = jax.random.split(key)
        layers = (obs_dim, *self.model_hidden, self.model_features)
        predictor = stack(layers, predictor_key)
        return RndState(
            target=stack(layers, target_key),
            predictor=predictor,
            opt=optax.adam(self.model_lr).init(predictor),
            observations=empty(obs_dim),
            medians=none_yet(),
        )

    def bonus(self, state: RndState, obs: Array, action: Array, next_obs: Array) -> Array:
        """η · error / scale; 0 before the predictor has learned from `bonus_after` transitions."""
        error = _error(state.predictor, state.target, normalise(state.observations, next_obs))
        started = state.observations.seen >= self.bonus_after
        return jnp.where(started, self.eta * relative(error, state.medians, self.bonus_clip), 0.0)

    def update(
        self, state: RndState, obs: Array, action: Array, next_obs: Array, key: Array
    ) -> tuple[RndState, dict[str, Array]]:
        """One Adam step of the predictor towards the random network."""
        observations = observe(state.observations, next_obs)
        x = normalise(observations, next_obs)

        def loss(predictor: Layers) -> tuple[Array, Array]:
            error = _error(predictor, state.target, x)
            return jnp.mean(error), error

        (value, error), gradient = jax.value_and_grad(loss, has_aux=True)(state.predictor)
        step, opt = optax.adam(self.model_lr).update(gradient, state.opt)
        state = state._replace(
            predictor=optax.apply_updates(state.predictor, step),
            opt=opt,
            observations=observations,
            medians=remember(state.medians, error),
        )
        return state, {"model_loss": value, "bonus_scale": scale(state.medians)}


def _error(predictor: Layers, target: Layers, x: Array) -> Array:
    """Mean squared difference of the two networks' features, [B]."""
    return jnp.mean((perceptron(predictor, x) - perceptron(target, x)) ** 2, axis=-1)

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
from adac.core.intrinsic import scale
from adac.core.intrinsic.interface import Novelty
from adac.core.networks import Layers, perceptron, stack
from adac.core.normalise import Statistics, empty, normalise, observe
from adac.core.validation import at_least, counts, sizes, tuples


class RndState(NamedTuple):
    target: Layers  # random, and never trained
    predictor: Layers
    opt: optax.OptState
    observations: Statistics  # of next_obs; `seen` counts the transitions learned from
    scale: scale.Scale  # of the error


@final
@dataclass(frozen=True)
class Rnd(Novelty):
    """The novelty is the prediction error at s'."""

    model_hidden: tuple[int, ...] = setting((128,), "Hidden layers of both networks.")
    model_features: int = setting(64, "Outputs of the random network.")
    model_lr: float = setting(1e-3, "Learning rate of the predictor.")

    def __post_init__(self) -> None:
        super().__post_init__()
        tuples(self, "model_hidden")
        at_least(self, 0.0, "model_lr")
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
            scale=scale.none_yet(),
        )

    def novelty(self, state: RndState, obs: Array, action: Array, next_obs: Array) -> Array:
        return _error(state.predictor, state.target, normalise(state.observations, next_obs))

    def update(
        self, state: RndState, obs: Array, action: Array, next_obs: Array, key: Array
    ) -> tuple[RndState, dict[str, Array]]:
        """One Adam step of the predictor towards the random network."""
        observations = observe(state.observations, next_obs)
        x = normalise(observations, next_obs)

        def loss(predictor: Layers) -> Array:
            return jnp.mean(_error(predictor, state.target, x))

        value, gradient = jax.value_and_grad(loss)(state.predictor)
        step, opt = optax.adam(self.model_lr).update(gradient, state.opt)
        state = state._replace(
            predictor=optax.apply_updates(state.predictor, step),
            opt=opt,
            observations=observations,
        )
        return state, {"model_loss": value, "bonus_scale": scale.value(state.scale)}


def _error(predictor: Layers, target: Layers, x: Array) -> Array:
    """Mean squared difference of the two networks' features, [B]."""
    return jnp.mean((perceptron(predictor, x) - perceptron(target, x)) ** 2, axis=-1)

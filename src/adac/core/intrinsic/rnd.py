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

from adac.core.intrinsic.interface import Intrinsic
from adac.core.intrinsic.scale import none_yet, relative, remember, scale
from adac.core.networks import Linear
from adac.core.normalise import Statistics, empty, normalise, observe
from adac.core.validation import tuples

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

    eta: float = 0.1  # η
    model_hidden: tuple[int, ...] = (128,)
    model_features: int = 64  # outputs of the random network
    model_lr: float = 1e-3
    bonus_after: int = 500  # no bonus until the model has learned from so many transitions
    bonus_clip: float = 1_000.0  # upper bound of the error over the scale

    def __post_init__(self) -> None:
        tuples(self, "model_hidden")
        if not self.bonus_clip > 0.0:
            raise ValueError(f"bonus_clip must be above 0, not {self.bonus_clip:g}")
        for name in ("eta", "model_lr", "bonus_after"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} must be at least 0, not {getattr(self, name):g}")
        if min(self.model_features, *self.model_hidden, 1) < 1:
            raise ValueError("model_features and model_hidden must be at least 1")

    def init(self, obs_dim: int, action_dim: int, key: Array) -> RndState:
        target_key, predictor_key = jax.random.split(key)
        sizes = (obs_dim, *self.model_hidden, self.model_features)
        predictor = _layers(sizes, predictor_key)
        return RndState(
            target=_layers(sizes, target_key),
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


def _layers(sizes: tuple[int, ...], key: Array) -> Layers:
    keys = jax.random.split(key, len(sizes) - 1)
    pairs = zip(sizes[:-1], sizes[1:], keys, strict=True)
    return tuple(Linear(inputs, outputs, k) for inputs, outputs, k in pairs)


def _error(predictor: Layers, target: Layers, x: Array) -> Array:
    """Mean squared difference of the two networks' features, [B]."""
    return jnp.mean((_features(predictor, x) - _features(target, x)) ** 2, axis=-1)


def _features(layers: Layers, x: Array) -> Array:
    for layer in layers[:-1]:
        x = jax.nn.relu(layer(x))
    return layers[-1](x)

"""ICM: the bonus of a transition is how badly its outcome was predicted, in features of one's own.

Pathak et al. 2017, "Curiosity-driven Exploration by Self-supervised Prediction": φ(s) is trained
by an inverse model, which tells the action from φ(s) and φ(s'), so that it keeps what the agent can
influence; a forward model predicts φ(s') from φ(s) and a.

    novelty = ½ ‖φ̂(s') − φ(s')‖²,   loss = (1 − β) ‖â − a‖² + β ½ ‖φ̂(s') − φ(s')‖²,   β = 0.2

The forward model does not train φ: it would like φ constant.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple, final

import jax
import jax.numpy as jnp
import optax
from jax import Array

from adac.core.fields import setting
from adac.core.intrinsic import scale
from adac.core.intrinsic.interface import Novelty
from adac.core.networks import Layers, perceptron, stack
from adac.core.normalise import Statistics, empty, normalise, observe
from adac.core.validation import at_least, between, counts, sizes, tuples


class Models(NamedTuple):
    features: Layers  # φ
    inverse: Layers  # (φ(s), φ(s')) → a
    forward: Layers  # (φ(s), a) → φ(s')


class IcmState(NamedTuple):
    models: Models
    opt: optax.OptState
    observations: Statistics
    scale: scale.Scale


@final
@dataclass(frozen=True)
class Icm(Novelty):
    """The novelty is the error of a forward model in features that an inverse model shapes."""

    model_hidden: tuple[int, ...] = setting((128,), "Hidden layers of each of the three networks.")
    model_features: int = setting(64, "Dimensions of φ.")
    model_lr: float = setting(1e-3, "Learning rate of the three networks.")
    forward_weight: float = setting(0.2, "β, the forward model's part in the loss.")

    aliases: ClassVar[tuple[str, ...]] = ("curiosity",)

    def __post_init__(self) -> None:
        super().__post_init__()
        tuples(self, "model_hidden")
        counts(self, 1, "model_features")
        at_least(self, 0.0, "model_lr")
        between(self, 0.0, 1.0, "forward_weight")
        sizes(self, "model_hidden")

    def init(self, obs_dim: int, action_dim: int, key: Array) -> IcmState:
        keys, size = jax.random.split(key, 3), self.model_features
        models = Models(
            features=stack((obs_dim, *self.model_hidden, size), keys[0]),
            inverse=stack((2 * size, *self.model_hidden, action_dim), keys[1]),
            forward=stack((size + action_dim, *self.model_hidden, size), keys[2]),
        )
        opt = optax.adam(self.model_lr).init(models)
        return IcmState(models, opt, empty(obs_dim), scale.none_yet())

    def novelty(self, state: IcmState, obs: Array, action: Array, next_obs: Array) -> Array:
        before, after = (
            _features(state, state.models, obs),
            _features(state, state.models, next_obs),
        )
        return _surprise(state.models, before, action, after)

    def update(
        self, state: IcmState, obs: Array, action: Array, next_obs: Array, key: Array
    ) -> tuple[IcmState, dict[str, Array]]:
        state = state._replace(observations=observe(state.observations, next_obs))

        def loss(models: Models) -> tuple[Array, dict[str, Array]]:
            before, after = _features(state, models, obs), _features(state, models, next_obs)
            told = perceptron(models.inverse, jnp.concatenate([before, after], axis=-1))
            inverse = jnp.mean(jnp.sum((told - action) ** 2, axis=-1))
            still = jax.lax.stop_gradient((before, after))
            forward = jnp.mean(_surprise(models, still[0], action, still[1]))
            total = (1.0 - self.forward_weight) * inverse + self.forward_weight * forward
            return total, {"model_loss": total, "inverse_loss": inverse}

        (_, metrics), gradient = jax.value_and_grad(loss, has_aux=True)(state.models)
        step, opt = optax.adam(self.model_lr).update(gradient, state.opt)
        state = state._replace(models=optax.apply_updates(state.models, step), opt=opt)
        return state, metrics | {"bonus_scale": scale.value(state.scale)}


def _features(state: IcmState, models: Models, obs: Array) -> Array:
    return perceptron(models.features, normalise(state.observations, obs))


def _surprise(models: Models, before: Array, action: Array, after: Array) -> Array:
    """½ ‖φ̂(s') − φ(s')‖², [B]."""
    expected = perceptron(models.forward, jnp.concatenate([before, action], axis=-1))
    return 0.5 * jnp.sum((expected - after) ** 2, axis=-1)

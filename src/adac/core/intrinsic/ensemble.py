"""Disagreement: the bonus of an action is how far an ensemble of models differs over its outcome.

Sukhija et al. 2024, "MaxInfoRL": five models predict the normalised change s' − s from (s, a), and

    I(s, a) = mean_d log(1 + (std_m f_m,d(s, a) / σ)²),   σ = 10⁻³

is the information gain about the dynamics if these are Gaussian. Pathak et al. 2019 and
Plan2Explore take the variance itself. Either is a function of (s, a) alone: it is known before
acting. Theirs also predict the reward, with SiLU; ours has the rectifiers of the other networks.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple, final, get_args

import jax
import jax.numpy as jnp
import optax
from jax import Array

from adac.core.fields import setting
from adac.core.intrinsic import scale
from adac.core.intrinsic.interface import Novelty
from adac.core.networks import Layers, perceptron, stack
from adac.core.normalise import Statistics, empty, normalise, observe, restore
from adac.core.validation import above, at_least, counts, one_of, sizes, tuples

Measure = Literal["information", "variance"]


class EnsembleState(NamedTuple):
    models: Layers  # every array with a leading axis over the models
    opt: optax.OptState
    inputs: Statistics  # of (s, a)
    changes: Statistics  # of s' − s
    scale: scale.Scale


@final
@dataclass(frozen=True)
class InformationGain(Novelty):
    """The novelty is how much the models of an ensemble differ over where an action leads."""

    models: int = setting(5, "Models in the ensemble.")
    measure: Measure = setting(
        "information", "MaxInfoRL's log(1 + (std/σ)²), or the variance of Plan2Explore."
    )
    outcome_std: float = setting(1e-3, "σ, the outcome's own noise in the information gain.")
    model_hidden: tuple[int, ...] = setting((256, 256), "Hidden layers of each model.")
    model_lr: float = setting(3e-4, "Learning rate of the models.")

    aliases: ClassVar[tuple[str, ...]] = ("disagreement", "info-gain", "maxinfo")
    promises: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        tuples(self, "model_hidden")
        counts(self, 2, "models")
        one_of(self, "measure", get_args(Measure))
        above(self, 0.0, "outcome_std")
        at_least(self, 0.0, "model_lr")
        sizes(self, "model_hidden")

    def init(self, obs_dim: int, action_dim: int, key: Array) -> EnsembleState:
        layers = (obs_dim + action_dim, *self.model_hidden, obs_dim)
        models = jax.vmap(lambda k: stack(layers, k))(jax.random.split(key, self.models))
        return EnsembleState(
            models=models,
            opt=optax.adam(self.model_lr).init(models),
            inputs=empty(obs_dim + action_dim),
            changes=empty(obs_dim),
            scale=scale.none_yet(),
        )

    def novelty(self, state: EnsembleState, obs: Array, action: Array, next_obs: Array) -> Array:
        variance = jnp.var(_outcomes(state.models, _inputs(state, obs, action)), axis=0)
        if self.measure == "information":
            variance = jnp.log1p(variance / self.outcome_std**2)
        return jnp.mean(variance, axis=-1)

    def update(
        self, state: EnsembleState, obs: Array, action: Array, next_obs: Array, key: Array
    ) -> tuple[EnsembleState, dict[str, Array]]:
        """One Adam step of every model; they differ by their first weights alone."""
        inputs = observe(state.inputs, jnp.concatenate([obs, action], axis=-1))
        state = state._replace(inputs=inputs, changes=observe(state.changes, next_obs - obs))
        x, y = _inputs(state, obs, action), normalise(state.changes, next_obs - obs)

        def loss(models: Layers) -> Array:
            return self.models * jnp.mean((_outcomes(models, x) - y) ** 2)

        value, gradient = jax.value_and_grad(loss)(state.models)
        step, opt = optax.adam(self.model_lr).update(gradient, state.opt)
        state = state._replace(models=optax.apply_updates(state.models, step), opt=opt)
        return state, {"model_loss": value, "bonus_scale": scale.value(state.scale)}

    def predict(self, state: EnsembleState, obs: Array, action: Array, key: Array) -> Array:
        """The mean of the models."""
        change = jnp.mean(_outcomes(state.models, _inputs(state, obs, action)), axis=0)
        return obs + restore(state.changes, change)


def _inputs(state: EnsembleState, obs: Array, action: Array) -> Array:
    return normalise(state.inputs, jnp.concatenate([obs, action], axis=-1))


def _outcomes(models: Layers, x: Array) -> Array:
    """Each model's normalised change, [M, B, o]."""
    return jax.vmap(perceptron, in_axes=(0, None))(models, x)

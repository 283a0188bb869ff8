"""EX2: a state is new if it is easily told from all the others.

Fu, Co-Reyes and Levine 2017, "EX2: Exploration with Exemplar Models". A discriminator D(x, x*)
says whether x is the exemplar x*. Against states of density p, the best one at x = x* is
1 / (1 + p(x*)), so that p = (1 − D) / D. Amortised, one network serves all exemplars: both are
encoded with noise, z ~ N(m(x), s(x)²) and z* likewise, whose divergence from N(0, I) is paid for,
and which makes neighbours look alike. Ours has one encoder for both, and D sees z* and (z − z*)²:
to compare two codes is then no task of its own.

    minimise  −E log D(z(x*), z*) − E log(1 − D(z(x), z*)) + w KL[z]

The novelty is log(1 + 1/p) = softplus of D's logit: their −log p where p is small, and never less
than 0. It is taken without noise, at the means.
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


class Models(NamedTuple):
    encoder: Layers  # x → m, log s
    discriminator: Layers  # (z*, (z − z*)²) → logit


class Ex2State(NamedTuple):
    models: Models
    opt: optax.OptState
    observations: Statistics
    scale: scale.Scale


@final
@dataclass(frozen=True)
class Ex2(Novelty):
    """The novelty is log(1 + 1/p), p the density at s' that an amortised exemplar model implies."""

    model_hidden: tuple[int, ...] = setting((64,), "Hidden layers of both networks.")
    model_features: int = setting(16, "Dimensions of the noisy code z.")
    model_lr: float = setting(1e-3, "Learning rate of both networks.")
    code_weight: float = setting(0.03, "Price w of the code's divergence from N(0, I).")

    def __post_init__(self) -> None:
        super().__post_init__()
        tuples(self, "model_hidden")
        counts(self, 1, "model_features")
        at_least(self, 0.0, "model_lr", "code_weight")
        sizes(self, "model_hidden")

    def init(self, obs_dim: int, action_dim: int, key: Array) -> Ex2State:
        keys, size = jax.random.split(key), self.model_features
        models = Models(
            encoder=stack((obs_dim, *self.model_hidden, 2 * size), keys[0]),
            discriminator=stack((2 * size, *self.model_hidden, 1), keys[1]),
        )
        opt = optax.adam(self.model_lr).init(models)
        return Ex2State(models, opt, empty(obs_dim), scale.none_yet())

    def novelty(self, state: Ex2State, obs: Array, action: Array, next_obs: Array) -> Array:
        mean, _ = _code(state.models, normalise(state.observations, next_obs))
        return jax.nn.softplus(_logit(state.models, mean, mean))

    def update(
        self, state: Ex2State, obs: Array, action: Array, next_obs: Array, key: Array
    ) -> tuple[Ex2State, dict[str, Array]]:
        """Each state of the minibatch is an exemplar, and another one's stranger."""
        state = state._replace(observations=observe(state.observations, next_obs))
        x = normalise(state.observations, next_obs)
        value, gradient = jax.value_and_grad(self.loss)(state.models, x, key)
        step, opt = optax.adam(self.model_lr).update(gradient, state.opt)
        state = state._replace(models=optax.apply_updates(state.models, step), opt=opt)
        return state, {"model_loss": value, "bonus_scale": scale.value(state.scale)}

    def loss(self, models: Models, x: Array, key: Array) -> Array:
        keys, code = jax.random.split(key, 4), _code(models, x)
        star, own = _drawn(code, keys[0]), _drawn(code, keys[1])
        other = jax.random.permutation(keys[2], _drawn(code, keys[3]))
        told = jax.nn.softplus(-_logit(models, own, star))
        mistaken = jax.nn.softplus(_logit(models, other, star))
        return jnp.mean(told + mistaken) + self.code_weight * _divergence(code)


def _code(models: Models, x: Array) -> tuple[Array, Array]:
    """m and log s of z."""
    mean, log_std = jnp.split(perceptron(models.encoder, x), 2, axis=-1)
    return mean, jnp.clip(log_std - 1.0, -5.0, 2.0)


def _drawn(code: tuple[Array, Array], key: Array) -> Array:
    mean, log_std = code
    return mean + jnp.exp(log_std) * jax.random.normal(key, mean.shape)


def _logit(models: Models, z: Array, star: Array) -> Array:
    pair = jnp.concatenate([star, (z - star) ** 2], axis=-1)
    return jnp.squeeze(perceptron(models.discriminator, pair), -1)


def _divergence(code: tuple[Array, Array]) -> Array:
    """KL[N(m, s²) ‖ N(0, I)], averaged over the batch."""
    mean, log_std = code
    each = 0.5 * (mean**2 + jnp.exp(2.0 * log_std) - 1.0) - log_std
    return jnp.mean(jnp.sum(each, axis=-1))

"""VIME: the bonus of a transition is what it would teach a model of the dynamics.

Houthooft et al. 2016. A Bayesian network (`bayes`) predicts the normalised next observation from
the normalised observation and action.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple, final

import jax
import jax.numpy as jnp
import optax
from jax import Array

from adac.core.fields import setting
from adac.core.intrinsic import bayes, scale
from adac.core.intrinsic.bayes import Posterior
from adac.core.intrinsic.interface import Novelty
from adac.core.normalise import Statistics, empty, normalise, observe, restore
from adac.core.validation import above, at_least, counts, sizes, tuples


class VimeState(NamedTuple):
    posterior: Posterior
    opt: optax.OptState
    inputs: Statistics  # of (obs, action); `seen` counts the transitions learned from
    targets: Statistics  # of next_obs
    scale: scale.Scale  # of the gain


@final
@dataclass(frozen=True)
class Vime(Novelty):
    """The novelty is the information gain: what the transition would teach the model, in nats.

    The scale makes a typical step's bonus η whatever λ and the likelihood are; λ is only seen in
    the logged `bonus_scale`.
    """

    information_step: float = setting(0.01, "λ, the step that a transition's gain is measured by.")
    model_hidden: tuple[int, ...] = setting(
        (32,), "Hidden layers of the model; none is Bayesian linear regression."
    )
    model_lr: float = setting(1e-3, "Learning rate of the model.")
    model_samples: int = setting(10, "S, draws of the weights per example and update.")
    prior_std: float = setting(0.5, "Of the weights, and where their posterior starts.")
    likelihood_std: float = setting(
        5.0, "Of the normalised next observation around the prediction."
    )

    promises: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        tuples(self, "model_hidden")
        above(self, 0.0, "information_step", "prior_std", "likelihood_std")
        at_least(self, 0.0, "model_lr")
        counts(self, 1, "model_samples")
        sizes(self, "model_hidden")

    def init(self, obs_dim: int, action_dim: int, key: Array) -> VimeState:
        layers = (obs_dim + action_dim, *self.model_hidden, obs_dim)
        posterior = bayes.init(layers, self.prior_std, key)
        return VimeState(
            posterior=posterior,
            opt=optax.adam(self.model_lr).init(posterior),
            inputs=empty(obs_dim + action_dim),
            targets=empty(obs_dim),
            scale=scale.none_yet(),
        )

    def novelty(self, state: VimeState, obs: Array, action: Array, next_obs: Array) -> Array:
        """The information gain of each transition in nats, [B]."""
        x, y = self._normalised(state, obs, action, next_obs)
        gain = bayes.information_gain(
            state.posterior, x, y, self.likelihood_std, self.information_step
        )
        return jnp.maximum(gain, 0.0)

    def _normalised(
        self, state: VimeState, obs: Array, action: Array, next_obs: Array
    ) -> tuple[Array, Array]:
        x = normalise(state.inputs, jnp.concatenate([obs, action], axis=-1))
        return x, normalise(state.targets, next_obs)

    def update(
        self, state: VimeState, obs: Array, action: Array, next_obs: Array, key: Array
    ) -> tuple[VimeState, dict[str, Array]]:
        """One Adam step on KL[q‖p]/n − E log p."""
        state = state._replace(
            inputs=observe(state.inputs, jnp.concatenate([obs, action], axis=-1)),
            targets=observe(state.targets, next_obs),
        )
        x, y = self._normalised(state, obs, action, next_obs)
        n = transitions(state.inputs.seen, obs.shape[0])
        (_, metrics), gradient = jax.value_and_grad(self.loss, has_aux=True)(
            state.posterior, x, y, n, key
        )
        step, opt = optax.adam(self.model_lr).update(gradient, state.opt)
        state = state._replace(posterior=optax.apply_updates(state.posterior, step), opt=opt)
        return state, metrics | {"bonus_scale": scale.value(state.scale)}

    def loss(
        self, q: Posterior, x: Array, y: Array, n: Array, key: Array
    ) -> tuple[Array, dict[str, Array]]:
        """KL[q‖p]/n − (1/S) Σ_k log p(y | x, w_k), averaged over the minibatch."""
        f = bayes.sample(q, x, self.model_samples, key)  # [S, B, o]
        error = jnp.mean(bayes.negative_log_likelihood(y[None], f, self.likelihood_std))
        divergence = bayes.divergence(q, bayes.prior(q, self.prior_std))
        total = divergence / n + error
        return total, {"model_loss": total, "model_kl": divergence}

    def predict(self, state: VimeState, obs: Array, action: Array, key: Array) -> Array:
        """f(s, a; w) with w ~ q: where the model, unsure of itself, thinks that an action leads."""
        x = normalise(state.inputs, jnp.concatenate([obs, action], axis=-1))
        return restore(state.targets, bayes.sample(state.posterior, x, 1, key)[0])


def transitions(learned_from: Array, batch: int) -> Array:
    """n of KL/n: how many different transitions the model has learned from, as far as it can tell.

    A minibatch is drawn from a memory that grows by about one transition per update (exactly one
    with updates_per_step = 1, not counting the warm-up). So n is the number of updates, at least
    one minibatch. The number of rows drawn would count the same evidence `batch` times over.
    """
    return jnp.maximum(learned_from / batch, 1.0 * batch)

"""Bases: how the target policy π is evaluated and improved. DDPG, TD3: `Deterministic`; SAC: `SAC`.

A base reads the actor's raw output and knows nothing of ξ. DDPG and TD3 are two values of one
class; `SAC` learns a Gaussian before the squash and its temperature.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, final

import jax
import jax.numpy as jnp
import optax
from jax import Array

from adac.core.critics import Value
from adac.core.fields import choices, linear, log, setting
from adac.core.validation import above, at_least, between, copies, counts

RATES = log(3e-5, 3e-3)


@dataclass(frozen=True)
class Base(ABC):
    """What every base sets; the methods below are all that `update` asks of one."""

    actor_lr: float = setting(1e-3, "Learning rate of the target policy π.", RATES)
    critic_lr: float = setting(1e-3, "Learning rate of the critics.", RATES)
    discount: float = setting(
        0.99, "γ, the discount of future rewards.", choices(0.95, 0.98, 0.99, 0.995)
    )
    tau: float = setting(5e-3, "Polyak step of the target networks.", log(1e-3, 5e-2))
    critics: int = setting(2, "Critics in an ensemble, whose target takes their minimum.")
    policy_delay: int = setting(2, "Critic updates per policy update.", choices(1, 2, 4))
    adam_b1: float = setting(0.9, "Adam's β₁, the momentum of every optimiser of the agent.")
    lr_schedule: Literal["constant", "linear", "cosine"] = setting(
        "constant", "How the learning rates of policies and critics fall: constant, linear, cosine."
    )
    lr_end: float = setting(0.0, "Part of the learning rates that is left when they have fallen.")
    lr_updates: int = setting(0, "Updates over which they fall; 0 is the whole run.")
    max_grad_norm: float | None = setting(
        None, "Norm at which the gradient of each network is cut; none: it is not."
    )
    weight_decay: float = setting(0.0, "AdamW's decay of policies and critics; 0 is Adam.")

    outputs: ClassVar[int] = 1  # raw actor outputs per action dimension
    target_actor: ClassVar[bool] = True  # targets and evaluation use π's target weights

    def __post_init__(self) -> None:
        between(self, 0.0, 1.0, "discount", "tau", "adam_b1")
        counts(self, 1, "policy_delay")
        copies(self, 1, "critics")
        at_least(self, 0.0, "actor_lr", "critic_lr", "weight_decay")
        between(self, 0.0, 1.0, "lr_end")
        counts(self, 0, "lr_updates")
        if self.max_grad_norm is not None:
            above(self, 0.0, "max_grad_norm")

    @abstractmethod
    def location(self, raw: Array) -> Array:
        """The point before the squash; π(s) is tanh of it."""

    def greedy(self, raw: Array) -> Array:
        """π(s), the target policy's action."""
        return jnp.tanh(self.location(raw))

    def deviation(self, raw: Array) -> Array | None:
        """The standard deviation before the squash of a Gaussian policy; None of any other."""
        return None

    @abstractmethod
    def sample(self, raw: Array, key: Array) -> Array:
        """An action of the base's own policy."""

    @abstractmethod
    def next_action(self, raw: Array, aux: Any, key: Array) -> tuple[Array, Array | float]:
        """The action at s' that the target bootstraps through, and what to add to its value."""

    @abstractmethod
    def actor_loss(
        self, raw: Array, qs: Sequence[Value], aux: Any, key: Array
    ) -> tuple[Array, Array]:
        """The loss that improves π on the task critics `qs`, and what `improve_aux` needs."""

    def init_aux(self) -> Any:
        return ()

    def improve_aux(self, aux: Any, log_prob: Array, action_dim: int) -> Any:
        return aux

    def aux_metrics(self, aux: Any) -> dict[str, Array]:
        return {}


@final
@dataclass(frozen=True)
class Deterministic(Base):
    """TD3 as it stands; DDPG with one critic, no delay and no smoothing (see `presets`)."""

    target_noise: float = setting(
        0.2, "Standard deviation of the noise on the target's action.", linear(0.0, 0.4)
    )
    target_clip: float = setting(0.5, "Where that noise is cut.")
    bound_penalty: float = setting(
        0.0, "λ on (|u| − 1)² beyond |u| = 1 of π = tanh(u), with ∇Q of mean magnitude 1."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(self, 0.0, "target_noise", "target_clip", "bound_penalty")

    def location(self, raw: Array) -> Array:
        return raw

    def sample(self, raw: Array, key: Array) -> Array:
        return jnp.tanh(raw)

    def next_action(self, raw: Array, aux: Any, key: Array) -> tuple[Array, Array | float]:
        """a' = π(s') + clip(N(0, σ), −c, c): target policy smoothing (Algorithm 3, line 19)."""
        action = jnp.tanh(raw)
        if self.target_noise:
            noise = self.target_noise * jax.random.normal(key, action.shape)
            noise = jnp.clip(noise, -self.target_clip, self.target_clip)
            action = jnp.clip(action + noise, -1.0, 1.0)
        return action, 0.0

    def actor_loss(
        self, raw: Array, qs: Sequence[Value], aux: Any, key: Array
    ) -> tuple[Array, Array]:
        """The deterministic policy gradient on the first critic (Eq. 1)."""
        action = jnp.tanh(raw)
        if self.bound_penalty:
            return self._bounded_loss(raw, action, qs[0]), jnp.zeros(())
        return -jnp.mean(qs[0](action)), jnp.zeros(())

    def _bounded_loss(self, raw: Array, action: Array, q: Value) -> Array:
        """Where tanh is flat ∇Q does not come through, and Adam makes a step of any gradient: π
        that is once at the bound stays there. The penalty leads back (docs/deviations.md)."""
        gradient = jax.grad(lambda a: jnp.sum(q(a)))(jax.lax.stop_gradient(action))
        gradient = gradient / (jnp.mean(jnp.linalg.norm(gradient, axis=-1)) + 1e-8)
        beyond = jax.nn.relu(jnp.abs(raw) - 1.0)
        return jnp.mean(jnp.sum(self.bound_penalty * beyond**2 - gradient * action, axis=-1))


class Temperature(NamedTuple):
    log_alpha: Array
    opt: optax.OptState


LOG_STD_RANGE = (-20.0, 2.0)


@final
@dataclass(frozen=True)
class SAC(Base):
    """Soft actor-critic with a learned temperature (Haarnoja et al. 2018b)."""

    actor_lr: float = setting(3e-4, "Learning rate of the policy.", RATES)
    critic_lr: float = setting(3e-4, "Learning rate of the critics.", RATES)
    policy_delay: int = setting(1, "Critic updates per policy update.", choices(1, 2, 4))
    temperature_lr: float = setting(3e-4, "Learning rate of log α.")
    initial_temperature: float = setting(1.0, "α at the start.", log(0.01, 1.0))
    target_entropy: float | None = setting(
        None, "Entropy that α is tuned to; none: −(action dimensions)."
    )

    outputs: ClassVar[int] = 2
    target_actor: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(self, 0.0, "temperature_lr", "initial_temperature")
        if self.initial_temperature <= 0:
            raise ValueError("initial_temperature must be above 0")

    def location(self, raw: Array) -> Array:
        return jnp.split(raw, 2, axis=-1)[0]

    def deviation(self, raw: Array) -> Array:
        return jnp.exp(jnp.clip(jnp.split(raw, 2, axis=-1)[1], *LOG_STD_RANGE))

    def sample(self, raw: Array, key: Array) -> Array:
        return self._sample(raw, key)[0]

    def _sample(self, raw: Array, key: Array) -> tuple[Array, Array]:
        """a = tanh(u), u ~ N(m, s²), and log π(a|s) with the squash's log-determinant."""
        mean, log_std = jnp.split(raw, 2, axis=-1)
        log_std = jnp.clip(log_std, *LOG_STD_RANGE)
        noise = jax.random.normal(key, mean.shape)
        u = mean + jnp.exp(log_std) * noise
        log_prob = -0.5 * noise**2 - log_std - 0.5 * jnp.log(2.0 * jnp.pi)
        log_det = 2.0 * (jnp.log(2.0) - u - jax.nn.softplus(-2.0 * u))
        return jnp.tanh(u), jnp.sum(log_prob - log_det, axis=-1)

    def next_action(self, raw: Array, aux: Temperature, key: Array) -> tuple[Array, Array | float]:
        action, log_prob = self._sample(raw, key)
        return action, -jnp.exp(aux.log_alpha) * log_prob

    def actor_loss(
        self, raw: Array, qs: Sequence[Value], aux: Temperature, key: Array
    ) -> tuple[Array, Array]:
        action, log_prob = self._sample(raw, key)
        lowest = jnp.min(jnp.stack([q(action) for q in qs]), axis=0)
        return jnp.mean(jnp.exp(aux.log_alpha) * log_prob - lowest), jnp.mean(log_prob)

    def init_aux(self) -> Temperature:
        log_alpha = jnp.log(jnp.asarray(self.initial_temperature, jnp.float32))
        return Temperature(log_alpha, optax.adam(self.temperature_lr).init(log_alpha))

    def improve_aux(self, aux: Temperature, log_prob: Array, action_dim: int) -> Temperature:
        """Descend −log α (log π + target entropy)."""
        wanted = -float(action_dim) if self.target_entropy is None else self.target_entropy
        grad = -(log_prob + wanted)
        step, opt = optax.adam(self.temperature_lr, b1=self.adam_b1).update(grad, aux.opt)
        return Temperature(optax.apply_updates(aux.log_alpha, step), opt)

    def aux_metrics(self, aux: Temperature) -> dict[str, Array]:
        return {"temperature": jnp.exp(aux.log_alpha)}

"""Explorers: how the agent acts while it learns. They never hear of min-of-two.

An explorer owns the behaviour policy μ, which reward streams get a critic, and the extra loss that
trains the policy network. `Analogous` is ADAC.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, Literal, final, get_args

import jax
import jax.numpy as jnp
from jax import Array

from adac.core import svgd
from adac.core.bases import Base
from adac.core.networks import Actor, Critic
from adac.core.validation import at_least, counts, one_of, tuples

Space = Literal["pre-squash", "action"]
Bandwidth = Literal["median", "paper"]
# K and β (Appendix D), and ξ drawn anew at every step (Section 4.1).
PAPER_NUMBERS: Final[dict[str, Any]] = {
    "particles": 32, "beta_start": 2.0, "beta_end": 1.0, "latent_correlation": 0.0,
    "score_floor": 0.0,
}  # fmt: skip
Streams = tuple[Array, ...]  # one reward [B] per stream: the task's first, the behaviour's last


@dataclass(frozen=True)
class Explorer(ABC):
    disentangled: ClassVar[bool] = False  # a bonus gets a critic of its own
    uses_latent: ClassVar[bool] = False  # reads f(s, ξ) at ξ ≠ 0
    trained: ClassVar[bool] = False  # adds a `loss` on the policy network

    @property
    def separate(self) -> bool:
        """Whether μ has a network of its own."""
        return False

    def learned(self) -> "Explorer":
        """μ as far as it is learned, without noise that would hide a collapse."""
        return self

    @abstractmethod
    def act(
        self, base: Base, actor: Actor, obs: Array, memory: Any, first: Array, key: Array
    ) -> tuple[Array, Any]:
        """Actions of μ for obs [N, o]; `first` [N] marks the first step of an episode."""

    def init_memory(self, num_envs: int, action_dim: int, latent: int) -> Any:
        """What μ remembers from one step to the next, per environment."""
        return ()

    def streams(self, reward: Array, bonus: Array | None) -> Streams:
        """Without disentanglement the bonus ends up in the only critic: contamination."""
        return (reward,) if bonus is None else (reward + bonus,)

    def loss(
        self, base: Base, actor: Actor, critic: Critic, obs: Array, progress: Array, key: Array
    ) -> tuple[Array, dict[str, Array]]:
        """What trains μ on the behaviour critic, for a `trained` explorer; and what to log."""
        raise TypeError(f"{type(self).__name__} has no loss")

    @property
    def learning_rate(self) -> float:
        """Of the optimiser that descends `loss`."""
        return 0.0


def _clip(action: Array) -> Array:
    return jnp.clip(action, -1.0, 1.0)


@final
@dataclass(frozen=True)
class OwnPolicy(Explorer):
    """The base's own policy: what SAC explores with."""

    def act(
        self, base: Base, actor: Actor, obs: Array, memory: Any, first: Array, key: Array
    ) -> tuple[Array, Any]:
        return base.sample(actor(obs), key), memory


@final
@dataclass(frozen=True)
class GaussianNoise(Explorer):
    """π plus N(0, σ²), independent at every step."""

    noise: float = 0.1

    def __post_init__(self) -> None:
        at_least(self, 0.0, "noise")

    def act(
        self, base: Base, actor: Actor, obs: Array, memory: Any, first: Array, key: Array
    ) -> tuple[Array, Any]:
        action = jnp.tanh(base.location(actor(obs)))
        return _clip(action + self.noise * jax.random.normal(key, action.shape)), memory


@final
@dataclass(frozen=True)
class OrnsteinUhlenbeck(Explorer):
    """π plus x, where x_{t+1} = x_t − θ x_t + σ N(0, I), from 0 at the start of an episode."""

    noise: float = 0.2
    theta: float = 0.15

    def __post_init__(self) -> None:
        at_least(self, 0.0, "noise", "theta")

    def init_memory(self, num_envs: int, action_dim: int, latent: int) -> Array:
        return jnp.zeros((num_envs, action_dim))

    def act(
        self, base: Base, actor: Actor, obs: Array, memory: Array, first: Array, key: Array
    ) -> tuple[Array, Array]:
        action = jnp.tanh(base.location(actor(obs)))
        past = jnp.where(first[:, None], 0.0, memory)
        x = (1.0 - self.theta) * past + self.noise * jax.random.normal(key, past.shape)
        return _clip(action + x), x


@final
@dataclass(frozen=True)
class Analogous(Explorer):
    """ADAC: μ(·|s) = f(s, ξ) + N(0, σ²), ξ ~ N(0, I), trained by amortised SVGD (Eq. 3).

    As it stands this is the robust form; `Analogous.paper()` is the paper's, letter by letter.
    Which part does what, and what happens without it, is in docs/deviations.md.
    """

    particles: int = 8  # K
    beta_start: float = 0.2  # β, annealed linearly over the run
    beta_end: float = 0.2
    behaviour_lr: float = 3e-4
    space: Space = "pre-squash"  # where the particles live
    log_det: bool = True  # the squash's log-determinant in the target density
    bandwidth: Bandwidth = "median"  # per state, or σ = d/K normalised
    normalise_score: bool = True  # divide ∇Q by its mean magnitude over the batch
    score_floor: float = 1.0  # or by this, if that is more: where Q is flat μ stays wide
    # ρ: ξ_t = ρ ξ_{t−1} + √(1−ρ²) ε_t; 0 is the paper's. Of several, each episode draws one.
    latent_correlation: float | tuple[float, ...] = (0.0, 0.95)
    action_noise: float | None = 0.1  # std added to the action; None: the paper's d/K
    co_training: bool = True  # False: μ has a network of its own (ablation)

    disentangled: ClassVar[bool] = True
    uses_latent: ClassVar[bool] = True
    trained: ClassVar[bool] = True

    @property
    def separate(self) -> bool:
        return not self.co_training

    @property
    def learning_rate(self) -> float:
        return self.behaviour_lr

    def __post_init__(self) -> None:
        counts(self, 1, "particles")
        tuples(self, "latent_correlation")
        at_least(self, 0.0, "beta_start", "beta_end", "behaviour_lr", "score_floor")
        one_of(self, "space", get_args(Space))
        one_of(self, "bandwidth", get_args(Bandwidth))
        if self.action_noise is not None:
            at_least(self, 0.0, "action_noise")
        if not self._correlations or not all(0.0 <= rho < 1.0 for rho in self._correlations):
            raise ValueError("latent_correlation must be at least 0 and below 1, one or several")

    @property
    def _correlations(self) -> tuple[float, ...]:
        rho = self.latent_correlation
        return rho if isinstance(rho, tuple) else (rho,)

    @staticmethod
    def paper(**settings: Any) -> "Analogous":
        """Particles in the action space, fixed kernel, raw ∇Q, kernel noise: it can collapse."""
        literal: dict[str, Any] = {
            **PAPER_NUMBERS,
            "space": "action",
            "log_det": False,
            "bandwidth": "paper",
            "normalise_score": False,
            "action_noise": None,
        }
        return Analogous(**(literal | settings))

    def learned(self) -> "Analogous":
        return replace(self, action_noise=0.0)

    def streams(self, reward: Array, bonus: Array | None) -> Streams:
        """r for the task critic, r + r_in for the behaviour critic (Eq. 5)."""
        return (reward,) if bonus is None else (reward, reward + bonus)

    def init_memory(self, num_envs: int, action_dim: int, latent: int) -> Any:
        """ξ, and the episode's ρ in a last column."""
        return jnp.zeros((num_envs, latent + 1)) if any(self._correlations) else ()

    def act(
        self, base: Base, actor: Actor, obs: Array, memory: Any, first: Array, key: Array
    ) -> tuple[Array, Any]:
        """Section 4.1's three steps: draw ξ, evaluate f(s, ξ), draw from the kernel around it."""
        latent_key, noise_key = jax.random.split(key)
        xi, memory = self._latent(actor, obs.shape[0], memory, first, latent_key)
        action = jnp.tanh(base.location(actor(obs, xi)))
        noise = self._noise(action.shape[-1]) * jax.random.normal(noise_key, action.shape)
        return _clip(action + noise), memory

    def _latent(
        self, actor: Actor, count: int, memory: Any, first: Array, key: Array
    ) -> tuple[Array, Any]:
        """ξ has the marginal N(0, I) at every step, whatever its correlation in time."""
        assert actor.joint is not None
        fresh = jax.random.normal(key, (count, actor.joint.second.shape[0]))
        if not any(self._correlations):
            return fresh, memory
        drawn = jax.random.choice(
            jax.random.fold_in(key, 1), jnp.array(self._correlations), (count, 1)
        )
        rho = jnp.where(first[:, None], drawn, memory[:, -1:])
        moved = rho * memory[:, :-1] + jnp.sqrt(1.0 - rho**2) * fresh
        xi = jnp.where(first[:, None], fresh, moved)
        return xi, jnp.concatenate([xi, rho], axis=1)

    def _noise(self, action_dim: int) -> float:
        if self.action_noise is None:
            return svgd.paper_width(self.particles, action_dim)
        return self.action_noise

    def beta(self, progress: Array) -> Array:
        return self.beta_start + (self.beta_end - self.beta_start) * jnp.clip(progress, 0.0, 1.0)

    def loss(
        self, base: Base, actor: Actor, critic: Critic, obs: Array, progress: Array, key: Array
    ) -> tuple[Array, dict[str, Array]]:
        """−J_μ: the amortised SVGD step on the behaviour critic (Eq. 3, Algorithm 3 line 24)."""
        assert actor.joint is not None
        shape = (obs.shape[0], self.particles, actor.joint.second.shape[0])
        xi = jax.random.normal(key, shape)
        u = base.location(actor.decode(actor.embed(obs)[:, None, :], xi))  # [B, K, d]
        action = jnp.tanh(u)
        gradient = action_gradient(critic, obs, jax.lax.stop_gradient(action))
        if self.normalise_score:
            magnitude = jnp.mean(jnp.linalg.norm(gradient, axis=-1)) + 1e-8
            gradient = gradient / jnp.maximum(magnitude, self.score_floor)
        beta = self.beta(progress)
        if self.space == "action":
            x, score = action, gradient
        else:
            x, score = u, gradient * (1.0 - action**2)
            score += beta * svgd.log_det_score(u) if self.log_det else 0.0
        return svgd.surrogate(x, self._direction(x, score, beta)), {"beta": beta}

    def _direction(self, x: Array, score: Array, beta: Array) -> Array:
        x, score = jax.lax.stop_gradient((x, score))
        squared = svgd.squared_distances(x)
        paper = self.bandwidth == "paper"
        width: Array | float = (
            svgd.paper_width(*x.shape[-2:]) if paper else svgd.median_width(squared)
        )
        kernel = svgd.gaussian_kernel(squared, width, normalised=paper)
        return svgd.direction(x, score, kernel, width, beta)


BLOCK = 400  # rows: their hidden layers fit a core's cache, and the blocks run side by side


def action_gradient(critic: Critic, obs: Array, action: Array) -> Array:
    """∇_a Q(s, a) for K actions per state, [B, K, d]; the state's part of Q is computed once."""

    def of(obs: Array, action: Array) -> Array:
        embedding = critic.embed(obs)[:, None, :]
        gradient: Array = jax.grad(lambda a: jnp.sum(critic.value(embedding, a)))(action)
        return gradient

    states, particles, _ = action.shape
    blocks = min(states, math.ceil(states * particles / BLOCK))
    parts = zip(jnp.array_split(obs, blocks), jnp.array_split(action, blocks), strict=True)
    return jnp.concatenate([of(*part) for part in parts])

"""ADAC's explorer: one network f(s, ξ), of which ξ ~ N(0, I) is the behaviour policy."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, Literal, final, get_args

import jax
import jax.numpy as jnp
from jax import Array

from adac.core import svgd
from adac.core.critics import Value
from adac.core.explorers import tuning
from adac.core.explorers.coloured import Coloured
from adac.core.explorers.interface import Explorer, Sizes, Streams, View, clip
from adac.core.explorers.processes import Correlated, Process
from adac.core.explorers.repeated import Repeated
from adac.core.fields import choices, log, setting
from adac.core.validation import at_least, below, between, counts, one_of, tuples

Space = Literal["pre-squash", "action"]
Bandwidth = Literal["median", "paper"]
Optimisers = Literal["one", "two"]
Weight = Literal["fixed", "learned"]
# K and β (Appendix E), and ξ drawn anew at every step (Section 4.1).
PAPER_NUMBERS: Final[dict[str, Any]] = {
    "particles": 32, "beta_start": 2.0, "beta_end": 1.0, "latent_correlation": 0.0,
    "score_floor": 0.0,
}  # fmt: skip


@final
@dataclass(frozen=True)
class Analogous(Explorer):
    """ADAC: μ(·|s) = f(s, ξ) + N(0, σ²), ξ ~ N(0, I), trained by amortised SVGD (Eq. 3).

    As it stands this is the robust form; `Analogous.paper()` is the paper's, exactly as published.
    Which part does what, and what happens without it, is in docs/deviations.md.
    """

    particles: int = setting(8, "K, the particles of SVGD per state.", choices(4, 8, 16, 32))
    beta_start: float = setting(
        0.3, "β at the start; it is annealed linearly over the run.", log(0.03, 3.0)
    )
    beta_end: float = setting(0.3, "β at the end.", log(0.03, 3.0))
    behaviour_states: int = setting(
        64, "States of the minibatch that μ is improved at; 0: all of them."
    )
    optimisers: Optimisers = setting(
        "one", "One optimiser on J_π + J_μ (Eq. 4), or two in turn as in the paper's Appendix B."
    )
    behaviour_lr: float = setting(3e-4, "Learning rate of μ, where it has an optimiser of its own.")
    space: Space = setting("pre-squash", "Where the particles live: before the squash, or actions.")
    log_det: bool = setting(True, "The squash's log-determinant in the target density.")
    bandwidth: Bandwidth = setting("median", "Kernel width: the median heuristic, or σ = d/K.")
    other_particles: bool = setting(
        True, "Average Eq. 3 over the other particles only, which is unbiased at any K."
    )
    normalise_score: bool = setting(True, "Divide ∇Q by its mean |∂Q/∂a_i| over the batch.")
    score_floor: float = setting(
        1.0, "Divide ∇Q by this where that mean is less: where Q is flat μ stays wide."
    )
    latent_correlation: float | tuple[float, ...] = setting(
        (0.0, 0.95),
        "ρ of ξ_t = ρ ξ_{t−1} + √(1−ρ²) ε_t; of several, each episode draws one; 0 is the paper's.",
    )
    latent_colour: float | None = setting(
        None, "Exponent of ξ's spectrum instead of ρ: 0 white, 1 pink, 2 red; none: ρ."
    )
    latent_repeat: int = setting(
        0, "Hold ξ for k steps, P(k) ∝ k^−2 up to this, instead of ρ; 0: ρ."
    )
    behaviour_entropy: float | None = setting(
        None, "Entropy of μ per action dimension, in nats, that β is tuned to; none: β is annealed."
    )
    bonus_weight: Weight = setting(
        "fixed", "The bonus as it is, or learned: times a λ that tunes itself (MaxInfoRL)."
    )
    action_noise: float | None = setting(
        0.1, "Standard deviation added to the action; none: the paper's d/K."
    )
    co_training: bool = setting(True, "One network for π and μ; false: μ has its own (ablation).")

    disentangled: ClassVar[bool] = True
    uses_latent: ClassVar[bool] = True
    trained: ClassVar[bool] = True

    @property
    def separate(self) -> bool:
        return not self.co_training

    @property
    def joins_the_base(self) -> bool:
        return self.optimisers == "one" and self.co_training

    @property
    def weighs(self) -> bool:
        return self.bonus_weight == "learned"

    @property
    def follows(self) -> bool:
        return self.weighs

    @property
    def learning_rate(self) -> float:
        return self.behaviour_lr

    def score_scale(self, gradient: Array) -> Array:
        """What ∇Q is divided by: its mean |∂Q/∂a_i|, per dimension, so that β weighs as much in
        many dimensions as in one; and at least the floor, so that a flat Q stays flat."""
        return jnp.maximum(jnp.mean(jnp.abs(gradient)) + 1e-8, self.score_floor)

    def __post_init__(self) -> None:
        counts(self, 1, "particles")
        counts(self, 0, "behaviour_states")
        tuples(self, "latent_correlation")
        at_least(self, 0.0, "beta_start", "beta_end", "behaviour_lr", "score_floor")
        one_of(self, "space", get_args(Space))
        one_of(self, "bandwidth", get_args(Bandwidth))
        one_of(self, "optimisers", get_args(Optimisers))
        one_of(self, "bonus_weight", get_args(Weight))
        object.__setattr__(self, "sees_bonus", self.weighs)
        if self.behaviour_entropy is not None:
            below(self, tuning.MOST, "behaviour_entropy")
            counts(self, 2, "particles")
        if self.action_noise is not None:
            at_least(self, 0.0, "action_noise")
        if not self._correlations or not all(0.0 <= rho < 1.0 for rho in self._correlations):
            raise ValueError("latent_correlation must be at least 0 and below 1, one or several")
        counts(self, 0, "latent_repeat")
        if self.latent_colour is not None:
            between(self, 0.0, 2.0, "latent_colour")
            if self.latent_repeat:
                raise ValueError("set latent_colour or latent_repeat, not both")

    @property
    def _correlations(self) -> tuple[float, ...]:
        rho = self.latent_correlation
        return rho if isinstance(rho, tuple) else (rho,)

    @property
    def latent_process(self) -> Process:
        """How ξ goes on from step to step; its marginal is N(0, I) in each case."""
        if self.latent_repeat:
            return Repeated(self.latent_repeat)
        if self.latent_colour is not None:
            return Coloured(self.latent_colour)
        return Correlated(self._correlations)

    @staticmethod
    def paper(**settings: Any) -> "Analogous":
        """Particles in the action space, fixed kernel, raw ∇Q, kernel noise: it can collapse."""
        literal: dict[str, Any] = {
            **PAPER_NUMBERS,
            "space": "action",
            "log_det": False,
            "bandwidth": "paper",
            "normalise_score": False,
            "other_particles": False,
            "optimisers": "two",
            "behaviour_states": 0,
            "action_noise": None,
        }
        return Analogous(**(literal | settings))

    def without_noise(self) -> "Analogous":
        return replace(self, action_noise=0.0)

    def streams(self, reward: Array, bonus: Array | None, learned: Any) -> Streams:
        """r for the task critic, r + r_in for the behaviour critic (Eq. 5)."""
        if bonus is None:
            return (reward,)
        return reward, reward + (learned.weight.value * bonus if self.weighs else bonus)

    def init_learned(self, sizes: Sizes, key: Array) -> Any:
        tuned = self.behaviour_entropy is not None
        return tuning.nothing_tuned(tuned, self.weighs, self.beta_start)

    def improve_learned(self, learned: Any, metrics: dict[str, Array]) -> Any:
        return tuning.improve(learned, metrics, self.behaviour_entropy)

    def init_memory(self, num_envs: int, sizes: Sizes) -> Any:
        return self.latent_process.init(num_envs, sizes.latent)

    def act(
        self, view: View, obs: Array, memory: Any, first: Array, key: Array
    ) -> tuple[Array, Any]:
        """Section 4.1's three steps: draw ξ, evaluate f(s, ξ), draw from the kernel around it."""
        latent_key, noise_key = jax.random.split(key)
        xi, memory = self.latent_process.step(memory, view.latent, first, latent_key)
        action = view.action(obs, xi)
        noise = self._noise(action.shape[-1]) * jax.random.normal(noise_key, action.shape)
        return clip(action + noise), memory

    def _noise(self, action_dim: int) -> float:
        if self.action_noise is None:
            return svgd.paper_width(self.particles, action_dim)
        return self.action_noise

    def beta(self, progress: Array) -> Array:
        return self.beta_start + (self.beta_end - self.beta_start) * jnp.clip(progress, 0.0, 1.0)

    def loss(
        self, view: View, q: Value, obs: Array, progress: Array, key: Array
    ) -> tuple[Array, dict[str, Array]]:
        """−J_μ: the amortised SVGD step on the behaviour critic (Eq. 3, Algorithm 3 line 25)."""
        states = min(self.behaviour_states or obs.shape[0], obs.shape[0])
        xi = jax.random.normal(key, (states, self.particles, view.latent))
        obs, tuned = obs[:states], self.behaviour_entropy is not None
        beta = view.learned.beta.value if tuned else self.beta(progress)
        metrics = {"beta": beta}
        if tuned:
            metrics["entropy_mu"] = tuning.entropy(view, obs, xi)
        if self.weighs:
            gain_key = jax.random.fold_in(key, 1)
            metrics |= tuning.curiosity(view, obs, xi[:, 0], gain_key)
        return self.objective(view, q.at(states), obs, xi, beta), metrics

    def objective(self, view: View, q: Value, obs: Array, xi: Array, beta: Array) -> Array:
        """The surrogate whose gradient is Eq. 3's, for K given ξ a state, [B, K, l]."""
        u = view.particles(obs, xi)  # [B, K, d]
        action = jnp.tanh(u)
        gradient = q.gradient(jax.lax.stop_gradient(action))
        if self.normalise_score:
            gradient = gradient / self.score_scale(gradient)
        if self.space == "action":
            x, score = action, gradient
        else:
            x, score = u, gradient * (1.0 - action**2)
            score += beta * svgd.log_det_score(u) if self.log_det else 0.0
        return svgd.surrogate(x, self._direction(x, score, beta))

    def _direction(self, x: Array, score: Array, beta: Array) -> Array:
        x, score = jax.lax.stop_gradient((x, score))
        squared = svgd.squared_distances(x)
        paper = self.bandwidth == "paper"
        width: Array | float = (
            svgd.paper_width(*x.shape[-2:]) if paper else svgd.median_width(squared)
        )
        kernel = svgd.gaussian_kernel(squared, width, normalised=paper)
        others = self.other_particles
        return svgd.direction(x, score, kernel, width, beta, others=others)

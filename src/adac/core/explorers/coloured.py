"""Coloured noise: power that falls with the frequency, so that the noise itself goes places.

Eberhard et al. 2023, "Pink Noise Is All You Need": S(f) ∝ f^−β, where β = 0 is white, 1 pink and
2 red; pink is the default on every task. They draw an episode's noise at once, by an FFT of the
episode's length T with S(f) flat below 1/T. An episode's length is not known here, so the noise is
streamed, as a sum of first-order processes whose rates are an octave apart:

    x_t = Σ_m √v_m y_t^m,   y_t^m = ρ_m y_{t−1}^m + √(1−ρ_m²) ε_t^m,   Σ_m v_m = 1
    S(f) = Σ_m v_m (1 − ρ_m²) / (1 + ρ_m² − 2 ρ_m cos 2πf)

with the v_m ≥ 0 that fit f^−β best from 1/T to the Nyquist frequency. Their σ on TD3 is 0.3.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, final

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from adac.core.explorers.processes import Process, ProcessNoise
from adac.core.fields import NOISE, setting
from adac.core.validation import between, counts

PERIOD = 1_000  # steps: the usual episode


@final
@dataclass(frozen=True)
class Coloured(Process):
    """Noise with S(f) ∝ f^−exponent for periods of 2 to `longest` steps."""

    exponent: float
    longest: int = PERIOD

    def init(self, count: int, dims: int) -> Array:
        return jnp.zeros((count, dims, len(rates(self.longest))))

    def step(self, memory: Array, dims: int, first: Array, key: Array) -> tuple[Array, Array]:
        rho = jnp.asarray(rates(self.longest), jnp.float32)
        share = jnp.asarray(shares(self.exponent, self.longest), jnp.float32)
        fresh = jax.random.normal(key, memory.shape)
        moved = rho * memory + jnp.sqrt(1.0 - rho**2) * fresh
        y = jnp.where(first[:, None, None], fresh, moved)
        return y @ jnp.sqrt(share), y


def rates(longest: int) -> NDArray[Any]:
    """ρ_m of corner frequencies an octave apart, from 1/2 to 1/longest; and 0."""
    corners = 0.5 ** np.arange(1, np.log2(longest) + 1)
    return np.append(0.0, np.exp(-2.0 * np.pi * corners))


def spectrum(share: NDArray[Any], longest: int, frequency: NDArray[Any]) -> NDArray[Any]:
    """S(f) of the sum, [F]."""
    return np.asarray(_spectra(longest, frequency) @ share)


def _spectra(longest: int, frequency: NDArray[Any]) -> NDArray[Any]:
    rho, cos = rates(longest), np.cos(2.0 * np.pi * frequency)[:, None]
    return np.asarray((1.0 - rho**2) / (1.0 + rho**2 - 2.0 * rho * cos))


@lru_cache
def shares(exponent: float, longest: int) -> NDArray[Any]:
    """v_m: the non-negative least squares of S(f) f^β = 1, by multiplicative updates."""
    frequency = np.geomspace(1.0 / longest, 0.5, 200)
    relative = _spectra(longest, frequency) * frequency[:, None] ** exponent
    share = 1.0 / relative.max(axis=0)
    for _ in range(5_000):
        share *= relative.sum(axis=0) / (relative.T @ (relative @ share))
    return np.asarray(share / share.sum())


@final
@dataclass(frozen=True)
class ColouredNoise(ProcessNoise):
    """π plus noise with the spectrum f^−exponent: pink as it stands."""

    noise: float = setting(
        0.3, "σ of the noise on the action; a Gaussian base has its own σ(s).", NOISE
    )
    exponent: float = setting(1.0, "β of the spectrum f^−β: 0 white, 1 pink, 2 red.")
    longest: int = setting(PERIOD, "T, the longest period in steps: about an episode.")

    aliases: ClassVar[tuple[str, ...]] = ("pink", "coloured", "colored")

    def __post_init__(self) -> None:
        super().__post_init__()
        between(self, 0.0, 2.0, "exponent")
        counts(self, 2, "longest")

    @property
    def process(self) -> Coloured:
        return Coloured(self.exponent, self.longest)

"""A Bayesian network with a Gaussian for every weight, and what one transition would teach it.

Pure maths of VIME (Houthooft et al. 2016). Every weight and bias has its own q = N(m, σ²) with
σ = log(1 + e^ρ); φ = (m, ρ) is a `Posterior`. ReLU between the layers, none after the last.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

Weights = tuple[tuple[Array, Array], ...]  # (weight [i, o], bias [o]) of every layer


class Posterior(NamedTuple):
    """φ = (m, ρ), two trees of one shape."""

    mean: Weights
    rho: Weights


def std(rho: Array) -> Array:
    """σ = log(1 + e^ρ)."""
    return jax.nn.softplus(rho)


def rho_of(sigma: Array) -> Array:
    """ρ with σ = log(1 + e^ρ)."""
    return jnp.log(jnp.expm1(sigma))


def init(sizes: Sequence[int], sigma: float, key: Array) -> Posterior:
    """m ~ N(0, 1) / √inputs, so that a forward pass keeps its scale; biases at 0; σ as given."""
    keys = jax.random.split(key, len(sizes) - 1)
    mean = tuple(
        (jax.random.normal(k, (i, o)) / jnp.sqrt(1.0 * i), jnp.zeros(o))
        for i, o, k in zip(sizes[:-1], sizes[1:], keys, strict=True)
    )
    return Posterior(mean, _filled(mean, sigma))


def prior(like: Posterior, sigma: float) -> Posterior:
    """N(0, σ²) for every weight."""
    return Posterior(jax.tree.map(jnp.zeros_like, like.mean), _filled(like.mean, sigma))


def _filled(mean: Weights, sigma: float) -> Weights:
    filled: Weights = jax.tree.map(lambda m: jnp.full_like(m, rho_of(jnp.asarray(sigma))), mean)
    return filled


def divergence(q: Posterior, p: Posterior) -> Array:
    """KL[q‖p] = Σ ((m − m_p)² + σ² − σ_p²) / (2σ_p²) + log σ_p − log σ."""

    def factor(m: Array, rho: Array, m_p: Array, rho_p: Array) -> Array:
        s, s_p = std(rho), std(rho_p)
        kl = ((m - m_p) ** 2 + s**2 - s_p**2) / (2.0 * s_p**2) + jnp.log(s_p) - jnp.log(s)
        return jnp.sum(kl)

    return _total(jax.tree.map(factor, q.mean, q.rho, p.mean, p.rho))


def _total(tree: Any) -> Array:
    total: Array = jax.tree.reduce(jnp.add, tree)
    return total


# -- the two forward passes -----------------------------------------------------------------------


def sample(q: Posterior, x: Array, count: int, key: Array) -> Array:
    """f(x; w), w ~ q, by local reparametrisation: [B, i] → [count, B, o].

    A layer's output is drawn from N(x m + m_b, x² σ² + σ_b²), with noise of its own for each
    example. Half of the samples use the other half's noise with its sign turned, which costs half
    and makes their mean more exact.
    """
    widths = [m.shape[1] for m, _ in q.mean]
    # One draw for all layers: XLA takes seconds to compile each further one.
    noise = jax.random.normal(key, ((count + 1) // 2, x.shape[0], sum(widths)), x.dtype)
    noise = jnp.concatenate([noise, -noise])[:count]
    x, used = x[None], 0
    for means, rhos, width in zip(q.mean, q.rho, widths, strict=True):
        (m, m_b), (rho, rho_b) = means, rhos
        x = jax.nn.relu(x) if used else x
        deviation = jnp.sqrt(x**2 @ std(rho) ** 2 + std(rho_b) ** 2)
        x = x @ m + m_b + deviation * noise[..., used : used + width]
        used += width
    return x


def moments(q: Posterior, x: Array) -> tuple[Array, Array]:
    """E f(x; w) and Var f(x; w) for w ~ q without sampling, [..., i] → [..., o] twice.

    Exact with at most one hidden layer, where the units before the ReLU are independent Gaussians;
    with more, each further layer's are matched by such Gaussians.
    """
    return _propagate(q, x, ((0.0, 0.0),) * len(q.mean))[0]


def _propagate(q: Posterior, x: Array, shifts: Any) -> tuple[tuple[Array, Array], list[Any]]:
    """`moments` with `shifts` added to each layer's mean and variance; also each layer's input."""
    variance, inputs = jnp.zeros_like(x), []
    for layer, (means, rhos, shift) in enumerate(zip(q.mean, q.rho, shifts, strict=True)):
        (m, m_b), (rho, rho_b) = means, rhos
        if layer:
            x, variance = relu_moments(x, variance)
        inputs.append((x, variance))
        spread = (x**2 + variance) @ std(rho) ** 2 + std(rho_b) ** 2
        x, variance = x @ m + m_b + shift[0], spread + variance @ m**2 + shift[1]
    return (x, variance), inputs


def relu_moments(mean: Array, variance: Array) -> tuple[Array, Array]:
    """E and Var of max(a, 0) for a ~ N(mean, variance).

    With α = mean/s: E = mean Φ(α) + s φ(α), E[max(a, 0)²] = (mean² + s²) Φ(α) + mean s φ(α).
    """
    s = jnp.sqrt(variance)
    alpha = mean / s
    below = jax.scipy.stats.norm.cdf(alpha)
    density = s * jax.scipy.stats.norm.pdf(alpha)
    first = mean * below + density
    second = (mean**2 + variance) * below + mean * density
    return first, jnp.maximum(second - first**2, 0.0)


# -- likelihood and information gain --------------------------------------------------------------


def negative_log_likelihood(y: Array, f: Array, noise: float) -> Array:
    """−log N(y | f, noise²), summed over the last axis."""
    squared = jnp.sum((y - f) ** 2, axis=-1) / (2.0 * noise**2)
    return squared + y.shape[-1] * (0.5 * jnp.log(2.0 * jnp.pi) + jnp.log(noise))


def expected_loss(q: Posterior, x: Array, y: Array, noise: float) -> Array:
    """E_q[−log p(y | x, w)], [...]: what `sample` estimates, without its variance."""
    return _loss_of(*moments(q, x), y, noise)


def _loss_of(mean: Array, variance: Array, y: Array, noise: float) -> Array:
    """The error of the mean, plus the variance of f over 2 noise²."""
    return negative_log_likelihood(y, mean, noise) + jnp.sum(variance, axis=-1) / (2.0 * noise**2)


def information_gain(q: Posterior, x: Array, y: Array, noise: float, step: float) -> Array:
    """KL[q_{φ+Δ}‖q_φ] to second order for each transition, [B, i] and [B, o] → [B].

    With g = ∇_φ E_q[−log p], H the diagonal Hessian of the KL and Δ = −λ H⁻¹ g it is

        ½ λ² Σ g²/H = ½ λ² Σ [ g_m² σ² + g_ρ² (1 + e^ρ)² σ² / (2 e^{2ρ}) ].

    g_ρ = g_σ e^ρ/(1 + e^ρ), so that the second term is g_σ² σ²/2: ρ drops out. No transition's
    gradient is ever written down: see `_weighted_squares`.
    """
    width = x.shape[0]
    shifts = tuple((jnp.zeros((width, m.shape[1]), x.dtype),) * 2 for m, _ in q.mean)

    def loss(shifts: Any) -> tuple[Array, list[Any]]:
        (mean, variance), inputs = _propagate(q, x, shifts)
        return jnp.sum(_loss_of(mean, variance, y, noise)), inputs

    slopes, inputs = jax.grad(loss, has_aux=True)(shifts)
    layers = zip(q.mean, q.rho, inputs, slopes, strict=True)
    total = sum((_weighted_squares(*layer) for layer in layers), jnp.zeros(width, x.dtype))
    return 0.5 * step**2 * total


def _weighted_squares(
    means: tuple[Array, Array], rhos: tuple[Array, Array], inputs: Any, slopes: Any
) -> Array:
    """Σ g²/H over one layer's weights for each example, [B], from products of matrices alone.

    With a layer's input of mean x and variance v, and slopes (d, e) of the loss in the mean and
    variance of its output, g_m = x d + 2 v m e and g_σ = 2 σ (x² + v) e: outer products, whose
    squares sum up as matrix products. Against `vmap(grad)`: 0.7 → 0.5 ms for a batch of 100 on 11
    observations, 37 → 1.9 ms on 376.
    """
    m, s2, s2_b = means[0], std(rhos[0]) ** 2, std(rhos[1]) ** 2
    (x, v), (d, e) = inputs, slopes
    mean_part = (
        (x**2 @ s2 + s2_b) * d**2
        + 4.0 * ((x * v) @ (s2 * m)) * d * e
        + 4.0 * (v**2 @ (s2 * m**2)) * e**2
    )
    std_part = 2.0 * ((x**2 + v) ** 2 @ s2**2 + s2_b**2) * e**2
    return jnp.sum(mean_part + std_part, axis=-1)

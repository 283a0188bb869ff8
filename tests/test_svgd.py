"""Eq. 3 against loops and autodiff, and what it is for: particles that become a density."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from jax import Array

from adac.core import svgd

pytestmark = pytest.mark.usefixtures("strict_dtypes")
quick = settings(max_examples=50)
NUMBERS = st.floats(-3.0, 3.0, width=32)


def particles(seed: int, *shape: int) -> Array:
    return jax.random.normal(jax.random.key(seed), shape)


def kernel_of_one_pair(x: Array, y: Array, width: float, normalised: bool) -> Array:
    """The kernel as the paper's footnote writes it, for two points."""
    value = jnp.exp(-jnp.sum((x - y) ** 2) / (2.0 * width**2))
    return value / (np.sqrt(2.0 * np.pi) * width) if normalised else value


# -- the parts -----------------------------------------------------------------------------------


def test_squared_distances_against_loops() -> None:
    x = particles(0, 4, 5, 3)
    wanted = np.array([[[np.sum((p - q) ** 2) for q in row] for p in row] for row in np.asarray(x)])
    np.testing.assert_allclose(svgd.squared_distances(x), wanted, rtol=1e-5, atol=1e-5)


def test_squared_distances_of_distant_twins_are_not_negative() -> None:
    x = 1e3 + 1e-4 * particles(0, 8, 2)
    squared = svgd.squared_distances(x)
    assert float(jnp.min(squared)) >= 0.0
    assert not jnp.any(jnp.diagonal(squared))


median = jax.jit(svgd.median)


@quick
@given(
    st.sampled_from([1, 2, 7, 28]).flatmap(
        lambda size: arrays(np.float32, size, elements=st.floats(0.0, 1e3, width=32))
    )
)
def test_median_is_the_lower_median(values: np.ndarray) -> None:
    lower = np.sort(values)[(len(values) - 1) // 2]
    found = float(median(values))
    assert lower - 1e-6 <= found <= lower + values.max() * 2.0**-16 * 1.01 + 1e-6


def test_median_width_is_per_state_over_distinct_pairs() -> None:
    x = particles(1, 3, 6, 2) * jnp.array([0.1, 1.0, 10.0]).reshape(3, 1, 1)
    squared = np.asarray(svgd.squared_distances(x))
    width = svgd.median_width(jnp.asarray(squared))
    assert width.shape == (3, 1, 1)
    for state in range(3):
        pairs = np.sort(squared[state][np.triu_indices(6, k=1)])
        wanted = np.sqrt(pairs[(len(pairs) - 1) // 2] / (2.0 * np.log(7.0)))
        np.testing.assert_allclose(width[state, 0, 0], wanted, rtol=1e-3)


def test_median_width_of_coinciding_particles_is_the_floor() -> None:
    squared = svgd.squared_distances(jnp.ones((5, 2)))
    np.testing.assert_allclose(svgd.median_width(squared, floor=0.25), 0.25)


@pytest.mark.parametrize("normalised", [False, True])
def test_kernel_is_the_footnote(normalised: bool) -> None:
    x = particles(2, 4, 2)
    kernel = svgd.gaussian_kernel(svgd.squared_distances(x), 0.7, normalised=normalised)
    pair = jax.vmap(lambda p, q: kernel_of_one_pair(p, q, 0.7, normalised), (None, 0))
    np.testing.assert_allclose(kernel, jax.vmap(pair, (0, None))(x, x), rtol=1e-5)


def test_paper_width_is_d_over_k() -> None:
    assert svgd.paper_width(32, 6) == 6 / 32


def test_log_det_score_is_the_gradient_of_the_log_determinant() -> None:
    u = particles(3, 7, 2)
    wanted = jax.grad(lambda x: jnp.sum(jnp.log(1.0 - jnp.tanh(x) ** 2)))(u)
    np.testing.assert_allclose(svgd.log_det_score(u), wanted, rtol=1e-4, atol=1e-5)


# -- Eq. 3 ---------------------------------------------------------------------------------------


def test_one_particle_follows_the_score_itself() -> None:
    x, score = particles(4, 1, 3), particles(5, 1, 3)
    squared = svgd.squared_distances(x)
    plain = svgd.gaussian_kernel(squared, svgd.median_width(squared), normalised=False)
    phi = svgd.direction(x, score, plain, svgd.median_width(squared), jnp.float32(2.0))
    np.testing.assert_allclose(phi, score, rtol=1e-6)


def test_one_particle_under_the_paper_kernel_follows_the_scaled_score() -> None:
    """The footnote's normalisation multiplies everything by 1 / (√2π d/K)."""
    x, score, width = particles(4, 1, 3), particles(5, 1, 3), svgd.paper_width(1, 3)
    kernel = svgd.gaussian_kernel(svgd.squared_distances(x), width, normalised=True)
    phi = svgd.direction(x, score, kernel, width, jnp.float32(2.0))
    np.testing.assert_allclose(phi, score / (np.sqrt(2.0 * np.pi) * 3.0), rtol=1e-6)


@pytest.mark.parametrize("normalised", [False, True])
def test_repulsion_is_the_gradient_of_the_kernel(normalised: bool) -> None:
    x, width = particles(6, 6, 2), 0.8
    kernel = svgd.gaussian_kernel(svgd.squared_distances(x), width, normalised=normalised)
    phi = svgd.direction(x, jnp.zeros_like(x), kernel, width, jnp.float32(1.0))
    gradient = jax.grad(lambda p, q: kernel_of_one_pair(p, q, width, normalised), argnums=1)
    pairs = jax.jit(jax.vmap(jax.vmap(gradient, (None, 0)), (0, None)))(x, x)
    np.testing.assert_allclose(phi, np.mean(pairs, axis=1), rtol=1e-4, atol=1e-6)


@jax.jit
def paper_direction(x: Array, score: Array, width: Array, beta: Array) -> Array:
    kernel = svgd.gaussian_kernel(svgd.squared_distances(x), width, normalised=True)
    return svgd.direction(x, score, kernel, width, beta)


@quick
@given(
    arrays(np.float32, (3, 5, 2), elements=NUMBERS),
    arrays(np.float32, (3, 5, 2), elements=NUMBERS),
    st.sampled_from([0.0, 0.5, 2.0]),
)
def test_direction_is_equation_3(x: np.ndarray, score: np.ndarray, beta: float) -> None:
    """A double loop in float64; the kernel's gradient is written out from its definition."""
    width = np.array([0.5, 1.0, 2.0])
    phi = paper_direction(x, score, width.astype(np.float32).reshape(3, 1, 1), np.float32(beta))
    wanted = np.zeros((3, 5, 2))
    for state, sigma in enumerate(width):
        points, scores = x[state].astype(float), score[state].astype(float)
        for i in range(5):
            for j in range(5):
                away = points[i] - points[j]
                k = np.exp(-away @ away / (2 * sigma**2)) / (np.sqrt(2 * np.pi) * sigma)
                wanted[state, i] += (k * scores[j] + beta * k * away / sigma**2) / 5
    np.testing.assert_allclose(phi, wanted, rtol=1e-3, atol=1e-4)


def test_direction_does_not_depend_on_where_the_cluster_is() -> None:
    """A tight cluster off the origin is a collapse in the making: that is when repulsion counts."""
    cluster = 0.01 * particles(13, 16, 2)

    def repulsion(x: Array) -> Array:
        squared = svgd.squared_distances(x)
        width = svgd.median_width(squared)
        kernel = svgd.gaussian_kernel(squared, width, normalised=False)
        return svgd.direction(x, jnp.zeros_like(x), kernel, width, jnp.float32(1.0))

    here, there = repulsion(cluster), repulsion(cluster + 5.0)
    error = jnp.linalg.norm(here - there) / jnp.linalg.norm(here)
    assert float(error) < 1e-3


def test_surrogate_descends_along_phi_alone() -> None:
    x, phi = particles(7, 4, 3, 2), particles(8, 4, 3, 2)
    slope_x, slope_phi = jax.grad(svgd.surrogate, argnums=(0, 1))(x, phi)
    np.testing.assert_allclose(slope_x, -phi / 12, rtol=1e-6)
    assert not jnp.any(slope_phi)


# -- what it is for ------------------------------------------------------------------------------

Score = Callable[[Array], Array]


def transport(
    score: Score, start: Array, *, width: float | None, beta: Array | float = 1.0
) -> Array:
    """Free particles moved along φ with Adagrad-scaled steps, as in the SVGD paper."""

    def move(step: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        x, past = carry
        squared = svgd.squared_distances(x)
        sigma = svgd.median_width(squared) if width is None else width
        kernel = svgd.gaussian_kernel(squared, sigma, normalised=width is not None)
        phi = svgd.direction(x, score(x), kernel, sigma, jnp.asarray(beta, x.dtype))
        past = 0.95 * past + 0.05 * phi**2
        size = 0.05 / jnp.sqrt(1.0 + 0.05 * step.astype(x.dtype))
        return x + size * phi / jnp.sqrt(past + 1e-8), past

    end, _ = jax.lax.fori_loop(0, 1000, move, (start, jnp.zeros_like(start)))
    return end


@pytest.mark.parametrize(
    ("dims", "scale", "width"),
    [(1, 0.5, None), (2, 0.5, None), (1, 0.1, svgd.paper_width(64, 1)), (2, 0.5, 0.3)],
    ids=["median-1d", "median-2d", "paper-1d", "fixed-2d"],
)
def test_particles_recover_a_gaussian(dims: int, scale: float, width: float | None) -> None:
    mean = jnp.arange(1.0, dims + 1.0).reshape(1, dims)
    start = mean + (0.5 + particles(9, 64, dims)) * scale
    x = np.asarray(transport(lambda p: -(p - mean) / scale**2, start, width=width))
    np.testing.assert_allclose(x.mean(0), np.asarray(mean)[0], atol=0.1 * scale)
    np.testing.assert_allclose(x.std(0), scale, rtol=0.15)
    if dims == 2:
        assert abs(np.corrcoef(x.T)[0, 1]) < 0.15


@pytest.mark.parametrize("width", [None, 0.2], ids=["median", "fixed"])
def test_particles_find_both_modes(width: float | None) -> None:
    def log_density(x: Array) -> Array:
        return jnp.sum(jnp.logaddexp(-((x + 1.0) ** 2) / 0.18, -((x - 1.0) ** 2) / 0.18))

    x = np.asarray(transport(jax.grad(log_density), 0.3 + particles(10, 64, 1), width=width))
    left = x[x < 0]
    assert 0.3 < len(left) / len(x) < 0.7
    for mode in (left + 1.0, x[x >= 0] - 1.0):
        assert abs(mode.mean()) < 0.1
        assert 0.2 < mode.std() < 0.4


@pytest.mark.parametrize("width", [None, 0.2], ids=["median", "fixed"])
def test_entropy_grows_with_beta(width: float | None) -> None:
    """Figure 1 of the paper: a small β leans towards the peak, a large one spreads."""
    start = particles(11, 64, 1)
    end = jax.vmap(lambda beta: transport(lambda p: -p / 0.25, start, width=width, beta=beta))
    spreads = np.std(end(jnp.array([0.25, 0.5, 1.0, 2.0])), axis=(1, 2))
    assert (spreads[1:] > 1.15 * spreads[:-1]).all()


def test_flat_q_before_the_squash_is_uniform_after_it() -> None:
    """With β on both terms the density of u is the log-determinant's alone, whatever β."""

    def end(beta: Array) -> Array:
        start = 0.3 * particles(12, 64, 1)
        return transport(lambda u: beta * svgd.log_det_score(u), start, width=None, beta=beta)

    action = np.sort(np.tanh(jax.vmap(end)(jnp.array([1.0, 2.0]))[..., 0]))
    uniform = -1.0 + 2.0 * (np.arange(64) + 0.5) / 64
    assert np.abs(action - uniform).max() < 0.1

"""The Bayesian network against theory: exact divergences, samples, and a known posterior."""

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax import Array
from jax.flatten_util import ravel_pytree

from adac.core.intrinsic import Vime, bayes
from adac.core.intrinsic.bayes import Posterior

NOISE = 0.7


@pytest.fixture
def double() -> Iterator[None]:
    """Divergences of nearly equal posteriors drown in single precision."""
    with jax.enable_x64(True):
        yield


def network(sizes: tuple[int, ...], seed: int = 0) -> Posterior:
    """A posterior in the middle of learning: every σ is different."""
    q = bayes.init(sizes, 0.5, jax.random.key(seed))
    draw = np.random.default_rng(seed)
    noisy = [x + draw.normal(0.0, 0.4, x.shape).astype(x.dtype) for x in jax.tree.leaves(q)]
    changed: Posterior = jax.tree.unflatten(jax.tree.structure(q), noisy)
    return changed


def data(count: int, inputs: int, outputs: int, seed: int = 0) -> tuple[Array, Array]:
    draw = np.random.default_rng(seed)
    x, y = draw.normal(size=(count, inputs)), draw.normal(size=(count, outputs))
    return jnp.asarray(x), jnp.asarray(y)


def test_gain_is_the_divergence_of_a_small_step(double: None) -> None:
    """½ λ² Σ g²/H → KL[q_{φ+Δ}‖q_φ] as λ → 0, with an error of third order.

    H is autodiff's, of the exact divergence.
    """
    q = network((3, 4, 2))
    x, y = data(2, 3, 2)
    flat, unravel = ravel_pytree(q)

    def divergence(phi: Array) -> Array:
        return bayes.divergence(unravel(phi), q)

    @jax.jit
    def both(step: Array) -> tuple[Array, Array]:
        hessian = jax.hessian(divergence)(flat)
        losses = jax.vmap(lambda phi: bayes.expected_loss(unravel(phi), x, y, NOISE), out_axes=1)
        slopes = jax.jacobian(lambda phi: losses(phi[None])[:, 0])(flat)
        steps = -step * slopes / jnp.diag(hessian)
        exact = jax.vmap(lambda delta: divergence(flat + delta))(steps)
        return bayes.information_gain(q, x, y, NOISE, step) / exact - 1.0, hessian

    errors = [float(np.max(np.abs(both(step)[0]))) for step in (1e-2, 1e-3, 1e-4)]
    assert errors[2] < 1e-3
    assert errors[0] > 5.0 * errors[1] > 25.0 * errors[2]
    hessian = np.asarray(both(1e-2)[1])
    np.testing.assert_allclose(hessian, np.diag(np.diag(hessian)), atol=1e-9)


@pytest.mark.parametrize("sizes", [(3, 2), (5, 6, 4, 3)])
def test_gain_by_matrix_products_is_the_gain_by_gradients(sizes: tuple[int, ...]) -> None:
    """The formula of the paper, one vmap(grad), in the letters of φ = (m, ρ)."""
    q = network(sizes)
    x, y = data(7, sizes[0], sizes[-1])

    def one(x: Array, y: Array) -> Array:
        g = jax.grad(bayes.expected_loss)(q, x, y, NOISE)
        s = jax.tree.map(lambda rho: jnp.log(1 + jnp.exp(rho)), q.rho)
        for_m = jax.tree.map(lambda g, s: jnp.sum(g**2 * s**2), g.mean, s)
        for_rho = jax.tree.map(
            lambda g, s, r: jnp.sum(g**2 * (1 + jnp.exp(r)) ** 2 * s**2 / (2 * jnp.exp(2 * r))),
            g.rho,
            s,
            q.rho,
        )
        total: Array = sum(jax.tree.leaves((for_m, for_rho)), jnp.zeros(()))
        return total

    wanted, found = jax.jit(
        lambda: (
            0.5 * 0.1**2 * jax.vmap(one)(x, y),
            bayes.information_gain(q, x, y, NOISE, 0.1),
        )
    )()
    np.testing.assert_allclose(found, wanted, rtol=1e-4)


def test_divergence_against_samples() -> None:
    q, p = network((2, 1), 1), network((2, 1), 2)
    draw, found = np.random.default_rng(0), 0.0
    for m, rho, m_p, rho_p in zip(
        *map(jax.tree.leaves, (q.mean, q.rho, p.mean, p.rho)), strict=True
    ):
        s, s_p = np.log1p(np.exp(rho)), np.log1p(np.exp(rho_p))
        w = draw.normal(m, s, (200_000, *m.shape))
        log_q, log_p = (-(((w - a) / b) ** 2) / 2 - np.log(b) for a, b in ((m, s), (m_p, s_p)))
        found += float(np.sum(np.mean(log_q - log_p, axis=0)))
    np.testing.assert_allclose(bayes.divergence(q, p), found, rtol=0.02)
    assert bayes.divergence(q, q) == 0.0


def test_moments_are_those_of_networks_with_sampled_weights() -> None:
    """Whole weight matrices are drawn; local reparametrisation and the moments must agree."""
    q = network((3, 4, 2))
    x, _ = data(5, 3, 2)
    count = 50_000

    @jax.jit
    def directly(key: Array) -> Array:
        leaves, tree = jax.tree.flatten(q.mean)
        shapes = [(count, *m.shape) for m in leaves]
        sizes = np.cumsum([m.size for m in leaves])
        noise = jnp.split(jax.random.normal(key, (count, int(sizes[-1]))), sizes[:-1], axis=1)
        triples = zip(leaves, jax.tree.leaves(q.rho), noise, shapes, strict=True)
        drawn = [m + bayes.std(rho) * n.reshape(shape) for m, rho, n, shape in triples]
        (w1, b1), (w2, b2) = jax.tree.unflatten(tree, drawn)
        hidden = jax.nn.relu(jnp.einsum("bi,sio->sbo", x, w1) + b1[:, None])
        return jnp.einsum("sbi,sio->sbo", hidden, w2) + b2[:, None]

    mean, variance = jax.jit(bayes.moments)(q, x)
    local = jax.jit(bayes.sample, static_argnums=2)(q, x, count, jax.random.key(1))
    for samples in (np.asarray(directly(jax.random.key(0))), np.asarray(local)):
        np.testing.assert_allclose(samples.mean(0), mean, atol=0.03)
        np.testing.assert_allclose(samples.var(0), variance, rtol=0.06)


def test_noise_is_drawn_for_each_example() -> None:
    q = network((3, 4, 2))
    f = jax.jit(bayes.sample, static_argnums=2)(q, jnp.ones((6, 3)), 2, jax.random.key(0))
    assert f.shape == (2, 6, 2)
    assert len(np.unique(np.asarray(f))) == f.size


def test_rectified_gaussian_in_its_limits() -> None:
    """Far above 0 it is the Gaussian itself, far below it is 0, at 0 the half normal."""
    mean, variance = bayes.relu_moments(jnp.array([50.0, -50.0, 0.0]), jnp.full(3, 4.0))
    half = 2.0 / np.sqrt(2.0 * np.pi)
    np.testing.assert_allclose(mean, [50.0, 0.0, half], atol=1e-4)
    np.testing.assert_allclose(variance, [4.0, 0.0, 2.0 - half**2], rtol=1e-3, atol=1e-3)


def test_learning_finds_the_known_posterior_of_linear_regression() -> None:
    """Without hidden layers the best factorised q is known: the exact posterior's mean, and as
    variance one over the diagonal of its precision Λ = XᵀX/noise² + I/prior²."""
    vime = Vime(model_hidden=(), likelihood_std=NOISE, prior_std=0.5, model_samples=8)
    x, _ = data(40, 2, 1, seed=3)
    y = x @ jnp.array([[0.8], [-0.5]]) + 0.3
    y += NOISE * np.random.default_rng(0).normal(size=y.shape).astype(np.float32)
    design = np.hstack([x, np.ones((40, 1))])
    precision = design.T @ design / NOISE**2 + np.eye(3) / 0.5**2
    wanted = np.linalg.solve(precision, design.T @ np.asarray(y) / NOISE**2)[:, 0]

    q = bayes.init((2, 1), 0.5, jax.random.key(0))
    steps = 1_500
    adam = optax.adam(optax.cosine_decay_schedule(0.03, steps))

    def learn(carry: Any, key: Array) -> tuple[Any, None]:
        q, opt = carry
        gradient = jax.grad(lambda q: vime.loss(q, x, y, jnp.float32(40.0), key)[0])(q)
        step, opt = adam.update(gradient, opt)
        return (optax.apply_updates(q, step), opt), None

    keys = jax.random.split(jax.random.key(1), steps)
    (q, _), _ = jax.jit(lambda c: jax.lax.scan(learn, c, keys))((q, adam.init(q)))
    mean = np.append(q.mean[0][0], q.mean[0][1])
    std = np.append(bayes.std(q.rho[0][0]), bayes.std(q.rho[0][1]))
    np.testing.assert_allclose(mean, wanted, atol=0.02)
    np.testing.assert_allclose(std, np.diag(precision) ** -0.5, rtol=0.05)

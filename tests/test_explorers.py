"""How μ acts: its noise, its memory; and how it learns: the amortised step against Eq. 3."""

import dataclasses
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array

from adac.core import svgd
from adac.core.explorers import (
    Analogous,
    Explorer,
    GaussianNoise,
    OrnsteinUhlenbeck,
    OwnPolicy,
)
from adac.core.networks import Actor, QNetwork
from helpers import OBS, SCALAR, SIZES, TINY, seen

pytestmark = pytest.mark.usefixtures("strict_dtypes")
MANY = 4000


@pytest.fixture(scope="module")
def actor() -> Actor:
    return Actor(TINY, OBS, 2, jax.random.key(0))


@pytest.fixture(scope="module")
def critic() -> QNetwork:
    return SCALAR.network(TINY, OBS, 2, jax.random.key(1))


def walk(explorer: Explorer, actor: Actor, first: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Actions [T, N, d] and memories [T, N, ·] of N environments at one fixed observation."""
    steps, count = first.shape
    obs = jnp.zeros((count, OBS))
    memory = jnp.full_like(explorer.init_memory(count, SIZES), 1e6)  # must be forgotten

    def one(memory: Array, now: tuple[Array, Array]) -> tuple[Array, tuple[Array, Array]]:
        action, memory = explorer.act(seen(actor), obs, memory, *now)
        return memory, (action, memory)

    keys = jax.random.split(jax.random.key(2), steps)
    _, (actions, memories) = jax.lax.scan(one, memory, (jnp.asarray(first), keys))
    return np.asarray(actions), np.asarray(memories)


def starts(steps: int, *at: int) -> np.ndarray:
    first = np.zeros((steps, MANY), bool)
    first[[0, *at]] = True
    return first


# -- acting --------------------------------------------------------------------------------------


def test_correlated_xi_is_standard_normal_at_every_step(actor: Actor) -> None:
    rho = 0.9
    _, memory = walk(Analogous(latent_correlation=rho), actor, starts(9, 6))
    xi = memory[..., :-1]
    assert xi.shape == (9, MANY, TINY.latent)
    np.testing.assert_allclose(xi.mean((1, 2)), 0.0, atol=0.02)
    np.testing.assert_allclose(xi.std((1, 2)), 1.0, atol=0.02)
    for lag in range(6):
        np.testing.assert_allclose((xi[0] * xi[lag]).mean(), rho**lag, atol=0.02)
    np.testing.assert_allclose((xi[5] * xi[6]).mean(), 0.0, atol=0.02)  # a new episode
    np.testing.assert_allclose((xi[6] * xi[8]).mean(), rho**2, atol=0.02)
    across = np.corrcoef(xi[4].T) - np.eye(TINY.latent)
    assert np.abs(across).max() < 0.1


def test_of_several_correlations_each_episode_keeps_the_one_it_drew(actor: Actor) -> None:
    _, memory = walk(Analogous(latent_correlation=(0.0, 0.9)), actor, starts(9, 6))
    xi, rho = memory[..., :-1], memory[..., -1]
    np.testing.assert_array_equal(np.unique(rho), np.float32([0.0, 0.9]))
    slow = rho == np.float32(0.9)
    np.testing.assert_allclose(slow.mean(1), 0.5, atol=0.03)
    assert (slow[:6] == slow[0]).all()
    assert (slow[6:] == slow[6]).all()
    np.testing.assert_allclose((slow[0] & slow[6]).mean(), 0.25, atol=0.03)  # drawn anew
    np.testing.assert_allclose((xi[0] * xi[3])[slow[0]].mean(), 0.9**3, atol=0.03)
    np.testing.assert_allclose((xi[0] * xi[3])[~slow[0]].mean(), 0.0, atol=0.03)
    for kind in (slow, ~slow):
        spread = [now[chosen].std() for now, chosen in zip(xi, kind, strict=True)]
        np.testing.assert_allclose(spread, 1.0, atol=0.03)


def test_independent_xi_needs_no_memory(actor: Actor) -> None:
    explorer = Analogous(latent_correlation=0.0, action_noise=0.0)
    memory = explorer.init_memory(MANY, SIZES)
    assert memory == ()
    obs, first = jnp.zeros((MANY, OBS)), jnp.zeros(MANY, bool)
    action, memory = explorer.act(seen(actor), obs, memory, first, jax.random.key(0))
    assert memory == ()
    assert len(np.unique(action[:, 0])) > 0.99 * MANY


@pytest.mark.parametrize(("noise", "std"), [(0.2, 0.2), (None, 2 / 32)])
def test_behaviour_action_is_f_plus_kernel_noise(noise: float | None, std: float) -> None:
    """At weights of zero f is 0, and the noise is all there is; None is the paper's d / K."""
    silent = jax.tree.map(jnp.zeros_like, Actor(TINY, OBS, 2, jax.random.key(0)))
    explorer = Analogous(particles=32, action_noise=noise)
    obs, first = jnp.zeros((MANY, OBS)), jnp.ones(MANY, bool)
    memory = explorer.init_memory(MANY, SIZES)
    action, _ = explorer.act(seen(silent), obs, memory, first, jax.random.key(1))
    np.testing.assert_allclose(np.std(action), std, rtol=0.05)


def test_ornstein_uhlenbeck_statistics(actor: Actor) -> None:
    explorer = OrnsteinUhlenbeck(noise=0.1, theta=0.2)
    actions, x = walk(explorer, actor, starts(60, 50))
    decay = 0.8
    for time in (0, 1, 5):
        wanted = 0.1 * math.sqrt((1 - decay ** (2 * (time + 1))) / (1 - decay**2))
        np.testing.assert_allclose(x[time].std(), wanted, rtol=0.05)
    np.testing.assert_allclose(x[49].std(), 0.1 / math.sqrt(1 - decay**2), rtol=0.05)
    np.testing.assert_allclose((x[40] * x[43]).mean() / x[40].var(), decay**3, atol=0.05)
    np.testing.assert_allclose(x[50].std(), 0.1, rtol=0.05)  # a new episode starts from 0
    centre = np.tanh(np.asarray(actor(jnp.zeros((1, OBS)))))
    np.testing.assert_allclose(actions, np.clip(centre + x, -1.0, 1.0), atol=1e-5)


@pytest.mark.parametrize("noise", [0.0, 0.1, 5.0])
def test_gaussian_noise_is_around_pi_and_clipped(actor: Actor, noise: float) -> None:
    obs, first = jnp.ones((MANY, OBS)), jnp.ones(MANY, bool)
    action, _ = GaussianNoise(noise).act(seen(actor), obs, (), first, jax.random.key(0))
    pi = np.tanh(actor(obs))
    assert np.abs(action).max() <= 1.0
    if noise < 1:
        np.testing.assert_allclose(np.std(action - pi), noise, rtol=0.05, atol=1e-7)
        np.testing.assert_allclose(np.mean(action - pi), 0.0, atol=0.01)


def test_own_policy_of_a_deterministic_base_is_pi(actor: Actor) -> None:
    obs = jnp.ones((4, OBS))
    action, _ = OwnPolicy().act(seen(actor), obs, (), jnp.ones(4, bool), jax.random.key(0))
    np.testing.assert_allclose(action, np.tanh(actor(obs)), rtol=1e-6)


# -- learning ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "explorer",
    [
        Analogous.paper(particles=4, beta_start=3.0, beta_end=1.0),
        Analogous(particles=4, beta_start=3.0, beta_end=1.0),
        Analogous(particles=4, beta_start=3.0, beta_end=1.0, score_floor=0.0),
        Analogous(particles=4, beta_start=3.0, beta_end=1.0, normalise_score=False, log_det=False),
        Analogous(particles=4, beta_start=3.0, beta_end=1.0, other_particles=False),
    ],
    ids=["paper", "robust", "no-floor", "pre-squash-bare", "all-particles"],
)
def test_loss_descends_equation_3(explorer: Analogous, actor: Actor, critic: QNetwork) -> None:
    """The weights' gradient is −E[φ ∂f/∂w], with φ from a double loop over each state's own K."""
    obs = jax.random.normal(jax.random.key(3), (3, OBS))
    progress = jnp.float32(0.25)

    @jax.jit
    def learned(weights: Actor) -> Actor:
        def loss(weights: Actor) -> Array:
            q = SCALAR.at(critic, obs)
            return explorer.loss(seen(weights), q, obs, progress, jax.random.key(4))[0]

        return jax.grad(loss)(weights)

    xi = jax.random.normal(jax.random.key(4), (3, 4, TINY.latent))

    def sampler(weights: Actor) -> Array:
        u = jnp.stack([weights(jnp.repeat(obs[i : i + 1], 4, axis=0), xi[i]) for i in range(3)])
        return jnp.tanh(u) if explorer.space == "action" else u

    phi = jnp.asarray(naive_phi(explorer, sampler(actor), critic, obs, beta=2.5), jnp.float32)
    wanted = jax.jit(jax.grad(lambda weights: -jnp.mean(jnp.sum(phi * sampler(weights), -1))))
    for found, hoped in zip(
        jax.tree.leaves(learned(actor)), jax.tree.leaves(wanted(actor)), strict=True
    ):
        np.testing.assert_allclose(found, hoped, rtol=2e-3, atol=2e-5)


def naive_phi(
    explorer: Analogous, x: Array, critic: QNetwork, obs: Array, beta: float
) -> np.ndarray:
    """φ of Eq. 3 in float64 from the log-density's gradient, one pair at a time."""
    action = x if explorer.space == "action" else jnp.tanh(x)
    slope = jax.grad(lambda a: jnp.sum(jax.vmap(critic, (None, 1), 1)(obs, a)))(action)
    score, points, a = (np.asarray(v, float) for v in (slope, x, action))
    if explorer.normalise_score:
        score = score / max(np.abs(score).mean(), explorer.score_floor)
    if explorer.space == "pre-squash":
        score = score * (1.0 - a**2) - (2.0 * beta * a if explorer.log_det else 0.0)
    batch, count, dims = points.shape
    phi = np.zeros_like(points)
    for s in range(batch):
        away = points[s][:, None] - points[s][None]
        squared = (away**2).sum(-1)
        if explorer.bandwidth == "paper":
            sigma = dims / count
            kernel = np.exp(-squared / (2 * sigma**2)) / (np.sqrt(2 * np.pi) * sigma)
        else:
            pairs = np.sort(squared[np.triu_indices(count, 1)])
            sigma = math.sqrt(pairs[(len(pairs) - 1) // 2] / (2 * math.log(count + 1)))
            kernel = np.exp(-squared / (2 * sigma**2))
        if explorer.other_particles:  # the mean over j ≠ i
            kernel = kernel * (1.0 - np.eye(count)) * count / (count - 1)
        pull = kernel @ score[s]
        push = (kernel[..., None] * away).sum(1) / sigma**2
        phi[s] = (pull + beta * push) / count
    return phi


@pytest.mark.parametrize(
    ("steep", "floor", "raw_at"),
    [(100.0, 1.0, 1.0), (0.01, 0.0, 1.0), (0.01, 1.0, 0.01), (0.01, 0.1, 0.1)],
)
def test_a_steep_score_is_normalised_and_a_flat_one_is_not_blown_up(
    steep: float, floor: float, raw_at: float, actor: Actor, critic: QNetwork
) -> None:
    """∇Q of mean magnitude `steep` pulls like a raw one of mean magnitude `raw_at`."""
    obs = jax.random.normal(jax.random.key(3), (3, OBS))

    def pull(explorer: Analogous, magnitude: float) -> list[Array]:
        def loss(weights: Actor) -> Array:
            q = SCALAR.at(scaled(critic, magnitude / unit), obs)
            return explorer.loss(seen(weights), q, obs, jnp.float32(0.0), jax.random.key(4))[0]

        return jax.tree.leaves(jax.grad(loss)(actor))

    xi = jax.random.normal(jax.random.key(4), (3, 4, TINY.latent))
    action = jnp.tanh(actor.decode(actor.embed(obs)[:, None, :], xi))
    unit = float(jnp.mean(jnp.abs(SCALAR.at(critic, obs).gradient(action))))
    robust = Analogous(particles=4, score_floor=floor)
    raw = dataclasses.replace(robust, normalise_score=False)
    for found, wanted in zip(pull(robust, steep), pull(raw, raw_at), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-6)


def scaled(critic: QNetwork, factor: float) -> QNetwork:
    last = jax.tree.map(lambda x: factor * x, critic.body[-1])
    return eqx.tree_at(lambda c: c.body[-1], critic, last)


def test_beta_is_annealed_over_the_run() -> None:
    progress = jnp.array([0.0, 0.5, 1.0, 7.0])
    annealed = Analogous(beta_start=2.0, beta_end=0.2)
    np.testing.assert_allclose(annealed.beta(progress), [2.0, 1.1, 0.2, 0.2], rtol=1e-6)
    np.testing.assert_allclose(Analogous().beta(progress), 0.3)
    np.testing.assert_allclose(Analogous.paper().beta(progress), [2.0, 1.5, 1.0, 1.0])


def test_paper_form_is_the_paper() -> None:
    paper = Analogous.paper()
    assert (paper.space, paper.bandwidth, paper.log_det) == ("action", "paper", False)
    assert not paper.normalise_score
    assert paper.action_noise is None
    assert paper.latent_correlation == 0.0
    assert (paper.beta_start, paper.beta_end) == (2.0, 1.0)
    assert paper.score_floor == 0.0
    assert dataclasses.replace(paper, particles=8) == Analogous.paper(particles=8)
    assert svgd.paper_width(paper.particles, 3) == 3 / 32


@pytest.mark.parametrize(
    "bad",
    [
        {"particles": 0},
        {"beta_start": -1.0},
        {"behaviour_lr": -1e-4},
        {"score_floor": -1.0},
        {"action_noise": -0.1},
        {"latent_correlation": 1.0},
        {"latent_correlation": ()},
        {"latent_correlation": (0.0, -0.1)},
        {"space": "sphere"},
        {"bandwidth": "wide"},
    ],
)
def test_settings_out_of_range_are_refused(bad: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(bad))):
        Analogous(**bad)  # type: ignore[arg-type]

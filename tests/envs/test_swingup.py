"""CartPoleSwingUp against mechanics derived here another way, and its rewards by hand."""

import math

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from adac import envs
from adac.envs.swingup import Motion, accelerations, advance, dense_reward

ID = "adac/CartPoleSwingUpSparse-v0"
G, M_CART, M_POLE, LENGTH, B = 9.82, 0.5, 0.5, 0.6, 0.1


def act(value: float) -> np.ndarray:
    return np.array([value], np.float32)


def lagrange(state: np.ndarray, force: float) -> np.ndarray:
    """A uniform rod (inertia m l^2 / 12) hinged on a cart: solve the mass matrix, angle 0 up.

    The task measures the angle against the cart's x: a positive angle leans to negative x.
    """
    _, x_dot, theta, theta_dot = state
    half = LENGTH / 2
    inertia = M_POLE * LENGTH**2 / 12 + M_POLE * half**2
    coupling = M_POLE * half * math.cos(theta)
    mass_matrix = np.array([[M_CART + M_POLE, -coupling], [-coupling, inertia]])
    forces = np.array(
        [
            force - B * x_dot - M_POLE * half * theta_dot**2 * math.sin(theta),
            M_POLE * G * half * math.sin(theta),
        ]
    )
    x_acc, theta_acc = np.linalg.solve(mass_matrix, forces)
    return np.array([x_dot, x_acc, theta_dot, theta_acc])


STATES = [
    (0.0, 0.0, math.pi, 0.0),
    (0.3, -1.0, 0.4, 2.0),
    (-1.2, 0.7, 2.5, -3.0),
    (0.0, 0.0, math.pi / 2, 0.0),
    (2.0, 2.0, -1.0, 6.0),
]


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("force", [-10.0, 0.0, 4.0])
def test_accelerations_are_those_of_a_rod_on_a_cart(state: tuple[float, ...], force: float) -> None:
    _, x_acc, _, theta_acc = lagrange(np.array(state), force)
    np.testing.assert_allclose(accelerations(Motion(*state), force), (x_acc, theta_acc), rtol=1e-12)


def test_the_step_is_explicit_euler() -> None:
    motion = Motion(0.3, -1.0, 0.4, 2.0)
    state = np.array(motion)
    expected = state + 0.01 * lagrange(state, 4.0)
    np.testing.assert_allclose(advance(motion, 4.0), expected, rtol=1e-13)


def test_the_trajectory_approaches_the_continuous_one_at_first_order() -> None:
    """Half a second from hanging: the Euler error is about dt, against an adaptive integrator."""
    start = np.array([0.0, 0.0, math.pi - 0.1, 0.0])
    exact = solve_ivp(lambda _, s: lagrange(s, 3.0), (0, 0.5), start, rtol=1e-10, atol=1e-12)
    env = envs.make(ID).unwrapped
    env.reset(seed=0)
    env.motion = Motion(*start)
    for _ in range(50):
        env.step(act(0.3))
    error = np.abs(np.array(env.motion) - exact.y[:, -1])
    assert 1e-4 < error.max() < 0.2


def test_the_observation_and_the_start() -> None:
    env = envs.make(ID)
    starts = np.array([env.reset(seed=seed)[0] for seed in range(2000)])
    x, x_dot, cosine, sine, theta_dot = starts.T
    theta = np.arctan2(sine, cosine) % (2 * math.pi)
    for column, mean in ((x, 0), (x_dot, 0), (theta, math.pi), (theta_dot, 0)):
        assert column.mean() == pytest.approx(mean, abs=0.02)
        assert column.std() == pytest.approx(0.2, abs=0.015)


@pytest.mark.parametrize(
    ("theta", "x", "reward"),
    [(0.0, 0.0, 1.0), (math.pi, 0.0, 0.0), (0.0, 2.4, 0.0), (math.pi / 2, 1.2, math.sqrt(0.125))],
)
def test_the_original_reward(theta: float, x: float, reward: float) -> None:
    assert dense_reward(Motion(x, 0.0, theta, 0.0)) == pytest.approx(reward, abs=1e-12)


@pytest.mark.parametrize(
    ("cosine", "paid"), [(0.8 + 1e-9, True), (0.8 - 1e-9, False), (1.0, True), (-1.0, False)]
)
def test_it_pays_above_a_cosine_of_0_8_and_charges_effort_everywhere(
    cosine: float, paid: bool
) -> None:
    env = envs.make(ID)
    env.reset(seed=0)
    env.unwrapped.motion = Motion(0.6, 0.0, math.acos(cosine), 0.0)  # at rest: Euler keeps it there
    _, reward, *_ = env.step(act(-0.5))
    dense = (cosine + 1) / 2 * math.cos(math.pi * 0.6 / 4.8)
    assert reward == pytest.approx((dense if paid else 0.0) - 0.05, abs=1e-9)


def test_it_ends_where_the_cart_leaves_the_track() -> None:
    env = envs.make(ID)
    for x, ends in ((2.38, False), (2.4 - 1e-9, False), (2.4 + 1e-9, True), (-2.41, True)):
        env.reset(seed=0)
        env.unwrapped.motion = Motion(x, 0.0, math.pi, 0.0)
        assert env.step(act(0.0))[2:4] == (ends, False)


@pytest.mark.parametrize(("random", "low", "high"), [(False, 20, 33), (True, 35, 75)])
def test_returns_of_the_original_reward(random: bool, low: float, high: float) -> None:
    """About 26 without action and 66 with random ones, whose spread (70) leaves room for 52."""
    env, returns = envs.make(ID), []
    actions = np.random.default_rng(0)
    for seed in range(80):
        env.reset(seed=seed)
        total, ended = 0.0, False
        while not ended:
            action = act(actions.uniform(-1, 1) if random else 0.0)
            *_, terminated, truncated, _ = env.step(action)
            total += dense_reward(env.unwrapped.motion)
            ended = terminated or truncated
        returns.append(total)
    assert low < np.mean(returns) < high

"""Coloured and repeated noise, on actions and on ξ: what they are from step to step."""

from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array
from numpy.typing import NDArray
from worlds import ACTION, BASES, begin, follow, memory_of, tiny, view_of

from adac.core import agent as core
from adac.core.explorers import Analogous, ColouredNoise, RepeatedNoise
from adac.core.explorers.coloured import Coloured
from adac.core.explorers.processes import Process
from adac.core.explorers.repeated import Repeated


def sequence(process: Process, steps: int, count: int = 1, dims: int = 2) -> NDArray[Any]:
    """[T, N, d] in one episode."""

    def step(memory: Any, at: Array) -> tuple[Any, Array]:
        key = jax.random.fold_in(jax.random.key(1), at)
        x, memory = process.step(memory, dims, jnp.full(count, at == 0), key)
        return memory, x

    return np.asarray(jax.lax.scan(step, process.init(count, dims), jnp.arange(steps))[1])


def slope(x: NDArray[Any]) -> float:
    """Of the log periodogram over log f, in octaves from a period of 500 steps to one of 8."""
    power = np.mean(np.abs(np.fft.rfft(x, axis=0)) ** 2, axis=tuple(range(1, x.ndim)))
    frequency = np.fft.rfftfreq(len(x))
    edges = np.geomspace(1 / 500, 1 / 8, 9)
    bands = [(frequency >= low) & (frequency < high) for low, high in pairwise(edges)]
    middle = [np.mean(np.log(frequency[band])) for band in bands]
    height = [np.log(np.mean(power[band])) for band in bands]
    return float(np.polyfit(middle, height, 1)[0])


@pytest.mark.parametrize("exponent", [0.0, 1.0, 2.0])
def test_the_spectrum_falls_with_the_exponent(exponent: float) -> None:
    x = sequence(Coloured(exponent), 4_000, count=200)
    assert slope(x) == pytest.approx(-exponent, abs=0.1)


@pytest.mark.parametrize("process", [Coloured(1.0), Coloured(2.0), Repeated()])
def test_a_step_alone_is_normal_whatever_its_past(process: Process) -> None:
    x = sequence(process, 50, count=4_000)
    for at in (0, 1, 49):
        assert np.std(x[at]) == pytest.approx(1.0, abs=0.03)
        assert np.mean(x[at]) == pytest.approx(0.0, abs=0.04)


def test_the_mean_run_of_repeated_noise() -> None:
    x = sequence(Repeated(), 20_000)[:, 0, 0]
    runs = np.diff(np.flatnonzero(np.diff(x, prepend=np.nan) != 0))
    k = np.arange(1, 17)
    assert runs.max() <= 16
    assert runs.mean() == pytest.approx(np.sum(1 / k) / np.sum(1 / k**2), rel=0.05)
    assert np.mean(runs == 1) == pytest.approx(1 / np.sum(1 / k**2), abs=0.02)


@pytest.mark.parametrize("explorer", [ColouredNoise(noise=0.2), RepeatedNoise(noise=0.2)])
def test_the_noise_lies_on_the_policy(explorer: ColouredNoise | RepeatedNoise) -> None:
    agent = tiny(explorer)
    state = begin(agent)
    actions = follow(agent, state, 1, envs=4_000)[0]
    pi = view_of(agent, state).action(jnp.ones((1, 3)))
    np.testing.assert_allclose(actions.mean(axis=0), pi[0], atol=0.02)
    np.testing.assert_allclose(actions.std(axis=0), 0.2, atol=0.01)


def test_on_a_gaussian_base_the_noise_has_the_base_s_width() -> None:
    agent = tiny(RepeatedNoise(noise=0.0), "sac")
    state = begin(agent)
    before = np.arctanh(follow(agent, state, 1, envs=4_000)[0])
    raw = view_of(agent, state).output(jnp.ones((1, 3)))
    std = BASES["sac"].deviation(raw)
    assert std is not None
    np.testing.assert_allclose(before.std(axis=0), std[0], rtol=0.05)


@pytest.mark.parametrize(
    ("explorer", "process"),
    [
        (Analogous(latent_colour=1.0, action_noise=0.0), Coloured(1.0)),
        (Analogous(latent_repeat=16, action_noise=0.0), Repeated(16)),
    ],
)
def test_xi_is_moved_by_the_very_same_process(explorer: Analogous, process: Process) -> None:
    agent = tiny(explorer)
    state = begin(agent)
    obs, first = jnp.ones((5, 3)), jnp.ones(5, bool)
    action, memory = core.act(agent, state, obs, memory_of(explorer, 5), first, jax.random.key(3))
    key = jax.random.split(jax.random.key(3))[0]
    xi, expected = process.step(process.init(5, 4), 4, first, key)
    np.testing.assert_allclose(action, view_of(agent, state).action(obs, xi), rtol=1e-5)
    jax.tree.map(np.testing.assert_array_equal, memory, expected)


def test_an_episode_s_first_step_forgets() -> None:
    for process in (Coloured(1.0), Repeated()):
        old = jax.tree.map(lambda leaf: leaf + 7, process.init(3, ACTION))
        one, other = (
            process.step(memory, ACTION, jnp.ones(3, bool), jax.random.key(0))
            for memory in (old, process.init(3, ACTION))
        )
        jax.tree.map(np.testing.assert_array_equal, one, other)


def test_colour_and_repetition_exclude_each_other() -> None:
    with pytest.raises(ValueError, match="not both"):
        Analogous(latent_colour=1.0, latent_repeat=4)

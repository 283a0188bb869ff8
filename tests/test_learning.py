"""Does it learn? Thresholds that random actions and broken agents miss by far.

Pendulum-v1 returns about -1,200 under random actions and about -150 when it balances.
"""

from collections.abc import Iterator
from typing import Any

import jax
import pytest

from adac.training.learner import Learner

SMALL = {"actor_hidden": "64,64", "critic_hidden": "64,64", "warmup": 500, "batch_size": 64}
SMALL |= {"actor_lr": 1e-3, "critic_lr": 1e-3}  # a small network's rate
LATENT = SMALL | {"actor_hidden": "64", "latent_hidden": "64"}


@pytest.fixture
def _well_compiled() -> Iterator[None]:
    """These run for longer than they compile. Keys are followed where the same agents are resumed:
    here, at every one of thousands of calls, that would take as long as the arithmetic."""
    jax.config.update("jax_disable_most_optimizations", False)
    with jax.debug_key_reuse(False):
        yield
    jax.config.update("jax_disable_most_optimizations", True)


@pytest.mark.slow
@pytest.mark.usefixtures("_well_compiled")
@pytest.mark.parametrize(
    ("agent", "overrides"),
    [
        ("td3", SMALL),
        ("ddpg", SMALL),
        ("sac", SMALL | {"temperature_lr": 1e-3}),
        ("adac-td3", LATENT),
        ("adac-ddpg", LATENT),
    ],
)
def test_every_base_learns_to_balance(agent: str, overrides: dict[str, Any]) -> None:
    """Ten episodes of π in a row return more than -250 on average, within 12,000 steps."""
    learner = Learner("Pendulum-v1", agent, seed=0, overrides=overrides)
    learner.learn(12_000, eval_every=1_000, eval_episodes=10, stop_return=-250)
    assert learner.step < 12_000


def test_an_agent_that_never_updates_misses_the_threshold() -> None:
    learner = Learner("Pendulum-v1", "td3", overrides=SMALL | {"updates_per_step": 0}).learn(600)
    assert learner.evaluate(10).returns.mean() < -700

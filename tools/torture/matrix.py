"""Every base × explorer × intrinsic reward × critic that fit, with 1 and 3 environments."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from adac import Learner
from adac.core.agent import Agent
from adac.core.bases import SAC, Deterministic
from adac.core.critics import Quantiles, Scalar
from adac.core.explorers import (
    Analogous,
    GaussianNoise,
    Mixture,
    OrnsteinUhlenbeck,
    OwnPolicy,
    Then,
)
from adac.core.intrinsic import Rnd, Vime
from adac.core.networks import Networks
from adac.training.train import Schedule, train

TASK = "Pendulum-v1"
BASES = {
    "ddpg": Deterministic(critics=1, policy_delay=1, target_noise=0.0),
    "td3": Deterministic(),
    "sac": SAC(),
}
EXPLORERS = {
    "analogous": Analogous(particles=4, latent_correlation=0.9),
    "gaussian": GaussianNoise(),
    "ou": OrnsteinUhlenbeck(),
    "own": OwnPolicy(),
    "mixture": Mixture((GaussianNoise(), OrnsteinUhlenbeck())),
    "then": Then(GaussianNoise(), OrnsteinUhlenbeck(), 90),
}
INTRINSIC = {
    "none": None,
    "vime": Vime(model_hidden=(8,)),
    "rnd": Rnd(model_hidden=(8,), model_features=4),
}
CRITICS: dict[str, Any] = {
    "scalar": Scalar(),
    "quantiles": Quantiles(),
    "renorm": Scalar(batch_renorm=True),
}
SMALL = Networks(actor_hidden=(8,), critic_hidden=(8,), latent=4, latent_hidden=(8,))
SIZES: dict[str, Any] = {"batch_size": 8, "replay_size": 150, "warmup": 30, "learn_after": 30}


class Case(NamedTuple):
    name: str
    agent: Agent
    num_envs: int


def cases() -> Iterator[Case]:
    for base, explorer, intrinsic, critic in itertools.product(
        BASES, EXPLORERS, INTRINSIC, CRITICS
    ):
        for number in (1, 3):
            try:
                agent = Agent(
                    BASES[base],
                    EXPLORERS[explorer],
                    INTRINSIC[intrinsic],
                    SMALL,
                    CRITICS[critic],
                    normalise_obs=number == 3,
                    **SIZES,
                )
            except ValueError:  # parts that do not go together
                continue
            yield Case(f"{base}-{explorer}-{intrinsic}-{critic}-{number}", agent, number)


def begin(case: Case, folder: Path, steps: int, seed: int = 0) -> None:
    """A run folder with a plan of `steps` steps, of which the first is taken."""
    learner = Learner(TASK, case.agent, seed=seed, num_envs=case.num_envs)
    plan = Schedule(eval_every=70, eval_episodes=1, checkpoint_every=40, log_every=25)
    train(learner, steps, plan, out=folder, callback=lambda _: False)
    learner.close()

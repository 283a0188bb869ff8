"""Every kind of base, explorer, intrinsic reward and critic, in an order that has all pairs."""

import functools
import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from adac import Learner
from adac.core.agent import Agent
from adac.core.bases import SAC, Base, Deterministic
from adac.core.critics import Critic, Quantiles, Scalar
from adac.core.explorers import (
    Analogous,
    ColouredNoise,
    Explorer,
    GaussianNoise,
    GoalExploration,
    Interleaved,
    MaxInfo,
    Mixture,
    Mulex,
    Optimistic,
    OrnsteinUhlenbeck,
    OwnPolicy,
    ParameterNoise,
    RepeatedNoise,
    StateDependentNoise,
    Then,
    Uniform,
)
from adac.core.intrinsic import Counts, Ex2, Icm, InformationGain, Intrinsic, Rnd, Sum, Vime
from adac.core.networks import Networks
from adac.core.soft_value import SoftValue
from adac.training.train import Schedule, train

TASK = "Pendulum-v1"
SHORT = {"max_episode_steps": 40}
TINY: dict[str, Any] = {"model_hidden": (8,), "bonus_after": 20}
BASES: dict[str, Base] = {
    "ddpg": Deterministic(critics=1, policy_delay=1, target_noise=0.0),
    "td3": Deterministic(),
    "sac": SAC(),
}
EXPLORERS: dict[str, Explorer] = {
    "analogous": Analogous(particles=4, latent_correlation=0.9),
    "tuned": Analogous(particles=4, bonus_weight="learned"),
    "uniform": Uniform(),
    "own": OwnPolicy(),
    "gaussian": GaussianNoise(),
    "ou": OrnsteinUhlenbeck(),
    "coloured": ColouredNoise(),
    "repeated": RepeatedNoise(),
    "gsde": StateDependentNoise(),
    "parameters": ParameterNoise(),
    "optimistic": Optimistic(),
    "goals": GoalExploration(episodes=2),
    "mulex": Mulex(),
    "maxinfo": MaxInfo(),
    "mixture": Mixture((GaussianNoise(), OrnsteinUhlenbeck())),
    "interleaved": Interleaved(Analogous(particles=4, co_training=False), pi_stretch=10),
    "then": Then(GaussianNoise(), ColouredNoise(), 90),
}
INTRINSIC: dict[str, Intrinsic | None] = {
    "none": None,
    "vime": Vime(**TINY),
    "rnd": Rnd(**TINY, model_features=4),
    "disagreement": InformationGain(**TINY),
    "counts": Counts(bonus_after=20),
    "ex2": Ex2(**TINY),
    "icm": Icm(**TINY),
    "sum": Sum(bonuses=(Counts(bonus_after=20), Rnd(**TINY, model_features=4))),
}
CRITICS: dict[str, Critic] = {
    "scalar": Scalar(),
    "renorm": Scalar(batch_renorm=True),
    "quantiles": Quantiles(quantiles=4, drop=1),
    "soft": SoftValue(value_samples=4),
}
ENVS: dict[str, int] = {"1": 1, "3": 3}
FACTORS: tuple[Mapping[str, Any], ...] = (BASES, EXPLORERS, INTRINSIC, CRITICS, ENVS)
SMALL = Networks(actor_hidden=(8,), critic_hidden=(8,), latent=4, latent_hidden=(8,))
SIZES: dict[str, Any] = {"batch_size": 8, "replay_size": 100, "warmup": 30, "learn_after": 30}

Pair = tuple[int, str, int, str]


class Case(NamedTuple):
    name: str
    agent: Agent
    num_envs: int

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(self.name.split("-"))


def make(kinds: tuple[str, ...]) -> Case | None:
    """None where the parts do not go together."""
    base, explorer, intrinsic, critic, count = kinds
    several = ENVS[count] > 1
    try:
        agent = Agent(
            BASES[base],
            EXPLORERS[explorer],
            INTRINSIC[intrinsic],
            SMALL,
            CRITICS[critic],
            normalise_obs=several,
            n_steps=2 if several else 1,
            **SIZES,
        )
    except ValueError:
        return None
    return Case("-".join(kinds), agent, ENVS[count])


def pairs(kinds: tuple[str, ...]) -> set[Pair]:
    """Of two parts each."""
    return {
        (i, kinds[i], j, kinds[j]) for i, j in itertools.combinations(range(len(kinds)), 2)
    }  # fmt: skip


@functools.cache
def cases() -> tuple[Case, ...]:
    made = (make(kinds) for kinds in itertools.product(*FACTORS))
    return tuple(case for case in made if case is not None)


@functools.cache
def design() -> tuple[Case, ...]:
    """Few cases with every pair that fits: always the next that has the most new ones, and at
    first the most new kinds."""
    left = {case: pairs(case.kinds) for case in cases()}
    missing: set[Pair] = set().union(*left.values())
    unseen = {(place, kind) for place, factor in enumerate(FACTORS) for kind in factor}
    chosen = []
    while missing:
        best = max(
            left,
            key=lambda case: (
                len(unseen.intersection(enumerate(case.kinds))),
                len(left[case] & missing),
            ),
        )
        unseen -= set(enumerate(best.kinds))
        missing -= left.pop(best)
        chosen.append(best)
    return tuple(chosen)


def first() -> tuple[Case, ...]:
    """Of the design, those that have every kind between them."""
    return design()[: max(map(len, FACTORS))]


def least_done(done: Mapping[str, int]) -> Case:
    """The first of the design that had the fewest turns."""
    return min(design(), key=lambda case: done.get(case.name, 0))


def start(name: str, folder: Path, steps: int) -> None:
    """A run folder with a plan of `steps` steps, of which the first is taken."""
    case = make(tuple(name.split("-")))
    assert case is not None
    learner = Learner(TASK, case.agent, num_envs=case.num_envs, env_kwargs=SHORT)
    plan = Schedule(
        eval_every=70, eval_episodes=1, checkpoint_every=40, log_every=25, save_best=True
    )
    train(learner, steps, plan, out=folder, callback=lambda _: False)
    learner.close()

"""The named agents that differ in how they explore, each on the base that it is compared with.

docs/explorers.md says what each does, what it costs and when to use it.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from adac.core.agent import Agent
from adac.core.bases import SAC, Base, Deterministic
from adac.core.critics import Scalar
from adac.core.explorers import (
    Analogous,
    ColouredNoise,
    GaussianNoise,
    GoalExploration,
    Interleaved,
    MaxInfo,
    Mixture,
    Mulex,
    Optimistic,
    ParameterNoise,
    RepeatedNoise,
    StateDependentNoise,
)
from adac.core.intrinsic import Counts, Ex2, Icm, InformationGain, Intrinsic, Rnd, Sum
from adac.core.soft_value import TEMPERATURE, SoftValue

Named = dict[str, tuple[str, Callable[[], Agent]]]

# Soft Q-learning's sampler: exp(Q/α) with nothing of ADAC's around it, and no π in its network.
SAMPLER: dict[str, Any] = {
    "particles": 16, "beta_start": TEMPERATURE, "beta_end": TEMPERATURE, "normalise_score": False,
    "score_floor": 0.0, "latent_correlation": 0.0, "action_noise": 0.0, "co_training": False,
    "behaviour_states": 0,
}  # fmt: skip


# For rare rewards: μ is nearly greedy for novelty and has a network of its own, so that what draws
# μ to the unknown does not move π's weights; π acts in turn with it (notebook/rare-rewards.md).
CURIOUS = Analogous(co_training=False, beta_start=0.05, beta_end=0.05, score_floor=0.1)


def rare_rewards(agent: Callable[..., Agent], crossq: Deterministic) -> Agent:
    """ADAC for tasks whose reward is rarely seen: critics count in units of what is paid, and what
    they did not expect is drawn more often, so that a rare reward is not forgotten among zeros."""
    guarded = dataclasses.replace(crossq, bound_penalty=0.1)
    return agent(
        guarded, Interleaved(CURIOUS), intrinsic=Rnd(), critic=Scalar(batch_renorm=True),
        reward_units=True, n_steps=3, batch_size=128, priority_alpha=0.6, behaviour_critics=1,
    )  # fmt: skip


def explorers(agent: Callable[..., Agent], td3: Base, crossq: Deterministic) -> Named:
    """`agent(base, explorer, **settings)` makes one with today's networks."""
    return {
        "td3-pink": ("TD3, pink noise 0.3", lambda: agent(td3, ColouredNoise())),
        "td3-white-or-pink": (
            "TD3, white or pink noise for each episode",
            lambda: agent(td3, Mixture((GaussianNoise(0.1), ColouredNoise()))),
        ),
        "td3-repeated": (
            "TD3, noise 0.1 that is held for 1 to 16 steps",
            lambda: agent(td3, RepeatedNoise()),
        ),
        "td3-gsde": (
            "TD3, noise as a function of the state (gSDE)",
            lambda: agent(td3, StateDependentNoise()),
        ),
        "td3-parameter-noise": (
            "TD3, noise on the policy's weights for each episode",
            lambda: agent(td3, ParameterNoise()),
        ),
        "td3-optimistic": (
            "TD3, shifted to an upper bound of the value (OAC)",
            lambda: agent(td3, Optimistic()),
        ),
        "sac-optimistic": (
            "SAC, shifted to an upper bound of the value (OAC)",
            lambda: agent(SAC(), Optimistic()),
        ),
        "sac-pink": ("SAC, pink noise of its own width", lambda: agent(SAC(), ColouredNoise())),
        "soft-q": (
            "Soft Q-learning: SVGD on exp(Q/α), soft values",
            lambda: agent(td3, Analogous(**SAMPLER), critic=SoftValue()),
        ),
        "gep-pg": (
            "500 episodes of goal exploration, then TD3 (GEP-PG)",
            lambda: agent(td3, GoalExploration(), warmup=0),
        ),
        "mulex": (
            "TD3, a behaviour for the task and one for each of two bonuses",
            lambda: agent(td3, Mulex(), intrinsic=Sum(bonuses=(Counts(), Rnd()))),
        ),
        "maxinfo-sac": (
            "SAC with a self-weighing information gain in its value (MaxInfoRL)",
            lambda: agent(SAC(), MaxInfo(), intrinsic=InformationGain()),
        ),
        "adac-maxinfo": (
            "ADAC on TD3, a self-weighing information gain in the behaviour critic alone",
            lambda: agent(td3, Analogous(bonus_weight="learned"), intrinsic=InformationGain()),
        ),
        "adac-explore": (
            "ADAC on CrossQ for rare rewards: RND, μ in a network of its own, in turn with π",
            lambda: rare_rewards(agent, crossq),
        ),
        "adac-td3-pink": ("ADAC on TD3, pink ξ", lambda: agent(td3, Analogous(latent_colour=1.0))),
        "adac-td3-repeated": (
            "ADAC on TD3, ξ held for 1 to 16 steps",
            lambda: agent(td3, Analogous(latent_repeat=16)),
        ),
        "adac-td3-entropy": (
            "ADAC on TD3, β tuned to an entropy of μ",
            lambda: agent(td3, Analogous(behaviour_entropy=-1.0)),
        ),
    }


BONUSES: dict[str, type[Intrinsic]] = {
    "disagreement": InformationGain, "counts": Counts, "ex2": Ex2, "icm": Icm,
}  # fmt: skip
WHERE = {"td3": "its only critic", "adac-td3": "the behaviour critic alone"}


def bonuses(agents: Mapping[str, tuple[str, Callable[[], Agent]]]) -> Named:
    """Each bonus in the task's critic, and beside it."""

    def rewarded(name: str, kind: type[Intrinsic]) -> Callable[[], Agent]:
        return lambda: dataclasses.replace(agents[name][1](), intrinsic=kind())

    return {
        f"{name}-{label}": (f"{name} with a {label} bonus in {where}", rewarded(name, kind))
        for label, kind in BONUSES.items()
        for name, where in WHERE.items()
    }

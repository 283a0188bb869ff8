"""The named agents, each a value.

Settings are the paper's where it states them (Appendix D), but for the explorer of `adac-td3`:
its numbers are what our own ablation decided (docs/results.md).
"""

import dataclasses
import difflib
from collections.abc import Callable
from functools import partial
from typing import Any

from adac.core.agent import Agent
from adac.core.bases import SAC, Deterministic
from adac.core.explorers import (
    PAPER_NUMBERS,
    Analogous,
    Explorer,
    GaussianNoise,
    OrnsteinUhlenbeck,
    OwnPolicy,
)
from adac.core.intrinsic import Intrinsic, Rnd, Vime
from adac.core.networks import Networks
from adac.errors import UserError

TD3 = Deterministic()
DDPG = Deterministic(actor_lr=1e-4, tau=1e-3, critics=1, policy_delay=1, target_noise=0.0)
LATENT = Networks(latent=16)

DEFAULT = "adac-td3"


def _td3(explorer: Explorer, networks: Networks = LATENT) -> Agent:
    return Agent(base=TD3, explorer=explorer, networks=networks, batch_size=100)


def _ddpg(explorer: Explorer, networks: Networks = LATENT) -> Agent:
    return Agent(base=DDPG, explorer=explorer, networks=networks, batch_size=64)


def _sac() -> Agent:
    sizes = Networks(actor_hidden=(256, 256), critic_hidden=(256, 256))
    return Agent(base=SAC(), explorer=OwnPolicy(), networks=sizes, batch_size=256)


PLAIN = Networks()
SLOW = 1e-4  # μ's learning rate on the DDPG base


def _on_ddpg(**settings: Any) -> Analogous:
    """K, β and ρ stay the paper's here: the ablation that moved them was of TD3."""
    return Analogous(behaviour_lr=SLOW, **(PAPER_NUMBERS | settings))


AGENTS: dict[str, tuple[str, Callable[[], Agent]]] = {
    "adac-td3": (
        "ADAC on TD3, robust SVGD before the squash (default)",
        lambda: _td3(Analogous()),
    ),
    "adac-ddpg": (
        "ADAC on DDPG, robust SVGD before the squash",
        lambda: _ddpg(_on_ddpg()),
    ),
    "paper-adac-td3": ("ADAC on TD3, exactly as published", lambda: _td3(Analogous.paper())),
    "paper-adac-ddpg": (
        "ADAC on DDPG, exactly as published",
        lambda: _ddpg(Analogous.paper(behaviour_lr=SLOW)),
    ),
    "adac-td3-no-cotraining": (
        "ADAC on TD3, μ with a network of its own (ablation)",
        lambda: _td3(Analogous(co_training=False)),
    ),
    "adac-ddpg-no-cotraining": (
        "ADAC on DDPG, μ with a network of its own (ablation)",
        lambda: _ddpg(_on_ddpg(co_training=False)),
    ),
    "td3": ("TD3, Gaussian noise 0.1", lambda: _td3(GaussianNoise(0.1), PLAIN)),
    "ddpg": ("DDPG, Gaussian noise 0.2", lambda: _ddpg(GaussianNoise(0.2), PLAIN)),
    "ddpg-gaussian-1.0": ("DDPG, Gaussian noise 1.0", lambda: _ddpg(GaussianNoise(1.0), PLAIN)),
    "ddpg-ou-0.2": (
        "DDPG, Ornstein-Uhlenbeck noise 0.2",
        lambda: _ddpg(OrnsteinUhlenbeck(0.2), PLAIN),
    ),
    "ddpg-ou-1.0": (
        "DDPG, Ornstein-Uhlenbeck noise 1.0",
        lambda: _ddpg(OrnsteinUhlenbeck(1.0), PLAIN),
    ),
    "sac": ("Soft actor-critic, learned temperature", _sac),
}


def _rewarded(name: str, intrinsic: Intrinsic) -> Agent:
    return dataclasses.replace(AGENTS[name][1](), intrinsic=intrinsic)


INTRINSIC: dict[str, type[Intrinsic]] = {"vime": Vime, "rnd": Rnd}
AGENTS |= {
    f"{name}-{label}": (
        f"{name} with a {label.upper()} bonus in {where}",
        partial(_rewarded, name, kind()),
    )
    for label, kind in INTRINSIC.items()
    for name, where in {
        "td3": "its only critic",
        "ddpg": "its only critic",
        "adac-td3": "the behaviour critic alone",
        "adac-ddpg": "the behaviour critic alone",
    }.items()
}


def make(name: str) -> Agent:
    """The named agent."""
    if name not in AGENTS:
        near = difflib.get_close_matches(name.lower(), AGENTS, n=3, cutoff=0.4) or list(AGENTS)
        raise UserError(f"there is no agent '{name}'; did you mean {', '.join(near)}?")
    return AGENTS[name][1]()

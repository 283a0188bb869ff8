"""The named agents, each a value.

`td3`, `ddpg` and `sac` have the settings that their authors recommend today, and ADAC has the same
base as the baseline that it is compared with. `paper-…` have the ADAC paper's (Appendix E).
"""

import dataclasses
import difflib
from collections.abc import Callable
from functools import partial
from typing import Any

from adac.core import presets_exploration
from adac.core.agent import Agent
from adac.core.bases import SAC, Base, Deterministic
from adac.core.critics import Quantiles, Scalar
from adac.core.explorers import (
    Analogous,
    Explorer,
    GaussianNoise,
    OrnsteinUhlenbeck,
    OwnPolicy,
)
from adac.core.intrinsic import Intrinsic, Rnd, Vime
from adac.core.networks import Networks
from adac.errors import UserError

# Today's: one size of network, rate and batch for every base, as TD3's and SAC's authors have them.
TD3 = Deterministic(actor_lr=3e-4, critic_lr=3e-4)
DDPG = dataclasses.replace(TD3, critics=1, policy_delay=1, target_noise=0.0)
PLAIN = Networks(actor_hidden=(256, 256), critic_hidden=(256, 256))
LATENT = Networks(  # as many layers and units as PLAIN; ξ joins before the last
    actor_hidden=(256,), critic_hidden=(256, 256), latent=16, latent_hidden=(256,)
)
BATCH = 256
# The ADAC paper's (Appendix E): published TD3 and DDPG of 2018 and 2015.
PAPER_TD3 = Deterministic()
PAPER_DDPG = Deterministic(actor_lr=1e-4, tau=1e-3, critics=1, policy_delay=1, target_noise=0.0)
PAPER_PLAIN, PAPER_LATENT = Networks(), Networks(latent=16)

DEFAULT = "adac-td3"


def _agent(
    base: Base, explorer: Explorer, networks: Networks | None = None, **settings: Any
) -> Agent:
    chosen = networks or (LATENT if explorer.uses_latent else PLAIN)
    return Agent(base, explorer, networks=chosen, **({"batch_size": BATCH} | settings))


def _paper_td3(explorer: Explorer, **settings: Any) -> Agent:
    networks = PAPER_LATENT if explorer.uses_latent else PAPER_PLAIN
    settings = {"batch_size": 100, "learn_after": 1} | settings
    return _agent(PAPER_TD3, explorer, networks, **settings)


def _paper_ddpg(explorer: Explorer, **settings: Any) -> Agent:
    networks = PAPER_LATENT if explorer.uses_latent else PAPER_PLAIN
    settings = {"batch_size": 64, "learn_after": 1} | settings
    return _agent(PAPER_DDPG, explorer, networks, **settings)


AT_ONCE = {"warmup": 0}  # Algorithms 2 and 3 act with μ and train from t = 0
SLOW = 1e-4  # μ's learning rate on the paper's DDPG
CROSSQ: dict[str, Any] = {"policy_delay": 3, "adam_b1": 0.5, "actor_lr": 1e-3, "critic_lr": 1e-3}
RENORM = Scalar(batch_renorm=True)
CROSSQ_TD3 = dataclasses.replace(TD3, **CROSSQ)


AGENTS: dict[str, tuple[str, Callable[[], Agent]]] = {
    "adac-td3": ("ADAC on TD3 (default)", lambda: _agent(TD3, Analogous())),
    "adac-ddpg": ("ADAC on DDPG", lambda: _agent(DDPG, Analogous())),
    "adac-sac": ("ADAC on SAC", lambda: _agent(SAC(), Analogous())),
    "adac-crossq": (
        "ADAC on TD3 with CrossQ's critics",
        lambda: _agent(CROSSQ_TD3, Analogous(), critic=RENORM),
    ),
    "adac-td3-no-cotraining": (
        "ADAC on TD3, μ with a network of its own (ablation)",
        lambda: _agent(TD3, Analogous(co_training=False)),
    ),
    "adac-ddpg-no-cotraining": (
        "ADAC on DDPG, μ with a network of its own (ablation)",
        lambda: _agent(DDPG, Analogous(co_training=False)),
    ),
    "paper-adac-td3": (
        "ADAC on TD3, exactly as published",
        lambda: _paper_td3(Analogous.paper(), **AT_ONCE),
    ),
    "paper-adac-ddpg": (
        "ADAC on DDPG, exactly as published",
        lambda: _paper_ddpg(Analogous.paper(behaviour_lr=SLOW), **AT_ONCE),
    ),
    "paper-adac-td3-no-cotraining": (
        "ADAC on TD3 as published, μ with a network of its own",
        lambda: _paper_td3(Analogous.paper(co_training=False), **AT_ONCE),
    ),
    "paper-adac-ddpg-no-cotraining": (
        "ADAC on DDPG as published, μ with a network of its own",
        lambda: _paper_ddpg(Analogous.paper(behaviour_lr=SLOW, co_training=False), **AT_ONCE),
    ),
    "td3": ("TD3, Gaussian noise 0.1", lambda: _agent(TD3, GaussianNoise(0.1))),
    "ddpg": ("DDPG, Gaussian noise 0.1", lambda: _agent(DDPG, GaussianNoise(0.1))),
    "ddpg-gaussian-1.0": ("DDPG, Gaussian noise 1.0", lambda: _agent(DDPG, GaussianNoise(1.0))),
    "ddpg-ou-0.2": (
        "DDPG, Ornstein-Uhlenbeck noise 0.2",
        lambda: _agent(DDPG, OrnsteinUhlenbeck(0.2)),
    ),
    "ddpg-ou-1.0": (
        "DDPG, Ornstein-Uhlenbeck noise 1.0",
        lambda: _agent(DDPG, OrnsteinUhlenbeck(1.0)),
    ),
    "sac": ("Soft actor-critic, learned temperature", lambda: _agent(SAC(), OwnPolicy())),
    "tqc": (
        "SAC with quantile critics, the highest dropped",
        lambda: _agent(SAC(), OwnPolicy(), critic=Quantiles()),
    ),
    "crossq-td3": (
        "TD3 with batch renormalisation and no target critics",
        lambda: _agent(CROSSQ_TD3, GaussianNoise(0.1), critic=RENORM),
    ),
    "crossq-sac": (
        "SAC with batch renormalisation and no target critics (CrossQ)",
        lambda: _agent(SAC(**CROSSQ), OwnPolicy(), critic=RENORM),
    ),
    "paper-td3": ("TD3 as of 2018", lambda: _paper_td3(GaussianNoise(0.1))),
    "paper-ddpg": (
        "DDPG as of 2015, Ornstein-Uhlenbeck noise",
        lambda: _paper_ddpg(OrnsteinUhlenbeck(0.2)),
    ),
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
        "adac-crossq": "the behaviour critic alone",
        "paper-td3": "its only critic",
        "paper-adac-td3": "the behaviour critic alone",
        "paper-adac-ddpg": "the behaviour critic alone",
        "paper-adac-td3-no-cotraining": "the behaviour critic alone",
    }.items()
}


AGENTS |= presets_exploration.explorers(_agent, TD3, CROSSQ_TD3) | presets_exploration.bonuses(
    AGENTS
)


def make(name: str) -> Agent:
    """The named agent."""
    if name not in AGENTS:
        near = difflib.get_close_matches(name.lower(), AGENTS, n=3)
        hint = f"; did you mean {', '.join(near)}?" if near else ": `adac list agents` shows all"
        raise UserError(f"there is no agent '{name}'{hint}")
    return AGENTS[name][1]()

"""adac: exploration in continuous control, with ADAC, DDPG, TD3 and SAC under one update.

import adac

learner = adac.Learner("Hopper-v5", agent="adac-td3", seed=0)
learner.learn(100_000, progress_bar=True)
action, _ = learner.predict(obs, deterministic=True)
learner.save("runs/hopper")
"""

from adac import envs as _envs
from adac.core.agent import Agent, AgentState, Batch, act, greedy, init, init_memory, update
from adac.core.bases import SAC, Deterministic
from adac.core.critics import Critic, Scalar
from adac.core.explorers import (
    Analogous,
    Explorer,
    GaussianNoise,
    Mixture,
    OrnsteinUhlenbeck,
    OwnPolicy,
    Then,
    Uniform,
)
from adac.core.intrinsic import Rnd, Vime
from adac.core.networks import Networks
from adac.core.presets import make as make_agent
from adac.errors import AdacError, RunError, UserError
from adac.training.learner import Learner

_envs.register()

__version__ = "0.2.0"

__all__ = [
    "SAC",
    "AdacError",
    "Agent",
    "AgentState",
    "Analogous",
    "Batch",
    "Critic",
    "Deterministic",
    "Explorer",
    "GaussianNoise",
    "Learner",
    "Mixture",
    "Networks",
    "OrnsteinUhlenbeck",
    "OwnPolicy",
    "Rnd",
    "RunError",
    "Scalar",
    "Then",
    "Uniform",
    "UserError",
    "Vime",
    "act",
    "greedy",
    "init",
    "init_memory",
    "make_agent",
    "update",
]

"""adac: exploration in continuous control, with ADAC, DDPG, TD3 and SAC under one update.

import adac

learner = adac.Learner("Hopper-v5", agent="adac-td3", seed=0)
learner.learn(100_000, progress_bar=True)
action, _ = learner.predict(obs, deterministic=True)
learner.save("runs/hopper")
"""

from adac import envs as _envs
from adac.core import explorers, intrinsic
from adac.core.agent import Agent, AgentState, act, greedy, init, init_memory, update
from adac.core.bases import SAC, Base, Deterministic
from adac.core.batch import Batch
from adac.core.critics import Critic, Quantiles, Scalar
from adac.core.explorers import (
    Analogous,
    Explorer,
    GaussianNoise,
    Interleaved,
    Mixture,
    OrnsteinUhlenbeck,
    OwnPolicy,
    Then,
    Uniform,
)
from adac.core.fields import setting
from adac.core.intrinsic import Intrinsic, Rnd, Vime
from adac.core.networks import Networks
from adac.core.presets import make as make_agent
from adac.core.soft_value import SoftValue
from adac.errors import AdacError, RunError, UserError
from adac.runs.doctor import Finding, doctor
from adac.training import jit
from adac.training.callbacks import Callback
from adac.training.learner import Learner
from adac.training.policy import TargetPolicy as Policy

_envs.register()

__version__ = "0.2.0"

__all__ = [
    "SAC",
    "AdacError",
    "Agent",
    "AgentState",
    "Analogous",
    "Base",
    "Batch",
    "Callback",
    "Critic",
    "Deterministic",
    "Explorer",
    "Finding",
    "GaussianNoise",
    "Interleaved",
    "Intrinsic",
    "Learner",
    "Mixture",
    "Networks",
    "OrnsteinUhlenbeck",
    "OwnPolicy",
    "Policy",
    "Quantiles",
    "Rnd",
    "RunError",
    "Scalar",
    "SoftValue",
    "Then",
    "Uniform",
    "UserError",
    "Vime",
    "act",
    "doctor",
    "explorers",
    "greedy",
    "init",
    "init_memory",
    "intrinsic",
    "jit",
    "make_agent",
    "setting",
    "update",
]

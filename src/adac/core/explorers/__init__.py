"""Explorers: how the agent acts while it learns.

An explorer owns the behaviour policy μ, which reward streams get a critic, and the extra loss that
trains the policy network. It does not depend on how critics form their targets. `Analogous` is
ADAC.
"""

from adac.core.explorers.analogous import PAPER_NUMBERS, Analogous
from adac.core.explorers.coloured import ColouredNoise
from adac.core.explorers.compose import Interleaved, Mixture, Then
from adac.core.explorers.curious import MaxInfo
from adac.core.explorers.goal_exploration import GoalExploration
from adac.core.explorers.interface import Explorer, Policy, Sizes, Transition, View
from adac.core.explorers.mulex import Mulex
from adac.core.explorers.noise import GaussianNoise, OrnsteinUhlenbeck, OwnPolicy, Uniform
from adac.core.explorers.optimistic import Optimistic
from adac.core.explorers.parameter_noise import ParameterNoise
from adac.core.explorers.repeated import RepeatedNoise
from adac.core.explorers.state_dependent import StateDependentNoise

__all__ = [
    "PAPER_NUMBERS",
    "Analogous",
    "ColouredNoise",
    "Explorer",
    "GaussianNoise",
    "GoalExploration",
    "Interleaved",
    "MaxInfo",
    "Mixture",
    "Mulex",
    "Optimistic",
    "OrnsteinUhlenbeck",
    "OwnPolicy",
    "ParameterNoise",
    "Policy",
    "RepeatedNoise",
    "Sizes",
    "StateDependentNoise",
    "Then",
    "Transition",
    "Uniform",
    "View",
]

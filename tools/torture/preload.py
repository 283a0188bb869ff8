"""What every process of the torture needs, imported once; nothing here starts JAX's threads."""

import gymnasium.envs.classic_control.pendulum  # noqa: F401

import adac.cli.main
import adac.training.learner
import adac.training.train  # noqa: F401
import torture.matrix  # noqa: F401

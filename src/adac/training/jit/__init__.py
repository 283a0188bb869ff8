"""A second driver for tasks that are JAX functions: act, step and update in one compiled scan."""

from adac.training.jit.driver import Trained, train
from adac.training.jit.worlds import Brax, Gymnax, Outcome, World

__all__ = ["Brax", "Gymnax", "Outcome", "Trained", "World", "train"]

"""The nineteen tasks of the paper, registered with Gymnasium on import."""

from adac.envs.making import make
from adac.envs.suite import EXTRAS, SUITE, Task, register

__all__ = ["EXTRAS", "SUITE", "Task", "make", "register"]

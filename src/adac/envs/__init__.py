"""The nineteen tasks of the paper, registered with Gymnasium on import."""

from adac.envs.making import import_module_of, make, require_imported
from adac.envs.suite import EXTRAS, SUITE, Task, register

__all__ = [
    "EXTRAS",
    "SUITE",
    "Task",
    "import_module_of",
    "make",
    "register",
    "require_imported",
]

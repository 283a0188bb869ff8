"""The nineteen tasks of the paper, registered with Gymnasium on import."""

from adac.envs.make import (
    Description,
    describe,
    import_module_of,
    make,
    require_imported,
    require_no_paths,
)
from adac.envs.suite import EXTRAS, SUITE, Task, register

__all__ = [
    "EXTRAS",
    "SUITE",
    "Description",
    "Task",
    "describe",
    "import_module_of",
    "make",
    "register",
    "require_imported",
    "require_no_paths",
]

"""The nineteen tasks of the paper, registered with Gymnasium on import."""

from adac.envs.flatten import flattened, is_vector, require_flattenable, vectors
from adac.envs.make import (
    Description,
    describe,
    import_module_of,
    make,
    require_imported,
    require_no_paths,
)
from adac.envs.mazes import Maze, columns_of, maze_of
from adac.envs.packages import register_package_of
from adac.envs.remote import Remote
from adac.envs.repeat import ActionRepeat, action_repeat_of, environment_steps, repeated
from adac.envs.reproducible import seed_spaces
from adac.envs.suite import EXTRAS, SUITE, Task, register

__all__ = [
    "EXTRAS",
    "SUITE",
    "ActionRepeat",
    "Description",
    "Maze",
    "Remote",
    "Task",
    "action_repeat_of",
    "columns_of",
    "describe",
    "environment_steps",
    "flattened",
    "import_module_of",
    "is_vector",
    "make",
    "maze_of",
    "register",
    "register_package_of",
    "repeated",
    "require_flattenable",
    "require_imported",
    "require_no_paths",
    "seed_spaces",
    "vectors",
]

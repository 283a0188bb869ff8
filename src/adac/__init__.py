"""adac: exploration in continuous control."""

from adac.envs import register as _register_tasks

_register_tasks()

__version__ = "0.1.0"

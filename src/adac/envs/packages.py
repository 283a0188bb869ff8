"""Tasks of other packages: registered when one of them is first asked for, and not before."""

import contextlib
import importlib
import io
from typing import Any, NamedTuple

import gymnasium

from adac.errors import missing_extra

Env = gymnasium.Env[Any, Any]


class Package(NamedTuple):
    module: str  # whose import registers the tasks
    extra: str
    needs: tuple[str, ...]  # modules without which it registers nothing
    beginnings: tuple[str, ...]  # of its tasks' ids


PACKAGES = (
    Package("shimmy", "dmc", ("shimmy", "dm_control"), ("dm_control/",)),
    Package(
        "gymnasium_robotics",
        "robotics",
        ("gymnasium_robotics",),
        (
            *("PointMaze_", "AntMaze_", "Fetch", "HandReach", "HandManipulate", "AdroitHand"),
            "FrankaKitchen",
        ),
    ),
)


def register_package_of(task_id: str) -> None:
    """Import the package that the id is of, or say which extra has it."""
    for package in PACKAGES:
        if task_id.startswith(package.beginnings) and task_id not in gymnasium.registry:
            _import(package, task_id)


def _import(package: Package, task_id: str) -> None:
    # Gymnasium-Robotics prints its news of the Adroit tasks whatever is asked for.
    news = task_id.startswith("Adroit")
    quiet = contextlib.nullcontext() if news else contextlib.redirect_stderr(io.StringIO())
    try:
        with quiet:
            for name in (*package.needs, package.module):
                importlib.import_module(name)
    except ImportError as failure:
        if getattr(failure, "name", "") in (*package.needs, "mujoco"):
            raise missing_extra(task_id, package.extra) from failure
        raise


def settings_of(task_id: str, kwargs: dict[str, Any]) -> dict[str, Any]:
    """The settings with which a task is the same whenever it is made."""
    if task_id.startswith("dm_control/lqr-"):  # its springs are drawn when it is made
        return {"task_kwargs": {"random": 0}, **kwargs}
    return kwargs


def at_its_own_speed(env: Env) -> Env:
    """Shimmy says 1000·dt frames a second, in a dictionary that all its environments share."""
    if type(env.unwrapped).__module__.startswith("shimmy."):
        inner: Any = env.unwrapped
        inner.metadata = {**inner.metadata, "render_fps": round(1 / inner.dt)}
    return env

"""`make`: Gymnasium's, with headless rendering and failures told in one sentence."""

import difflib
import importlib
import importlib.util
import os
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
from gymnasium import error
from gymnasium.envs.registration import EnvSpec

from adac.envs.packages import at_its_own_speed, register_package_of, settings_of
from adac.envs.repeat import ActionRepeat, action_repeat_of, repeated
from adac.envs.reproducible import repeatable
from adac.envs.suite import EXTRAS, SUITE
from adac.errors import UserError, missing_extra

# The module whose absence means that the extra is missing.
_EXTRA_OF = {
    "mujoco": "mujoco",
    "Box2D": "box2d",
    "pybullet": "pybullet",
    "pybullet_data": "pybullet",
    "pygame": "classic",
}
_OLD = ":MujocoPy"  # a class of Gymnasium-Robotics that needs a MuJoCo nobody maintains
_HEADLESS = {"MUJOCO_GL": "egl", "SDL_VIDEODRIVER": "dummy", "SDL_AUDIODRIVER": "dummy"}


def make(task_id: str, *, action_repeat: int = 1, **kwargs: Any) -> gymnasium.Env[Any, Any]:
    """Make any registered task, or `module:Id` after importing the module.

    Each action is taken `action_repeat` times, and the rewards are summed.
    """
    if not _has_display():
        for variable, value in _HEADLESS.items():
            os.environ.setdefault(variable, value)
    _refuse_pictures_without_pygame(task_id, kwargs.get("render_mode"))
    try:
        with warnings.catch_warnings():
            # A version is named on purpose, although a newer one may exist.
            warnings.filterwarnings("ignore", ".*is out of date", DeprecationWarning)
            # Box2D's import ends the process where this warning is an error.
            warnings.filterwarnings(
                "ignore", "builtin type .* has no __module__", DeprecationWarning
            )
            register_package_of(task_id)
            env = gymnasium.make(task_id, **settings_of(task_id, kwargs))
            return repeated(repeatable(at_its_own_speed(env)), action_repeat)
    except error.UnregisteredEnv:
        raise _unknown(task_id) from None
    except error.DeprecatedEnv as failure:
        raise UserError(_one_line(failure)) from failure
    except (error.DependencyNotInstalled, ImportError) as failure:
        raise _not_importable(task_id, failure) from failure
    except error.Error as failure:
        if str(failure).startswith("Malformed"):
            raise UserError(
                f"'{task_id}' is not a task id: it should look like Hopper-v4 or namespace/Name-v0"
            ) from failure
        raise UserError(f"{task_id} cannot be made: {_one_line(failure)}") from failure
    except Exception as failure:  # a task's constructor may raise anything
        raise UserError(
            f"{task_id} cannot be made{_with(kwargs)}: {type(failure).__name__}: "
            f"{_one_line(failure)}"
        ) from failure


class Description(NamedTuple):
    """What a run folder can say of an environment: `make(id, **kwargs)`, if that is `all` of it."""

    id: str
    kwargs: dict[str, Any]
    all: bool


_TOLD = {ActionRepeat.__name__}  # as a setting
# Wrappers that look on; what Gymnasium's `make` puts on by itself is in a spec's own fields.
_ONLOOKERS = {"FreshWorld", "RecordEpisodeStatistics", "RecordVideo", "HumanRendering"}


def describe(env: gymnasium.Env[Any, Any]) -> Description:
    """An environment that somebody made: wrappers of its own are not in any description."""
    spec = getattr(env, "spec", None)  # what is no Gymnasium environment is refused later
    registered = gymnasium.registry.get(spec.id) if spec is not None else None
    if spec is None or registered is None:
        name = type(env.unwrapped).__name__ if spec is None else spec.id
        return Description(name, {}, all=False)
    kwargs = {
        name: value
        for name, value in spec.kwargs.items()
        if name != "render_mode"
        and not (name in registered.kwargs and registered.kwargs[name] == value)
    }
    limit = spec.max_episode_steps
    if limit != registered.max_episode_steps:
        kwargs["max_episode_steps"] = limit
    if (times := action_repeat_of(env)) > 1:
        kwargs["action_repeat"] = times
    wrappers = {wrapper.name for wrapper in spec.additional_wrappers}
    wrappers -= {wrapper.name for wrapper in registered.additional_wrappers}
    plain = all(isinstance(value, str | int | float | bool) for value in kwargs.values())
    return Description(spec.id, kwargs, all=plain and wrappers <= _ONLOOKERS | _TOLD)


def import_module_of(task_id: str) -> None:
    """Import the module of `module:Id`, as `make` would."""
    module, colon, _ = task_id.partition(":")
    if colon:
        importlib.import_module(module)


def require_imported(task_id: str, folder: Path) -> None:
    """A folder may come from anybody: what it names is not imported at its word."""
    module, colon, _ = task_id.partition(":")
    if colon and module not in sys.modules:
        raise UserError(
            f"{folder} was trained on {task_id}, and loading a run imports no code by itself: say "
            f"--import {module}, or in Python `import {module}` first"
        )


def require_no_paths(kwargs: Mapping[str, Any], folder: Path) -> None:
    """Nor does a folder choose which files of this machine a simulator opens."""
    for name, value in kwargs.items():
        if any(_path_like(text) for text in _texts(value)):
            raise UserError(
                f"{folder} makes its task with {name}={value!r}, which names a file, and a run "
                "folder may not choose files: pass it yourself, "
                f"Learner.load(folder, env_kwargs={dict(kwargs)!r})"
            )


def _texts(value: Any) -> list[str]:
    if isinstance(value, Mapping):
        return [text for pair in value.items() for one in pair for text in _texts(one)]
    if isinstance(value, list | tuple):
        return [text for one in value for text in _texts(one)]
    return [value] if isinstance(value, str) else []


def _path_like(text: str) -> bool:
    return "/" in text or "\\" in text or text.startswith(("~", "."))


def _has_display() -> bool:
    if sys.platform in ("win32", "darwin"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _refuse_pictures_without_pygame(task_id: str, render_mode: str | None) -> None:
    # Gymnasium's own classic tasks would fail only at the first frame.
    classic = {task.id for task in (*SUITE, *EXTRAS) if task.extra == "classic"}
    if render_mode and task_id in classic and importlib.util.find_spec("pygame") is None:
        raise missing_extra(f"A picture of {task_id}", "classic")


def _unknown(task_id: str) -> UserError:
    known = sorted(key for key, spec in gymnasium.registry.items() if _still_runs(spec))
    name = task_id.rpartition(":")[2]
    namespace = name.rpartition("/")[0]
    if namespace and not any(key.startswith(f"{namespace}/") for key in known):
        return UserError(
            f"no task is registered as '{task_id}', nor any of {namespace}/: "
            "import the package that brings them, in the shell with --import PACKAGE"
        )
    short = {key.rpartition("/")[2].lower(): key for key in known}
    wanted = name.rpartition("/")[2].lower()
    near = [short[match] for match in difflib.get_close_matches(wanted, short, n=3, cutoff=0.5)]
    hint = f"; did you mean {', '.join(near)}?" if near else "; `adac list envs` shows the paper's"
    return UserError(f"no task is registered as '{task_id}'{hint}")


def _still_runs(spec: EnvSpec) -> bool:
    # Gymnasium keeps MuJoCo's v2 and v3 registered with a function that raises, and
    # Gymnasium-Robotics, once imported, with the classes that need the MuJoCo of then.
    raises = getattr(spec.entry_point, "__name__", "") == "_raise_mujoco_py_error"
    place = str(spec.entry_point)
    return not (raises or place.startswith("gymnasium_robotics.envs.mujoco.") or _OLD in place)


def _not_importable(task_id: str, failure: Exception) -> UserError:
    spec = gymnasium.registry.get(task_id)
    if spec is not None and not _still_runs(spec):
        name, _, _ = task_id.rpartition("-v")
        others = [key for key in gymnasium.registry if key.startswith(f"{name}-v")]
        later = [key for key in others if _still_runs(gymnasium.registry[key])]
        if _OLD in str(spec.entry_point) and later:
            return UserError(f"{task_id} no longer runs in Gymnasium-Robotics: use {later[-1]}")
        return UserError(f"{task_id} no longer runs in Gymnasium; {name}-v4 has the same rewards")
    absent = [module for module in _EXTRA_OF if importlib.util.find_spec(module) is None]
    named = getattr(failure, "name", None)
    for module in absent:
        if module == named or module.lower() in str(failure).lower():
            return missing_extra(task_id, _EXTRA_OF[module])
    return UserError(f"{task_id} cannot be loaded: {_one_line(failure)}")


def _with(kwargs: Mapping[str, Any]) -> str:
    given = {name: value for name, value in kwargs.items() if name != "render_mode"}
    return f" with {given}" if given else ""


def _one_line(failure: Exception) -> str:
    return " ".join(str(failure).split())

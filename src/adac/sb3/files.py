"""A model's file: a zip of JSON and safetensors. Reading one runs no code, whoever wrote it."""

import contextlib
import io
import json
import pathlib
import zipfile
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import gymnasium
import jax
import numpy as np
import safetensors.numpy
from stable_baselines3.common.save_util import open_path

from adac.core import agent as core
from adac.core.agent import Agent
from adac.errors import UserError
from adac.runs.checkpoint import Arrays, flatten, unflatten
from adac.sb3.plain import decode_space, encode_space

FilePath = str | pathlib.Path | io.BufferedIOBase
FORMAT, FACTS, STATE = "adac-sb3-1", "adac.json", "state.safetensors"
SPACES = ("observation_space", "action_space")
MOST_SEED, MOST_COUNTED = 2**32 - 1, 2**31 - 1  # NumPy's, and what XLA is told of steps
MOST_FACTS = 2**26  # bytes: settings, and the infos of a buffer


@contextlib.contextmanager
def opened(path: FilePath, mode: str, suffix: str) -> Iterator[Any]:
    """A path is closed again, a file that was given is left open."""
    file = open_path(path, mode, verbose=0, suffix=suffix)
    try:
        yield file
    finally:
        if isinstance(path, str | pathlib.Path):
            file.close()


def write(path: FilePath, facts: Mapping[str, Any], arrays: Arrays, *, suffix: str) -> None:
    text = json.dumps({"format": FORMAT, **facts}, indent=1)
    whole = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    with opened(path, "w", suffix) as file, zipfile.ZipFile(file, "w") as archive:
        archive.writestr(FACTS, text)
        archive.writestr(STATE, safetensors.numpy.save(whole))


def read(path: FilePath, *, suffix: str) -> tuple[dict[str, Any], Arrays]:
    """Its facts and its arrays; anything that is not such a file is refused."""
    name = path if isinstance(path, str | pathlib.Path) else "the file"
    with opened(path, "r", suffix) as file:
        try:
            with zipfile.ZipFile(file) as archive:
                return _facts(archive), _arrays(archive)
        except Exception:  # of zipfile, zlib, JSON and safetensors: any, where it is damaged
            raise UserError(
                f"{name} was not written by adac.sb3, which reads nothing else: a pickle of "
                "Stable-Baselines3's may run code, so train anew or load it there"
            ) from None


def _facts(archive: zipfile.ZipFile) -> dict[str, Any]:
    if archive.getinfo(FACTS).file_size > MOST_FACTS:
        raise ValueError
    facts = json.loads(archive.read(FACTS))
    if not isinstance(facts, dict) or facts.get("format") != FORMAT:
        raise ValueError
    return facts


def _arrays(archive: zipfile.ZipFile) -> Arrays:
    """Stored as it is: a small file cannot become a large one."""
    if archive.getinfo(STATE).compress_type != zipfile.ZIP_STORED:
        raise ValueError
    return dict(safetensors.numpy.load(archive.read(STATE)))


def flat(tree: Any) -> Arrays:
    """Copies, because an update reuses a state's memory."""
    return {name: np.array(array) for name, array in flatten(tree).items()}


def unflat(state: Any, arrays: Arrays) -> Any:
    return unflatten({"agent": state}, arrays)["agent"]


def require_facts(facts: Mapping[str, Any], *names: str) -> None:
    missing = [name for name in names if name not in facts]
    if missing:
        raise UserError(f"the file says nothing of its {missing[0]}")


def counted(facts: Mapping[str, Any], name: str, most: int) -> int:
    number = facts[name]
    if type(number) is not int or not 0 <= number <= most:
        raise UserError(f"the file's {name} is {number!r}, and must be between 0 and {most}")
    return number


def spaces_of(owner: Any) -> dict[str, Any]:
    return {name: encode_space(getattr(owner, name)) for name in SPACES}


def read_spaces(facts: Mapping[str, Any]) -> tuple[Any, Any]:
    observation_space, action_space = (decode_space(facts[name]) for name in SPACES)
    return observation_space, action_space


def require_state(
    agent: Agent, obs_dim: int, action_space: gymnasium.Space[Any], arrays: Arrays
) -> None:
    """Before any network is made: the file has the weights of the agent that it describes."""
    action_dim = int(np.prod(action_space.shape or ()))
    shapes = jax.eval_shape(partial(core.init, agent, obs_dim, action_dim), jax.random.key(0))
    for path, like in jax.tree_util.tree_leaves_with_path({"agent": shapes}):
        found = arrays.get(jax.tree_util.keystr(path))
        if found is None or found.shape != like.shape or not np.isfinite(found).all():
            raise UserError("the file's weights are not those of the agent that it describes")

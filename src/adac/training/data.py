"""Transitions from elsewhere: arrays, files, Minari datasets, other runs' replay buffers."""

import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from adac.errors import UserError, missing_extra
from adac.runs.checkpoint import Store
from adac.runs.files import place
from adac.runs.folder import read_config, require_essence
from adac.runs.machine import memory_bytes
from adac.training.inputs import actions, batch, numbers
from adac.training.loop import Loop
from adac.training.memory import require_fitting
from adac.training.replay import Replay, Rows

MINARI = "minari:"


class Columns(NamedTuple):
    """Transitions in the task's own units, [n, ...], in order."""

    obs: Any
    action: Any
    reward: Any
    next_obs: Any
    terminated: Any
    truncated: Any = None


def add(loop: Loop, columns: Columns) -> None:
    """Into the replay buffer, once they are looked at."""
    task = loop.environments
    rows = batch("obs", columns.obs, task.observation_space)
    following = batch("next_obs", columns.next_obs, task.observation_space)
    count, truncated = len(rows), columns.truncated
    loop.add(
        rows,
        actions(columns.action, count, task.scaling),
        numbers("reward", columns.reward, (count,)),
        numbers("next_obs", following, rows.shape),
        numbers("terminated", columns.terminated, (count,)).astype(bool),
        None if truncated is None else numbers("truncated", truncated, (count,)).astype(bool),
    )


def add_from(loop: Loop, source: Any) -> str:
    """From a Minari dataset or `minari:NAME`, a run folder or an .npz file; what to call it."""
    if hasattr(source, "iterate_episodes"):
        _add_minari(loop, source)
        return f"{MINARI}{source.spec.dataset_id}"
    if isinstance(source, str) and source.startswith(MINARI):
        _add_minari(loop, _minari_dataset(source.removeprefix(MINARI)))
    elif (path := place("data", source)).is_dir():
        loop.add_rows(_rows_of_run(loop, path))
    else:
        add(loop, _columns_in(path))
    return str(source)


def _columns_in(path: Path) -> Columns:
    """The arrays of `Columns`, by their names; `truncated` may be missing."""
    try:
        _require_held(path)
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in Columns._fields if name in file}
    except UserError:
        raise
    except Exception as error:  # of zipfile, zlib, NumPy and its parser: any, where it is damaged
        said = " ".join(str(error).split()) or type(error).__name__
        reason = "it does not exist" if not path.exists() else f"it is no .npz of numbers: {said}"
        raise UserError(
            f"{path} holds no transitions, {reason}; name a run folder, an .npz or minari:NAME"
        ) from None
    missing = [name for name in Columns._fields[:-1] if name not in arrays]
    if missing:
        raise UserError(
            f"{path} has no array '{missing[0]}': it needs {', '.join(Columns._fields[:-1])}, and "
            "truncated where episodes end without a termination"
        )
    return Columns(**arrays)


def _require_held(path: Path) -> None:
    """A small file can say that it is a large one, or swell to it."""
    with zipfile.ZipFile(path) as archive:
        size = sum(one.file_size for one in archive.infolist())
    there = memory_bytes()
    if there is not None and size > there // 2:
        raise UserError(
            f"{path} holds arrays of {size / 2**30:,.0f} GB, more than half of this machine's "
            "memory: take a part of them"
        )


def _rows_of_run(loop: Loop, folder: Path) -> Rows:
    """Its replay buffer, the oldest first."""
    config, spec = read_config(folder), loop.replay.spec
    size = config["agent"].get("replay_size")
    if type(size) is not int or size < 1:
        raise UserError(f"{folder / 'config.json'} is damaged: its replay_size is {size!r}")
    require_fitting("replay_size", size, spec.width)
    other = Replay(size, spec, np.random.SeedSequence(0))
    contents = Store(folder / "checkpoint").load(other)
    require_essence(folder, config, contents.facts.get("config"))
    found = [contents.arrays.get(name) for name in ("world.obs", "world.actions.0")]
    sizes = tuple(a.shape[1] if a is not None and a.ndim == 2 else 0 for a in found)
    if sizes != (loop.obs_dim, loop.action_dim):
        raise UserError(
            f"{folder} holds transitions of another size: its observations and actions have "
            f"{sizes[0]} and {sizes[1]} numbers, here they have {loop.obs_dim} and "
            f"{loop.action_dim}"
        )
    if not len(other):
        raise UserError(f"{folder} has an empty replay buffer")
    try:
        other.require_chained()
    except ValueError as error:
        raise UserError(f"the checkpoint in {folder} is not one of adac's: {error}") from None
    return other.recent(len(other))


def _minari_dataset(name: str) -> Any:
    try:
        import minari
    except ImportError:
        raise missing_extra(f"The dataset {name}", "data") from None
    try:
        return minari.load_dataset(name, download=True)
    except Exception as error:  # the library's own, the network's, the file system's
        raise UserError(f"the Minari dataset '{name}' cannot be loaded: {error}") from error


def _add_minari(loop: Loop, dataset: Any) -> None:
    task, found = loop.environments, []
    for episode in dataset.iterate_episodes():
        seen = batch("observations", episode.observations, task.observation_space)
        ends = np.asarray(episode.truncations, bool).copy()
        ends[-1:] = True  # where its recording was cut off
        found.append(
            (
                seen[:-1],
                actions(episode.actions, len(ends), task.scaling),
                numbers("rewards", episode.rewards, ends.shape),
                seen[1:],
                np.asarray(episode.terminations, bool),
                ends,
            )
        )
    if not found:
        raise UserError("the Minari dataset has no episodes")
    obs, action, reward, next_obs, terminated, truncated = map(
        np.concatenate, zip(*found, strict=True)
    )
    loop.add(obs, action, reward, next_obs, terminated, truncated)

"""Transitions from elsewhere: arrays, files, Minari datasets, other runs' replay buffers."""

import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from adac.errors import UserError, missing_extra
from adac.runs.checkpoint import Store
from adac.runs.folder import read_config
from adac.training.inputs import actions, batch, numbers
from adac.training.loop import Loop
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
    elif Path(source).is_dir():
        loop.add_rows(_rows_of_run(loop, Path(source)))
    else:
        add(loop, _columns_in(Path(source)))
    return str(source)


def _columns_in(path: Path) -> Columns:
    """The arrays of `Columns`, by their names; `truncated` may be missing."""
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in Columns._fields if name in file}
    except (OSError, ValueError, AttributeError, zipfile.BadZipFile) as error:
        reason = "it does not exist" if not path.exists() else f"it is no .npz of numbers: {error}"
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


def _rows_of_run(loop: Loop, folder: Path) -> Rows:
    """Its replay buffer, the oldest first."""
    config, spec = read_config(folder), loop.replay.spec
    other = Replay(int(config["agent"]["replay_size"]), spec, np.random.SeedSequence(0))
    arrays = Store(folder / "checkpoint").load(other).arrays
    sizes = arrays["world.obs"].shape[1], arrays["world.actions.0"].shape[1]
    if sizes != (loop.obs_dim, loop.action_dim):
        raise UserError(
            f"{folder} holds transitions of another size: its observations and actions have "
            f"{sizes[0]} and {sizes[1]} numbers, here they have {loop.obs_dim} and "
            f"{loop.action_dim}"
        )
    if not len(other):
        raise UserError(f"{folder} has an empty replay buffer")
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

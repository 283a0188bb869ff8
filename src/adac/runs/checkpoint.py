"""Checkpoints that can be trusted: safetensors and JSON, written beside and renamed.

A checkpoint folder holds manifests `step-….json`, the newest two of which are kept. A manifest
names the files it needs with their length and CRC-32: one with the state, and the replay buffer in
segments. A segment that has not changed since the last checkpoint is named again instead of being
written again, so saving costs what was collected since, and at most one segment of memory.
Nothing in here can run code; a file that does not match its manifest is refused.
"""

import contextlib
import os
import stat
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
import safetensors.numpy
from numpy.typing import NDArray
from safetensors import SafetensorError

from adac.errors import RunError, UserError
from adac.runs.files import forget_unfinished, refuse_links, write_whole
from adac.runs.machine import memory_bytes
from adac.runs.manifest import (
    OWN_NAME,
    DamagedError,
    File,
    Manifest,
    read_manifest,
    read_part,
    step_of,
)

SEGMENT = 16_384  # rows of the replay buffer in one file
KEPT = 2  # manifests: the newest, and one to fall back on
HEADER = 2**20  # bytes of a safetensors file that are no numbers, at most
STATE_BYTES = 2**32  # of a state, at most, where the reader does not know how large it may be

Arrays = dict[str, NDArray[Any]]


class Ring(Protocol):
    """What is stored of a replay buffer: rows, written round and round."""

    rows: NDArray[np.float32]
    inserted: int  # rows ever written; the next one goes to inserted % capacity

    @property
    def capacity(self) -> int: ...

    def __len__(self) -> int: ...


@dataclass
class Contents:
    step: int
    arrays: Arrays
    facts: dict[str, Any]
    warnings: list[str]


class Store:
    """One checkpoint folder."""

    def __init__(self, folder: Path):
        self.folder = folder
        self._good: dict[str, File] = {}  # segments that a manifest of this folder vouches for
        self._seen: set[tuple[str, int, int]] = set()  # manifests that this store read or wrote

    def save(self, step: int, arrays: Arrays, facts: dict[str, Any], replay: Ring | None) -> None:
        try:
            self._save(step, arrays, facts, replay)
        except OSError as error:
            raise RunError(
                f"the checkpoint of step {step} could not be written to {self.folder} "
                f"({error.strerror or error}): free some space"
            ) from error

    def _save(self, step: int, arrays: Arrays, facts: dict[str, Any], replay: Ring | None) -> None:
        self._refuse_links()
        self.folder.mkdir(parents=True, exist_ok=True)
        replaced = self.holds_another()
        state = self._write(f"step-{step:012d}.safetensors", safetensors.numpy.save(arrays))
        segments = [] if replay is None else [self._segment(*s) for s in _segments(replay)]
        self._good = {file.name: file for file in segments}
        inserted = None if replay is None else replay.inserted
        manifest = Manifest(step, facts, state, segments, inserted)
        self._write(f"step-{step:012d}.json", manifest.encode())
        _sync_folder(self.folder)
        self._abandon(lambda other: other > step or (replaced and other != step))
        self._clean()
        self._seen = self._signatures()

    def _segment(self, name: str, rows: NDArray[np.float32]) -> File:
        known = self._good.get(name)
        if known is not None and self._is_there(known):
            return known
        return self._write(name, safetensors.numpy.save({"rows": rows}))

    def _is_there(self, file: File) -> bool:
        """Folders are emptied, renamed and moved under a run; a file written once may be gone."""
        try:
            facts = (self.folder / file.name).lstat()
        except OSError:
            return False
        return stat.S_ISREG(facts.st_mode) and facts.st_size == file.size

    def _write(self, name: str, data: bytes) -> File:
        write_whole(self.folder / name, data)
        return File(name, len(data), zlib.crc32(data))

    def _abandon(self, outdated: Callable[[int], bool]) -> None:
        """Who saves at an earlier step than the folder has seen means that one from now on, and
        who saves over another run does not want to fall back on it."""
        for path in self._manifests():
            if outdated(step_of(path)):
                path.unlink(missing_ok=True)

    def last_step(self) -> int | None:
        """Of the newest checkpoint, judged by the names alone."""
        return max((step_of(path) for path in self._manifests()), default=None)

    def holds_another(self) -> bool:
        """Whether a checkpoint is there that this store neither read nor wrote."""
        return not self._signatures() <= self._seen

    def knows_some(self) -> bool:
        """Whether it has read or written any."""
        return bool(self._seen)

    def _signatures(self) -> set[tuple[str, int, int]]:
        found = set()
        for path in self._manifests():
            with contextlib.suppress(FileNotFoundError):
                facts = path.lstat()
                found.add((path.name, facts.st_ino, facts.st_mtime_ns))
        return found

    def _clean(self) -> None:
        """Delete what no kept manifest names; never what a good one needs."""
        manifests = self._manifests()
        needed: set[str] = set()
        for path in manifests[:KEPT]:
            needed.add(path.name)
            try:
                body = read_manifest(path)
            except (DamagedError, RunError):
                continue
            needed |= {file.name for file in (body.state, *body.replay)}
        self.keep_only(needed)
        forget_unfinished(self.folder)

    def keep_only(self, names: Collection[str]) -> None:
        """Of the files of checkpoints; whatever else a user has put there stays."""
        self._refuse_links()
        # Manifests first: one whose files are gone would look damaged after a kill.
        for path in sorted(self._files(), key=lambda path: path.suffix != ".json"):
            if path.name not in names:
                path.unlink(missing_ok=True)

    def forget_replay(self) -> None:
        """Keep the weights, which can be evaluated, and not the memory of gigabytes."""
        self.keep_only([path.name for path in self._files() if path.name.startswith("step-")])

    def _files(self) -> list[Path]:
        if not self.folder.is_dir():
            return []
        found = (path for path in self.folder.iterdir() if OWN_NAME.fullmatch(path.name))
        return [path for path in found if not path.is_dir()]

    def _manifests(self) -> list[Path]:
        """The newest first."""
        found = [path for path in self._files() if path.suffix == ".json"]
        return sorted(found, key=step_of, reverse=True)

    def _refuse_links(self) -> None:
        if self.folder.is_symlink():
            raise UserError(f"{self.folder} is a symbolic link: put the folder itself in its place")
        refuse_links(self.folder)

    def load(self, replay: Ring | None, state_bytes: int | None = None) -> Contents:
        """The newest good checkpoint; fills `replay` in place if there is one.

        A state of more than `state_bytes` is not read: its writer is not the one who reads it.
        """
        self._refuse_links()
        if state_bytes is None:  # reading takes three times as much memory
            state_bytes = min(STATE_BYTES, (memory_bytes() or STATE_BYTES) // 8)
        manifests = self._manifests()
        if not manifests:
            raise UserError(
                f"{self.folder} holds no checkpoint: the run ended before its first, "
                "so start it again in another folder"
            )
        warnings: list[str] = []
        for path in manifests:
            try:
                contents = self._load(path, replay, state_bytes)
            except DamagedError as damage:
                warnings.append(f"the checkpoint {path.name} is damaged ({damage})")
                continue
            self._seen = self._signatures()
            if warnings:
                warnings.append(f"using the previous good one, of step {contents.step}")
            contents.warnings = warnings
            return contents
        if replay is not None and not any(self.folder.glob("replay-*")):
            raise UserError(
                f"{self.folder} has no replay buffer, as the finished trials of a sweep: "
                "evaluate it with `adac eval`, or load it with with_replay=False"
            )
        raise UserError(f"no checkpoint in {self.folder} can be used: {'; '.join(warnings)}")

    def _load(self, path: Path, replay: Ring | None, state_bytes: int) -> Contents:
        manifest = read_manifest(path)
        arrays = _tensors(self._read(manifest.state, state_bytes))
        if replay is not None:
            self._fill(replay, manifest)
        return Contents(manifest.step, arrays, manifest.facts, [])

    def _fill(self, replay: Ring, manifest: Manifest) -> None:
        row, width = 0, replay.rows.shape[1]
        for file in manifest.replay:
            rows = _tensors(self._read(file, SEGMENT * max(width, 2**12) * 4 + HEADER)).get("rows")
            if rows is None or rows.ndim != 2 or rows.dtype != np.float32:
                raise DamagedError(f"{file.name} does not hold transitions")
            if rows.shape[1] != width:
                raise UserError(
                    f"{self.folder} holds transitions of another size: observations and actions "
                    "of this environment are not those that the run was trained on"
                )
            if row + len(rows) > replay.capacity:
                raise UserError(
                    f"{self.folder} holds more transitions than this agent's replay_size"
                )
            if not np.isfinite(rows).all():
                raise DamagedError(f"{file.name} holds numbers that are not finite")
            replay.rows[row : row + len(rows)] = rows
            row += len(rows)
        if manifest.inserted is None or row != min(manifest.inserted, replay.capacity):
            raise DamagedError(f"it has {row} of {manifest.inserted} transitions")
        replay.inserted = manifest.inserted
        self._good = {file.name: file for file in manifest.replay}

    def _read(self, file: File, most: int) -> bytes:
        data = read_part(self.folder / file.name, most, file.size)
        if zlib.crc32(data) != file.crc:
            raise DamagedError(f"{file.name} is not what was written")
        return data


def _tensors(data: bytes) -> Arrays:
    try:
        return dict(safetensors.numpy.load(data))
    except (SafetensorError, KeyError, ValueError, TypeError, OverflowError) as error:
        raise DamagedError(f"not safetensors: {error}") from None


def _segments(replay: Ring) -> Iterator[tuple[str, NDArray[np.float32]]]:
    """Each part of the ring, under a name that changes whenever its rows do."""
    for number, start in enumerate(range(0, len(replay), SEGMENT)):
        end = min(start + SEGMENT, len(replay))
        yield (
            f"replay-{number:05d}-{_last_write(replay, start, end):012d}.safetensors",
            (replay.rows[start:end]),
        )


def _last_write(replay: Ring, start: int, end: int) -> int:
    """How many insertions had happened when a row of [start, end) was last written."""
    lap, position = divmod(replay.inserted, replay.capacity)
    if position > start:
        return lap * replay.capacity + min(position, end)
    return (lap - 1) * replay.capacity + end


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def flatten(tree: Any) -> dict[str, NDArray[Any]]:
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    return {jax.tree_util.keystr(path): np.asarray(leaf) for path, leaf in leaves}


def unflatten(template: Any, arrays: Mapping[str, NDArray[Any]]) -> Any:
    """The template's structure with the saved leaves, each of the same shape and type."""

    def leaf(path: Any, like: Any) -> Any:
        name = jax.tree_util.keystr(path)
        saved = arrays.get(name)
        if saved is None or saved.shape != like.shape or saved.dtype != like.dtype:
            raise UserError(f"this checkpoint does not fit the agent: {name} is missing or differs")
        return jnp.array(saved)

    return jax.tree_util.tree_map_with_path(leaf, template)

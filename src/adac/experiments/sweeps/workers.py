"""A trial inside a Ray worker, and how its files come back where no disk is shared.

The worker trains in a thread and streams reports to the driver. Where it sees the driver's folder
it writes straight into it; elsewhere it works in a folder of its own and sends, at each checkpoint
and at the end, the files that changed. Checkpoint files never change under one name, so that is
the weights and the newest part of the replay buffer: some megabytes, not the whole.
"""

import queue
import shutil
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from adac.errors import AdacError, RunError
from adac.experiments.sweeps.provenance import scratch_folder
from adac.experiments.sweeps.trials import DONE, Trial, execute
from adac.runs.checkpoint import Store
from adac.runs.files import refuse_links, write_whole

# One thread a trial: the cores are taken by other trials. They must be set before JAX is imported.
SINGLE_THREAD = {
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
    "NPROC": "1",  # the size of XLA's own pool
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "JAX_PLATFORMS": "cpu",
}


@dataclass(frozen=True)
class Home:
    """The driver's folder of the sweep, and the token by which a worker recognises it."""

    folder: Path
    token: str
    share: bool = True  # False: behave as if the disk were not shared

    @property
    def mark(self) -> Path:
        return self.folder / f".driver-{self.token}"

    def is_here(self) -> bool:
        return self.share and self.mark.is_file()


@dataclass(frozen=True)
class Progress:
    step: int
    value: float | None  # the last return of the target policy
    evaluated: int = -1  # the step at which it was found


@dataclass(frozen=True)
class Parcel:
    """Files that changed, and the names of all there are."""

    files: dict[str, bytes]
    names: tuple[str, ...]


@dataclass(frozen=True)
class Finished:
    pass


@dataclass(frozen=True)
class Failed:
    reason: str  # one sentence
    details: str


Report = Progress | Parcel | Finished | Failed
Send = Callable[[Report], None]
Luggage = Sequence[Any]  # at most one Ray reference to a Parcel: fetched only where it is needed


def work(trial: Trial, home: Home, luggage: Luggage) -> Iterator[Report]:
    """The body of the Ray task: reports until the trial has finished or failed."""
    mailbox: queue.SimpleQueue[Report] = queue.SimpleQueue()
    arguments = (trial, home, luggage, mailbox.put)
    threading.Thread(target=_attempt, args=arguments, daemon=True).start()
    while True:
        report = mailbox.get()
        yield report
        if isinstance(report, Finished | Failed):
            return


def _attempt(trial: Trial, home: Home, luggage: Luggage, send: Send) -> None:
    try:
        if home.is_here():
            execute(trial, home.folder / trial.id, lambda *seen: send(Progress(*seen)))
        else:
            _attempt_away(trial, luggage, send)
        send(Finished())
    except BaseException as error:  # the driver must hear of every end
        known = isinstance(error, AdacError)
        reason = str(error) if known else f"{type(error).__name__}: {error}"
        send(Failed(" ".join(reason.split()), traceback.format_exc()))


def _attempt_away(trial: Trial, luggage: Luggage, send: Send) -> None:
    """In a folder of this node, from what the driver holds of the trial."""
    scratch = scratch_folder("adac-trial")
    try:
        folder = scratch / trial.id
        folder.mkdir()
        if luggage:
            import ray

            parcel: Any = ray.get(luggage[0])
            unpack(parcel, folder)
        packer = Packer(folder)
        execute(
            trial, folder, lambda *seen: send(Progress(*seen)), lambda: send(packer.parcel())
        )  # fmt: skip
        send(packer.parcel())
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


class Packer:
    """What changed in a folder since the last parcel."""

    def __init__(self, folder: Path):
        self.folder = folder
        self._sent: dict[str, tuple[int, int]] = {}

    def parcel(self) -> Parcel:
        files, names = {}, []
        for path in sorted(self.folder.rglob("*")):
            name = path.relative_to(self.folder).as_posix()
            if not path.is_file() or path.name.startswith("."):
                continue
            names.append(name)
            stat = path.stat()
            signature = (stat.st_size, stat.st_mtime_ns)
            if self._sent.get(name) != signature:
                self._sent[name] = signature
                files[name] = path.read_bytes()
        return Parcel(files, tuple(names))


def unpack(parcel: Parcel, folder: Path) -> None:
    """Into the folder, such that a kill in between leaves the state before or the state after."""
    for written in (folder, folder / "checkpoint"):
        refuse_links(written)
    for name in sorted(parcel.files, key=_after_what_it_names):
        path = folder / _inside(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, parcel.files[name])
    kept = {PurePosixPath(name).name for name in parcel.names if name.startswith("checkpoint/")}
    Store(folder / "checkpoint").keep_only(kept)


def _after_what_it_names(name: str) -> int:
    """Manifests come after the files that they name, the mark of a finished trial at the end."""
    if name == DONE:
        return 2
    return int(name.startswith("checkpoint/") and name.endswith(".json"))


def _inside(name: str) -> PurePosixPath:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts:
        raise RunError(f"a worker sent a file outside its folder: {name!r}")
    return path

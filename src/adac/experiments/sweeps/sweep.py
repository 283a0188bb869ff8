"""Many trials on Ray: skip the finished, resume the interrupted, retry a failure once.

Ray schedules and watches the processes; all that must survive is in the trials' folders.
"""

import contextlib
import importlib
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from adac.errors import RunError, UserError
from adac.experiments.sweeps import publish
from adac.experiments.sweeps.cluster import Signals, cluster, lost_process
from adac.experiments.sweeps.live_table import Board, Row, board, number
from adac.experiments.sweeps.trials import (
    Trial,
    checkpoint_step,
    is_done,
    last_return,
    read_done,
)
from adac.experiments.sweeps.workers import (
    SINGLE_THREAD,
    Failed,
    Finished,
    Home,
    Packer,
    Parcel,
    Progress,
    Report,
    unpack,
    work,
)
from adac.runs.files import locked, write_whole
from adac.runs.progress import duration

ATTEMPTS = 2
POLL_SECONDS = 0.5
FAILURE = "failure.txt"


@dataclass(frozen=True)
class Options:
    folder: Path  # of the sweep: one folder a trial
    jobs: int | None = None  # trials at once on this machine; None: one a core
    address: str | None = None  # of a running Ray cluster
    results: Path | None = None  # where finished trials are published
    share_disk: bool = True  # False: files travel through Ray even where the folder is in reach


class Judge:
    """What is decided while trials run: which one is next, and which is not worth going on with.

    This one decides nothing: a sweep's trials are all known before, and all of them finish.
    """

    def next(self) -> Trial | None:
        """One more trial, where a slot is free."""
        return None

    def heard(self, trial: Trial, progress: Progress) -> bool:
        """Whether the trial may go on."""
        return True

    def ended(self, row: Row) -> None:
        """It is done, has failed for good or was pruned."""


@dataclass
class Outcome:
    done: int = 0
    failed: dict[str, str] = field(default_factory=dict)  # trial: reason


def run(
    name: str, trials: Sequence[Trial], options: Options, judge: Judge | None = None
) -> Outcome:
    """Run what is not finished yet; returns when every trial has finished or failed twice.

    With a judge, there may be more trials than these, and some of them end early.
    """
    if judge is None:
        _require_distinct(trials)
    if options.jobs is not None and options.jobs < 1:
        raise UserError(f"jobs must be at least 1, not {options.jobs}")
    options.folder.mkdir(parents=True, exist_ok=True)
    with locked(options.folder, "sweep", patience=0.0), board(name) as screen:
        rows = [_row(trial, options, screen) for trial in trials]
        waiting = [row for row in rows if row.status == "waiting"]
        skipped = len(rows) - len(waiting)
        screen.say(f"{name}: {len(rows)} trials, {skipped} finished before, into {options.folder}")
        if waiting or judge is not None:
            screen.say("starting Ray" if options.address is None else "connecting to Ray", "dim")
            with (
                Signals() as signals,
                cluster(options.jobs, options.address),
                signals.terminating(),
                _home(options) as home,
            ):
                _Sweep(rows, home, options, screen, judge or Judge()).go()
    failed = {row.trial.id: row.reason for row in rows if row.status == "failed"}
    return Outcome(sum(row.status == "done" for row in rows), failed)


def _require_distinct(trials: Sequence[Trial]) -> None:
    if not trials:
        raise UserError("this sweep has no trials")
    name, times = Counter(trial.id for trial in trials).most_common(1)[0]
    if times > 1:
        raise UserError(f"the trial {name} is in this sweep twice")


def _row(trial: Trial, options: Options, screen: Board) -> Row:
    folder = options.folder / trial.id
    if options.results is not None:
        published = options.results / trial.id
        if is_done(published) and not is_done(folder):
            publish.recall(published, folder)
            screen.say(f"published before: {trial.id}")
        elif is_done(folder) and not is_done(published):
            publish.publish(folder, options.results)
    if is_done(folder):
        return Row(trial, "done", step=trial.steps, value=last_return(folder))
    return Row(trial, step=checkpoint_step(folder))


class _Sweep:
    """The driver's loop over running Ray tasks."""

    def __init__(self, rows: list[Row], home: Home, options: Options, screen: Board, judge: Judge):
        self.ray: Any = importlib.import_module("ray")
        self.rows, self.home, self.judge = rows, home, judge
        self.options, self.screen = options, screen
        self.waiting = [row for row in rows if row.status == "waiting"]
        self.running: dict[Any, Row] = {}
        self.task = self.ray.remote(
            num_cpus=1,
            max_retries=0,  # a killed worker counts as a failure: retried below, and reported
            max_calls=1,  # a process a trial
            num_returns="streaming",
            runtime_env={"env_vars": SINGLE_THREAD},
        )(work)

    def go(self) -> None:
        while self._fill(slots := self._slots()):
            streams = list(self.running)
            ready, _ = self.ray.wait(
                streams, num_returns=len(streams), timeout=POLL_SECONDS, fetch_local=False
            )
            for stream in ready:
                self._receive(stream)
            self.screen.show(self.rows, slots)

    def _fill(self, slots: int) -> bool:
        """Start what there is room for; whether anything runs."""
        while len(self.running) < slots:
            if not self.waiting:
                trial = self.judge.next()
                if trial is None:
                    break
                self.waiting.append(Row(trial))
                self.rows.append(self.waiting[0])
            self._start(self.waiting.pop(0))
        return bool(self.running)

    def _require_ray(self) -> None:
        """Without Ray's own processes every trial would seem to fail, twice."""
        if (process := lost_process()) is not None:
            raise RunError(
                f"Ray's process {process} ended unexpectedly: run the sweep again; what is "
                "finished is kept, and the rest goes on from its checkpoints"
            )

    def _slots(self) -> int:
        self._require_ray()
        return max(int(self.ray.cluster_resources().get("CPU", 1)), 1)

    def _folder(self, row: Row) -> Path:
        return self.options.folder / row.trial.id

    def _start(self, row: Row) -> None:
        folder = self._folder(row)
        row.start(checkpoint_step(folder))
        if row.step:
            self.screen.say(f"resuming at step {row.step:,}: {row.trial.id}", "dim")
        luggage = [self.ray.put(Packer(folder).parcel())] if row.step and self._may_be_far() else []
        self.running[self.task.remote(row.trial, self.home, luggage)] = row

    def _may_be_far(self) -> bool:
        return self.options.address is not None or not self.options.share_disk

    def _receive(self, stream: Any) -> None:
        try:
            report: Report = self.ray.get(next(stream))
        except StopIteration:
            report = Failed("its process ended without a result", "")
        except self.ray.exceptions.RayError as error:
            report = Failed(f"its process was lost ({type(error).__name__})", str(error))
        row = self.running[stream]
        if isinstance(report, Finished | Failed):
            del self.running[stream]  # what follows on this stream belongs to no attempt
        self._hear(row, report)
        if isinstance(report, Progress) and not self.judge.heard(row.trial, report):
            del self.running[stream]
            self.ray.cancel(stream, force=True)
            self._prune(row)

    def _prune(self, row: Row) -> None:
        row.status = "pruned"
        self.screen.say(
            f"pruned at step {row.step:,}: {row.trial.id}: return {number(row.value)}", "dim"
        )
        self.judge.ended(row)

    def _hear(self, row: Row, report: Report) -> None:
        if isinstance(report, Progress):
            row.progress(report.step, report.value)
        elif isinstance(report, Parcel):
            self._keep(row, report)
        elif isinstance(report, Finished):
            self._finish(row)
        else:
            self._fail(row, report)

    def _keep(self, row: Row, parcel: Parcel) -> None:
        """A parcel that cannot be written costs what it holds, not the sweep."""
        try:
            unpack(parcel, self._folder(row))
        except OSError as error:
            self.screen.say(f"not kept of {row.trial.id}: {error.strerror}", "yellow")

    def _finish(self, row: Row) -> None:
        folder = self._folder(row)
        row.status, row.step, row.value = "done", row.trial.steps, last_return(folder)
        (folder / FAILURE).unlink(missing_ok=True)
        if self.options.results is not None:
            publish.publish(folder, self.options.results)
        took = duration(float(read_done(folder)["wall_seconds"]))
        done = sum(r.status == "done" for r in self.rows)
        self.screen.say(
            f"[{done}/{len(self.rows)}] {row.trial.id}: return {number(row.value)} in {took}",
            "green",
        )
        self.judge.ended(row)

    def _fail(self, row: Row, failure: Failed) -> None:
        folder = self._folder(row)
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
        text = f"{failure.reason}\n\n{failure.details}"
        with contextlib.suppress(OSError):  # a full disk may be the reason
            write_whole(folder / FAILURE, text.encode(errors="backslashreplace"))
        row.reason = failure.reason
        again = row.attempts < ATTEMPTS
        row.status = "waiting" if again else "failed"
        if again:
            self.waiting.insert(0, row)
        what = "failed, trying once more" if again else "FAILED"
        self.screen.say(f"{what}: {row.trial.id}: {failure.reason}", "yellow" if again else "red")
        if not again:
            self.judge.ended(row)


@contextlib.contextmanager
def _home(options: Options) -> Iterator[Home]:
    home = Home(options.folder.resolve(), uuid.uuid4().hex, options.share_disk)
    for left in home.folder.glob(".driver-*"):
        left.unlink(missing_ok=True)
    home.mark.touch()
    try:
        yield home
    finally:
        home.mark.unlink(missing_ok=True)

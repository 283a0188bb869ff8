"""A run from here to a step: advance, log, evaluate, checkpoint. No maths."""

import contextlib
import dataclasses
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from adac.core.validation import whole
from adac.errors import UserError
from adac.runs.checkpoint import Store
from adac.runs.csv_table import EVALUATION_COLUMNS, GAP_COLUMNS, Table
from adac.runs.folder import write_config
from adac.runs.progress import Display, display
from adac.runs.trackers import Sink, TensorBoard, WeightsAndBiases
from adac.training.compiled import metric_names

if TYPE_CHECKING:
    from adac.training.learner import Learner

Callback = Callable[["Learner"], bool | None]
LEADING = ("step", "episodes", "episode_return", "episode_length", "steps_per_second")


@dataclass(frozen=True)
class Schedule:
    """How often things happen, in environment steps (0 is never), and when enough is learned."""

    eval_every: int = 0
    eval_episodes: int = 10
    checkpoint_every: int = 0
    log_every: int = 1_000
    stop_return: float | None = None  # end when an evaluation's mean return reaches this

    def __post_init__(self) -> None:
        for name in ("eval_every", "checkpoint_every", "log_every"):
            if getattr(self, name) < 0:
                raise UserError(f"{name} must not be negative")
        if self.eval_episodes < 1:
            raise UserError(f"eval_episodes must be at least 1, not {self.eval_episodes}")
        if self.stop_return is not None and not self.eval_every:
            raise UserError("stop_return needs evaluations: set eval_every")


class Recorder:
    """The files of a run folder; without a folder, nothing."""

    def __init__(self, learner: "Learner", out: Path, *, tensorboard: bool, wandb: bool):
        self.sinks: list[Sink] = []
        if tensorboard:
            self.sinks.append(TensorBoard(out))
        if wandb:
            self.sinks.append(WeightsAndBiases(out, learner.config()))
        names = metric_names(learner.loop.running.program)
        has_bonus = learner.agent.intrinsic is not None
        leading = (*LEADING, "episode_bonus") if has_bonus else LEADING
        columns = (*EVALUATION_COLUMNS, *GAP_COLUMNS) if has_bonus else EVALUATION_COLUMNS
        self.metrics = Table(out / "metrics.csv", [*leading, *names], learner.step)
        self.evaluations = Table(out / "evaluations.csv", columns, learner.step)

    def add(self, table: Table, row: dict[str, Any]) -> None:
        table.add({k: f"{v:.9g}" if isinstance(v, float) else v for k, v in row.items()})
        prefix = "eval" if table is self.evaluations else "train"
        numbers = {f"{prefix}/{k}": float(v) for k, v in row.items() if k != "step"}
        for sink in self.sinks:
            sink.write(numbers, int(row["step"]))

    def sync(self) -> None:
        self.metrics.sync()
        self.evaluations.sync()

    def close(self) -> None:
        self.metrics.close()
        self.evaluations.close()
        for sink in self.sinks:
            sink.close()


def train(
    learner: "Learner",
    until: int,
    schedule: Schedule | None = None,
    *,
    out: str | Path | None = None,
    progress_bar: bool = False,
    tensorboard: bool = False,
    wandb: bool = False,
    horizon: int | None = None,
    stop: Callable[[], bool] = lambda: False,
    callback: Callback | None = None,
) -> bool:
    """Train until `until` environment steps in total; returns whether it is done.

    `Learner.learn` explains the options; `stop` is asked before every step.
    """
    until, schedule = whole("steps", until), schedule or Schedule()
    if until < learner.step:
        raise UserError(f"the run is at step {learner.step} already, past {until}")
    learner.loop.horizon = max(until if horizon is None else horizon, 1)
    folder = None if out is None else Path(out)
    if folder is not None:
        _require_own(folder, learner)
    elif tensorboard or wandb or schedule.checkpoint_every:
        raise UserError("tensorboard, wandb and checkpoint_every need a run folder: pass out=")
    with contextlib.ExitStack() as stack:
        run = _Run(learner, schedule, folder)
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            run.begin()
            run.recorder = Recorder(learner, folder, tensorboard=tensorboard, wandb=wandb)
            stack.callback(run.recorder.close)
            plan = {"steps": until, "horizon": learner.loop.horizon}
            write_config(folder, learner.config() | plan | dataclasses.asdict(schedule))
        run.display = stack.enter_context(display(learner.step, until, wanted=progress_bar))
        return run.go(until, stop, callback)


def _require_own(folder: Path, learner: "Learner") -> None:
    """A run that somebody has paid for is not overwritten by another."""
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{folder} is a file: choose a folder for the run")
    store = Store(folder / "checkpoint")
    if store.last_step() and not learner.stored_in(folder):
        raise UserError(
            f"{folder} already holds a run of {store.last_step():,} steps: continue it with "
            "Learner.load, or choose another folder"
        )


class _Run:
    def __init__(self, learner: "Learner", schedule: Schedule, folder: Path | None):
        self.learner, self.schedule, self.folder = learner, schedule, folder
        self.store = None if folder is None else learner.store_in(folder)
        self.recorder: Recorder | None = None
        self.display: Display
        self._started = time.monotonic() - learner.wall_seconds
        self._logged = (time.monotonic(), learner.step)
        self._saved = -1
        self._last_return: float | None = None
        self._enough = False

    def begin(self) -> None:
        """A first checkpoint, so that a kill at any moment leaves something to resume."""
        if self.schedule.checkpoint_every and self.store and self.store.last_step() is None:
            self._checkpoint()

    def go(
        self,
        until: int,
        stop: Callable[[], bool],
        callback: Callback | None,
    ) -> bool:
        learner, loop, going = self.learner, self.learner.loop, True
        while going and learner.step < until and not self._enough and not stop():
            before = learner.step
            loop.advance()
            if loop.recent:
                self._last_return = loop.recent[-1].total
            self._due(before)
            self.display.update(learner.step, self._last_return)
            going = callback is None or not _is_false(callback(learner))
        learner.wall_seconds = time.monotonic() - self._started
        done = self._enough or learner.step >= until
        if done and self.schedule.eval_every:
            self._evaluate()
        self._checkpoint()
        return done

    def _due(self, before: int) -> None:
        """Log, evaluate, then checkpoint: a checkpoint vouches for every row up to its step."""
        now, plan = self.learner.step, self.schedule
        self.learner.wall_seconds = time.monotonic() - self._started
        if _crossed(before, now, plan.log_every):
            self._log()
        if _crossed(before, now, plan.eval_every):
            self._evaluate()
        if _crossed(before, now, plan.checkpoint_every):
            self._checkpoint()

    def _log(self) -> None:
        learner, loop = self.learner, self.learner.loop
        loop.settle()
        episodes = int(loop.environments.episodes.sum())
        row: dict[str, Any] = {"step": learner.step, "episodes": episodes}
        if loop.recent:
            row["episode_return"] = float(np.mean([e.total for e in loop.recent]))
            row["episode_length"] = float(np.mean([e.length for e in loop.recent]))
            row["episode_bonus"] = float(np.mean([e.bonus for e in loop.recent]))
        loop.recent = []
        values = loop.diagnose()
        then, step = self._logged
        self._logged = (time.monotonic(), learner.step)
        row["steps_per_second"] = (learner.step - step) / max(self._logged[0] - then, 1e-9)
        if self.recorder is not None:
            self.recorder.add(self.recorder.metrics, row | values)

    def _evaluate(self) -> None:
        learner = self.learner
        if learner.evaluated == learner.step:
            return
        learner.evaluated = learner.step
        result = learner.evaluate(self.schedule.eval_episodes, salt=learner.step).summary()
        row = {"step": learner.step, "wall_seconds": learner.wall_seconds, **result}
        if learner.agent.intrinsic is not None and learner.updates:
            row |= learner.bonus_gap(salt=learner.step)
        self.display.say(
            f"step {learner.step:,}: target policy returns "
            f"{result['mean_return']:.1f} ± {result['std_return']:.1f} "
            f"over {self.schedule.eval_episodes} episodes"
        )
        if self.recorder is not None:
            self.recorder.add(self.recorder.evaluations, row)
        wanted = self.schedule.stop_return
        self._enough = wanted is not None and result["mean_return"] >= wanted

    def _checkpoint(self) -> None:
        if self.store is None or self._saved == self.learner.step:
            return
        if self.recorder is not None:
            self.recorder.sync()
        self.learner.save_to(self.store)
        self._saved = self.learner.step


def _is_false(answer: Any) -> bool:
    """False, Python's or NumPy's; nothing and 0 are not an answer."""
    return isinstance(answer, bool | np.bool_) and not answer


def _crossed(before: int, now: int, every: int) -> bool:
    return bool(every) and before // every != now // every

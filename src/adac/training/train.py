"""A run from here to a step: advance, log, evaluate, checkpoint. No maths."""

import contextlib
import dataclasses
import math
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from adac.core.validation import at_least, counts, typed, whole
from adac.errors import AdacError, UserError
from adac.runs.csv_table import (
    EVALUATION_COLUMNS,
    GAP_COLUMNS,
    VISITS,
    VISITS_COLUMNS,
    Mark,
    Table,
)
from adac.runs.files import locked, place
from adac.runs.folder import make_folder, write_config
from adac.runs.progress import EVALUATING, Display, display
from adac.runs.trackers import Sink, TensorBoard, WeightsAndBiases
from adac.training import best, infos, recording
from adac.training.answers import Floats
from adac.training.callbacks import Callbacks, Together, together
from adac.training.compiled import metric_names
from adac.training.evaluation import StoppedError
from adac.training.infos import SUCCESS_RATE
from adac.training.interrupt import Interrupt
from adac.training.phases import phase

if TYPE_CHECKING:
    from adac.training.learner import Learner

STAGES = (0.1, 0.25, 0.5, 1.0)  # parts of a run after which a picture is taken
LEADING = (
    "step", "episodes", "episode_return", "episode_length", "steps_per_second", "coverage",
    SUCCESS_RATE,
)  # fmt: skip


@dataclass(frozen=True)
class Schedule:
    """How often things happen, in environment steps (0 is never), and when enough is learned."""

    eval_every: int = 0
    eval_episodes: int = 10
    checkpoint_every: int = 0
    log_every: int = 1_000
    stop_return: float | None = None  # end when an evaluation's mean return reaches this
    save_best: bool = False  # keep the policy of the best evaluation
    info_keywords: tuple[str, ...] = ()  # of `info`, at an episode's end, as columns
    offline: int = 0  # updates, in all, from the data in the buffer alone; before the next step
    video_every: int = 0

    def __post_init__(self) -> None:
        try:
            typed(self)
            counts(self, 0, "offline", "eval_every", "checkpoint_every", "log_every", "video_every")
            counts(self, 1, "eval_episodes")
            if self.stop_return is not None:
                at_least(self, -math.inf, "stop_return")
        except ValueError as error:
            raise UserError(str(error)) from None
        if self.stop_return is not None and not self.eval_every:
            raise UserError("stop_return needs evaluations: set eval_every")
        if self.save_best and not self.eval_every:
            raise UserError("save_best needs evaluations: set eval_every")


class Recorder:
    """The files of a run folder; without a folder, nothing."""

    def __init__(
        self,
        learner: "Learner",
        out: Path,
        wanted: Sequence[str],
        *,
        tensorboard: bool,
        wandb: bool,
    ):
        self.sinks: list[Sink] = []
        if tensorboard:
            self.sinks.append(TensorBoard(out))
        if wandb:
            self.sinks.append(WeightsAndBiases(out, learner.config()))
        names = metric_names(learner.loop.running.program)
        has_bonus = learner.agent.intrinsic is not None
        leading = (*LEADING, "episode_bonus") if has_bonus else LEADING
        columns = (*EVALUATION_COLUMNS, *GAP_COLUMNS) if has_bonus else EVALUATION_COLUMNS
        extra = [infos.column(keyword) for keyword in wanted]
        leading, columns = (*leading, *extra), (*columns, *extra)
        vouched = learner.folders.vouched(out)

        def table(name: str, columns: Sequence[str], step: int) -> Table:
            return Table(out / name, columns, step, vouched.get(name))

        self.metrics = table("metrics.csv", [*leading, *names], learner.step)
        # A checkpoint may be older than the evaluation at its step, which is then repeated.
        self.evaluations = table("evaluations.csv", columns, learner.evaluated)
        self.visits = table(VISITS, VISITS_COLUMNS, learner.evaluated)

    def add(self, table: Table, row: dict[str, Any]) -> None:
        table.add({k: f"{v:.9g}" if isinstance(v, float) else v for k, v in row.items()})
        prefix = "eval" if table is self.evaluations else "train"
        numbers = {f"{prefix}/{k}": float(v) for k, v in row.items() if k != "step"}
        for sink in self.sinks:
            sink.write(numbers, int(row["step"]))

    def add_visits(self, step: int, policy: str, picture: NDArray[np.int64]) -> None:
        for y, x in np.argwhere(picture):
            self.visits.add(
                {"step": step, "policy": policy, "x": x, "y": y, "visits": picture[y, x]}
            )

    @property
    def _tables(self) -> tuple[Table, ...]:
        return self.metrics, self.evaluations, self.visits

    def marks(self) -> dict[str, Mark]:
        return {table.path.name: table.mark for table in self._tables}

    def sync(self) -> None:
        for table in self._tables:
            table.sync()

    def close(self) -> None:
        for table in self._tables:
            table.close()
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
    callback: Callbacks | None = None,
) -> bool:
    """Train until `until` environment steps in total; returns whether it is done.

    `Learner.learn` explains the options; `stop` is asked before every step.
    """
    until, schedule = whole("steps", until), schedule or Schedule()
    if learner.step - until >= learner.loop.environments.stride:  # the last step may pass it
        raise UserError(f"the run is at step {learner.step} already, past {until}")
    horizon = max(until if horizon is None else whole("horizon", horizon), 1)
    folder = None if out is None else place("out", out).absolute()  # wherever a callback may go
    calls = together(callback)
    if schedule.eval_every:
        learner.tasks.require_evaluable()
    kept = schedule.checkpoint_every or schedule.save_best or schedule.video_every
    if folder is None and (tensorboard or wandb or kept):
        raise UserError(
            "tensorboard, wandb, checkpoint_every, save_best and video_every need a run folder: "
            "pass out="
        )
    if folder is not None and schedule.video_every:
        recording.require_renderable(learner, folder)
    learner.loop.horizon = horizon
    learner.loop.environments.keywords = schedule.info_keywords
    with contextlib.ExitStack() as stack:
        if folder is not None:
            make_folder(folder)
            stack.enter_context(locked(folder, patience=0.0))
            learner.folders.require_own(folder)
        run = _Run(learner, schedule, folder, until)
        if folder is not None:
            run.begin()
            run.recorder = Recorder(
                learner, folder, schedule.info_keywords, tensorboard=tensorboard, wandb=wandb
            )
            stack.callback(run.recorder.close)
            run.write_config()
        run.display = stack.enter_context(display(learner.step, until, wanted=progress_bar))
        interrupt = stack.enter_context(Interrupt(stop, saves=folder is not None))
        calls.on_start(learner)
        try:
            return run.go(interrupt, calls)
        finally:
            calls.on_end(learner)


class _Run:
    def __init__(
        self, learner: "Learner", schedule: Schedule, folder: Path | None, until: int
    ) -> None:
        self.learner, self.schedule, self.folder = learner, schedule, folder
        self.until = until
        self.store = None if folder is None else learner.folders.store(folder)
        self.recorder: Recorder | None = None
        self.display: Display
        self._started = time.monotonic() - learner.wall_seconds
        self._logged = (time.monotonic(), learner.step)
        self._saved = (-1, -1, -1)  # step, last evaluation and updates that the checkpoint knows
        self._begun, self._at_once = learner.step, learner.loop.environments.num_envs
        self._between = True  # two steps, where all parts agree
        self._last_return: float | None = None
        self._enough = False
        self._going = True  # until a callback has seen enough of an evaluation
        self._calls = together(None)

    def begin(self) -> None:
        """A first checkpoint, so that a kill at any moment leaves something to resume."""
        if self.folder is not None:
            best.put(self.folder, self.learner.best)
        if self.schedule.checkpoint_every and self.store and self.store.last_step() is None:
            self._checkpoint()
        elif self.store and any(
            n["step"] == self.learner.step for n in self.learner.history.get("changes", [])
        ):
            self._checkpoint()  # with the settings that config.json will have

    def write_config(self) -> None:
        if self.folder is not None:
            plan = {"steps": self.until, "horizon": self.learner.loop.horizon}
            plan |= dataclasses.asdict(self.schedule)
            write_config(self.folder, self.learner.config() | plan)

    def go(self, stop: Callable[[], bool], calls: Together) -> bool:
        learner, self._calls = self.learner, calls
        try:
            if self._owes_an_evaluation():
                self._evaluate(stop)
            self._offline(stop)
            self._steps(stop)
            if self._evaluation_due(learner.step) and learner.step >= self.until:
                self._evaluate(stop)
        except AdacError:  # what is wrong by our own checks is not saved
            raise
        except (Exception, SystemExit):
            if self._between:  # else no checkpoint could be continued to the same bits
                with contextlib.suppress(AdacError, OSError):
                    self._checkpoint()
            raise
        learner.wall_seconds = time.monotonic() - self._started
        self._checkpoint()
        over = self._enough or learner.step >= self.until
        return over and not self._evaluation_due(learner.step - 1)

    def _offline(self, stop: Callable[[], bool]) -> None:
        """Updates without steps, and what they have come to."""
        learner, loop, plan = self.learner, self.learner.loop, self.schedule
        if loop.offline >= plan.offline and (learner.step or not plan.offline):
            return
        if not len(loop.replay):
            raise UserError("offline updates need data: name some, --data or Learner.add_dataset")
        self.display.say(f"{plan.offline:,} updates from {len(loop.replay):,} transitions")
        while loop.offline < plan.offline and not stop():
            loop.update_offline()
            if _crossed(loop.offline - 1, loop.offline, plan.checkpoint_every):
                self._checkpoint()
        if loop.offline >= plan.offline and plan.eval_every and learner.evaluated != learner.step:
            self._evaluate(stop)
            self._checkpoint()

    def _steps(self, stop: Callable[[], bool]) -> None:
        learner, loop, going = self.learner, self.learner.loop, self._going
        while going and learner.step < self.until and not self._enough and not stop():
            self.display.phase(phase(learner.agent, learner.step, self._begun, self._at_once))
            before, self._between = learner.step, False
            loop.advance()
            self._between = True
            if loop.recent:
                self._last_return = loop.recent[-1].total
            self._due(before, stop)
            self.display.update(learner.step, self._last_return)
            going = self._calls.on_step(learner) and self._going

    def _due(self, before: int, stop: Callable[[], bool]) -> None:
        """Log, evaluate, then checkpoint: a checkpoint vouches for every row up to its step."""
        now, plan = self.learner.step, self.schedule
        self.learner.wall_seconds = time.monotonic() - self._started
        if _crossed(before, now, plan.log_every):
            self._log()
        if self._evaluation_due(before):
            self._evaluate(stop)
        if self.folder is not None and _crossed(before, now, plan.video_every):
            recording.record_run(self.learner, self.folder)
        if _crossed(before, now, plan.checkpoint_every):
            self._checkpoint()

    def _evaluation_due(self, before: int) -> bool:
        """At each multiple of eval_every, and at the end; unless it has been."""
        learner, every = self.learner, self.schedule.eval_every
        if not every or learner.evaluated == learner.step:
            return False
        return _crossed(before, learner.step, every) or learner.step >= self.until

    def _owes_an_evaluation(self) -> bool:
        """A run that was stopped inside of one, or killed before a checkpoint knew of it."""
        learner = self.learner
        if self.store is None or self.store.last_step() != learner.step or not learner.step:
            return False
        return self._evaluation_due(learner.loop.acted_at)

    def _log(self) -> None:
        learner, loop = self.learner, self.learner.loop
        loop.settle()
        episodes = int(loop.environments.episodes.sum())
        row: dict[str, Any] = {"step": learner.step, "episodes": episodes}
        row["coverage"] = loop.coverage.count
        if loop.recent:
            row["episode_return"] = float(np.mean([e.total for e in loop.recent]))
            row["episode_length"] = float(np.mean([e.length for e in loop.recent]))
            row["episode_bonus"] = float(np.mean([e.bonus for e in loop.recent]))
            row |= infos.means(e.told for e in loop.recent)
        loop.recent = []
        values = loop.diagnose()
        loop.require_finite()  # an optimiser that overflowed moves nothing: losses look well
        then, step = self._logged
        self._logged = (time.monotonic(), learner.step)
        row["steps_per_second"] = (learner.step - step) / max(self._logged[0] - then, 1e-9)
        if self.recorder is not None:
            self.recorder.add(self.recorder.metrics, row | values)

    def _evaluate(self, stop: Callable[[], bool]) -> None:
        learner, salt = self.learner, self.learner.step
        self.display.phase(EVALUATING)
        try:
            played = learner.evaluate(self.schedule.eval_episodes, salt=salt, stop=stop)
            result = played.summary()
            row = {"step": learner.step, "wall_seconds": learner.wall_seconds, **result}
            if learner.agent.intrinsic is not None and learner.updates:
                row |= learner.bonus_gap(salt=salt, stop=stop)
        except StoppedError:
            return  # owed from now on
        self._picture(learner.evaluated, played.states)
        learner.evaluated = learner.step
        self.display.say(
            f"step {learner.step:,}: target policy returns "
            f"{result['mean_return']:.1f} ± {result['std_return']:.1f} "
            f"over {self.schedule.eval_episodes} episodes{_successes(result)}"
        )
        if self.recorder is not None:
            self.recorder.add(self.recorder.evaluations, row)
        if self.schedule.save_best and best.improves(learner.best, result["mean_return"]):
            learner.best = learner.target_policy().worth(result["mean_return"])
            if self.folder is not None:
                best.put(self.folder, learner.best)
        wanted = self.schedule.stop_return
        self._enough = wanted is not None and result["mean_return"] >= wanted
        self._going = self._calls.on_evaluation(learner, played)

    def _picture(self, before: int, states: Floats) -> None:
        """At a few stages of the run: where training has been, and where π goes."""
        coverage, now = self.learner.loop.coverage, self.learner.step
        stage = any(before < part * self.until <= now for part in STAGES)
        if self.recorder is not None and stage and coverage.settled is not None:
            self.recorder.add_visits(now, "mu", coverage.take_visits())
            self.recorder.add_visits(now, "pi", coverage.settled.picture(states))

    def _checkpoint(self) -> None:
        state = (self.learner.step, self.learner.evaluated, self.learner.updates)
        if self.store is None or self.folder is None or self._saved == state:
            return
        if self.recorder is not None:
            self.recorder.sync()
            if not (self.folder / "config.json").exists():
                warnings.warn(
                    f"{self.folder} was removed during its run: what is left is written again",
                    stacklevel=2,
                )
                self.folder.mkdir(parents=True, exist_ok=True)
                self.write_config()
            self.learner.folders.vouch(self.folder, self.recorder.marks())
        self.learner.save_to(self.store, self.learner.folders.vouched(self.folder))
        self._saved = state


def _successes(result: Mapping[str, float]) -> str:
    rate = result.get(SUCCESS_RATE)
    return "" if rate is None else f", {rate:.0%} of them successful"


def _crossed(before: int, now: int, every: int) -> bool:
    return bool(every) and before // every != now // every

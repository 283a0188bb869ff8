"""One trial: a task, an agent, a seed; identified by its whole configuration, run into a folder.

A trial's folder is an ordinary run folder. `done.json` appears in it last, so that a folder with
that file is a finished trial, and any other one is continued from its checkpoint.
"""

import dataclasses
import hashlib
import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from adac import envs
from adac.core import presets, settings
from adac.core.settings import comparable
from adac.errors import UserError
from adac.experiments.analysis.snapshots import snapshots_at
from adac.experiments.paper import ppo
from adac.experiments.sweeps.provenance import commit, machine
from adac.runs.checkpoint import Store
from adac.runs.csv_table import number_in, read_table
from adac.runs.files import locked, write_whole
from adac.runs.folder import versions
from adac.training.learner import Learner
from adac.training.train import STAGES, Schedule, train

DONE = "done.json"
REPORT_SECONDS = 1.0


class Notify(Protocol):
    def __call__(self, step: int, value: float | None, evaluated: int = -1) -> None:
        """The step, the last return, and the step of the evaluation that it is of."""


Saved = Callable[[], None]  # a checkpoint has been written


@dataclass(frozen=True)
class Trial:
    """`label` is the legend's name; `agent` its settings as JSON, complete."""

    task: str
    label: str
    agent_name: str
    agent: Mapping[str, Any]
    seed: int
    steps: int
    schedule: Schedule = field(default_factory=Schedule)
    num_envs: int = 1
    action_repeat: int = 1
    snapshots: bool = False  # keep π and μ at a few states and stages, for a figure

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise UserError(f"steps must be at least 1, not {self.steps}")
        if not 0 <= self.seed < 2**31:
            raise UserError(f"a seed must be between 0 and {2**31 - 1}, not {self.seed}")

    def identity(self) -> dict[str, Any]:
        """All that a result depends on; how often it is saved or looked at is not part of that."""
        schedule = dataclasses.asdict(self.schedule)
        for looks in ("checkpoint_every", "save_best", "video_every", "info_keywords"):
            del schedule[looks]
        if not schedule["offline"]:  # younger than published trials, which keep their names
            del schedule["offline"]
        return {
            "task": self.task,
            "agent": comparable(self.agent),
            "seed": self.seed,
            "steps": self.steps,
            "num_envs": self.num_envs,
            "schedule": schedule,
            **self.env_kwargs,
        }

    @property
    def env_kwargs(self) -> dict[str, Any]:
        return {} if self.action_repeat == 1 else {"action_repeat": self.action_repeat}

    @property
    def id(self) -> str:
        text = json.dumps(self.identity(), sort_keys=True)
        digest = hashlib.sha256(text.encode()).hexdigest()[:8]
        return f"{slug(self.task.rpartition('/')[2])}_{slug(self.label)}_s{self.seed}_{digest}"


def slug(text: str) -> str:
    for letter, word in (
        ("ρ", "rho"),
        ("β", "beta"),
        ("σ", "sigma"),
        ("ξ", "xi"),
        ("λ", "lambda"),
        ("→", "to"),
    ):
        text = text.replace(letter, word)
    return re.sub(r"[^A-Za-z0-9.=-]+", "-", text.replace(" = ", "=")).strip("-") or "trial"


def make_trial(
    task: str,
    agent: str,
    seed: int,
    steps: int,
    *,
    overrides: Mapping[str, Any] | None = None,
    label: str | None = None,
    schedule: Schedule | None = None,
    num_envs: int = 1,
    action_repeat: int = 1,
    snapshots: bool = False,
) -> Trial:
    """A trial of a named agent; `overrides` are settings by name, as in `adac train --set`."""
    if agent == ppo.NAME:
        if schedule is not None and schedule.stop_return is not None:
            raise UserError("ppo has no stop_return: leave it out, or leave ppo out")
        if schedule is not None and schedule.save_best:
            raise UserError("ppo has no save_best: leave it out, or leave ppo out")
        chosen = ppo.override(overrides or {})
    else:
        made = settings.override(presets.make(agent), overrides or {})
        chosen = settings.to_json(made)
    return Trial(
        task=task,
        label=label or agent,
        agent_name=agent,
        agent=chosen,
        seed=seed,
        steps=steps,
        schedule=schedule or Schedule(),
        num_envs=num_envs,
        action_repeat=action_repeat,
        snapshots=snapshots,
    )


def is_done(folder: Path) -> bool:
    return (folder / DONE).is_file()


def read_done(folder: Path) -> dict[str, Any]:
    try:
        done: dict[str, Any] = json.loads((folder / DONE).read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"{folder / DONE} cannot be read: {error}") from None
    return done


def last_return(folder: Path) -> float | None:
    """Of the target policy, at the last evaluation."""
    rows = read_table(folder / "evaluations.csv")
    return number_in(rows[-1], "mean_return") if rows else None


def checkpoint_step(folder: Path) -> int:
    """The step that a trial would continue from; 0: from the start."""
    return max(Store(folder / "checkpoint").last_step() or 0, 0)


# -- running one ----------------------------------------------------------------------------------


def _quietly(step: int, value: float | None, evaluated: int = -1) -> None:
    pass


def execute(
    trial: Trial, folder: Path, notify: Notify = _quietly, saved: Saved = lambda: None
) -> None:
    """Run the trial into its folder: from its checkpoint if it has one, not at all if done."""
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder, "trial"):  # a worker that outlives its driver is waited for
        if is_done(folder):
            return
        if trial.agent_name == ppo.NAME:
            wall_seconds = ppo.execute(_config(trial), folder, notify, saved)
        else:
            wall_seconds = _train(trial, folder, notify, saved)
        _write_done(trial, folder, wall_seconds)
        Store(folder / "checkpoint").forget_replay()


def _train(trial: Trial, folder: Path, notify: Notify, saved: Saved) -> float:
    learner = _learner(trial, folder)
    watch = _Watch(trial, folder, notify, saved)
    try:
        train(learner, trial.steps, trial.schedule, out=folder, callback=watch)
        return learner.wall_seconds
    finally:
        learner.close()


def _learner(trial: Trial, folder: Path) -> Learner:
    if checkpoint_step(folder):
        envs.import_module_of(trial.task)  # named by whoever runs the sweep, not by the folder
        learner = Learner.load(folder)
    else:
        agent = settings.from_json(trial.agent)
        learner = Learner(
            trial.task,
            agent,
            seed=trial.seed,
            num_envs=trial.num_envs,
            env_kwargs=trial.env_kwargs,
        )
    learner.agent_name, learner.label = trial.agent_name, trial.label
    return learner


class _Watch:
    """Called after every step of the training loop: tells the step, and when it was saved."""

    def __init__(self, trial: Trial, folder: Path, notify: Notify, saved: Saved):
        self.folder, self.notify, self.saved = folder, notify, saved
        self.every = trial.schedule.checkpoint_every
        self._step = self._told = -1.0
        self._evaluated, self._return = -1, last_return(folder)
        stages = [round(part * trial.steps) for part in STAGES] if trial.snapshots else []
        self._snapshot = snapshots_at(folder, stages)

    def __call__(self, learner: Learner) -> None:
        self._snapshot(learner)
        if self.every and self._step >= 0 and self._step // self.every < learner.step // self.every:
            self.saved()
        self._step = learner.step
        news = learner.evaluated != self._evaluated
        if news:
            self._evaluated, self._return = learner.evaluated, last_return(self.folder)
        if news or time.monotonic() - self._told >= REPORT_SECONDS:
            self._told = time.monotonic()
            self.notify(learner.step, self._return, self._evaluated)


def _config(trial: Trial) -> dict[str, Any]:
    """config.json for an agent that is not ours."""
    return {
        "format": "adac-run-1",
        "env": trial.task,
        "env_kwargs": trial.env_kwargs,
        "agent_name": trial.agent_name,
        "agent": dict(trial.agent),
        "seed": trial.seed,
        "num_envs": trial.num_envs,
        "versions": _versions(trial),
        "label": trial.label,
        "steps": trial.steps,
        **dataclasses.asdict(trial.schedule),
    }


def _versions(trial: Trial) -> dict[str, str]:
    return versions() | (ppo.versions() if trial.agent_name == ppo.NAME else {})


def _write_done(trial: Trial, folder: Path, wall_seconds: float) -> None:
    facts = {
        "status": "finished",
        "trial": trial.id,
        "steps": trial.steps,
        "wall_seconds": round(wall_seconds, 1),
        "versions": _versions(trial),
        "machine": machine(),
        "commit": commit(),
    }
    write_whole(folder / DONE, (json.dumps(facts, indent=2) + "\n").encode())

"""Optuna's study of one tuning, in the tuning's own folder.

The study is a file of JSON lines (Optuna's journal): what was asked, what was seen, what was told.
Runs are in folders beside it, so a tuning that was killed goes on where it was.
"""

import dataclasses
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from adac.core import presets, settings, synonyms
from adac.errors import UserError, missing_extra
from adac.experiments.sweeps.trials import Trial, make_trial
from adac.experiments.tuning.space import Dimension, distributions, space
from adac.runs.files import read_plain, refuse_links
from adac.training.train import Schedule

JOURNAL, NAME = "study.jsonl", "tuning"
MOST_BYTES = 2**28  # of the journal
EVALUATIONS = 20  # in a whole trial
# Asynchronous successive halving: after 3 and after 9 of the 20 evaluations, the best third of all
# that came as far goes on.
FIRST_RUNG, KEEP = 3, 3


@dataclass(frozen=True)
class Plan:
    """What is tuned; the same folder goes on only with the same plan."""

    task: str
    agent: str
    steps: int
    seed: int = 0
    episodes: int = 10  # of an evaluation
    num_envs: int = 1
    fixed: Mapping[str, str] = field(default_factory=dict)
    only: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.steps < EVALUATIONS:
            raise UserError(f"steps must be at least {EVALUATIONS}, not {self.steps}")

    @property
    def eval_every(self) -> int:
        return self.steps // EVALUATIONS

    def space(self) -> dict[str, Dimension]:
        agent = settings.override(presets.make(self.agent), self.fixed)
        own = settings.names(agent)
        renamed = {synonyms.SYNONYMS.get(name, name) for name in self.fixed}
        several = {one for name in self.fixed for one in synonyms.SEVERAL.get(name, ())}
        return space(agent, (renamed | several) & own.keys(), self.only)

    def trial(self, number: int, chosen: Mapping[str, Any]) -> Trial:
        """Each has a seed of its own: settings that suit one seed only are not wanted."""
        every = self.eval_every
        return make_trial(
            self.task,
            self.agent,
            self.seed + number,
            self.steps,
            overrides={**self.fixed, **chosen},
            label=f"t{number:03}",
            schedule=Schedule(every, self.episodes, every, every),
            num_envs=self.num_envs,
        )

    def facts(self) -> dict[str, Any]:
        return dataclasses.asdict(self) | {"fixed": dict(self.fixed), "only": list(self.only)}


class Held:
    """In place of Optuna's lock, a symbolic link that a kill leaves behind: the folder is locked
    already, and nobody else writes here."""

    def acquire(self) -> bool:
        return True

    def release(self) -> None:
        pass


def open_study(folder: Path, plan: Plan) -> Any:
    """The study of this folder, which is locked by us; begun with the agent's own settings."""
    try:
        import optuna
        from optuna.storages import JournalStorage
        from optuna.storages.journal import JournalFileBackend
    except ImportError:
        raise missing_extra("`adac tune`", "tune") from None

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    refuse_links(folder)
    path = folder / JOURNAL
    fresh = not _mend(path)
    lock: Any = Held()
    try:
        study = optuna.create_study(
            storage=JournalStorage(JournalFileBackend(str(path), lock)),
            study_name=NAME,
            direction="maximize",
            load_if_exists=True,
            pruner=optuna.pruners.SuccessiveHalvingPruner(FIRST_RUNG, KEEP),
        )
        study.get_trials(deepcopy=False)
    except Exception as error:  # Optuna believes its journal, and trips over whatever is in it
        said = " ".join(str(error).split()) or type(error).__name__
        raise UserError(f"{path} is damaged: {said}") from None
    _require_same(folder, study, plan, fresh)
    # Another seed for what is still to be drawn: else a resumed study would draw the same again.
    study.sampler = optuna.samplers.TPESampler(
        seed=plan.seed + len(study.trials), constant_liar=True
    )
    if not study.trials:
        study.enqueue_trial({name: one.value for name, one in plan.space().items()})
    return study


def _mend(path: Path) -> bool:
    """Cut off a last line that a kill left unfinished; whether there is anything."""
    try:
        text = read_plain(path, MOST_BYTES)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None
    whole = text.rfind(b"\n") + 1
    if whole < len(text):
        os.truncate(path, whole)
    return whole > 0


def _require_same(folder: Path, study: Any, plan: Plan, fresh: bool) -> None:
    if fresh:
        study.set_user_attr("plan", plan.facts())
        return
    before, now = study.user_attrs.get("plan") or {}, plan.facts()
    for name, value in now.items():
        if before.get(name) != value:
            raise UserError(
                f"{folder} holds a tuning with {name} = {before.get(name)!r}, not {value!r}: "
                "repeat its command to go on with it, or choose another --out"
            )


def ask(study: Any, plan: Plan) -> tuple[int, Trial]:
    """The next settings to try."""
    trial = study.ask(distributions(plan.space()))
    return trial.number, plan.trial(trial.number, trial.params)

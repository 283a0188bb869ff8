"""`adac tune`: Optuna chooses settings, Ray runs them, successive halving ends what is poor."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adac.errors import RunError
from adac.experiments.analysis.statistics import final_score
from adac.experiments.sweeps import sweep
from adac.experiments.sweeps.live_table import Row
from adac.experiments.sweeps.trials import Trial, is_done
from adac.experiments.sweeps.workers import Progress
from adac.experiments.tuning import outcome
from adac.experiments.tuning.study import Plan, ask, open_study
from adac.runs.checkpoint import Store
from adac.runs.csv_table import number_in, read_table
from adac.runs.files import locked


@dataclass(frozen=True)
class Options:
    folder: Path
    trials: int
    jobs: int | None = None
    address: str | None = None


def tune(plan: Plan, options: Options) -> outcome.Outcome:
    """Try as many settings as are asked for, those of earlier calls included; the best of them."""
    options.folder.mkdir(parents=True, exist_ok=True)
    with locked(options.folder, "tuning", patience=0.0):
        study = open_study(options.folder, plan)
        tuner = Tuner(study, plan, options)
        left = tuner.unfinished()
        if left or len(_begun(study)) < options.trials:
            how = sweep.Options(options.folder, options.jobs, options.address)
            sweep.run(f"tune {plan.agent} on {plan.task}", left, how, tuner)
        found = outcome.gather(study, plan, options.folder)
    if found.best is None:
        raise RunError(f"no trial has finished: see failure.txt in the folders of {options.folder}")
    return found


def _begun(study: Any) -> list[Any]:
    """All that was asked for; an enqueued trial has not been yet."""
    return [trial for trial in study.get_trials(deepcopy=False) if trial.state.name != "WAITING"]


def score(folder: Path) -> float | None:
    """The mean return of the target policy at the end, as in every table of adac's."""
    rows = read_table(folder / "evaluations.csv")
    pairs = [(number_in(row, "step"), number_in(row, "mean_return")) for row in rows]
    seen = [(step, value) for step, value in pairs if step is not None and value is not None]
    return final_score(*zip(*seen, strict=True)) if seen else None


class Tuner(sweep.Judge):
    """Between the study and the trials that run."""

    def __init__(self, study: Any, plan: Plan, options: Options):
        self.study, self.plan, self.options = study, plan, options
        self.numbers: dict[str, int] = {}  # of trials, by their names

    def unfinished(self) -> list[Trial]:
        """Trials that an earlier call began and did not end."""
        found = []
        for one in _begun(self.study):
            if not one.state.is_finished():
                trial = self.plan.trial(one.number, one.params)
                self.numbers[trial.id] = one.number
                if is_done(self._folder(trial)):
                    self._tell(trial)
                else:
                    found.append(trial)
        return found

    def next(self) -> Trial | None:
        if len(_begun(self.study)) >= self.options.trials:
            return None
        number, trial = ask(self.study, self.plan)
        self.numbers[trial.id] = number
        return trial

    def heard(self, trial: Trial, progress: Progress) -> bool:
        """Each evaluation is reported once, by its number; the last one is not worth pruning."""
        if progress.value is None or progress.evaluated < 1:
            return True
        asked, nth = self._asked(trial), progress.evaluated // self.plan.eval_every
        if nth in self._frozen(trial).intermediate_values or progress.evaluated >= trial.steps:
            return True
        asked.report(progress.value, nth)
        return not asked.should_prune()

    def ended(self, row: Row) -> None:
        if row.status == "done":
            self._tell(row.trial)
            return
        state = {"failed": "FAIL", "pruned": "PRUNED"}[row.status]
        self._close(row.trial, state=_state(state))
        Store(self._folder(row.trial) / "checkpoint").forget_replay()

    def _tell(self, trial: Trial) -> None:
        value = score(self._folder(trial))
        if value is None:
            self._close(trial, state=_state("FAIL"))
        else:
            self._close(trial, value)

    def _close(self, trial: Trial, *values: float, **state: Any) -> None:
        self.study.tell(self.numbers[trial.id], *values, **state)

    def _folder(self, trial: Trial) -> Path:
        return self.options.folder / trial.id

    def _frozen(self, trial: Trial) -> Any:
        return self.study.get_trials(deepcopy=False)[self.numbers[trial.id]]

    def _asked(self, trial: Trial) -> Any:
        from optuna.trial import Trial as Asked

        return Asked(self.study, self._frozen(trial)._trial_id)


def _state(name: str) -> Any:
    from optuna.trial import TrialState

    return TrialState[name]

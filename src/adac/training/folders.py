"""The folders that a learner was loaded from or saved to, and whose runs are in them."""

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from adac import envs
from adac.errors import UserError
from adac.runs.checkpoint import Store
from adac.runs.csv_table import Mark
from adac.runs.files import locked
from adac.runs.folder import forget_results, make_folder, plan_of, write_config


class Folders:
    """Each has its own store: to save a copy elsewhere does not lose the run's own folder."""

    def __init__(self) -> None:
        self._stores: dict[Path, Store] = {}
        self._marks: dict[Path, dict[str, Mark]] = {}

    def store(self, folder: Path) -> Store:
        """The folder's checkpoints; segments already there are not written again."""
        place = folder.resolve()
        if place not in self._stores:
            self._stores[place] = Store(folder.absolute() / "checkpoint")
        return self._stores[place]

    def vouch(self, folder: Path, marks: Any) -> None:
        """For the tables of a folder, by what a checkpoint there says of them."""
        found = {str(name): Mark(*map(int, mark)) for name, mark in dict(marks).items()}
        self._marks[folder.resolve()] = found

    def vouched(self, folder: Path) -> dict[str, Mark]:
        return self._marks.get(folder.resolve(), {})

    def require_own(self, folder: Path) -> None:
        """A run that somebody has paid for is not overwritten by another."""
        store = self.store(folder)
        last = store.last_step()
        if not last or not store.holds_another():
            return
        if store.knows_some():
            raise UserError(
                f"{folder} has been trained on by somebody else, to step {last:,}: load it again"
            )
        raise UserError(
            f"{folder} already holds a run of {last:,} steps: continue it with Learner.load, "
            "choose another folder, or save with overwrite=True"
        )

    @contextlib.contextmanager
    def written(self, folder: Path, config: dict[str, Any], *, overwrite: bool) -> Iterator[Store]:
        """The store to save to; config.json follows, as there may prove to be nothing to save."""
        make_folder(folder)
        with locked(folder, patience=0.0):
            if not overwrite:
                self.require_own(folder)
            store = self.store(folder)
            replaces = store.holds_another()
            if replaces:
                self.vouch(folder, {})
            yield store
            if replaces:
                forget_results(folder)
            write_config(folder, config | ({} if replaces else plan_of(folder)))


def task_settings(
    folder: Path,
    config: Mapping[str, Any],
    kwargs: Mapping[str, Any] | None = None,
    *,
    given: bool = False,
) -> dict[str, Any]:
    """What the task of a run is made with, where its folder may be believed to say so.

    `given`: the caller has the environment, or what makes it.
    """
    if given and (kwargs is not None or not config.get("env_factory")):
        return dict(kwargs or {})
    if config.get("env_object") and not given:
        raise UserError(
            f"{folder} was trained on an environment that '{config['env']}' alone does not "
            "tell: pass it, or what makes it, Learner.load(folder, env=...)"
        )
    if not given:
        envs.require_imported(config["env"], folder)
    if kwargs is None:
        envs.require_no_paths(config["env_kwargs"], folder)
    return dict(config["env_kwargs"] if kwargs is None else kwargs)


@contextlib.contextmanager
def of_ours(folder: Path, step: int) -> Iterator[None]:
    """While a checkpoint is read: whatever does not fit is one sentence."""
    try:
        yield
    except KeyError as error:
        raise UserError(
            f"the checkpoint in {folder} has no {error}: another version of adac wrote it"
        ) from None
    except (TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
        raise UserError(
            f"the checkpoint of step {step} in {folder} is not one of adac's: {error}"
        ) from error

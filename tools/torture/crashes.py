"""Death at each system call of a checkpoint's writing: always the old state or the new one."""

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from adac import Learner
from adac.runs.checkpoint import Store
from adac.training.replay import Replay
from torture.matrix import TASK, Case
from torture.tally import Tally

CALLS = ("open", "fsync", "replace", "unlink", "write")


class DeathError(BaseException):
    """No handler may run after a kill: every later call dies as well."""


@contextlib.contextmanager
def dying_at(number: int) -> Iterator[list[int]]:
    """The number-th system call does not happen, nor does any after it; 0 counts only."""
    counted, real = [0], {name: getattr(os, name) for name in CALLS}

    def dying(call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*arguments: Any, **options: Any) -> Any:
            counted[0] += 1
            if number and counted[0] >= number:
                raise DeathError
            return call(*arguments, **options)

        return wrapped

    for name, call in real.items():
        setattr(os, name, dying(call))
    try:
        yield counted
    finally:
        for name, call in real.items():
            setattr(os, name, call)


def empty_like(buffer: Replay) -> Replay:
    return Replay(buffer.capacity, buffer.spec, np.random.SeedSequence(0))


def state_of(folder: Path, buffer: Replay) -> tuple[int, bytes, bytes]:
    """What a new process would stand on."""
    spare = empty_like(buffer)
    contents = Store(folder).load(spare)
    arrays = b"".join(value.tobytes() for _, value in sorted(contents.arrays.items()))
    return contents.step, arrays, spare.rows[: len(spare)].tobytes()


def run_case(case: Case, folder: Path, tally: Tally) -> None:
    learner = Learner(TASK, case.agent, num_envs=case.num_envs)
    old, buffer = folder / "old", learner.replay
    first = Store(old)
    for _ in range(2):  # the second save of a folder cleans nothing yet, the third does
        learner.learn(60)
        first.save(learner.step, *learner.loop.snapshot(), buffer)
    before = state_of(old, buffer)
    learner.learn(60)
    arrays, facts = learner.loop.snapshot()

    def save(copy: Path, number: int) -> int:
        shutil.copytree(old, copy)
        store = Store(copy)
        store.load(empty_like(buffer))
        with contextlib.suppress(DeathError), dying_at(number) as counted:
            store.save(learner.step, arrays, facts, buffer)
        return counted[0]

    moments = save(folder / "new", 0)
    after = state_of(folder / "new", buffer)
    for number in range(1, moments + 1):
        copy = folder / f"at-{number}"
        save(copy, number)
        found = state_of(copy, buffer)
        if found in (before, after):
            tally.note("old state" if found == before else "new state")
        else:
            tally.fail(f"{case.name}: death at call {number} of {moments} left step {found[0]}")
        shutil.rmtree(copy)
    learner.close()

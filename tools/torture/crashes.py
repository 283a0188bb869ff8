"""Death at each system call of a checkpoint's writing: always the old state or the new one."""

import contextlib
import shutil
from pathlib import Path

import numpy as np

from adac import Learner
from adac.runs.checkpoint import Store
from adac.training.replay import Replay
from torture import faults
from torture.tally import Tally


def empty_like(buffer: Replay) -> Replay:
    return Replay(buffer.capacity, buffer.spec, np.random.SeedSequence(0))


def state_of(folder: Path, buffer: Replay) -> tuple[int, bytes, bytes]:
    """What a new process would stand on."""
    spare = empty_like(buffer)
    contents = Store(folder).load(spare)
    arrays = b"".join(value.tobytes() for _, value in sorted(contents.arrays.items()))
    return contents.step, arrays, spare.rows[: len(spare)].tobytes()


def before(folder: Path, copy: Path) -> Path:
    """The checkpoints of a run, without the newest."""
    shutil.copytree(folder / "checkpoint", copy)
    newest = sorted(copy.glob("step-*.json"))[-1]
    newest.unlink()
    newest.with_suffix(".safetensors").unlink()
    return copy


def run_case(name: str, folder: Path) -> Tally:
    """Of the finished run in folder/whole: its last checkpoint is written once more."""
    tally, learner = Tally(), Learner.load(folder / "whole")
    buffer, (arrays, facts) = learner.replay, learner.loop.snapshot()
    old = before(folder / "whole", folder / "old")
    Store(old).load(empty_like(buffer))

    def save(copy: Path, number: int) -> int:
        shutil.copytree(old, copy)
        store = Store(copy)
        store.load(empty_like(buffer))
        with contextlib.suppress(faults.DeathError), faults.dying_at(number) as counter:
            store.save(learner.step, arrays, facts, buffer)
        return counter.calls

    moments = save(folder / "new", 0)
    states = {"old state": state_of(old, buffer), "new state": state_of(folder / "new", buffer)}
    for number in range(1, moments + 1):
        copy = folder / f"at-{number}"
        save(copy, number)
        found = state_of(copy, buffer)
        known = [word for word, state in states.items() if state == found]
        if not known:
            tally.fail(f"{name}: death at call {number} of {moments} left step {found[0]}")
        tally.note(known[0] if known else "neither")
        shutil.rmtree(copy)
    learner.close()
    return tally

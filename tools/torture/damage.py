"""Flipped bits, cuts, swaps and losses in every file of a run: detected, or harmless."""

import random
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

from adac import Learner
from adac.errors import AdacError
from adac.runs.checkpoint import flatten
from adac.runs.csv_table import EVALUATION_COLUMNS, Table, read_table
from torture.matrix import Case, begin
from torture.tally import Tally

State = tuple[int, str, bytes, bytes]


def flip(path: Path, draw: random.Random, folder: Path) -> None:
    data = bytearray(path.read_bytes())
    if data:
        data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    path.write_bytes(data)


def cut(path: Path, draw: random.Random, folder: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: draw.randrange(len(data) + 1)])


def extend(path: Path, draw: random.Random, folder: Path) -> None:
    path.write_bytes(path.read_bytes() + draw.randbytes(draw.randrange(1, 100)))


def scramble(path: Path, draw: random.Random, folder: Path) -> None:
    data = bytearray(path.read_bytes())
    begin = draw.randrange(len(data) + 1)
    data[begin : begin + 40] = draw.randbytes(40)
    path.write_bytes(data)


def zero(path: Path, draw: random.Random, folder: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def lose(path: Path, draw: random.Random, folder: Path) -> None:
    path.unlink()


def swap(path: Path, draw: random.Random, folder: Path) -> None:
    other = draw.choice(files(folder))
    mine, its = path.read_bytes(), other.read_bytes()
    path.write_bytes(its)
    other.write_bytes(mine)


HOW: tuple[Callable[[Path, random.Random, Path], None], ...] = (
    flip, flip, flip, cut, extend, scramble, zero, lose, swap,
)  # fmt: skip


def files(folder: Path) -> list[Path]:
    return sorted(p for p in folder.rglob("*") if p.is_file() and not p.name.startswith("."))


def state_of(folder: Path) -> State:
    learner = Learner.load(folder)
    arrays = flatten((learner.state, learner.loop.memory))
    rows = learner.replay.rows[: len(learner.replay)].tobytes()
    learner.close()
    weights = b"".join(np.asarray(value).tobytes() for _, value in sorted(arrays.items()))
    return learner.step, repr((learner.agent, learner.seed)), weights, rows


def run_case(case: Case, folder: Path, tally: Tally, draw: random.Random, times: int) -> None:
    good = folder / "good"
    begin(case, good, 200)
    learner = Learner.load(good)
    learner.learn(160, out=good, checkpoint_every=70, eval_every=70, eval_episodes=1, log_every=25)
    learner.close()
    states = [state_of(good)]
    older = Path(shutil.copytree(good, folder / "older"))
    sorted((older / "checkpoint").glob("step-*.json"))[-1].unlink()
    states.append(state_of(older))
    tables = {name: read_table(good / name) for name in ("metrics.csv", "evaluations.csv")}
    for number in range(times):
        copy = Path(shutil.copytree(good, folder / f"damaged-{number}"))
        path = draw.choice(files(copy))
        how = draw.choice(HOW)
        how(path, draw, copy)
        what = f"{case.name}: {how.__name__} of {path.relative_to(copy)}"
        judge(copy, what, states, tables, tally)
        shutil.rmtree(copy)


def judge(
    folder: Path,
    what: str,
    states: list[State],
    tables: dict[str, list[dict[str, str]]],
    tally: Tally,
) -> None:
    try:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            found = state_of(folder)
            changed = changed_rows(folder, tables)
    except AdacError as error:
        tally.note("refused in a sentence") if "\n" not in str(error) else tally.fail(what)
    except Exception as error:
        tally.fail(f"{what}: {type(error).__name__}: {error}")
    else:
        if found not in states:
            tally.fail(f"{what}: loaded as something else")
        elif changed:
            tally.note("a number in a table changed, which nothing depends on")
        elif said:
            tally.note("said, and the good part used")
        else:
            tally.note("harmless" if found == states[0] else "the checkpoint before")


def changed_rows(folder: Path, tables: dict[str, list[dict[str, str]]]) -> bool:
    """Resume each table, as training would; whether a row is one that was never written."""
    for name, written in tables.items():
        columns = list(written[0]) if written else list(EVALUATION_COLUMNS)
        Table(folder / name, columns, 10**9).close()
        kept = [{k: row.get(k, "") for k in columns} for row in read_table(folder / name)]
        if any(row not in written for row in kept):
            return True
    return False

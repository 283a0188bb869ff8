"""Flipped bits, cuts, swaps, losses and forgeries in every file of a run: detected, or harmless."""

import json
import os
import random
import resource
import shutil
import signal
import time
import warnings
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import safetensors.numpy

from adac import Learner
from adac.errors import AdacError
from adac.runs.checkpoint import flatten
from adac.runs.csv_table import Table, read_table
from torture.tally import Tally

SECONDS, MEGABYTES = 60, 300  # of one load, at most; on a machine with other work
TABLES = ("metrics.csv", "evaluations.csv")
VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 10**30, 2.5, float("nan"), float("inf"), "", "x", "../x", [], [1], {},
    {"a": 1}, [[[[]]]], "\ud800",
)  # fmt: skip

State = tuple[int, str, bytes, bytes]
Rows = dict[str, list[dict[str, str]]]


# -- one change ------------------------------------------------------------------------------------


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


def digit(path: Path, draw: random.Random, folder: Path) -> None:
    """Of a table, where a wrong number looks like a right one."""
    path = folder / draw.choice(TABLES)
    data = bytearray(path.read_bytes())
    places = [place for place, byte in enumerate(data) if chr(byte).isdigit()]
    place = draw.choice(places)
    data[place] = ord(draw.choice([c for c in "0123456789" if c != chr(data[place])]))
    path.write_bytes(data)


def odd(path: Path, draw: random.Random, folder: Path) -> None:
    """Something that is no file of data: a pipe, a link, a terabyte of nothing."""
    path.unlink()
    kind = draw.choice(("pipe", "device", "elsewhere", "sparse", "folder"))
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "elsewhere":
        path.symlink_to("/etc/passwd")
    elif kind == "folder":
        path.mkdir()
    else:
        with open(path, "wb") as file:
            file.truncate(2**40)


# -- with right checksums --------------------------------------------------------------------------


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every container in a JSON value, with each of its keys."""
    keys = (
        value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    )
    for key in list(keys):
        yield value, key
        yield from places(value[key])


def forge(path: Path, draw: random.Random, folder: Path) -> None:
    """A fact of the newest manifest, under a new checksum."""
    newest = sorted((folder / "checkpoint").glob("step-*.json"))[-1]
    body = json.loads(newest.read_bytes())["body"]
    container, key = draw.choice(list(places(body)))
    container[key] = draw.choice(VALUES)
    _sign(newest, body)


def forge_arrays(path: Path, draw: random.Random, folder: Path) -> None:
    """An array of the newest state: of another shape or type, or not finite."""
    newest = sorted((folder / "checkpoint").glob("step-*.json"))[-1]
    body = json.loads(newest.read_bytes())["body"]
    target = folder / "checkpoint" / body["state"][0]
    arrays = safetensors.numpy.load(target.read_bytes())
    name = draw.choice(sorted(arrays))
    array = arrays[name]
    arrays[name] = draw.choice((
        np.zeros((*array.shape, 2), array.dtype),
        array.astype(np.float64),
        np.full_like(array, np.nan) if array.dtype.kind == "f" else np.zeros_like(array),
        np.zeros(0, array.dtype),
    ))  # fmt: skip
    if draw.random() < 0.2:
        del arrays[name]
    data = safetensors.numpy.save(arrays)
    target.write_bytes(data)
    body["state"][1:] = [len(data), zlib.crc32(data)]
    _sign(newest, body)


def _sign(manifest: Path, body: Any) -> None:
    crc = zlib.crc32(json.dumps(body, sort_keys=True).encode())
    manifest.write_text(json.dumps({"body": body, "crc": crc}))


ACCIDENTS: tuple[Callable[[Path, random.Random, Path], None], ...] = (
    flip, flip, flip, flip, cut, extend, scramble, zero, lose, swap, digit, odd,
)  # fmt: skip
FORGERIES = (forge, forge_arrays)


# -- what becomes of it ----------------------------------------------------------------------------


def files(folder: Path) -> list[Path]:
    return sorted(p for p in folder.rglob("*") if p.is_file() and not p.name.startswith("."))


def state_of(learner: Learner) -> State:
    arrays = flatten((learner.state, learner.loop.memory))
    rows = learner.replay.rows[: len(learner.replay)].tobytes()
    weights = b"".join(np.asarray(value).tobytes() for _, value in sorted(arrays.items()))
    return learner.step, repr((learner.agent, learner.seed)), weights, rows


def load_state(folder: Path) -> State:
    learner = Learner.load(folder)
    try:
        return state_of(learner)
    finally:
        learner.close()


class Judge:
    """Knows what was written, and says what a damaged folder is taken for."""

    def __init__(self, good: Path, older: Path):
        self.states = [load_state(good), load_state(older)]
        self.tables: Rows = {name: read_table(good / name) for name in TABLES}

    def outcome(self, folder: Path) -> str:
        """Raises what must not be; AdacError where it is refused."""
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            learner = Learner.load(folder)
            try:
                found = state_of(learner)
                wrong = self._wrong_rows(folder, learner)
            finally:
                learner.close()
        if found not in self.states:
            raise AssertionError("loaded as something else")
        if wrong and not any("was damaged" in str(one.message) for one in said):
            raise AssertionError(f"{wrong} changed, and nothing was said")
        if said:
            return "said, and the good part used"
        return "harmless" if found == self.states[0] else "the checkpoint before"

    def _wrong_rows(self, folder: Path, learner: Learner) -> str:
        """Go on with each table, as training would; which holds rows that were never written."""
        wrong, vouched = "", learner.folders.vouched(folder)
        for name, written in self.tables.items():
            limit = learner.step if name == "metrics.csv" else learner.evaluated
            Table(folder / name, list(written[0]), limit, vouched.get(name)).close()
            kept = [{k: row.get(k, "") for k in written[0]} for row in read_table(folder / name)]
            if kept != [row for row in written if int(row["step"]) <= limit]:
                wrong = name
        return wrong


def forged(folder: Path) -> str:
    """Nobody can tell a forgery with right checksums from a run; it must not fail in raw words."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        learner = Learner.load(folder)
        try:
            learner.learn(3)
        finally:
            learner.close()
    return "a forgery that trains on"


def _too_long(number: int, frame: FrameType | None) -> None:
    raise TimeoutError(f"more than {SECONDS} seconds")


def tried(what: str, look: Callable[[Path], str], folder: Path, tally: Tally) -> None:
    """One damaged folder, within bounds of time and memory."""
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    signal.signal(signal.SIGALRM, _too_long)
    signal.alarm(SECONDS)
    try:
        tally.note(look(folder))
    except AdacError as error:
        tally.note("refused in a sentence")
        if "\n" in str(error):
            tally.fail(f"{what}: more than a sentence: {error}")
    except Exception as error:
        tally.note("broken")
        words = str(error).replace(str(folder), "RUN")
        tally.fail(f"{what}: {type(error).__name__}: {words}")
    finally:
        signal.alarm(0)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory) / 1024
    if grown > MEGABYTES:
        tally.fail(f"{what}: it took {grown:.0f} MB")


def without_newest(folder: Path, copy: Path) -> Path:
    shutil.copytree(folder, copy)
    sorted((copy / "checkpoint").glob("step-*.json"))[-1].unlink()
    return copy


def run_case(name: str, folder: Path, seed: str, times: int) -> Tally:
    """Of the finished run in folder/whole."""
    tally, draw, good = Tally(), random.Random(seed), folder / "whole"
    judge = Judge(good, without_newest(good, folder / "older"))
    Learner.load(good).learn(3)  # compiled before memory is looked at
    began = time.monotonic()
    for number in range(times):
        copy = Path(shutil.copytree(good, folder / f"damaged-{number}"))
        path = draw.choice(files(copy))
        how = draw.choice(FORGERIES if draw.random() < 0.25 else ACCIDENTS)
        how(path, draw, copy)
        look = forged if how in FORGERIES else judge.outcome
        where = "" if how in FORGERIES else f" of {path.relative_to(copy)}"
        tried(f"{name}, {number}: {how.__name__}{where}", look, copy, tally)
        shutil.rmtree(copy)
    tally.result("milliseconds", round(1000 * (time.monotonic() - began)))
    return tally

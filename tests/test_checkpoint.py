"""Checkpoints: atomic, incremental, refused when damaged, unable to run code."""

import errno
import json
import os
import shutil
import subprocess
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

from adac.errors import RunError, UserError
from adac.runs import checkpoint
from adac.runs.checkpoint import SEGMENT, Store
from adac.training.replay import Replay
from helpers import row_spec

SPEC = row_spec(2, 1)


def replay(capacity: int = 100, inserted: int = 0) -> Replay:
    buffer = Replay(capacity, SPEC, np.random.SeedSequence(0))
    fill(buffer, inserted)
    return buffer


def fill(buffer: Replay, count: int) -> None:
    for i in range(buffer.inserted, buffer.inserted + count):
        buffer.add(**{name: np.full((1, *shape), i) for name, shape in SPEC.fields.items()})


def state(value: float) -> dict[str, np.ndarray]:
    return {"x": np.full(3, value, np.float32), "flag": np.array(True)}


def test_round_trip_with_the_replay_buffer(tmp_path: Path) -> None:
    buffer = replay(inserted=130)
    Store(tmp_path).save(7, state(1.5), {"a": [1, 2**100]}, buffer)
    other = replay()
    contents = Store(tmp_path).load(other)
    assert (contents.step, contents.facts) == (7, {"a": [1, 2**100]})
    np.testing.assert_array_equal(contents.arrays["x"], state(1.5)["x"])
    assert contents.arrays["flag"].dtype == bool
    np.testing.assert_array_equal(other.rows, buffer.rows)


def test_without_its_replay_buffer_it_can_be_read_but_not_continued(tmp_path: Path) -> None:
    Store(tmp_path).save(7, state(1.5), {}, replay(inserted=130))
    for path in tmp_path.glob("replay-*"):
        path.unlink()
    assert Store(tmp_path).load(None).step == 7
    with pytest.raises(UserError, match=r"no replay buffer.*with_replay=False"):
        Store(tmp_path).load(replay())


def test_only_changed_segments_are_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint, "SEGMENT", 10)
    buffer, store = replay(capacity=35, inserted=28), Store(tmp_path)
    store.save(1, state(0), {}, buffer)
    first = {p.name: p.stat().st_mtime_ns for p in tmp_path.glob("replay-*")}
    assert sorted(name[7:12] for name in first) == ["00000", "00001", "00002"]
    fill(buffer, 9)  # fills the third segment, all of the short fourth, and two rows of the first
    store.save(2, state(0), {}, buffer)
    kept = [p.name for p in tmp_path.glob("replay-*") if first.get(p.name) == p.stat().st_mtime_ns]
    assert "replay-00001-000000000020.safetensors" in kept
    loaded = replay(capacity=35)
    Store(tmp_path).load(loaded)
    np.testing.assert_array_equal(loaded.rows, buffer.rows)
    fill(buffer, 1)
    store.save(3, state(0), {}, buffer)
    named = {
        f[0]
        for p in tmp_path.glob("step-*.json")
        for f in json.loads(p.read_text())["body"]["replay"]
    }
    assert {p.name for p in tmp_path.glob("replay-*")} == named  # nothing stale is left


@pytest.mark.parametrize("capacity", [7, 20, 35])
def test_a_segment_name_changes_whenever_its_rows_do(
    capacity: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint, "SEGMENT", 10)
    buffer, seen = replay(capacity), {}
    for _ in range(100):
        fill(buffer, 1)
        for name, rows in checkpoint._segments(buffer):
            assert seen.setdefault(name, rows.tobytes()) == rows.tobytes()


def damage(path: Path, how: str) -> None:
    data = bytearray(path.read_bytes())
    if how == "cut":
        data = data[: len(data) // 2]
    elif how == "flipped":
        data[len(data) // 2] ^= 1
    elif how == "empty":
        data = bytearray()
    path.write_bytes(data)
    if how == "gone":
        path.unlink()


@pytest.mark.parametrize("how", ["cut", "flipped", "empty", "gone"])
@pytest.mark.parametrize("what", ["step-*2.json", "step-*2.safetensors", "replay-*20.safetensors"])
def test_a_damaged_checkpoint_falls_back_to_the_previous(
    tmp_path: Path, what: str, how: str
) -> None:
    buffer, store = replay(inserted=10), Store(tmp_path)
    store.save(1, state(1), {}, buffer)
    fill(buffer, 10)
    store.save(2, state(2), {}, buffer)
    damage(next(tmp_path.glob(what)), how)
    loaded = replay()
    contents = Store(tmp_path).load(loaded)
    assert contents.step == 1
    np.testing.assert_array_equal(loaded.rows[:10], buffer.rows[:10])
    assert contents.warnings or how == "gone"
    damage(next(tmp_path.glob("step-*1.safetensors")), "flipped")
    with pytest.raises(UserError, match=r"can be used|no checkpoint"):
        Store(tmp_path).load(replay())


def forge(folder: Path, change: Callable[[dict[str, Any]], Any], step: int = 1) -> None:
    """A stranger's manifest, with the right checksum."""
    path = folder / f"step-{step:012d}.json"
    body = json.loads(path.read_text())["body"]
    body = change(body) or body
    text = json.dumps(body, sort_keys=True)
    path.write_text(json.dumps({"body": body, "crc": zlib.crc32(text.encode())}))


def named(file: Path) -> list[Any]:
    data = file.read_bytes()
    return [file.name, len(data), zlib.crc32(data)]


def test_a_manifest_from_a_stranger_can_not_reach_outside_its_folder(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(safetensors.numpy.save(state(1)))
    inside = tmp_path / "checkpoint"
    Store(inside).save(1, state(1), {}, None)
    forge(inside, lambda body: body["state"].__setitem__(0, "../secret"))
    with pytest.raises(UserError, match="no checkpoint's"):
        Store(inside).load(None)


def test_a_pickle_in_place_of_the_arrays_is_refused(tmp_path: Path) -> None:
    Store(tmp_path).save(1, state(1), {}, None)
    evil = b"cos\nsystem\n(S'touch " + str(tmp_path / "pwned").encode() + b"'\ntR."
    path = next(tmp_path.glob("*.safetensors"))
    path.write_bytes(evil)
    forge(tmp_path, lambda body: body.update(state=named(path)))
    with pytest.raises(UserError, match="not safetensors"):
        Store(tmp_path).load(None)
    assert not (tmp_path / "pwned").exists()


FORGED: dict[str, Callable[[dict[str, Any]], Any]] = {
    "a list": lambda body: [body],
    "nothing": lambda body: {"format": body["format"]},
    "state of numbers": lambda body: body.update(state=[1, 2, 3]),
    "state of one": lambda body: body.update(state=[body["state"][0]]),
    "state that is null": lambda body: body.update(state=None),
    "negative step": lambda body: body.update(step=-5),
    "fractional step": lambda body: body.update(step=1.5),
    "another step": lambda body: body.update(step=7),
    "facts that are a list": lambda body: body.update(facts=[]),
    "replay that is a number": lambda body: body.update(replay=5),
    "size in words": lambda body: body["state"].__setitem__(1, "many"),
    "size of true": lambda body: body["state"].__setitem__(1, True),
    "more inserted than stored": lambda body: body.update(inserted=100),
    "less inserted than stored": lambda body: body.update(inserted=3),
    "negative inserted": lambda body: body.update(inserted=-1),
    "no replay": lambda body: body.update(replay=[]),
    "inserted unsaid": lambda body: body.update(inserted=None),
    "a segment twice": lambda body: body["replay"].append(body["replay"][0]),
    "the state as a segment": lambda body: body.update(replay=[body["state"]]),
    "a segment as the state": lambda body: body["state"].__setitem__(0, body["replay"][0][0]),
}


@pytest.mark.parametrize("how", FORGED)
def test_a_forged_manifest_is_passed_over_for_the_previous_one(tmp_path: Path, how: str) -> None:
    buffer, store = replay(inserted=10), Store(tmp_path)
    store.save(1, state(1), {}, buffer)
    fill(buffer, 10)
    store.save(2, state(2), {}, buffer)
    forge(tmp_path, FORGED[how], step=2)
    loaded = replay()
    contents = Store(tmp_path).load(loaded)
    assert (contents.step, loaded.inserted) == (1, 10)
    assert "step-000000000002.json is damaged" in contents.warnings[0]


def save_two(folder: Path) -> None:
    store = Store(folder)
    for step in (1, 2):
        store.save(step, state(step), {}, None)


def test_a_nesting_bomb_does_not_stop_the_fallback(tmp_path: Path) -> None:
    save_two(tmp_path)
    (tmp_path / "step-000000000002.json").write_text('{"body": ' + "[" * 100_000)
    assert Store(tmp_path).load(None).step == 1


def test_transitions_that_are_not_finite_are_not_learned_from(tmp_path: Path) -> None:
    Store(tmp_path).save(1, state(1), {}, replay(inserted=10))
    path = next(tmp_path.glob("replay-*"))
    path.write_bytes(
        safetensors.numpy.save({"rows": np.full((10, SPEC.width), np.nan, np.float32)})
    )
    forge(tmp_path, lambda body: body.update(replay=[named(path)]))
    with pytest.raises(UserError, match="not finite"):
        Store(tmp_path).load(replay())


@pytest.mark.parametrize("what", ["step-*2.json", "step-*2.safetensors"])
@pytest.mark.parametrize("how", ["pipe", "sparse", "folder"])
def test_files_are_looked_at_before_they_are_read(tmp_path: Path, what: str, how: str) -> None:
    save_two(tmp_path)
    path = next(tmp_path.glob(what))
    if how == "sparse":
        os.truncate(path, 2**40)  # 64 kB on the disk, and more than all memory to read
    else:
        path.unlink()
        os.mkfifo(path) if how == "pipe" else path.mkdir()
    assert Store(tmp_path).load(None).step == 1


def test_a_size_that_a_manifest_claims_is_bounded(tmp_path: Path) -> None:
    save_two(tmp_path)
    os.truncate(next(tmp_path.glob("step-*2.safetensors")), 2**40)
    forge(tmp_path, lambda body: body["state"].__setitem__(1, 2**40), step=2)
    assert Store(tmp_path).load(None).step == 1
    with pytest.raises(UserError, match="more than 10 bytes"):
        Store(tmp_path).load(None, state_bytes=10)


def test_what_can_not_be_read_now_is_not_called_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Going back would have the next save delete a newer checkpoint that is good."""
    save_two(tmp_path)
    real = os.open

    def denied(path: Any, *rest: Any) -> int:
        if str(path).endswith("2.safetensors"):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return real(path, *rest)

    monkeypatch.setattr(os, "open", denied)
    with pytest.raises(RunError, match=r"2\.safetensors cannot be read \(Permission denied\)"):
        Store(tmp_path).load(None)
    monkeypatch.undo()
    assert Store(tmp_path).load(None).step == 2


def rename(folder: Path) -> None:
    folder.rename(folder.with_name("best"))


def lose_a_full_segment(folder: Path) -> None:
    sorted(folder.glob("replay-*"))[0].unlink()


def cut_a_full_segment(folder: Path) -> None:
    os.truncate(sorted(folder.glob("replay-*"))[0], 20)


@pytest.mark.parametrize("lose", [shutil.rmtree, rename, lose_a_full_segment, cut_a_full_segment])
def test_a_segment_written_once_is_not_believed_to_be_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lose: Callable[[Path], Any]
) -> None:
    monkeypatch.setattr(checkpoint, "SEGMENT", 10)
    folder, buffer = tmp_path / "x", replay(inserted=25)
    store = Store(folder)
    store.save(1, state(1), {}, buffer)
    lose(folder)
    fill(buffer, 3)
    store.save(2, state(2), {}, buffer)
    loaded = replay()
    assert Store(folder).load(loaded).step == 2
    np.testing.assert_array_equal(loaded.rows[:28], buffer.rows[:28])


def test_who_saves_over_another_run_does_not_fall_back_on_it(tmp_path: Path) -> None:
    save_two(tmp_path)
    Store(tmp_path).save(5, state(5), {}, None)
    assert [path.name for path in tmp_path.glob("*.json")] == ["step-000000000005.json"]


def test_a_store_knows_the_checkpoints_of_others(tmp_path: Path) -> None:
    mine, other = Store(tmp_path), Store(tmp_path)
    assert not mine.holds_another()
    mine.save(1, state(1), {}, None)
    assert not mine.holds_another()
    assert other.holds_another()
    other.load(None)
    assert not other.holds_another()
    mine.save(2, state(2), {}, None)
    assert other.holds_another()
    other.save(2, state(3), {}, None)
    assert mine.holds_another()


@pytest.mark.parametrize("moment", range(4))
def test_a_write_that_fails_leaves_the_last_good_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: int
) -> None:
    """The disk fills up at each of the writes in turn."""
    buffer, store = replay(inserted=10), Store(tmp_path)
    store.save(1, state(1), {}, buffer)
    fill(buffer, 10)
    calls, real = [0], os.fsync

    def full(handle: int) -> None:
        calls[0] += 1
        if calls[0] == moment + 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(handle)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(RunError, match="No space left"):
        store.save(2, state(2), {}, buffer)
    monkeypatch.undo()
    assert not list(tmp_path.glob(".adac-*"))
    assert Store(tmp_path).load(replay()).step == (2 if moment == 3 else 1)
    store.save(3, state(3), {}, buffer)
    assert Store(tmp_path).load(replay()).step == 3


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small disk needs root")
def test_a_really_full_disk(tmp_path: Path) -> None:
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", str(tmp_path)], capture_output=True
    )
    if mounted.returncode:
        pytest.skip("this machine does not mount a small disk")
    try:
        buffer, store = replay(capacity=10_000, inserted=100), Store(tmp_path / "checkpoint")
        store.save(1, state(1), {}, buffer)
        fill(buffer, 9_000)
        with pytest.raises(RunError, match="free some space"):
            store.save(2, state(2), {}, buffer)
        assert Store(tmp_path / "checkpoint").load(replay(capacity=10_000)).step == 1
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


def test_saving_needs_the_memory_of_a_segment_not_of_the_buffer(tmp_path: Path) -> None:
    buffer = Replay(40 * SEGMENT, SPEC, np.random.SeedSequence(0))
    buffer.rows[:] = 1.0
    buffer.inserted = buffer.capacity
    tracemalloc.start()
    Store(tmp_path).save(1, state(1), {}, buffer)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < buffer.rows.nbytes / 8


def test_who_saves_at_an_earlier_step_means_that_one(tmp_path: Path) -> None:
    """By the number alone the new state would lose to an old one, or be deleted at once."""
    store = Store(tmp_path)
    for step in (200, 300):
        store.save(step, state(1.0), {}, None)
    store.save(100, state(2.0), {}, None)
    contents = Store(tmp_path).load(None)
    assert (contents.step, contents.arrays["x"][0]) == (100, 2.0)
    assert Store(tmp_path).last_step() == 100

"""Checkpoints: atomic, incremental, refused when damaged, unable to run code."""

import errno
import json
import os
import subprocess
import tracemalloc
from pathlib import Path

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


def test_a_manifest_from_a_stranger_can_not_reach_outside_its_folder(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(safetensors.numpy.save(state(1)))
    inside = tmp_path / "checkpoint"
    Store(inside).save(1, state(1), {}, None)
    path = next(inside.glob("*.json"))
    body = json.loads(path.read_text())["body"]
    body["state"][0] = "../secret"
    text = json.dumps(body, sort_keys=True)
    path.write_text(json.dumps({"body": body, "crc": checkpoint.zlib.crc32(text.encode())}))
    with pytest.raises(UserError, match="outside its folder"):
        Store(inside).load(None)


def test_a_pickle_in_place_of_the_arrays_is_refused(tmp_path: Path) -> None:
    Store(tmp_path).save(1, state(1), {}, None)
    evil = b"cos\nsystem\n(S'touch " + str(tmp_path / "pwned").encode() + b"'\ntR."
    path = next(tmp_path.glob("*.json"))
    body = json.loads(path.read_text())["body"]
    (tmp_path / body["state"][0]).write_bytes(evil)
    body["state"][1:] = [len(evil), checkpoint.zlib.crc32(evil)]
    text = json.dumps(body, sort_keys=True)
    path.write_text(json.dumps({"body": body, "crc": checkpoint.zlib.crc32(text.encode())}))
    with pytest.raises(UserError, match="not safetensors"):
        Store(tmp_path).load(None)
    assert not (tmp_path / "pwned").exists()


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
    assert not list(tmp_path.glob("*.tmp"))
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
        with pytest.raises(RunError, match="make room and resume"):
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
    for step in (200, 300):
        Store(tmp_path).save(step, state(1.0), {}, None)
    Store(tmp_path).save(100, state(2.0), {}, None)
    contents = Store(tmp_path).load(None)
    assert (contents.step, contents.arrays["x"][0]) == (100, 2.0)
    assert Store(tmp_path).last_step() == 100

"""Sweeps are really killed here: a trial's process, then the driver; and go on to the same bits."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from adac.errors import RunError, UserError
from adac.experiments.sweeps import publish
from adac.experiments.sweeps.live_table import Lines, Row, seconds_left, summary
from adac.experiments.sweeps.sweep import Judge, Options, _Sweep
from adac.experiments.sweeps.trials import (
    Trial,
    checkpoint_step,
    execute,
    is_done,
    make_trial,
)
from adac.experiments.sweeps.workers import Home, Packer, Parcel, unpack
from adac.runs.csv_table import read_table
from adac.runs.files import locked
from adac.training.train import Schedule
from hostile import held_elsewhere

SMALL = {"actor_hidden": [16], "critic_hidden": [16], "batch_size": 16, "warmup": 100}
PLAN = Schedule(eval_every=200, eval_episodes=1, checkpoint_every=200, log_every=100)


def small(steps: int, seed: int = 0, task: str = "adac/PendulumSparse-v0") -> Trial:
    return make_trial(task, "td3", seed, steps, overrides=SMALL, schedule=PLAN)


# LONG must outlast a worker whose driver was killed: Ray needs about two seconds to end that.
SHORT, LONG, BROKEN = small(300), small(6_000, seed=1), small(300, task="NoSuchTask-v0")
DRIVER = """
import sys
from pathlib import Path
sys.path[:0] = [sys.argv[1], str(Path(sys.argv[1]).parent)]
from test_sweep import BROKEN, LONG, SHORT
from adac.experiments.sweeps.sweep import Options, run
folder, share = Path(sys.argv[2]), sys.argv[3] == "share"
options = Options(folder / "kill", jobs=2, results=folder / "results", share_disk=share)
outcome = run("kill", [SHORT, LONG] if share else [SHORT, LONG, BROKEN], options)
print("OUTCOME", outcome.done, sorted(outcome.failed.items()))
sys.exit(bool(outcome.failed))
"""


def start(folder: Path, share: str, log: Path) -> subprocess.Popen[bytes]:
    env = os.environ | {"RAY_worker_niceness": "0"}
    command = [sys.executable, "-c", DRIVER, str(Path(__file__).parent), str(folder), share]
    with open(log, "wb") as file:
        return subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, env=env)


def wait_for(what: Callable[[], object], driver: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + 240
    while not what():
        assert driver.poll() is None, log.read_text()
        assert time.monotonic() < end, log.read_text()
        time.sleep(0.02)


def process_of(folder: Path) -> int:
    text = (folder / ".lock").read_text() if (folder / ".lock").exists() else ""
    return int(text or 0)


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def results_of(folder: Path) -> tuple[list[dict[str, str]], ...]:
    """Everything a trial measured, without the time that it took."""
    tables = [read_table(folder / f"{name}.csv") for name in ("evaluations", "metrics")]
    for row in tables[0] + tables[1]:
        row.pop("wall_seconds", None)
        row.pop("steps_per_second", None)
    return tuple(tables)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
def test_killed_trial_and_killed_driver_end_in_the_same_bits(tmp_path: Path) -> None:
    short, long = tmp_path / "kill" / SHORT.id, tmp_path / "kill" / LONG.id
    log = tmp_path / "first.log"
    driver = start(tmp_path, "share", log)
    try:
        wait_for(lambda: checkpoint_step(long) >= 400, driver, log)
        first = process_of(long)
        os.kill(first, signal.SIGKILL)
        killed_at = checkpoint_step(long)
        wait_for(lambda: process_of(long) != first, driver, log)  # the retry
        wait_for(lambda: checkpoint_step(long) > killed_at and is_done(short), driver, log)
    finally:
        driver.kill()
        driver.wait()
    orphan, finished = process_of(long), (short / "done.json").stat().st_mtime_ns
    end = time.monotonic() + 30
    while alive(orphan):  # Ray ends the workers of a dead driver
        assert time.monotonic() < end
        time.sleep(0.1)
    assert "trying once more" in log.read_text()
    assert not is_done(long)
    kept = checkpoint_step(long)

    # Now as on a cluster whose nodes do not see the driver's disk.
    log = tmp_path / "second.log"
    driver = start(tmp_path, "ship", log)
    code, text = driver.wait(240), log.read_text()
    assert code == 1, text
    assert f"resuming at step {kept:,}: {LONG.id}" in text
    assert "OUTCOME 2" in text
    assert "no task is registered as 'NoSuchTask-v0'" in text
    assert text.count(f"trying once more: {BROKEN.id}") == 1
    assert text.count(f"FAILED: {BROKEN.id}") == 1
    assert (short / "done.json").stat().st_mtime_ns == finished  # not run again
    for trial in (SHORT, LONG):
        reference = tmp_path / "reference" / trial.id
        execute(trial, reference)
        assert results_of(tmp_path / "kill" / trial.id) == results_of(reference)
        assert is_done(tmp_path / "results" / trial.id)


def test_a_finished_trial_is_an_ordinary_run_folder_with_a_mark(tmp_path: Path) -> None:
    trial, seen = small(250), []
    execute(trial, tmp_path, lambda *news: seen.append(news))
    config = json.loads((tmp_path / "config.json").read_text())
    assert (config["label"], config["agent_name"], config["steps"]) == ("td3", "td3", 250)
    done = json.loads((tmp_path / "done.json").read_text())
    assert done["status"] == "finished"
    assert done["trial"] == trial.id
    assert {"cpu", "cores", "memory_gb"} <= set(done["machine"])
    assert {evaluated for _, _, evaluated in seen} >= {200, 250}  # none is left untold
    assert not list((tmp_path / "checkpoint").glob("replay-*"))
    before = (tmp_path / "evaluations.csv").stat().st_mtime_ns
    execute(trial, tmp_path)
    assert (tmp_path / "evaluations.csv").stat().st_mtime_ns == before


def test_the_identity_is_the_configuration_that_results_depend_on() -> None:
    trial = small(300)
    assert trial.id == small(300).id
    assert trial.id.startswith("PendulumSparse-v0_td3_s0_")
    others = [
        small(301),
        small(300, seed=1),
        make_trial(trial.task, "td3", 0, 300, overrides=SMALL | {"noise": 0.2}, schedule=PLAN),
        make_trial(trial.task, "td3", 0, 300, overrides=SMALL, schedule=PLAN, num_envs=2),
        make_trial(trial.task, "td3", 0, 300, overrides=SMALL, schedule=Schedule(eval_every=7)),
    ]
    assert len({t.id.rpartition("_")[2] for t in (trial, *others)}) == 6
    seldom = Schedule(eval_every=200, eval_episodes=1, checkpoint_every=50, log_every=100)
    same = make_trial(trial.task, "td3", 0, 300, overrides=SMALL, schedule=seldom)
    assert same.id == trial.id  # saving more often changes no result


def test_a_folder_has_one_process_at_a_time(tmp_path: Path) -> None:
    with (
        held_elsewhere(tmp_path),
        pytest.raises(RunError, match="another process"),
        locked(tmp_path, patience=0.0),
    ):
        pass


def fill(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def test_parcels_hold_what_changed_and_mirror_the_checkpoint(tmp_path: Path) -> None:
    away, here = tmp_path / "away", tmp_path / "here"
    here.mkdir()
    first, second = (f"checkpoint/step-{n:012d}.json" for n in (1, 2))
    fill(away, {"config.json": "{}", first: "1", "checkpoint/a": "x"})
    fill(away, {".lock": "1", "checkpoint/.adac-0123456789abcdef.tmp": ""})
    packer = Packer(away)
    unpack(packer.parcel(), here)
    fill(away, {second: "2"})
    (away / first).unlink()
    parcel = packer.parcel()
    assert list(parcel.files) == [second]
    fill(here, {"checkpoint/notes.json": "of the user"})
    unpack(parcel, here)
    names = sorted(p.relative_to(here).as_posix() for p in here.rglob("*") if p.is_file())
    assert names == ["checkpoint/a", "checkpoint/notes.json", second, "config.json"]
    with pytest.raises(RunError, match="outside"):
        unpack(Parcel({"../x": b""}, ()), here)


def test_publishing_keeps_small_text_only(tmp_path: Path) -> None:
    trial = tmp_path / "sweeps" / "x"
    rows = "\n".join(f"{step},{step / 2}" for step in range(1, 1001))
    fill(trial, {"config.json": "{}", "evaluations.csv": "step\n1\n", "checkpoint/a": "x"})
    fill(trial, {"metrics.csv": f"step,value\n{rows}\n"})
    with pytest.raises(UserError, match="not a finished trial"):
        publish.publish(trial, tmp_path / "results")
    fill(trial, {"done.json": "{}"})
    target = publish.publish(trial, tmp_path / "results")
    assert sorted(p.name for p in target.iterdir()) == [
        "config.json", "done.json", "evaluations.csv", "metrics.csv",
    ]  # fmt: skip
    kept = read_table(target / "metrics.csv")
    assert len(kept) == 200
    assert kept[-1] == {"step": "1000", "value": "500.0"}
    publish.recall(target, tmp_path / "again" / "x")
    assert is_done(tmp_path / "again" / "x")


def test_time_left_is_by_kind_of_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    fast, slow = Row(small(1_000)), Row(small(1_000, task="Pendulum-v1"))
    for row in (fast, slow):
        row.start(0)
        row.progress(0, None)
    clock[0] = 10.0
    fast.progress(500, 1.0)
    slow.progress(100, 1.0)
    waiting = [Row(small(1_000, seed=1)), Row(small(1_000, seed=2, task="Pendulum-v1"))]
    assert seconds_left([fast, slow, *waiting], 4) == 100.0  # the longest
    assert seconds_left([fast, slow, *waiting], 1) == 10 + 90 + 20 + 100
    assert summary([fast, slow, *waiting], 1) == "0/4 done, 2 running, 2 waiting, 3:40 left"


def test_without_ray_s_own_processes_no_trial_is_called_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Node:
        def dead_processes(self) -> list[tuple[str, object]]:
            return [("raylet", object())]

    worker = pytest.importorskip("ray")._private.worker
    monkeypatch.setattr(worker, "_global_node", Node())
    row = Row(small(300))
    sweep = _Sweep([row], Home(tmp_path, "token"), Options(tmp_path), Lines(), Judge())
    with pytest.raises(RunError, match="raylet ended unexpectedly: run the sweep again"):
        sweep.go()
    assert (row.status, row.attempts) == ("waiting", 0)

"""Files that a stranger has made up: each is refused in a sentence, before it costs anything."""

import json
import os
import shutil
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

from adac.errors import UserError
from adac.runs import checkpoint
from adac.runs.export.policy_file import read_policy
from adac.runs.files import locked
from adac.training import memory
from adac.training.learner import Learner
from adac.training.transfer import read_origin
from commands import adac, fails

TINY = {"net_arch": "8", "batch_size": 8, "replay_size": 60, "warmup": 10}
PENDULUM = "Pendulum-v1"


def learner() -> Learner:
    return Learner(PENDULUM, "td3", overrides=TINY)


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("forged") / "run"
    learner().learn(20, out=folder, eval_every=20, eval_episodes=1, save_best=True)
    return folder


@pytest.fixture
def run(good: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(good, tmp_path / "run"))


@pytest.fixture(scope="module")
def mine() -> Learner:
    return learner()


def say(folder: Path, **facts: Any) -> None:
    """In config.json."""
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | facts))


def forge(folder: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """The arrays of the state, under new checksums."""
    manifest = max((folder / "checkpoint").glob("step-*.json"))
    body = json.loads(manifest.read_text())["body"]
    state = folder / "checkpoint" / body["state"][0]
    arrays = dict(safetensors.numpy.load(state.read_bytes()))
    change(arrays)
    data = safetensors.numpy.save(arrays)
    state.write_bytes(data)
    body["state"][1:] = [len(data), zlib.crc32(data)]
    crc = zlib.crc32(json.dumps(body, sort_keys=True).encode())
    manifest.write_text(json.dumps({"body": body, "crc": crc}))


# -- transitions ----------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [10**13, -5, "x", None, 1.5])
def test_a_run_s_own_word_for_its_buffer_is_not_believed(
    run: Path, mine: Learner, size: Any
) -> None:
    agent = json.loads((run / "config.json").read_text())["agent"]
    say(run, agent=agent | {"replay_size": size})
    with pytest.raises(UserError, match="replay_size"):
        mine.add_dataset(run)
    say(run, agent={})
    with pytest.raises(UserError, match="replay_size is None"):
        mine.add_dataset(run)


def test_transitions_of_no_size(run: Path, mine: Learner) -> None:
    forge(run, lambda arrays: arrays.pop("world.obs"))
    with pytest.raises(UserError, match="of another size"):
        mine.add_dataset(run)


def npz(path: Path, header: str, compression: int = zipfile.ZIP_STORED, data: bytes = b"") -> Path:
    """NumPy's file with a header of our own for `obs`."""
    text = header.encode().ljust(117) + b"\n"
    with zipfile.ZipFile(path, "w", compression) as archive:
        start = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text
        archive.writestr("obs.npy", start + data)
    return path


HEADER = "{{'descr': '{}', 'fortran_order': False, 'shape': ({}, 3), }}"


@pytest.mark.parametrize(
    "header",
    [HEADER.format("<f4", 10**12), HEADER.format("<f4", 10**30), HEADER.format("|O", 5), "(" * 100,
     "'''"],
)  # fmt: skip
def test_an_npz_of_anything_is_a_sentence(tmp_path: Path, mine: Learner, header: str) -> None:
    with pytest.raises(UserError, match=r"is no \.npz of numbers"):
        mine.add_dataset(npz(tmp_path / "x.npz", header, data=bytes(60)))


def test_an_npz_that_is_damaged_or_none_is_a_sentence(tmp_path: Path, mine: Learner) -> None:
    path = npz(tmp_path / "x.npz", HEADER.format("<f4", 9), zipfile.ZIP_DEFLATED, os.urandom(108))
    whole = path.read_bytes()
    for place in range(30, len(whole), 3):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        with pytest.raises(UserError):
            mine.add_dataset(path)
    np.save(tmp_path / "x.npy", np.zeros(3))
    with pytest.raises(UserError, match=r"is no \.npz"):
        mine.add_dataset(tmp_path / "x.npy")


def test_an_npz_that_would_swell_is_not_read(
    tmp_path: Path, mine: Learner, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = 10**6
    path = npz(
        tmp_path / "x.npz", HEADER.format("<f4", rows), zipfile.ZIP_DEFLATED, bytes(12 * rows)
    )
    assert path.stat().st_size < 20_000
    monkeypatch.setattr("adac.training.data.memory_bytes", lambda: 10**7)
    with pytest.raises(UserError, match="more than half of this machine's memory"):
        mine.add_dataset(path)


# -- run folders ----------------------------------------------------------------------------------


@pytest.mark.parametrize("arrays", [
    {"mean": np.zeros(5), "scale": np.ones(5)}, {"mean": np.zeros(3), "scale": np.zeros(3)},
])  # fmt: skip
def test_a_grid_of_other_observations_is_refused(run: Path, arrays: dict[str, Any]) -> None:
    """Else it is found out when a thousand more states are counted."""
    forge(run, lambda state: state.update({f"coverage.{k}": v for k, v in arrays.items()}))
    with pytest.raises(UserError, match="not one of adac's: its grid"):
        Learner.load(run)


def test_a_state_that_would_fill_the_memory_is_not_read(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert read_origin(run).step == 20
    monkeypatch.setattr(checkpoint, "memory_bytes", lambda: 8_000)
    with pytest.raises(UserError, match="it has more than 1,000 bytes"):
        read_origin(run)


def test_a_lock_that_is_a_pipe_is_a_sentence(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".lock")
    with pytest.raises(UserError, match="not a regular file"), locked(tmp_path):
        pass


@pytest.mark.parametrize("facts", [[], None, "x"])
def test_a_policy_s_facts_that_are_none(good: Path, tmp_path: Path, facts: Any) -> None:
    data = (good / "best/policy.safetensors").read_bytes()
    length = int.from_bytes(data[:8], "little")
    about = json.loads(json.loads(data[8 : 8 + length])["__metadata__"]["adac"])
    about["facts"] = facts
    path = tmp_path / "policy.safetensors"
    arrays = dict(safetensors.numpy.load(data))
    path.write_bytes(safetensors.numpy.save(arrays, {"adac": json.dumps(about)}))
    with pytest.raises(UserError, match="not a policy of adac's"):
        read_policy(path)


# -- a configuration ------------------------------------------------------------------------------


def test_a_configuration_chooses_no_place_and_tells_nobody(run: Path, tmp_path: Path) -> None:
    """Where to write and whom to send the results is said on the command line, and only there."""
    elsewhere, out = tmp_path / "elsewhere", tmp_path / "out"
    say(run, out=str(elsewhere), wandb=True, tensorboard=True, preset="x", set_=["batch_size=9"])
    repeat = ("train", "--config", run / "config.json", "--steps", "2", "--out", out)
    assert adac(*repeat) == 0
    assert not elsewhere.exists()
    assert {path.name for path in out.iterdir()}.isdisjoint({"wandb", "tensorboard"})
    assert json.loads((out / "config.json").read_text())["agent"]["batch_size"] == 8


@pytest.mark.parametrize(
    "facts",
    [{"from": {"folder": 5}}, {"data": [5]}, {"data": ["\0"]}, {"versions": [1]},
     {"label": "\x1b]0;mine\x07"}, {"agent_name": "\x1b[2J"}, {"env": "a\x9bb"}],
    ids=str,
)  # fmt: skip
def test_a_configuration_that_is_none_is_a_sentence(
    run: Path, facts: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    say(run, **facts)
    said = fails(capsys, "train", "--config", run / "config.json", "--out", run.parent / "out")
    assert "is damaged" in said
    assert said.isprintable()  # no control characters: a terminal would obey them


def test_what_is_quoted_is_not_obeyed(capsys: pytest.CaptureFixture[str]) -> None:
    said = fails(capsys, "train", "\x1b]0;mine\x07")
    assert said.isprintable()
    assert "\\x1b]0;mine\\x07" in said


# -- agents too large to be meant -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("setting", "words"),
    [({"actor_hidden": "300000,300000"}, "the networks are too large"),
     ({"latent": 10**10}, "the networks are too large"),
     ({"particles": 10**9}, "particles = 1,000,000,000 is too large"),
     ({"critics": 10**6}, "critics must be between 1 and 100"),
     ({"behaviour_critics": 10**6}, "behaviour_critics must be between 0 and 100"),
     ({"critic_hidden": ",".join(["8"] * 1_000)}, "critic_hidden must name at most 100 layers")],
)  # fmt: skip
def test_too_large_is_said_before_anything_is_made(
    setting: dict[str, Any], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "memory_bytes", lambda: 2**36)
    with pytest.raises(UserError, match=words):
        Learner(PENDULUM, "adac-td3", overrides=setting)


def test_a_run_folder_starts_no_thousand_processes(run: Path) -> None:
    say(run, num_envs=4_096, subprocesses=True)
    with pytest.raises(UserError, match="between 1 and 256 in processes of their own"):
        Learner.load(run)

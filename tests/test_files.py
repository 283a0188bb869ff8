"""A run folder may come from a stranger: no link in it leads adac to another file."""

import os
import shutil
import threading
from pathlib import Path

import numpy as np
import pytest

from adac.cli.main import main
from adac.errors import RunError, UserError
from adac.experiments.sweeps import publish
from adac.experiments.sweeps.workers import Parcel, unpack
from adac.runs.checkpoint import Store
from adac.runs.csv_table import Table
from adac.runs.files import locked, write_whole
from adac.training.learner import Learner
from hostile import held_elsewhere

WORDS = "alias ls='ls --color'\n"


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files") / "run"
    small = {"actor_hidden": [8], "critic_hidden": [8], "warmup": 20, "batch_size": 8}
    learner = Learner("Pendulum-v1", "td3", overrides=small)
    learner.learn(30, out=folder, log_every=10, checkpoint_every=10)
    return folder


@pytest.fixture
def stranger(trained: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(trained, tmp_path / "stranger"))


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "home" / ".bashrc"
    path.parent.mkdir()
    path.write_text(WORDS)
    return path


def adac(*words: str | Path) -> int:
    with pytest.raises(SystemExit) as stopped:
        main([str(word) for word in words])
    return int(stopped.value.code or 0)


LINKED = (
    ".lock",
    "config.json",
    "config.json.tmp",
    "metrics.csv",
    "metrics.csv.tmp",
    "evaluations.csv",
    "evaluations.csv.tmp",
    "tensorboard",
    "checkpoint/step-000000000030.json",
    "checkpoint/step-000000000040.safetensors",
    "checkpoint/step-000000000040.safetensors.tmp",
    "checkpoint/step-000000000040.json",
    "checkpoint/replay-00000-000000000040.safetensors.tmp",
)


@pytest.mark.parametrize("name", LINKED)
def test_resuming_a_stranger_s_folder_touches_no_other_file(
    stranger: Path, mine: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (stranger / name).unlink(missing_ok=True)
    (stranger / name).symlink_to(mine)
    assert adac("resume", stranger, "--steps", "40") == 2
    assert "symbolic link" in capsys.readouterr().err or name == "config.json"
    assert mine.read_text() == WORDS
    with pytest.raises(UserError):
        Learner.load(stranger)


def test_a_linked_checkpoint_folder_is_not_cleaned(stranger: Path, tmp_path: Path) -> None:
    project = tmp_path / "project"
    shutil.move(stranger / "checkpoint", project)
    (project / "package.json").write_text("{}")
    before = sorted(path.name for path in project.iterdir())
    (stranger / "checkpoint").symlink_to(project)
    assert adac("resume", stranger, "--steps", "40") == 2
    with pytest.raises(UserError, match="symbolic link"):
        Store(stranger / "checkpoint").save(40, {"x": np.zeros(1)}, {}, None)
    with pytest.raises(UserError, match="symbolic link"):
        Store(stranger / "checkpoint").forget_replay()
    assert sorted(path.name for path in project.iterdir()) == before


def test_only_files_of_checkpoints_are_ever_deleted(stranger: Path) -> None:
    kept = ("package.json", "notes.tmp", "model.safetensors", "step-1.json", "step-².json")
    for name in kept:
        (stranger / "checkpoint" / name).write_text("of the user")
    left = stranger / "checkpoint" / ".adac-0123456789abcdef.tmp"
    left.write_text("of a kill")
    assert adac("resume", stranger, "--steps", "40") == 0
    assert all((stranger / "checkpoint" / name).exists() for name in kept)
    assert not left.exists()
    assert len(list((stranger / "checkpoint").glob("step-0*.json"))) == 2


def test_a_whole_file_takes_the_place_of_a_link(mine: Path, tmp_path: Path) -> None:
    link = tmp_path / "page.html"
    link.symlink_to(mine)
    write_whole(link, b"new")
    assert (link.read_bytes(), link.is_symlink(), mine.read_text()) == (b"new", False, WORDS)
    assert [path.name for path in tmp_path.iterdir() if path.name.endswith(".tmp")] == []


def test_a_write_that_fails_leaves_nothing_beside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    (tmp_path / "x").write_text("old")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_whole(tmp_path / "x", b"new")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]


def test_a_table_is_not_appended_to_through_a_link(
    mine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Put there between the writing of the past and the opening for the future."""
    path = tmp_path / "metrics.csv"
    monkeypatch.setattr("adac.runs.csv_table.write_whole", lambda *_: path.symlink_to(mine))
    with pytest.raises(RunError, match=r"metrics\.csv could not be written"):
        Table(path, ("step",), 0)
    assert mine.read_text() == WORDS


def test_a_lock_says_who_holds_it_and_empties_nobody_s_file(mine: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    os.link(mine, run / ".lock")
    with locked(run):
        assert mine.read_text() == WORDS
    (run / ".lock").unlink()
    with locked(run):
        assert (run / ".lock").read_text() == f"{os.getpid()}\n"
    (run / ".lock").unlink()
    (run / ".lock").symlink_to(mine)
    with pytest.raises(UserError, match="symbolic link"), locked(run):
        pass
    assert mine.read_text() == WORDS


def test_who_holds_a_folder_may_lock_it_again_and_nobody_else(tmp_path: Path) -> None:
    said: list[str] = []

    def other() -> None:
        try:
            with locked(tmp_path, patience=0.0):
                said.append("in")
        except RunError as error:
            said.append(str(error))

    with locked(tmp_path), locked(tmp_path, patience=0.0):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    other()
    assert said == [f"another process is using the run in {tmp_path}", "in"]
    with held_elsewhere(tmp_path):
        other()
    assert said[2] == said[0]


def test_parcels_and_published_results_are_not_written_through_links(
    mine: Path, tmp_path: Path
) -> None:
    trial, published = tmp_path / "trial", tmp_path / "published"
    for folder in (trial, published):
        folder.mkdir()
    (trial / "config.json").symlink_to(mine)
    (published / "config.json").write_text("{}")
    with pytest.raises(UserError, match="symbolic link"):
        unpack(Parcel({"config.json": b"{}"}, ("config.json",)), trial)
    publish.recall(published, trial)
    assert mine.read_text() == WORDS
    assert (trial / "config.json").read_text() == "{}"

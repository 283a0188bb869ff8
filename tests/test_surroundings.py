"""Odd surroundings of the command: no home, a plain terminal, names that are no folders."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from adac.cli.main import main
from adac.cli.stop import Stop
from adac.errors import RunError, UserError
from adac.runs import machine
from adac.runs.folder import make_folder
from adac.training import compilation_cache

PLAIN = ["train", "Pendulum-v1", "--agent", "td3", "--steps", "20", "--eval-every", "0"]


def fails(capsys: pytest.CaptureFixture[str], *words: str | Path) -> str:
    with pytest.raises(SystemExit) as stopped:
        main([str(word) for word in words])
    assert stopped.value.code == 2
    return capsys.readouterr().err


def test_a_terminal_that_knows_ascii_only() -> None:
    env = os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    command = [sys.executable, "-m", "adac", "list", "agents"]
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "adac-td3" in done.stdout


def test_a_user_without_a_home_does_without_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    import jax

    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    before = jax.config.jax_compilation_cache_dir
    jax.config.update("jax_compilation_cache_dir", None)
    try:
        compilation_cache.enable()
        assert jax.config.jax_compilation_cache_dir is None
    finally:
        jax.config.update("jax_compilation_cache_dir", before)


def test_an_empty_name_is_not_the_present_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("", " "):
        assert "name a folder" in fails(capsys, *PLAIN, "--out", name)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", ["file", "inside a file", "dangling", "long"])
def test_what_can_not_be_a_run_folder_is_the_user_s_to_mend(
    tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere" / "at" / "all")
    names = {"inside a file": "file/run", "long": "x" * 300}
    out = tmp_path / names.get(kind, kind)
    assert "cannot be made a run folder" in fails(capsys, *PLAIN, "--out", out)
    with pytest.raises(UserError, match="cannot be made a run folder"):
        make_folder(out)
    assert (tmp_path / "file").read_text() == "mine"


def test_memory_is_the_container_s_where_that_is_less(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = machine.memory_bytes()
    assert whole is None or whole > 2**26
    monkeypatch.setattr(machine, "_CONTAINER", tmp_path / "max")
    for text, expected in (("1048576\n", 2**20), ("max\n", None)):
        (tmp_path / "max").write_text(text)
        found = machine.memory_bytes()
        assert found == expected if expected else found != 2**20


def test_a_run_that_fails_before_it_has_begun_is_not_told_to_be_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object, **__: object) -> None:
        raise RunError("no room for metrics.csv")

    monkeypatch.setattr("adac.training.train.Recorder", full)
    with pytest.raises(SystemExit) as stopped:
        main([*PLAIN, "--out", str(tmp_path / "run")])
    assert stopped.value.code == 1
    assert (tmp_path / "run" / "checkpoint").exists()
    assert capsys.readouterr().err == "adac: no room for metrics.csv\n"


def test_a_second_ctrl_c_is_not_lost_in_a_destructor(capsys: pytest.CaptureFixture[str]) -> None:
    class Odd:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGINT)  # and Python drops what is raised here

    def drop(odd: list[Odd]) -> None:
        odd.clear()
        time.sleep(5.0)

    hook = sys.unraisablehook
    with Stop() as stop:
        signal.raise_signal(signal.SIGINT)
        assert stop.signal == signal.SIGINT
        with pytest.raises(KeyboardInterrupt):
            drop([Odd()])
    assert sys.unraisablehook is hook
    assert capsys.readouterr().err == ""

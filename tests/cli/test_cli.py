"""The command as somebody types it: run folders, videos, curves, a sentence for each mistake."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import typer
from gymnasium.envs.classic_control import PendulumEnv

from adac import envs
from adac.cli.main import app, expand_settings
from adac.core.presets import AGENTS
from adac.errors import RunError, UserError
from adac.experiments.analysis.results import read_results
from adac.runs.csv_table import Table
from adac.runs.video import Video, caption
from adac.training.evaluation import evaluate
from adac.training.learner import Learner
from commands import adac, fails, read_rows
from helpers import SMALL, SMALL_LATENT

EVERY = [
    "--log-every", "50", "--eval-every", "100", "--eval-episodes", "2", "--checkpoint-every", "100",
]  # fmt: skip
TINY = [
    "--set", *(f"{name}={value}" for name, value in SMALL_LATENT.items()), "beta_start=2",
    "warmup=60", *EVERY,
]  # fmt: skip
ENV = "adac/PendulumSparse-v0"


class Pays(PendulumEnv):
    """Episodes of three steps that pay 1 each."""

    steps = 0

    def reset(self, **options: Any) -> Any:
        self.steps = 0
        return super().reset(**options)

    def step(self, action: Any) -> Any:
        self.steps += 1
        obs, _, _, _, info = super().step(action)
        return obs, 1.0, self.steps == 3, False, info


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cli") / "run"
    assert adac("train", ENV, "--steps", "300", "--out", folder, *TINY, "--tensorboard") == 0
    return folder


def test_a_run_folder_holds_what_is_promised(run: Path) -> None:
    config = json.loads((run / "config.json").read_text())
    assert config["agent"]["explorer"]["particles"] == 4
    assert {"adac", "jax", "gymnasium", "python"} <= config["versions"].keys()
    evaluations = read_rows(run / "evaluations.csv")
    assert [row["step"] for row in evaluations] == ["100", "200", "300"]
    assert list(evaluations[0])[:5] == [
        "step", "mean_return", "std_return", "episodes", "wall_seconds",
    ]  # fmt: skip
    metrics = read_rows(run / "metrics.csv")
    assert [row["step"] for row in metrics] == [str(n) for n in range(50, 301, 50)]
    wanted = {
        "episode_return", "critic_loss", "actor_loss", "behaviour_loss", "q", "bias", "spread",
        "saturation_pi", "saturation_mu", "beta", "steps_per_second",
    }  # fmt: skip
    assert wanted <= metrics[-1].keys()
    assert all(metrics[-1][name] for name in wanted - {"episode_return"})
    end = config["agent"]["explorer"]["beta_end"]  # reached at step 300; μ last moved at 299
    assert float(metrics[-1]["beta"]) == pytest.approx(2.0 - (2.0 - end) * 299 / 300, rel=1e-5)


def test_tensorboard_reads_the_event_files(run: Path) -> None:
    loader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    events = loader.EventAccumulator(str(run / "tensorboard")).Reload()
    tags = events.Tags()
    names = {name for group in tags.values() if isinstance(group, list) for name in group}
    assert {"train/critic_loss", "eval/mean_return"} <= names


def test_wandb_works_offline(tmp_path: Path) -> None:
    """In a process of its own: the package leaves threads and files to the interpreter's end."""
    pytest.importorskip("wandb")
    folder = tmp_path / "run"
    words = [sys.executable, "-m", "adac", "train", ENV, "--steps", "100", "--out", str(folder)]
    quiet = {"WANDB_SILENT": "true", "HOME": str(tmp_path)}
    environment = {k: v for k, v in os.environ.items() if not k.startswith("WANDB")} | quiet
    subprocess.run([*words, *TINY, "--wandb"], env=environment, check=True, capture_output=True)
    assert list((folder / "wandb").glob("offline-run-*/*.wandb"))


def test_eval_prints_a_sentence_or_json(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert adac("eval", run, "--episodes", "2", "--seed", "3", "--json") == 0
    first = json.loads(capsys.readouterr().out)
    assert first["step"] == 300
    assert len(first["returns"]) == 2
    assert first["mean_return"] == pytest.approx(np.mean(first["returns"]))
    assert adac("eval", run, "--episodes", "2", "--seed", "3", "--json") == 0
    assert json.loads(capsys.readouterr().out) == first
    assert adac("eval", run, "--episodes", "1") == 0
    assert "over 1 episode\n" in capsys.readouterr().out


# imageio-ffmpeg leaves its pipes to the garbage collector.
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("suffix", [".mp4", ".gif"])
def test_eval_makes_videos(run: Path, tmp_path: Path, suffix: str) -> None:
    imageio = pytest.importorskip("imageio.v3")
    video = tmp_path / f"video{suffix}"
    assert adac("eval", run, "--episodes", "1", "--video", video) == 0
    frames = imageio.imread(video, index=None if suffix == ".gif" else ...)
    assert len(frames) >= 190
    first = np.asarray(frames[0], float)[..., :3]
    assert first.std() > 1
    strip = len(first) - 500  # Pendulum's pictures are 500 high; the caption is above
    assert strip == 40
    assert first[:strip].max() > 200  # letters
    assert np.median(first[:strip]) < 50


def test_a_caption_says_episode_and_return() -> None:
    frame = np.full((240, 320, 3), 200, np.uint8)
    captioned = caption(frame, "episode 1, return 12.0")
    np.testing.assert_array_equal(captioned[20:], frame)
    other = caption(frame, "episode 2, return 12.0")
    assert (captioned[:20] != other[:20]).any()


def test_frames_know_their_episode_and_its_return_so_far() -> None:
    """Two episodes of three steps that pay 1 each."""
    seen = []
    evaluate(
        lambda obs: np.zeros((1, 1)), Pays(render_mode="rgb_array"), 2, 0,
        frame=lambda picture, episode, so_far: seen.append((episode, so_far)),
    )  # fmt: skip
    assert seen == [(1, 0.0), (1, 1.0), (1, 2.0), (2, 0.0), (2, 1.0), (2, 2.0)]


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(
    "env", ["Hopper-v4", "LunarLanderContinuous-v3", "adac/RoboschoolHopper-v1"]
)
def test_every_simulator_makes_videos_without_a_display(env: str, tmp_path: Path) -> None:
    """MuJoCo, Box2D and PyBullet; the classic ones are above."""
    imageio = pytest.importorskip("imageio.v3")
    Learner(env, "td3", overrides=SMALL).save(tmp_path / "run")
    assert adac("eval", tmp_path / "run", "--episodes", "1", "--video", tmp_path / "f.mp4") == 0
    frames = np.asarray(imageio.imread(tmp_path / "f.mp4"))
    assert frames.ndim == 4
    assert frames[0].std() > 5
    assert (frames[0] != frames[-1]).any()


def test_plot_draws_runs_and_metrics(run: Path, tmp_path: Path) -> None:
    assert adac("plot", run, "-o", tmp_path / "curve.png") == 0
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")
    pictures = set()
    for number, options in enumerate(([], ["--smooth", "1"], ["--seeds"], ["--metric", "spread"])):
        out = tmp_path / f"{number}.svg"
        assert adac("plot", run.parent, "-o", out, "--metric", "bias", *options) == 0
        pictures.add(out.read_text())
    assert len(pictures) == 4  # each option changes the picture
    assert all("</svg>" in text for text in pictures)


def test_resume_trains_on_and_keeps_the_rows(run: Path, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(run, folder)
    assert adac("resume", folder) == 0  # nothing left to do
    assert adac("resume", folder, "--steps", "400") == 0
    assert [row["step"] for row in read_rows(folder / "evaluations.csv")] == [
        "100",
        "200",
        "300",
        "400",
    ]
    assert json.loads((folder / "config.json").read_text())["steps"] == 400
    assert json.loads((folder / "config.json").read_text())["agent_name"] == "adac-td3"


def test_the_bonus_gap_is_logged_and_drawn(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    curious = [*EVERY, "--agent", "td3-disagreement", "--steps", "500", "--eval-every", "250"]
    curious += [*TINY[:4], "warmup=60", "model_hidden=4", "models=2", "bonus_after=100"]
    assert adac("train", ENV, "--out", folder, *curious) == 0
    collected = [
        float(r["episode_bonus"]) for r in read_rows(folder / "metrics.csv") if r["episode_bonus"]
    ]
    assert len(collected) == 2
    assert max(collected) > 0
    learner = Learner.load(folder)
    again = learner.bonus_gap(salt=learner.step)
    last = read_rows(folder / "evaluations.csv")[-1]
    assert {name: float(last[name]) for name in again} == pytest.approx(again, rel=1e-6)
    assert again["episode_bonus_mu"] != again["episode_bonus_pi"]
    learner.close()
    for metric in ("bonus_gap", "episode_bonus_gap"):
        assert adac("plot", folder, "-o", tmp_path / f"{metric}.png", "--metric", metric) == 0


def test_stop_return_ends_early(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    assert adac("train", ENV, "--steps", "5000", "--out", folder, *TINY, "--stop-return", "-1") == 0
    assert [row["step"] for row in read_rows(folder / "evaluations.csv")] == ["100"]
    assert adac("resume", folder) == 0
    assert [row["step"] for row in read_rows(folder / "evaluations.csv")] == ["100"]


def test_predict_carries_the_correlated_latent_from_call_to_call() -> None:
    """Without it μ would be white noise in time, whatever ρ says."""
    learner = Learner(ENV, "adac-td3", overrides=SMALL_LATENT | {"latent_correlation": 0.99})
    obs, state, seen = np.zeros((1, 3), np.float32), None, []
    for _ in range(50):
        _, state = learner.predict(obs, state)
        seen.append(np.asarray(state).ravel())
    steps = np.linalg.norm(np.diff(seen, axis=0), axis=1)
    assert np.median(steps) < 0.3 * np.median(np.linalg.norm(seen, axis=1))


def test_several_environments_learn_from_every_step(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    assert adac("train", ENV, "--steps", "300", "--out", folder, *TINY, "--num-envs", "4") == 0
    learner = Learner.load(folder)
    assert learner.step == 300
    assert learner.replay.inserted == 300
    assert learner.updates == 300 - 1 - 4  # one for each step after the first, bar the last four


def test_set_takes_several_values() -> None:
    words = ["train", "X", "--set", "a=1", "b=2", "--seed", "3", "--set", "c=4", "d"]
    assert expand_settings(words) == [
        "train", "X", "--set", "a=1", "--set", "b=2", "--seed", "3", "--set", "c=4", "d",
    ]  # fmt: skip


def commands(
    group: typer.core.TyperGroup, *path: str
) -> dict[tuple[str, ...], typer.core.TyperCommand]:
    found = {}
    for name, command in group.commands.items():
        if isinstance(command, typer.core.TyperGroup):
            found |= commands(command, *path, name)
        else:
            found[(*path, name)] = command
    return found


COMMANDS = commands(typer.main.get_command(app))


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_help_shows_every_option_with_its_meaning_and_default(
    path: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "250")
    assert adac(*path, "--help") == 0
    text = re.sub(r"[│\s]+", " ", capsys.readouterr().out)
    for option in COMMANDS[path].params:
        if option.name != "help":
            assert option.help
            assert option.help in text
            shown = option.show_default if isinstance(option.show_default, str) else option.default
            if shown not in (None, False) and not option.required:
                assert f"[default: {f'({shown})' if shown != option.default else shown}]" in text


def test_lists_name_every_agent_and_task(capsys: pytest.CaptureFixture[str]) -> None:
    listed = {}
    for what in ("agents", "envs"):
        assert adac("list", what) == 0
        listed[what] = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert set(AGENTS) <= set(listed["agents"])
    assert {task.id for task in (*envs.SUITE, *envs.EXTRAS)} <= set(listed["envs"])


# -- mistakes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["Hoper-v5"], "Hopper-v5"),
        (["CartPole-v1"], "continuous actions"),
        (["Pendulum-v1", "--agent", "adac-td4"], "adac-td3"),
        (["Pendulum-v1", "--set", "particle=3"], "particles"),
        (["Pendulum-v1", "--set", "particles=many"], "whole number"),
        (["Pendulum-v1", "--set", "particles=0"], "at least 1"),
        (["Pendulum-v1", "--set", "discount=1.5"], "between 0 and 1"),
        (["Pendulum-v1", "--set", "space=outer"], "pre-squash"),
        (["Pendulum-v1", "--steps", "0"], "at least 1"),
        (["Pendulum-v1", "--seed", "-1"], "seed"),
        (["Pendulum-v1", "--num-envs", "0"], "num_envs"),
        (["Pendulum-v1", "--eval-episodes", "0"], "eval_episodes"),
        (["Pendulum-v1", "--eval-every", "-5"], "eval_every"),
        (["Pendulum-v1", "--agent", "TD3"], "did you mean td3"),
    ],
)
def test_bad_input_is_one_sentence_and_leaves_nothing(
    words: list[str],
    said: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert said in fails(capsys, "train", *words)
    assert not list(tmp_path.iterdir())


def test_folders_that_are_no_runs(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "config.json" in fails(capsys, "resume", tmp_path / "none")
    assert "config.json" in fails(capsys, "eval", tmp_path)
    assert "adac resume" in fails(capsys, "train", ENV, "--out", run)
    (tmp_path / "config.json").write_text("{")
    assert "damaged" in fails(capsys, "eval", tmp_path)
    (tmp_path / "config.json").write_text((run / "config.json").read_text())
    assert "start it again" in fails(capsys, "eval", tmp_path)
    config = json.loads((run / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"seed": "x"}))
    assert "its seed is 'x'" in fails(capsys, "eval", tmp_path)
    taken = fails(capsys, "train", ENV, "--out", run / "config.json")
    assert "config.json cannot be made a run folder: it is a file" in taken
    assert "no column" in fails(capsys, "plot", run, "-o", tmp_path / "x.png", "--metric", "biass")
    assert ".png" in fails(capsys, "plot", run, "-o", tmp_path / "x.bmp")
    assert ".mp4" in fails(capsys, "eval", run, "--video", tmp_path / "x.avi")


def test_a_damaged_checkpoint_is_passed_over_for_the_previous_one(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import shutil

    folder = tmp_path / "copy"
    shutil.copytree(run, folder)
    path = sorted((folder / "checkpoint").glob("step-*.safetensors"))[-1]
    path.write_bytes(path.read_bytes()[:-7])
    assert adac("resume", folder) == 0
    said = capsys.readouterr().err
    assert "warning" in said
    assert "of step 200" in said
    assert [row["step"] for row in read_rows(folder / "evaluations.csv")] == ["100", "200", "300"]


class Poisoned(PendulumEnv):
    """Gives a NaN at its step 150."""

    def __init__(self) -> None:
        super().__init__()
        self.steps = 0

    def step(self, u):
        self.steps += 1
        obs, reward, *rest = super().step(u)
        return (obs * np.nan if self.steps == 150 else obs), reward, *rest


def test_a_nan_names_itself_and_the_last_good_checkpoint_stays(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gymnasium.register("Poisoned-v0", Poisoned, max_episode_steps=40)
    folder = tmp_path / "run"
    quiet = [*TINY, "--eval-every", "0"]
    said = fails(capsys, "train", "Poisoned-v0", "--steps", "300", "--out", folder, *quiet, code=1)
    assert "Poisoned-v0 gave the observation nan at step 150" in said
    assert f"adac resume {folder}" in said
    assert Learner.load(folder).step == 100


def test_debug_shows_the_traceback(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert adac("eval", tmp_path / "none", "--debug") == 2
    assert "Traceback" in capsys.readouterr().err


def test_a_video_needs_a_task_that_renders(tmp_path: Path) -> None:
    video = Video(tmp_path / "x.gif", gymnasium.make("Pendulum-v1"))
    with pytest.raises(UserError, match="does not render"):
        video.add(None, 1, 0.0)
    video.close()


def test_a_plot_tells_settings_apart_and_counts_a_seed_once(tmp_path: Path) -> None:
    settings = [("a", "60", "0"), ("b", "60", "1"), ("c", "50", "0")]
    for name, warmup, seed in settings:
        words = ["--set", f"warmup={warmup}", "--seed", seed, "--out", tmp_path / name]
        assert adac("train", ENV, "--steps", "100", *TINY, *words) == 0
    folders = [tmp_path / name for name, *_ in settings]
    shutil.copytree(tmp_path / "a", tmp_path / "copy")
    found = read_results(*folders, tmp_path / "copy")
    assert ["counted once" in note for note in found.notes] == [True]
    lines = {label: len(group.drawn) for label, group in found.groups[ENV].items()}
    assert lines == {"adac-td3 (warmup=60)": 2, "adac-td3 (warmup=50)": 1}


def test_a_run_without_out_gets_a_folder_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        assert adac("train", ENV, "--agent", "td3", "--steps", "1", *TINY[:4]) == 0
    found = sorted(path.name for path in (tmp_path / "runs").iterdir())
    assert found == ["PendulumSparse-v0-td3-s0", "PendulumSparse-v0-td3-s0-2"]


def test_a_table_that_can_not_be_written_anew_keeps_its_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.csv"
    table = Table(path, ("step", "value"), 0)
    table.add({"step": 5, "value": 1})
    table.close()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(RunError, match="No space left"):
        Table(path, ("step", "value"), 9)
    assert read_rows(path) == [{"step": "5", "value": "1"}]


@pytest.mark.parametrize("name", ["../..", "", ".x"])
def test_an_import_that_names_no_module_is_one_sentence(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "it names a module" in fails(capsys, "train", ENV, "--import", name)

"""Data from elsewhere: files, other runs, Minari; and learning from it without a step."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from adac.core.explorers import GaussianNoise
from adac.errors import UserError
from adac.training.learner import Learner
from commands import adac, fails, read_rows
from helpers import TD3, MadeUp, assert_same_bits, stored, tiny

AGENT = tiny(TD3, GaussianNoise(), MadeUp(), warmup=10)
PENDULUM = "Pendulum-v1"
SHORT: dict[str, Any] = {"max_episode_steps": 7}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """30 transitions of three environments, whose episodes have seven steps."""
    folder = tmp_path_factory.mktemp("data") / "run"
    Learner(PENDULUM, AGENT, num_envs=3, env_kwargs=SHORT).learn(30).save(folder)
    return folder


def columns(count: int = 30) -> dict[str, Any]:
    draw = np.random.default_rng(0)
    obs = draw.uniform(-1, 1, (count + 1, 3))
    return {
        "obs": obs[:-1],
        "action": draw.uniform(-2, 2, (count, 1)),
        "reward": draw.normal(size=count),
        "next_obs": obs[1:],
        "terminated": np.arange(count) % 5 == 4,
    }


def test_a_file_of_arrays_is_what_add_would_take(tmp_path: Path) -> None:
    np.savez(tmp_path / "mine.npz", **columns())
    one, other = Learner(PENDULUM, AGENT), Learner(PENDULUM, AGENT)
    one.add_dataset(tmp_path / "mine.npz")
    other.add(**columns())
    assert_same_bits(stored(one), stored(other))
    assert one.config()["data"] == [str(tmp_path / "mine.npz")]


def test_another_run_s_buffer_keeps_its_episodes(run: Path) -> None:
    """Each row's successor is the same environment's next step, or there is none."""
    then, now = Learner.load(run), Learner(PENDULUM, AGENT)
    now.add_dataset(run)
    assert_same_bits(stored(now), stored(then))  # MadeUp's bonus depends on nothing that learns
    rows, spec = now.replay.rows[:30], now.replay.spec
    ahead = rows[:, spec.columns["ahead"]][:, 0].astype(int)
    assert set(ahead) == {0, 3}
    assert (ahead[-3:] == 0).all()
    for number in np.flatnonzero(ahead):
        following = rows[number + ahead[number], spec.columns["obs"]]
        np.testing.assert_array_equal(rows[number, spec.columns["next_obs"]], following)


def test_a_smaller_buffer_takes_the_latest(run: Path) -> None:
    small = Learner(PENDULUM, replace(AGENT, replay_size=8)).add_dataset(run)
    latest = Learner.load(run).replay.recent(8)
    obs = small.replay.spec.columns["obs"]
    np.testing.assert_array_equal(small.replay.recent(8)[:, obs], latest[:, obs])


def test_statistics_see_the_data() -> None:
    learner = Learner(PENDULUM, replace(AGENT, normalise_obs=True))
    learner.add(**columns())
    mean = np.asarray(learner.state.statistics.mean)
    np.testing.assert_allclose(mean, columns()["obs"].mean(axis=0), atol=1e-5)


@pytest.mark.parametrize("name", ["nothing.npz", "text.npz", "less.npz", "objects.npz"])
def test_what_holds_no_transitions_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "text.npz").write_text("no numbers")
    np.savez(tmp_path / "less.npz", obs=np.zeros((3, 3)))
    np.savez(tmp_path / "objects.npz", **(columns() | {"obs": np.array([{}, None])}))
    said = "has no array 'action'" if name == "less.npz" else "holds no transitions"
    with pytest.raises(UserError, match=said):
        Learner(PENDULUM, AGENT).add_dataset(tmp_path / name)


def test_another_size_is_refused(run: Path) -> None:
    with pytest.raises(UserError, match="another size"):
        Learner("MountainCarContinuous-v0", AGENT).add_dataset(run)


# -- learning from it alone ----------------------------------------------------------------------


def test_offline_updates_come_before_the_steps_and_do_not_replace_theirs() -> None:
    learner = Learner(PENDULUM, AGENT)
    learner.add(**columns())
    learner.learn(0, offline=25)
    assert (learner.step, learner.updates) == (0, 25)
    plain = Learner(PENDULUM, AGENT)
    plain.learn(20)
    learner.learn(20)
    assert learner.updates == 25 + plain.updates


def test_offline_needs_data() -> None:
    with pytest.raises(UserError, match="offline updates need data"):
        Learner(PENDULUM, AGENT).learn(0, offline=5)


def test_the_shell_learns_offline_and_then_online_and_resumes_to_the_bit(
    run: Path, tmp_path: Path
) -> None:
    words = ["--agent", "td3", "--set", "actor_hidden=8", "critic_hidden=8", "batch_size=8",
             "warmup=0", "--data", str(run), "--offline", "20", "--steps", "20",
             "--eval-every", "20", "--eval-episodes", "1", "--checkpoint-every", "8"]  # fmt: skip
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert adac("train", PENDULUM, *words, "--out", whole) == 0
    assert [row["step"] for row in read_rows(whole / "evaluations.csv")] == ["0", "20"]
    config = json.loads((whole / "config.json").read_text())
    assert (config["data"], config["offline"]) == ([str(run)], 20)

    class KilledError(BaseException):
        """Nothing is saved after it, as after kill -9."""

    begun = Learner(PENDULUM, "td3", overrides=small()).add_dataset(run)
    before = begun.loop.update_offline

    def update_or_die() -> None:
        if begun.updates == 13:
            raise KilledError
        before()

    begun.loop.update_offline = update_or_die  # type: ignore[method-assign]
    plan = {"eval_every": 20, "eval_episodes": 1, "checkpoint_every": 8, "offline": 20}
    with pytest.raises(KilledError):
        begun.learn(20, out=parts, **plan)  # type: ignore[arg-type]
    assert Learner.load(parts).loop.offline == 8
    assert adac("resume", parts) == 0
    assert_same_bits(Learner.load(parts).state, Learner.load(whole).state)


def small() -> dict[str, Any]:
    return {"actor_hidden": (8,), "critic_hidden": (8,), "batch_size": 8, "warmup": 0}


# -- Minari --------------------------------------------------------------------------------------


def test_without_the_extra_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    try:
        import minari  # noqa: F401
    except ImportError:
        said = fails(capsys, "train", PENDULUM, "--data", "minari:pendulum/test-v0")
        assert "data" in said
        assert "install" in said


@pytest.mark.filterwarnings("ignore::UserWarning:minari", "ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_minari_dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Recorded here with Minari's own collector."""
    minari = pytest.importorskip("minari")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    env = minari.DataCollector(gymnasium.make(PENDULUM, max_episode_steps=7))
    seen = []
    for seed in range(3):
        obs, _ = env.reset(seed=seed)
        for number in range(7):
            action = np.array([0.5 * (number - 3)], np.float32)
            after, reward, *_ = env.step(action)
            seen.append((obs, action, reward, after))
            obs = after
    dataset = env.create_dataset("pendulum/test-v0", algorithm_name="test", author="test",
                                 author_email="test", code_permalink="test")  # fmt: skip
    env.close()
    by_name = Learner(PENDULUM, AGENT).add_dataset("minari:pendulum/test-v0")
    rows = stored(by_name)
    assert len(rows.obs) == 21
    for column, expected in zip(
        (rows.obs, np.asarray(rows.action) * 2.0, rows.reward, rows.next_obs),
        zip(*seen, strict=True),
        strict=True,
    ):
        np.testing.assert_allclose(column, np.array(expected, np.float32), rtol=1e-5)
    assert np.asarray(rows.continues).all()  # time limits are no terminations
    handed = Learner(PENDULUM, AGENT).add_dataset(dataset)
    assert_same_bits(stored(handed), rows)
    assert handed.config()["data"] == ["minari:pendulum/test-v0"]
    with pytest.raises(UserError, match="cannot be loaded"):
        by_name.add_dataset("minari:pendulum/none-v0")

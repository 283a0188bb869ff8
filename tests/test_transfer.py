"""One run's weights as another's beginning, training without the reward, settings on the way."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from adac.core.explorers import GaussianNoise
from adac.errors import UserError
from adac.training.learner import Learner
from commands import adac, fails
from helpers import ADAC, TD3, MadeUp, assert_same_bits, leaves, random_batch, start, step, tiny

AGENT = tiny(TD3, GaussianNoise(), warmup=10)
CURIOUS = tiny(TD3, ADAC, MadeUp())
PENDULUM = "Pendulum-v1"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("transfer") / "run"
    learner = Learner(PENDULUM, AGENT).learn(40)
    learner.agent_name = "td3"
    learner.save(folder)
    return folder


def optimisers(state: Any) -> dict[str, Any]:
    return {name: leaf for name, leaf in leaves(state).items() if ".opts" in name}


@pytest.mark.parametrize("with_optimisers", [False, True])
def test_a_run_begins_with_another_s_weights(run: Path, with_optimisers: bool) -> None:
    then = Learner.load(run)
    now = Learner(PENDULUM, start_from=run, seed=5, with_optimisers=with_optimisers)
    weights, before = leaves(now.state), leaves(then.state)
    for name in weights.keys() - optimisers(now.state).keys():
        np.testing.assert_array_equal(weights[name], before[name])
    same = [np.array_equal(optimisers(then.state)[k], v) for k, v in optimisers(now.state).items()]
    assert all(same) == with_optimisers
    assert (now.step, len(now.replay), now.updates, now.agent_name) == (0, 0, 0, "td3")
    assert now.config()["from"]["step"] == 40


def test_it_acts_with_them_at_once_and_waits_before_it_learns(run: Path) -> None:
    now = Learner(PENDULUM, start_from=run)
    assert (now.agent.warmup, now.agent.learn_after) == (0, 10)
    now.learn(10)
    assert now.updates == 0
    assert Learner(PENDULUM, start_from=run, overrides={"warmup": 3}).agent.warmup == 3


def test_another_task_needs_the_same_sizes(run: Path) -> None:
    with pytest.raises(UserError, match="must have its sizes; this task has 2 and 1"):
        Learner("MountainCarContinuous-v0", start_from=run)
    same_sizes = Learner("adac/PendulumSparse-v0", start_from=run)
    assert_same_bits(same_sizes.state.actor.params, Learner.load(run).state.actor.params)


def test_what_does_not_fit_is_begun_anew_and_said(run: Path) -> None:
    other = replace(AGENT, base=replace(TD3, critics=3))
    with pytest.warns(UserWarning, match="has no critic that fits"):
        now = Learner(PENDULUM, other, start_from=run)
    assert_same_bits(now.state.actor.params, Learner.load(run).state.actor.params)


def test_the_shell_trains_without_reward_and_then_with_it(tmp_path: Path) -> None:
    free, fine = tmp_path / "free", tmp_path / "fine"
    words = ["--eval-every", "0", "--steps", "30", "--set", "actor_hidden=8", "critic_hidden=8",
             "particles=2", "batch_size=8", "warmup=10", "intrinsic=rnd"]  # fmt: skip
    assert adac("train", PENDULUM, "--reward-free", "--out", free, *words) == 0
    assert json.loads((free / "config.json").read_text())["agent"]["reward_free"] is True
    assert np.abs(Learner.load(free).replay.rows[:30]).sum() > 0
    assert adac("train", PENDULUM, "--from", free, "--out", fine, *words[:4]) == 0
    config = json.loads((fine / "config.json").read_text())
    assert config["agent"]["reward_free"] is False
    assert config["agent"]["intrinsic"]["kind"] == "Rnd"
    assert config["from"]["folder"] == str(free)
    again = tmp_path / "again"
    assert adac("train", "--config", fine, "--out", again) == 0
    assert_same_bits(Learner.load(again).state, Learner.load(fine).state)


def test_no_critic_sees_the_reward() -> None:
    """Whatever the rewards are, the update is the same; and it is not without the setting."""
    batch = random_batch()
    richer = batch._replace(reward=batch.reward + 7.0)
    for reward_free in (True, False):
        agent = replace(CURIOUS, reward_free=reward_free)
        one, other = (step(agent, start(agent), rows)[0] for rows in (batch, richer))
        same = [
            np.array_equal(a, b) for a, b in zip(*map(jax.tree.leaves, (one, other)), strict=True)
        ]
        assert all(same) == reward_free
    zero = step(CURIOUS, start(CURIOUS), batch._replace(reward=jnp.zeros(8)))[0]
    free = replace(CURIOUS, reward_free=True)
    assert_same_bits(zero, step(free, start(free), batch)[0])


def test_without_reward_there_must_be_a_bonus(capsys: pytest.CaptureFixture[str]) -> None:
    said = fails(capsys, "train", PENDULUM, "--agent", "td3", "--reward-free")
    assert "reward_free needs a bonus" in said


# -- settings that change on the way ---------------------------------------------------------------


def test_settings_change_on_load_and_the_folder_says_so(run: Path, tmp_path: Path) -> None:
    Learner.load(run).save(tmp_path / "copy")
    plan = {"eval_every": 0, "horizon": 80}
    changed = Learner.load(tmp_path / "copy", overrides={"actor_lr": 0.5, "n_steps": 2})
    assert (changed.agent.base.actor_lr, changed.agent.n_steps) == (0.5, 2)
    assert_same_bits(changed.state, Learner.load(run).state)
    changed.learn(4, out=tmp_path / "copy", **plan)
    config = json.loads((tmp_path / "copy" / "config.json").read_text())
    assert config["changes"] == [{"step": 40, "settings": {"actor_lr": 0.5, "n_steps": 2}}]
    loaded = Learner.load(tmp_path / "copy")
    assert (loaded.step, loaded.agent.base.actor_lr) == (44, 0.5)
    assert adac("resume", tmp_path / "copy", "--steps", "46", "--set", "gamma=0.5") == 0
    assert len(Learner.load(tmp_path / "copy").history["changes"]) == 2


def test_a_kill_after_a_change_leaves_a_run_that_loads(run: Path, tmp_path: Path) -> None:
    Learner.load(run).save(tmp_path)
    changed = Learner.load(tmp_path, overrides={"actor_lr": 0.5})

    class KilledError(BaseException):
        """Nothing is saved after it, as after kill -9."""

    def kill(_: Learner) -> None:
        raise KilledError

    with pytest.raises(KilledError):
        changed.learn(4, out=tmp_path, eval_every=0, checkpoint_every=0, callback=kill)
    assert Learner.load(tmp_path).agent.base.actor_lr == 0.5


@pytest.mark.parametrize(
    ("change", "said"),
    [({"actor_hidden": (8,)}, "actor_hidden would change what the run has stored"),
     ({"explorer": "ornstein-uhlenbeck"}, "would change what the run has stored"),
     ({"replay_size": 50}, "replay_size cannot be changed"),
     ({"actor_lr": -1}, "actor_lr must be")],
)  # fmt: skip
def test_what_a_stored_run_cannot_go_on_with(run: Path, change: Any, said: str) -> None:
    with pytest.raises(UserError, match=said):
        Learner.load(run, overrides=change)

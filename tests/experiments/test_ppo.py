"""PPO: what is ours about it, and with Stable-Baselines3 installed a trial from end to end."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from adac.experiments.paper import ppo
from adac.experiments.sweeps.trials import execute, is_done, last_return, make_trial
from adac.runs.csv_table import read_table
from adac.training.train import Schedule


def test_evaluation_is_greedy_on_normalised_observations() -> None:
    run: Any = object.__new__(ppo._Run)
    run.envs = SimpleNamespace(normalize_obs=lambda obs: obs / 2)
    run.model = SimpleNamespace(
        predict=lambda obs, deterministic: (obs if deterministic else -obs, None)
    )
    obs = np.array([[1.0, -3.0]], np.float32)
    np.testing.assert_array_equal(run._policy(obs), obs / 2)


def test_a_trial_ends_and_resumes_where_it_was(tmp_path: Path) -> None:
    pytest.importorskip("stable_baselines3")
    plan = Schedule(eval_every=256, eval_episodes=1, checkpoint_every=256, log_every=256)
    small = {"n_steps": 128, "batch_size": 64}
    trial = make_trial("Pendulum-v1", "ppo", 0, 768, overrides=small, schedule=plan)

    class Kill(BaseException):
        pass

    def kill() -> None:
        raise Kill

    with pytest.raises(Kill):
        execute(trial, tmp_path, saved=kill)
    kept = ppo.Store(tmp_path / "checkpoint").load(None)
    assert 256 <= kept.step < 768
    assert kept.arrays["obs_rms.count"] > 100
    execute(trial, tmp_path)
    assert is_done(tmp_path)
    assert last_return(tmp_path) is not None
    steps = [int(row["step"]) for row in read_table(tmp_path / "evaluations.csv")]
    assert steps == [256, 512, 768]

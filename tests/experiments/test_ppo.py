"""PPO: what is ours about it; whole trials where Stable-Baselines3 is (`make test-ppo`)."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from adac.errors import UserError
from adac.experiments.paper import ppo
from adac.experiments.sweeps.trials import Trial, execute, is_done, last_return, make_trial
from adac.runs.csv_table import read_table
from adac.runs.folder import read_config
from adac.training.train import Schedule

PLAN = Schedule(eval_every=256, eval_episodes=1, checkpoint_every=256, log_every=256)


def trial(seed: int = 0) -> Trial:
    pytest.importorskip("stable_baselines3")
    small = {"n_steps": 128, "batch_size": 64}
    return make_trial("Pendulum-v1", "ppo", seed, 768, overrides=small, schedule=PLAN)


def evaluations(folder: Path) -> list[dict[str, str]]:
    rows = read_table(folder / "evaluations.csv")
    return [{k: v for k, v in row.items() if k != "wall_seconds"} for row in rows]


class KilledError(BaseException):
    pass


def kill() -> None:
    raise KilledError


def test_evaluation_is_greedy_on_normalised_observations() -> None:
    envs = SimpleNamespace(normalize_obs=lambda obs: obs / 2)
    model = SimpleNamespace(
        predict=lambda obs, deterministic: (obs if deterministic else -obs, None)
    )
    obs = np.array([[1.0, -3.0]], np.float32)
    np.testing.assert_array_equal(ppo.greedy(model, envs, obs), obs / 2)


def test_a_wrong_setting_is_one_sentence() -> None:
    pytest.importorskip("stable_baselines3")
    with pytest.raises(UserError, match="PPO has no setting 'n_step'; it has learning_rate"):
        ppo.override({"n_step": 128})
    with pytest.raises(UserError, match="PPO's n_steps cannot be '128'"):
        ppo.override({"n_steps": "128"})
    assert ppo.override({"n_steps": 128})["n_steps"] == 128


def test_a_trial_ends_and_resumes_where_it_was(tmp_path: Path) -> None:
    with pytest.raises(KilledError):
        execute(trial(), tmp_path, saved=kill)
    kept = ppo.Store(tmp_path / "checkpoint").load(None)
    assert 256 <= kept.step < 768
    assert kept.arrays["obs_rms.count"] > 100
    before = evaluations(tmp_path)
    execute(trial(), tmp_path)
    assert is_done(tmp_path)
    assert last_return(tmp_path) is not None
    after = evaluations(tmp_path)
    assert [int(row["step"]) for row in after] == [256, 512, 768]
    assert after[: len(before)] == before


def test_what_is_saved_is_put_back_to_the_bit(tmp_path: Path) -> None:
    """Weights, Adam's moments, normalisation, and both libraries' random states."""
    with pytest.raises(KilledError):
        execute(trial(), tmp_path, saved=kill)
    kept = ppo.Store(tmp_path / "checkpoint").load(None).arrays
    assert {name.split(".")[0] for name in kept} == {
        "policy", "adam", "obs_rms", "ret_rms", "numpy", "torch",
    }  # fmt: skip
    model, envs = ppo.build(read_config(tmp_path))
    fresh = ppo.snapshot(model, envs)
    assert any((fresh[name] != kept[name]).any() for name in fresh if name.startswith("policy"))
    ppo.restore(model, envs, kept)
    again = ppo.snapshot(model, envs)
    envs.close()
    assert again.keys() == kept.keys()
    for name, value in kept.items():
        np.testing.assert_array_equal(again[name], value, err_msg=name)


def test_a_seed_decides_everything(tmp_path: Path) -> None:
    found = []
    for folder, seed in (("a", 0), ("b", 0), ("c", 1)):
        execute(trial(seed), tmp_path / folder)
        found.append(evaluations(tmp_path / folder))
    assert found[0] == found[1]
    assert found[0] != found[2]

"""`adac.Policy`: π without the rest of a run, and a file that can be trusted."""

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
from gymnasium import spaces

import adac
from adac.errors import UserError
from adac.runs.export.arrays import to_arrays
from adac.runs.export.policy_file import FORMAT, _checksum
from adac.training.learner import Learner

TINY = {"actor_hidden": "16", "critic_hidden": "16", "warmup": 40, "batch_size": 8}
PENDULUM = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Learner, Path]:
    learner = Learner("Pendulum-v1", "sac", overrides=TINY | {"normalise_obs": True}).learn(60)
    folder = tmp_path_factory.mktemp("run")
    learner.save(folder)
    return learner, folder


def test_a_run_folder_and_a_file_predict_as_the_learner(
    run: tuple[Learner, Path], tmp_path: Path
) -> None:
    learner, folder = run
    wanted, _ = learner.predict(PENDULUM, deterministic=True)
    begin = time.perf_counter()
    last = adac.Policy.load(folder)
    print(f"a run folder in {time.perf_counter() - begin:.3f} s")
    last.save(tmp_path / "small.safetensors")
    begin = time.perf_counter()
    small = adac.Policy.load(tmp_path / "small.safetensors")
    taken = time.perf_counter() - begin
    size = (tmp_path / "small.safetensors").stat().st_size
    print(f"a policy file of {size:,} bytes in {taken:.4f} s")
    assert taken < 1.0
    for policy in (last, small, learner.target_policy()):
        found, state = policy.predict(PENDULUM, state="kept")
        np.testing.assert_allclose(found, wanted, atol=1e-5)
        assert state == "kept"
        np.testing.assert_allclose(policy.predict(PENDULUM[0])[0], wanted[0], atol=1e-5)
    assert (small.facts.env, small.facts.agent, small.facts.step) == ("Pendulum-v1", "sac", 60)


def test_the_replay_buffer_is_not_needed(run: tuple[Learner, Path], tmp_path: Path) -> None:
    learner, _ = run
    learner.save(tmp_path)
    for part in (tmp_path / "checkpoint").glob("replay-*"):
        part.unlink()
    adac.Policy.load(tmp_path)


def test_only_the_target_policy_is_in_it(run: tuple[Learner, Path]) -> None:
    with pytest.raises(UserError, match=r"adac\.Learner\.load"):
        run[0].target_policy().predict(PENDULUM, deterministic=False)


def test_a_flattened_task_says_what_a_file_reads(tmp_path: Path) -> None:
    space = spaces.Dict({"b": spaces.Box(-1, 1, (2,)), "a": spaces.Box(-1, 1, (1,))})
    policy = Learner("Pendulum-v1", "td3", overrides=TINY).target_policy()
    policy.save(tmp_path / "p")
    one = {"b": np.float32([0.1, 0.2]), "a": np.float32([0.3])}
    named = adac.Policy.load(tmp_path / "p", observation_space=space)
    flat, _ = adac.Policy.load(tmp_path / "p").predict(spaces.flatten(space, one))
    np.testing.assert_array_equal(named.predict(one)[0], flat)
    with pytest.raises(UserError, match="reads 3 numbers"):
        adac.Policy.load(tmp_path / "p", observation_space=spaces.Box(-1, 1, (4,)))
    with pytest.raises(UserError, match="an observation of this task"):
        adac.Policy.load(tmp_path / "p").predict(one)


def test_a_missing_or_foreign_file_is_refused_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="name a run folder or a policy file"):
        adac.Policy.load(tmp_path / "nothing")
    (tmp_path / "text").write_text("not a policy")
    with pytest.raises(UserError, match="not a policy of adac's"):
        adac.Policy.load(tmp_path / "text")
    (tmp_path / "link").symlink_to(tmp_path / "text")
    with pytest.raises(UserError, match="symbolic link"):
        adac.Policy.load(tmp_path / "link")


def test_a_flipped_bit_is_noticed(run: tuple[Learner, Path], tmp_path: Path) -> None:
    run[0].target_policy().save(tmp_path / "p")
    data = bytearray((tmp_path / "p").read_bytes())
    data[-3] ^= 1
    (tmp_path / "p").write_bytes(data)
    with pytest.raises(UserError, match="not what was written"):
        adac.Policy.load(tmp_path / "p")


@pytest.mark.parametrize(
    ("change", "facts", "says"),
    [
        ({"weight1": np.zeros((5, 1), np.float32)}, {}, "do not fit together"),
        ({"low": np.zeros(3, np.float32)}, {}, "bounds do not fit"),
        ({"mean": np.full(3, np.nan, np.float32)}, {}, "finite"),
        ({"bias0": np.zeros(16, np.float64)}, {}, "single precision"),
        ({}, {"step": "many"}, "step"),
        ({}, {"env": None}, "env"),
    ],
)
def test_a_made_up_file_is_refused(
    run: tuple[Learner, Path],
    tmp_path: Path,
    change: dict[str, Any],
    facts: dict[str, Any],
    says: str,
) -> None:
    policy = run[0].target_policy()
    arrays = to_arrays(policy.plain) | change
    about = {"format": FORMAT, "crc": _checksum(arrays), "facts": policy.facts.to_json() | facts}
    made = safetensors.numpy.save(arrays, {"adac": json.dumps(about)})
    (tmp_path / "p").write_bytes(made)
    with pytest.raises(UserError, match=says):
        adac.Policy.load(tmp_path / "p")

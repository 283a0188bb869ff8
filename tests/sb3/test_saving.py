"""Files: everything comes back, a stranger's runs no code, and what is no model is refused."""

import io
import json
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

pytest.importorskip("stable_baselines3")

from models import SMALL, adac, assert_same, td3, weights
from stable_baselines3.common.envs import BitFlippingEnv
from stable_baselines3.common.noise import OrnsteinUhlenbeckActionNoise
from stable_baselines3.common.save_util import load_from_pkl, load_from_zip_file, save_to_zip_file
from stable_baselines3.common.utils import LinearSchedule
from stable_baselines3.her.her_replay_buffer import HerReplayBuffer

from adac.errors import UserError
from adac.sb3 import ADAC, TD3, AgentPolicy
from adac.sb3.files import FACTS, STATE
from adac.sb3.plain import decode, encode


@pytest.fixture(scope="module")
def trained() -> ADAC:
    model = adac()
    model.learn(40)
    return model


@pytest.fixture(scope="module")
def file(trained: ADAC, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "model.zip"
    trained.save(path)
    return path


def changed(file: Path, path: Path, **facts: Any) -> Path:
    """The file with some of its facts changed."""
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(path, "w") as new:
        new.writestr(FACTS, json.dumps(json.loads(old.read(FACTS)) | facts))
        new.writestr(STATE, old.read(STATE))
    return path


def test_a_model_comes_back_and_learns_on(trained: ADAC, file: Path) -> None:
    model = ADAC.load(file, env=trained.get_env())
    assert_same(weights(trained), weights(model))
    assert model.agent == trained.agent
    obs = trained.observation_space.sample()
    action, _ = trained.predict(obs, deterministic=True)
    np.testing.assert_array_equal(action, model.predict(obs, deterministic=True)[0])
    assert (model.num_timesteps, model._n_updates) == (40, 20)
    model.learn(5, reset_num_timesteps=False)
    assert (model.num_timesteps, model._n_updates) == (45, 25)
    assert model.acting.number == 45


def test_settings_change_at_a_load_and_networks_do_not(file: Path) -> None:
    model = ADAC.load(file, gamma=0.5, learning_rate=1e-2)
    assert (model.agent.base.discount, model.agent.base.actor_lr) == (0.5, 1e-2)
    with pytest.raises(ValueError, match="networks cannot be others"):
        ADAC.load(file, policy_kwargs={"net_arch": [9]})


def test_a_file_is_json_and_safetensors_alone(file: Path) -> None:
    with zipfile.ZipFile(file) as archive:
        assert set(archive.namelist()) == {FACTS, STATE}
        facts = json.loads(archive.read(FACTS))
    assert facts["agent"]["explorer"]["kind"] == "Analogous"


class Evil:
    """A pickle that leaves a mark where it is opened."""

    def __init__(self, mark: Path):
        self.mark = mark

    def __reduce__(self) -> Any:
        return Path.touch, (self.mark,)


def test_a_strangers_file_runs_no_code(tmp_path: Path) -> None:
    mark, path, pickled = tmp_path / "mark", tmp_path / "model.zip", tmp_path / "buffer.pkl"
    save_to_zip_file(path, data={"policy_class": Evil(mark)}, params={})
    pickled.write_bytes(pickle.dumps(Evil(mark)))
    model = td3()
    for attempt in (
        lambda: TD3.load(path),
        lambda: model.set_parameters(str(path)),
        lambda: AgentPolicy.load(str(path)),
        lambda: model.load_replay_buffer(pickled),
    ):
        with pytest.raises(UserError, match="was not written by adac"):
            attempt()
        assert not mark.exists()
    load_from_zip_file(path)  # the control: there it runs
    assert mark.exists()
    mark.unlink()
    load_from_pkl(pickled)
    assert mark.exists()


def test_what_does_not_fit_together_is_refused(file: Path, tmp_path: Path) -> None:
    facts = json.loads(zipfile.ZipFile(file).read(FACTS))
    bigger = facts["agent"] | {
        "networks": facts["agent"]["networks"] | {"critic_hidden": [10**6, 10**6]}
    }
    for number, (wrong, words) in enumerate(
        [
            ({"agent": bigger}, "weights are not those"),
            ({"attributes": {"__class__": 1}}, "not those of a model"),
            ({"attributes": {"action_noise": {"kind": "os.system"}}}, "is not one"),
            ({"format": "adac-sb3-0"}, "was not written by"),
            ({"action_space": {"kind": "Text"}}, "no space"),
            ({"agent": 5}, "described by its settings"),
            ({"acted": 10**30}, "acted is 1000"),
            ({"attributes": {"action_noise": 5}}, "action_noise is 5"),
        ]
    ):
        with pytest.raises(UserError, match=words):
            ADAC.load(changed(file, tmp_path / f"{number}.zip", **wrong))


@pytest.mark.parametrize(
    ("name", "value"),
    [("buffer_size", "x"), ("n_envs", -1), ("policy_kwargs", "x"), ("replay_buffer_class", [1]),
     ("learning_rate", None), ("n_steps", 10**9), ("n_steps", "x"), ("batch_size", 10**12),
     ("num_timesteps", "x"), ("num_timesteps", -1), ("_n_updates", 2**31), ("_n_updates", [1]),
     ("gradient_steps", "x"), ("ep_info_buffer", 5), ("_current_progress_remaining", "x")],
)  # fmt: skip
def test_settings_of_any_kind_are_a_sentence(
    file: Path, tmp_path: Path, name: str, value: Any
) -> None:
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(tmp_path / "other.zip", "w") as new:
        facts = json.loads(old.read(FACTS))
        facts["attributes"][name] = value
        new.writestr(FACTS, json.dumps(facts))
        new.writestr(STATE, old.read(STATE))
    with pytest.raises(UserError):
        ADAC.load(tmp_path / "other.zip")


def test_a_damaged_zip_is_a_sentence(file: Path, tmp_path: Path) -> None:
    data = file.read_bytes()
    entry = data.rindex(b"PK\x01\x02")  # of the directory: 6 is a version, 10 a method
    for place in (6, 10):
        other = bytearray(data)
        other[entry + place] = 99
        (tmp_path / "other.zip").write_bytes(other)
        with pytest.raises(UserError, match=r"was not written by adac\.sb3"):
            ADAC.load(tmp_path / "other.zip")


def test_a_zip_that_would_swell_is_refused(file: Path, tmp_path: Path) -> None:
    path = tmp_path / "bomb.zip"
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, old.read(name))
    with pytest.raises(UserError, match="was not written by"):
        ADAC.load(path)


def test_what_stable_baselines_is_given_comes_back() -> None:
    noise = OrnsteinUhlenbeckActionNoise(np.zeros(2), np.full(2, 0.3), theta=0.2)
    same = decode(json.loads(json.dumps(encode(noise))))
    assert (same._theta, same._sigma.tolist()) == (0.2, noise._sigma.tolist())
    schedule = decode(json.loads(json.dumps(encode(LinearSchedule(1.0, 0.5, 0.5)))))
    assert schedule(0.75) == LinearSchedule(1.0, 0.5, 0.5)(0.75)


def test_a_function_is_not_saved_and_that_is_said(tmp_path: Path) -> None:
    model = td3(learning_rate=lambda left: 1e-3 * left)
    with pytest.warns(UserWarning, match=r"learning_rate is a function.*pass it again"):
        model.save(tmp_path / "model")
    assert TD3.load(tmp_path / "model").learning_rate == 1e-3


def test_a_policy_alone(trained: ADAC, tmp_path: Path) -> None:
    trained.policy.save(tmp_path / "policy.zip")
    policy = AgentPolicy.load(tmp_path / "policy.zip")
    obs = trained.observation_space.sample()
    one, other = (p.predict(obs, deterministic=True)[0] for p in (trained.policy, policy))
    np.testing.assert_array_equal(one, other)
    vector = policy.parameters_to_vector()
    policy.load_from_vector(vector * 0)
    assert policy.predict(obs, deterministic=True)[0] == 0


def test_a_hindsight_buffer_comes_back(tmp_path: Path) -> None:
    kwargs = {"copy_info_dict": True, "n_sampled_goal": 2}
    model = TD3(
        "MultiInputPolicy", BitFlippingEnv(n_bits=2, continuous=True), **SMALL,
        learning_starts=50, replay_buffer_class=HerReplayBuffer, replay_buffer_kwargs=kwargs,
    ).learn(15)  # fmt: skip
    old = model.replay_buffer
    file = io.BytesIO()
    model.save_replay_buffer(file)
    file.seek(0)
    model.load_replay_buffer(file, truncate_last_traj=False)
    new = model.replay_buffer
    assert new is not old
    assert (new.pos, new.full) == (15, False)
    np.testing.assert_array_equal(new.ep_length, old.ep_length)
    np.testing.assert_array_equal(
        new.observations["desired_goal"], old.observations["desired_goal"]
    )
    assert new.infos[3, 0].keys() == old.infos[3, 0].keys()
    model.gradient_steps = 1
    model.learn(5, reset_num_timesteps=False)


def test_a_file_does_not_choose_where_others_go(trained: ADAC, tmp_path: Path) -> None:
    trained.tensorboard_log = str(tmp_path / "elsewhere")
    try:
        trained.save(tmp_path / "model.zip")
    finally:
        trained.tensorboard_log = None
    with pytest.warns(UserWarning, match=r"does not choose where .*load\(…, tensorboard_log=…\)"):
        assert ADAC.load(tmp_path / "model.zip").tensorboard_log is None
    mine = str(tmp_path / "mine")
    assert ADAC.load(tmp_path / "model.zip", tensorboard_log=mine).tensorboard_log == mine


def rearranged(file: Path, path: Path, change: Any, **facts: Any) -> Path:
    """The file with some of its arrays and facts changed."""
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(path, "w") as new:
        arrays = dict(safetensors.numpy.load(old.read(STATE)))
        change(arrays)
        new.writestr(FACTS, json.dumps(json.loads(old.read(FACTS)) | facts))
        new.writestr(STATE, safetensors.numpy.save(arrays))
    return path


def test_a_place_of_other_environments_is_not_taken_up(
    trained: ADAC, file: Path, tmp_path: Path
) -> None:
    env = trained.get_env()
    for number, (name, array) in enumerate(
        [
            ("_last_obs", np.zeros((1, 9), np.float32)),
            ("_last_obs", np.full((1, 3), np.nan, np.float32)),
            ("_last_obs.x", np.zeros((1, 3), np.float32)),
            ("_last_episode_starts", np.zeros(9, bool)),
        ]
    ):
        other = rearranged(file, tmp_path / f"{number}.zip", lambda a: a.update({name: array}))  # noqa: B023
        assert ADAC.load(other, env=env, force_reset=False)._last_obs is None
    assert ADAC.load(file, env=env, force_reset=False)._last_obs is not None


@pytest.mark.parametrize(
    "facts", [{"pos": "x"}, {"pos": -1}, {"pos": 150}, {"full": True}, {"full": 1}, {"pos": None}]
)
def test_a_buffer_holds_as_many_as_it_says(
    trained: ADAC, tmp_path: Path, facts: dict[str, Any]
) -> None:
    trained.save_replay_buffer(tmp_path / "good.pkl")
    forged = rearranged(tmp_path / "good.pkl", tmp_path / "forged.pkl", lambda a: None, **facts)
    model = adac()
    with pytest.raises(UserError, match=r"not as many as it says|of another size"):
        model.load_replay_buffer(forged)
    nan = rearranged(tmp_path / "good.pkl", tmp_path / "n.pkl", lambda a: a["rewards"].fill(np.nan))
    with pytest.raises(UserError, match="not finite"):
        model.load_replay_buffer(nan)
    model.load_replay_buffer(tmp_path / "good.pkl")
    assert model.replay_buffer.size() == 40

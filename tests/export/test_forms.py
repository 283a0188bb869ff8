"""Every exported form computes what `predict` computes."""

import ctypes
import dataclasses
import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import equinox as eqx
import gymnasium
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces
from numpy.typing import NDArray

import adac
from adac.cli.main import main
from adac.core.activations import NAMES, Activation
from adac.core.agent import greedy, target_policy
from adac.core.bases import Deterministic
from adac.core.plain import NotPlainPolicyError, plain
from adac.runs.export.facts import Facts
from adac.runs.export.policy_file import read_policy, write_policy
from adac.runs.export.to_c import write_c
from adac.runs.export.to_numpy import write_numpy
from adac.runs.export.to_onnx import write_onnx
from adac.training.learner import Learner
from helpers import TD3, start, tiny
from helpers import TINY as TINY_NETWORKS

Floats = NDArray[np.float32]
PAGE = Path(__file__).parents[2] / "docs" / "export.md"
TINY = {"actor_hidden": "24,16", "critic_hidden": "16", "warmup": 40, "batch_size": 8}
LATENT = TINY | {"latent_hidden": "8,12", "particles": 4}


class Odd(gymnasium.Env[Any, Any]):
    """Bounds of every kind, in double precision, and observations of very different sizes."""

    action_space = spaces.Box(
        np.array([-0.1, 2.0, -300.0, 0.75]), np.array([0.3, 7.0, -0.1, 0.75]), dtype=np.float64
    )
    observation_space: spaces.Space[Any] = spaces.Box(-np.inf, np.inf, (5,), np.float32)
    scale = np.array([1e-3, 1.0, 50.0, 1.0, 0.0])

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        return self._see(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert self.action_space.contains(action)
        return self._see(), float(action[0]), False, self.np_random.random() < 0.1, {}

    def _see(self) -> Any:
        return (self.scale * self.np_random.normal(size=5) + 3).astype(np.float32)


class Parts(Odd):
    """The same in a dictionary, which is flattened."""

    observation_space = spaces.Dict(
        {"b": spaces.Box(-9, 9, (2, 2), np.float32), "a": spaces.Discrete(3)}
    )

    def _see(self) -> Any:
        b = self.np_random.normal(size=(2, 2)).astype(np.float32)
        return {"b": b, "a": int(self.np_random.integers(3))}


CASES: dict[str, tuple[Any, str, dict[str, Any]]] = {
    "adac-td3": (lambda: "Pendulum-v1", "adac-td3", LATENT),
    "sac-normalised": (lambda: "Pendulum-v1", "sac", TINY | {"normalise_obs": True}),
    "ddpg-odd-normalised": (Odd, "ddpg", TINY | {"normalise_obs": True}),
    "adac-sac-odd": (Odd, "adac-sac", LATENT),
    "td3-flattened": (Parts, "td3", TINY),
}


@pytest.fixture(scope="module", params=CASES)
def learner(request: pytest.FixtureRequest) -> Learner:
    env, agent, overrides = CASES[request.param]
    return Learner(env(), agent, seed=1, overrides=overrides).learn(60)


def flat_observations(learner: Learner) -> tuple[Any, Floats]:
    """Random observations as the task has them, and as vectors; some far outside of the usual."""
    space = learner.loop.environments.observation_space
    if isinstance(space, spaces.Box):
        obs = np.random.default_rng(0).normal(size=(200, learner.obs_dim)).astype(np.float32)
        obs[::3] *= 30
        return obs, obs
    space.seed(0)
    many = [space.sample() for _ in range(200)]
    batch = {name: np.stack([one[name] for one in many]) for name in ("a", "b")}
    return batch, np.stack([spaces.flatten(space, one) for one in many]).astype(np.float32)


def assert_agrees(learner: Learner, form: str, ask: Callable[[Floats], Floats]) -> None:
    """To 1e-5 of the task's range; `ask` takes one observation."""
    own, flat = flat_observations(learner)
    wanted, _ = learner.predict(own, deterministic=True)
    found = np.stack([ask(one) for one in flat])
    scaling = learner.loop.environments.scaling
    error = np.max(np.abs(found - wanted) / np.maximum(2 * scaling.half, 1.0))
    begin = time.perf_counter()
    for one in flat:
        ask(one)
    each = (time.perf_counter() - begin) / len(flat)
    print(f"{form}: error {error:.1e}, {1e6 * each:.1f} µs an action")
    assert error < 1e-5
    assert np.ptp(wanted, axis=0).max() > 0.01  # else any constant would do
    assert (found.astype(float) >= scaling.low).all()
    assert (found.astype(float) <= scaling.high).all()


def test_onnx(learner: Learner, tmp_path: Path) -> None:
    import onnxruntime

    policy = learner.target_policy()
    write_onnx(policy.plain, policy.facts, tmp_path / "policy.onnx")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(tmp_path / "policy.onnx", options)
    assert_agrees(learner, "onnx", lambda one: session.run(None, {"obs": one[None]})[0][0])
    _, flat = flat_observations(learner)
    assert session.run(["action"], {"obs": flat})[0].shape == (200, learner.action_dim)
    about = session.get_modelmeta()
    assert about.custom_metadata_map["adac.step"] == "60"
    flattened = learner.env_id == "Parts"
    assert ("gymnasium.spaces.flatten" in about.description) == flattened


def loader() -> Callable[[Path], Callable[[Floats], Floats]]:
    """The very text of the page."""
    (text,) = re.findall(r"<!-- the loader -->\n```python\n(.*?)```", PAGE.read_text(), re.S)
    assert len(text.splitlines()) <= 20
    assert re.findall(r"^(?:import|from) (.*)$", text, re.M) == ["numpy as np"]
    names: dict[str, Any] = {}
    exec(text, names)
    found: Callable[[Path], Callable[[Floats], Floats]] = names["load_policy"]
    return found


def test_numpy(learner: Learner, tmp_path: Path) -> None:
    policy = learner.target_policy()
    write_numpy(policy.plain, policy.facts, tmp_path / "policy.npz")
    ask = loader()(tmp_path / "policy.npz")
    assert_agrees(learner, "numpy", ask)
    _, flat = flat_observations(learner)
    np.testing.assert_allclose(ask(flat), policy.plain(flat), atol=1e-5)


@pytest.mark.parametrize("activation", NAMES)
def test_every_activation_leaves_in_every_form(activation: Activation, tmp_path: Path) -> None:
    import onnxruntime

    networks = dataclasses.replace(TINY_NETWORKS, actor_hidden=(16, 16), activation=activation)
    agent = tiny(TD3, networks=networks)
    policy = target_policy(agent, start(agent))
    numbers, facts = plain(agent, policy, -np.ones(2), np.ones(2)), Facts("x", "td3", 0, 0, False)
    obs = 3 * np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
    wanted = np.asarray(greedy(agent, policy, obs))
    write_policy(numbers, facts, tmp_path / "p")
    write_onnx(numbers, facts, tmp_path / "p.onnx")
    write_numpy(numbers, facts, tmp_path / "p.npz")
    write_c(numbers, facts, tmp_path / "p.c")
    session, ask = onnxruntime.InferenceSession(tmp_path / "p.onnx"), compiled(tmp_path / "p.c")
    for found in (
        read_policy(tmp_path / "p")[0](obs),
        session.run(None, {"obs": obs})[0],
        loader()(tmp_path / "p.npz")(obs),
        np.stack([ask(one) for one in obs]),
    ):
        np.testing.assert_allclose(found, wanted, atol=1e-5)


def compiled(source: Path) -> Callable[[Floats], Floats]:
    library = source.with_suffix(".so")
    flags = ["-std=c99", "-O2", "-Wall", "-Wextra", "-Werror", "-pedantic", "-shared", "-fPIC"]
    subprocess.run(["gcc", *flags, "-o", library, source, "-lm"], check=True)
    function = ctypes.CDLL(str(library)).adac_policy
    pointer = np.ctypeslib.ndpointer(np.float32, flags="C_CONTIGUOUS")
    function.argtypes, function.restype = [pointer, pointer], None
    (size,) = re.findall(r"ADAC_ACTION_DIM (\d+)", source.read_text())

    def ask(obs: Floats) -> Floats:
        action = np.zeros(int(size), np.float32)
        function(np.ascontiguousarray(obs), action)
        return action

    return ask


def test_c(learner: Learner, tmp_path: Path) -> None:
    policy = learner.target_policy()
    write_c(policy.plain, policy.facts, tmp_path / "policy.c")
    assert_agrees(learner, "c", compiled(tmp_path / "policy.c"))


def test_a_header_is_included_twice_and_in_cpp(tmp_path: Path, learner: Learner) -> None:
    policy = learner.target_policy()
    write_c(policy.plain, policy.facts, tmp_path / "policy.h")
    text = '#include "policy.h"\n#include "policy.h"\n'
    body = "int main(void) { float o[ADAC_OBS_DIM] = {0}, a[ADAC_ACTION_DIM]; adac_policy(o, a); }"
    (tmp_path / "main.c").write_text(text + body)
    for language in ("c", "c++"):
        command = ["gcc", "-Werror", "-x", language, tmp_path / "main.c", "-lm"]
        subprocess.run([*command, "-o", tmp_path / "out"], check=True)
        subprocess.run([tmp_path / "out"], check=True)


def test_a_task_with_a_hostile_name_cannot_write_c(tmp_path: Path) -> None:
    policy = Learner("Pendulum-v1", "td3", overrides=TINY).target_policy()
    facts = Facts('x */ int evil(void); /* \\\n#error "no"', "td3", 0, 0, False)
    write_c(policy.plain, facts, tmp_path / "policy.c")
    text = (tmp_path / "policy.c").read_text()
    assert text.count("*/") == 1
    compiled(tmp_path / "policy.c")


def test_what_is_not_layers_and_a_tanh_is_refused() -> None:
    class Shifted(eqx.Module):
        inner: Any

        def __call__(self, obs: Any) -> Any:
            return self.inner(obs) + 1.0

    agent = tiny(TD3)
    policy = target_policy(agent, start(agent))
    bounds = -np.ones(2), np.ones(2)
    plain(agent, policy, *bounds)
    with pytest.raises(NotPlainPolicyError, match="Shifted"):
        plain(agent, policy._replace(actor=Shifted(policy.actor)), *bounds)  # type: ignore[arg-type]
    layer = policy.actor.head[-1]
    broken = eqx.tree_at(lambda a: a.head[-1].bias, policy.actor, layer.bias * jnp.nan)
    with pytest.raises(NotPlainPolicyError, match="finite"):
        plain(agent, policy._replace(actor=broken), *bounds)


def test_the_command_writes_every_form(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    learner = Learner("Pendulum-v1", "adac-td3", overrides=LATENT).learn(60)
    learner.save(tmp_path / "run")
    files = {name: tmp_path / "out" / f"p.{name}" for name in ("onnx", "npz", "c", "safetensors")}
    options = zip(("--onnx", "--numpy", "--c", "--policy"), files.values(), strict=True)
    with pytest.raises(SystemExit) as done:
        main(["export", str(tmp_path / "run"), *(str(x) for pair in options for x in pair)])
    assert done.value.code in (0, None)
    assert "bytes" in capsys.readouterr().out
    assert_agrees(learner, "numpy", loader()(files["npz"]))
    assert_agrees(learner, "c", compiled(files["c"]))
    kept = adac.Policy.load(files["safetensors"])
    assert_agrees(learner, "policy", lambda one: kept.predict(one)[0])
    with pytest.raises(SystemExit):
        main(["export", str(files["safetensors"]), "--numpy", str(tmp_path / "again.npz")])
    assert_agrees(learner, "numpy", loader()(tmp_path / "again.npz"))


def test_the_command_says_what_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Learner("Pendulum-v1", "td3", overrides=TINY).save(tmp_path)
    with pytest.raises(SystemExit) as none:
        main(["export", str(tmp_path)])
    assert none.value.code == 2
    assert "--onnx, --numpy, --c or --policy" in capsys.readouterr().err
    monkeypatch.setitem(__import__("sys").modules, "onnx", None)
    with pytest.raises(SystemExit) as lacking:
        main(["export", str(tmp_path), "--onnx", str(tmp_path / "p.onnx")])
    assert lacking.value.code == 2
    assert "pip install 'adac[export]'" in capsys.readouterr().err


def test_a_base_that_reads_its_outputs_otherwise_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    agent = tiny(TD3)
    monkeypatch.setattr(Deterministic, "location", lambda self, raw: raw**3)
    policy = target_policy(agent, start(agent))
    with pytest.raises(NotPlainPolicyError, match="something else"):
        plain(agent, policy, -np.ones(2), np.ones(2))

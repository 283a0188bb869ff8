"""Parts of one's own, as docs/extending.md has them: trained from the shell, killed, resumed."""

import importlib
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import adac
from adac.core import settings
from adac.core.critics import Bootstrap
from commands import fails, wait_for_step
from helpers import OBS, SIZES, TINY, random_batch, seen, start, step, tiny
from pages import write_modules

PAGE = "extending.md"
STRANGERS = {
    "pink_noise": "explorer", "histogram": "critic", "cautious": "base", "movement": "intrinsic",
}  # fmt: skip
SMALL = ["actor_hidden=8", "critic_hidden=8", "warmup=50", "batch_size=8", "critics=2"]
COMMAND = [sys.executable, "-m", "adac"]


@pytest.fixture(scope="module")
def strangers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, type[Any]]]:
    """Their classes, by the part that they are."""
    folder = tmp_path_factory.mktemp("strangers")
    names = write_modules(PAGE, folder)
    assert set(names) == STRANGERS.keys()
    sys.path.insert(0, str(folder))
    before = {part: set(settings.kinds(part)) for part in STRANGERS.values()}
    for name in names:
        importlib.import_module(name)
    found = {}
    for part, known in before.items():
        (new,) = set(settings.kinds(part)) - known
        found[part] = settings.kinds(part)[new]
    yield found
    sys.path.remove(str(folder))


def test_each_is_found_by_its_name_and_explains_itself(strangers: dict[str, type[Any]]) -> None:
    for part, kind in strangers.items():
        assert settings.named(part, kind.__name__) == kind()
        agent = settings.override(adac.make_agent("td3"), {part: kind.__name__})
        lines = [line for line in settings.describe(agent) if line.part == part]
        assert lines
        assert all(line.sentence for line in lines)
        assert settings.from_json(json.loads(json.dumps(settings.to_json(agent)))) == agent


def test_each_fits_every_other(strangers: dict[str, type[Any]]) -> None:
    parts = {part: kind() for part, kind in strangers.items()}
    agent = tiny(**parts)
    state, metrics = step(agent, start(agent), random_batch())
    for leaf in jax.tree.leaves((state, metrics)):
        assert np.isfinite(leaf).all()
    analogous = tiny(critic=parts["critic"], intrinsic=parts["intrinsic"])
    _, metrics = step(analogous, start(analogous), random_batch())
    assert np.isfinite(metrics["behaviour_loss"])


def test_pink_noise_is_as_strong_on_every_scale(strangers: dict[str, type[Any]]) -> None:
    """Its power falls as 1 / f: a tenth of the frequency has some ten times the power."""
    explorer = strangers["explorer"](scale=0.1)
    count, length = 400, 512
    view = seen(jax.tree.map(jnp.zeros_like, TINY.actor(OBS, 2, jax.random.key(0))))

    def one(memory: Any, now: Any) -> Any:
        first, key = now
        action, memory = explorer.act(view, jnp.zeros((count, OBS)), memory, first, key)
        return memory, action[:, 0]

    first = jnp.zeros((length, count), bool).at[0].set(True)
    keys = jax.random.split(jax.random.key(1), length)
    _, noise = jax.lax.scan(one, explorer.init_memory(count, SIZES), (first, keys))
    np.testing.assert_allclose(np.std(noise), 0.1, rtol=0.1)
    power = (np.abs(np.fft.rfft(np.asarray(noise), axis=0)) ** 2).mean(1)
    frequency = np.arange(len(power))
    slow, fast = (power[(frequency >= f) & (frequency < 2 * f)].mean() for f in (8, 80))
    assert 5.0 < slow / fast < 20.0


def test_a_histogram_learns_the_mean_of_its_targets(strangers: dict[str, type[Any]]) -> None:
    """Of the lowest member's value, discounted, with a base's extra; beyond its range the end."""
    critic = strangers["critic"](bins=101, lowest=-10.0, highest=10.0)
    nothing = jnp.zeros((3, 1))
    low, high = (
        jnp.where(jnp.arange(101) == peak, 50.0, 0.0)[None].repeat(3, 0) for peak in (60, 70)
    )
    np.testing.assert_allclose(critic.value(low), 20.0 * 60.5 / 101 - 10.0, rtol=1e-4)
    reward, discount = jnp.array([1.0, 2.0, 99.0]), jnp.array([0.5, 0.0, 0.5])
    given = Bootstrap(nothing, nothing, reward, discount, nothing, nothing, 2.0)
    target = critic.target([high, low], given)
    np.testing.assert_allclose(target.sum(-1), 1.0, rtol=1e-5)
    out = jnp.log(target + 1e-9)  # the lowest cross-entropy there is
    assert np.abs(jax.grad(critic.loss)(out, target)).max() < 1e-6
    wanted = [1.0 + 0.5 * (20.0 * 60.5 / 101 - 10.0 + 2.0), 2.0, 10.0]
    np.testing.assert_allclose(critic.value(out), wanted, atol=0.15)


def test_movement_pays_for_what_moves_more_than_usual(strangers: dict[str, type[Any]]) -> None:
    bonus = strangers["intrinsic"](gain=0.5, memory=0.9)
    state = bonus.init(2, 1, jax.random.key(0))
    obs, usual = jnp.zeros((4, 2)), jnp.full((4, 2), 0.25)
    for _ in range(200):
        state, _ = bonus.update(state, obs, obs[:, :1], usual, jax.random.key(0))
    np.testing.assert_allclose(bonus.bonus(state, obs, obs[:, :1], usual), 0.5, rtol=1e-3)
    np.testing.assert_allclose(bonus.bonus(state, obs, obs[:, :1], 2 * usual), 1.0, rtol=1e-3)


# -- from the shell ------------------------------------------------------------------------------

PAIRS = {
    "explorer and critic": (
        ["pink_noise", "histogram"],
        ["explorer=PinkNoise", "octaves=3", "critic=histogram", "bins=9"],
    ),
    "base and bonus": (
        ["cautious", "movement"],
        ["base=Cautious", "caution=0.1", "intrinsic=movement", "memory=0.9"],
    ),
}


@pytest.mark.parametrize(("modules", "chosen"), PAIRS.values(), ids=PAIRS)
def test_a_stranger_s_run_that_is_killed_resumes_to_the_same_bits(
    modules: list[str], chosen: list[str], tmp_path: Path
) -> None:
    write_modules(PAGE, tmp_path)
    imports = [word for name in modules for word in ("--import", name)]
    train = [
        *COMMAND, "train", "Pendulum-v1", "--agent", "td3", "--steps", "900", *imports,
        "--eval-every", "0", "--checkpoint-every", "100", "--set", *chosen, *SMALL, "--out",
    ]  # fmt: skip
    options: dict[str, Any] = {"cwd": tmp_path}
    subprocess.run([*train, "whole"], check=True, capture_output=True, **options)
    process = subprocess.Popen(
        [*train, "killed"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options
    )
    wait_for_step(tmp_path / "killed", 200, process)
    process.send_signal(signal.SIGKILL)
    process.wait()
    resume = [*COMMAND, "resume", "killed"]
    alone = subprocess.run(resume, capture_output=True, text=True, check=False, **options)
    assert alone.returncode == 2
    assert "import the module that defines it (--import)" in alone.stderr
    subprocess.run([*resume, *imports], check=True, capture_output=True, **options)
    ends = [
        tmp_path / run / "checkpoint/step-000000000900.safetensors" for run in ("whole", "killed")
    ]
    assert ends[0].read_bytes() == ends[1].read_bytes()
    parts = json.loads((tmp_path / "killed" / "config.json").read_text())["agent"]
    kinds = {part["kind"] for part in parts.values() if isinstance(part, dict)}
    assert len(kinds - {"Deterministic", "GaussianNoise", "Networks", "Scalar"}) == 2


def test_a_module_that_is_not_there_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    said = fails(capsys, "train", "Pendulum-v1", "--import", "no_such_noise")
    assert "--import no_such_noise failed" in said
    assert "a .py file in the folder that you are in" in said


def test_a_module_whose_class_has_a_name_of_adac_s_own_is_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Else `explorer=uniform` would silently be another one than was meant."""
    code = (tmp_path / "mine.py", "pink_noise.py")
    write_modules(PAGE, tmp_path)
    code[0].write_text((tmp_path / code[1]).read_text().replace("PinkNoise", "Uniform"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    said = fails(capsys, "train", "Pendulum-v1", "--import", "mine", "--set", "explorer=uniform")
    assert "adac already has a Uniform: rename the one in mine" in said

"""PPO from Stable-Baselines3 (extra `ppo`), as a trial like any other.

Same folder, same evaluation, same checkpoint format. One difference: Stable-Baselines3 cannot put
an environment back where it was, so a resumed PPO trial begins a new episode and is not, as ours
are, the same to the bit.
"""

import importlib
import importlib.metadata
import importlib.util
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from adac import envs
from adac.errors import UserError, missing_extra
from adac.runs.checkpoint import Arrays, Store
from adac.runs.csv_table import EVALUATION_COLUMNS, Table
from adac.runs.folder import write_config
from adac.training.environments import check_spaces
from adac.training.evaluation import evaluate

NAME = "ppo"
# Schulman et al. 2017, Table 3, with observations and rewards normalised as usual.
SETTINGS: dict[str, Any] = {
    "learning_rate": 3e-4,
    "n_steps": 2048,
    "batch_size": 64,
    "n_epochs": 10,
    "gamma": 0.99,
    "gae_lambda": 0.95,
    "clip_range": 0.2,
    "ent_coef": 0.0,
    "hidden": [64, 64],
}
COLUMNS = ("step", "episodes", "episode_return", "episode_length", "steps_per_second")

Notify = Callable[[int, float | None], None]


def override(overrides: Mapping[str, Any]) -> dict[str, Any]:
    """PPO's settings as JSON, some of them changed."""
    if importlib.util.find_spec("stable_baselines3") is None:
        raise UserError(f"{missing_extra('PPO', 'ppo')}, or name the other agents with --agent")
    for name, value in overrides.items():
        if name not in SETTINGS:
            raise UserError(f"PPO has no setting '{name}'; it has {', '.join(SETTINGS)}")
        if not isinstance(value, type(SETTINGS[name])):
            raise UserError(f"PPO's {name} cannot be {value!r}")
    return {"kind": "PPO", **SETTINGS, **overrides}


def versions() -> dict[str, str]:
    return {name: importlib.metadata.version(name) for name in ("stable-baselines3", "torch")}


def execute(
    config: Mapping[str, Any], folder: Path, notify: Notify, saved: Callable[[], None]
) -> float:
    """Run the trial into its folder, from its checkpoint if there is one; returns the seconds."""
    run = _Run(config, folder, notify, saved)
    try:
        run.go()
    finally:
        run.close()
    return run.seconds


class _Run:
    def __init__(
        self,
        config: Mapping[str, Any],
        folder: Path,
        notify: Notify,
        saved: Callable[[], None],
    ):
        self.config, self.notify, self.saved = config, notify, saved
        self.store = Store(folder / "checkpoint")
        self.model, self.envs = build(config)
        self.eval_env = envs.make(config["env"])
        self.episodes, self.seconds = 0, 0.0
        self._evaluated = -1
        self.value: float | None = None  # the last return
        self.recent: list[tuple[float, int]] = []
        if self.store.last_step() is not None:
            self._restore()
        self.metrics = Table(folder / "metrics.csv", COLUMNS, self.step)
        self.evaluations = Table(folder / "evaluations.csv", EVALUATION_COLUMNS, self.step)
        write_config(folder, dict(config))
        self._before = self._kept = self.step
        self._told, self._logged = 0.0, (time.monotonic(), self.step)
        self._started = time.monotonic() - self.seconds

    @property
    def step(self) -> int:
        return int(self.model.num_timesteps)

    def go(self) -> None:
        if self.step < self.config["steps"]:
            left = self.config["steps"] - self.step
            self.model.learn(left, callback=_callback(self), reset_num_timesteps=False)
        if self.config["eval_every"]:
            self._evaluate()
        self.save()

    def on_step(self, infos: list[dict[str, Any]]) -> bool:
        """After each step of the environments; False ends the training."""
        for info in infos:
            if "episode" in info:
                self.episodes += 1
                self.recent.append((float(info["episode"]["r"]), int(info["episode"]["l"])))
        before, self._before = self._before, self.step
        if self._crossed("log_every", before):
            self._log()
        if self._crossed("eval_every", before) and self.step < self.config["steps"]:
            self._evaluate()
        if time.monotonic() - self._told >= 1.0:
            self._told = time.monotonic()
            self.notify(self.step, self.value)
        return bool(self.step < self.config["steps"])

    def on_rollout_start(self) -> None:
        """The only moment between updates, so checkpoints wait for it."""
        if self._crossed("checkpoint_every", self._kept):
            self.save()
            self._kept = self.step
            self.saved()

    def _crossed(self, name: str, before: int) -> bool:
        every = self.config[name]
        return bool(every) and before // every != self.step // every

    def _log(self) -> None:
        row: dict[str, Any] = {"step": self.step, "episodes": self.episodes}
        if self.recent:
            row["episode_return"] = f"{np.mean([r for r, _ in self.recent]):.9g}"
            row["episode_length"] = f"{np.mean([n for _, n in self.recent]):.9g}"
        self.recent = []
        then, step = self._logged
        self._logged = (time.monotonic(), self.step)
        row["steps_per_second"] = f"{(self.step - step) / max(self._logged[0] - then, 1e-9):.9g}"
        self.metrics.add(row)

    def _evaluate(self) -> None:
        config = self.config
        if self._evaluated == self.step:
            return
        self._evaluated = self.step
        found = evaluate(
            partial(greedy, self.model, self.envs),
            self.eval_env,
            config["eval_episodes"],
            config["seed"],
            salt=self.step,
            name=config["env"],
        ).summary()
        self.value = found["mean_return"]
        self.seconds = time.monotonic() - self._started
        row = {"step": self.step, "wall_seconds": self.seconds, **found}
        self.evaluations.add({k: f"{v:.9g}" if isinstance(v, float) else v for k, v in row.items()})

    def save(self) -> None:
        self.seconds = time.monotonic() - self._started
        self.metrics.sync()
        self.evaluations.sync()
        facts = {
            "episodes": self.episodes,
            "seconds": self.seconds,
            "value": self.value,
            "evaluated": self._evaluated,
        }
        self.store.save(self.step, snapshot(self.model, self.envs), facts, None)

    def _restore(self) -> None:
        contents = self.store.load(None)
        restore(self.model, self.envs, contents.arrays)
        self.model.num_timesteps = contents.step
        facts = contents.facts
        self.episodes, self._evaluated = int(facts["episodes"]), int(facts["evaluated"])
        self.seconds, self.value = float(facts["seconds"]), facts["value"]

    def close(self) -> None:
        self.metrics.close()
        self.evaluations.close()
        self.envs.close()
        self.eval_env.close()


def greedy(model: Any, envs: Any, obs: NDArray[np.float32]) -> NDArray[np.float32]:
    """The policy's mean, on observations normalised as in training; [n, o] → [n, d]."""
    action, _ = model.predict(envs.normalize_obs(obs), deterministic=True)
    return np.asarray(action, np.float32)


def build(config: Mapping[str, Any]) -> tuple[Any, Any]:
    """The model, and its environments with actions in [-1, 1]."""
    try:
        torch = _torch()
        from stable_baselines3 import PPO
        from stable_baselines3.common.monitor import Monitor
        from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize
    except ImportError:
        raise missing_extra("PPO", "ppo") from None

    def make() -> Any:
        env = envs.make(config["env"])
        check_spaces(env, config["env"])
        return Monitor(gymnasium.wrappers.RescaleAction(env, np.float32(-1), np.float32(1)))

    torch.set_num_threads(1)
    chosen = {k: v for k, v in config["agent"].items() if k not in ("kind", "hidden")}
    wrapped = VecNormalize(
        DummyVecEnv([make] * config["num_envs"]), gamma=config["agent"]["gamma"]
    )  # fmt: skip
    network = {"net_arch": list(config["agent"]["hidden"]), "activation_fn": torch.nn.Tanh}
    model = PPO(
        "MlpPolicy", wrapped, seed=config["seed"], device="cpu", policy_kwargs=network, **chosen
    )  # fmt: skip
    return model, wrapped


def _callback(run: _Run) -> Any:
    from stable_baselines3.common.callbacks import BaseCallback

    class Watch(BaseCallback):  # type: ignore[misc]
        def _on_step(self) -> bool:
            return run.on_step(self.locals["infos"])

        def _on_rollout_start(self) -> None:
            run.on_rollout_start()

    return Watch()


def _torch() -> Any:
    return importlib.import_module("torch")


MOMENTS = ("step", "exp_avg", "exp_avg_sq")


def snapshot(model: Any, wrapped: Any) -> Arrays:
    """Weights, Adam's moments, normalisation and random states."""
    arrays = {f"policy.{k}": v.numpy() for k, v in model.policy.state_dict().items()}
    for index, moments in model.policy.optimizer.state_dict()["state"].items():
        arrays |= {f"adam.{index}.{name}": moments[name].numpy() for name in MOMENTS}
    for name in ("obs_rms", "ret_rms"):
        seen = getattr(wrapped, name)
        arrays |= {f"{name}.{part}": np.asarray(getattr(seen, part)) for part in _STATISTICS}
    _, words, *rest = np.random.get_state()  # noqa: NPY002 (what Stable-Baselines3 draws from)
    arrays |= {"numpy.words": words, "numpy.rest": np.asarray(rest, np.float64)}
    return arrays | {"torch": _torch().get_rng_state().numpy()}


_STATISTICS = ("mean", "var", "count")


def restore(model: Any, wrapped: Any, arrays: Arrays) -> None:
    """Put back what `snapshot` took."""
    torch = _torch()
    state = model.policy.state_dict()
    model.policy.load_state_dict(
        {name: torch.from_numpy(arrays[f"policy.{name}"].copy()) for name in state}
    )
    optimiser = model.policy.optimizer
    whole = optimiser.state_dict()
    count = len(whole["param_groups"][0]["params"])
    if "adam.0.step" in arrays:
        whole["state"] = {
            i: {m: torch.from_numpy(arrays[f"adam.{i}.{m}"].copy()) for m in MOMENTS}
            for i in range(count)
        }
        optimiser.load_state_dict(whole)
    for name in ("obs_rms", "ret_rms"):
        for part in _STATISTICS:
            value = arrays[f"{name}.{part}"]
            setattr(getattr(wrapped, name), part, value if value.ndim else float(value))
    position, has_gauss, cached = arrays["numpy.rest"]
    np.random.set_state(  # noqa: NPY002
        ("MT19937", arrays["numpy.words"], int(position), int(has_gauss), float(cached))
    )
    torch.set_rng_state(torch.from_numpy(arrays["torch"].copy()))

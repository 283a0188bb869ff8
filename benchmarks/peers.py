"""The peers' part of the benchmark, in their own virtual environment. See speed.py.

Each trains through its own `learn`, with the sizes and settings of adac's `td3` and `sac`.
"""

import argparse
import time
from typing import Any

import stopwatch
from stopwatch import LEARNING_STARTS, ROWS, Stopwatch

STARTUP_LEARNING_STARTS = 1_000  # adac's default warm-up

SETTINGS: dict[str, dict[str, Any]] = {
    "td3": {
        "learning_rate": 3e-4,
        "batch_size": 256,
        "policy_delay": 2,
        "policy_kwargs": {"net_arch": {"pi": [256, 256], "qf": [256, 256]}},
    },
    "sac": {
        "learning_rate": 3e-4,
        "batch_size": 256,
        "ent_coef": "auto",
        "policy_kwargs": {"net_arch": {"pi": [256, 256], "qf": [256, 256]}},
    },
}
ONE_UPDATE_A_STEP = {"train_freq": 1, "gradient_steps": 1}


def make_model(arguments: argparse.Namespace, learning_starts: int, seed: int = 0) -> Any:
    """Networks with ReLU; SBX's have neither dropout nor normalisation unless asked for."""
    import gymnasium
    import numpy as np
    from stable_baselines3.common.noise import NormalActionNoise

    if arguments.library == "sbx":
        import sbx as library
    else:
        import stable_baselines3 as library
    env = gymnasium.make(arguments.env)
    settings = SETTINGS[arguments.agent] | ONE_UPDATE_A_STEP
    if arguments.agent == "td3":
        zeros = np.zeros(env.action_space.shape or ())
        settings["action_noise"] = NormalActionNoise(zeros, zeros + 0.1)
    if arguments.library == "sbx":
        settings["qf_learning_rate"] = settings["learning_rate"]
    algorithm = getattr(library, arguments.agent.upper())
    return algorithm(
        "MlpPolicy",
        env,
        buffer_size=ROWS,
        learning_starts=learning_starts,
        seed=seed,
        device="cpu",
        **settings,
    )


def on_every_step(function: Any) -> Any:
    """A callback that ends training when `function(step)` returns False."""
    from stable_baselines3.common.callbacks import BaseCallback

    class EveryStep(BaseCallback):
        def _on_step(self) -> bool:
            return bool(function(self.num_timesteps))

    return EveryStep()


def rate(arguments: argparse.Namespace) -> dict[str, Any]:
    """Steps per second of `learn`. It waits for its own losses, so nothing is left running."""
    model = make_model(arguments, LEARNING_STARTS)
    watch = Stopwatch(arguments.seconds)
    model.learn(stopwatch.FOREVER, callback=on_every_step(watch.tick))
    result = watch.result()
    return result | {"updates": model._n_updates}


def race(arguments: argparse.Namespace) -> dict[str, Any]:
    """Seconds of `learn`, with the library's own defaults, until π's return reaches each goal."""
    import gymnasium
    import numpy as np
    import sbx
    from stable_baselines3.common.evaluation import evaluate_policy
    from stable_baselines3.common.monitor import Monitor
    from stable_baselines3.common.noise import NormalActionNoise

    env, eval_env = gymnasium.make(arguments.env), Monitor(gymnasium.make(arguments.env))
    algorithms = {"td3": sbx.TD3, "sac": sbx.SAC, "tqc": sbx.TQC, "crossq": sbx.CrossQ}
    settings: dict[str, Any] = {}
    if arguments.agent == "td3":  # its policy is deterministic, and comes without noise
        zeros = np.zeros(env.action_space.shape or ())
        settings["action_noise"] = NormalActionNoise(zeros, zeros + 0.1)
    model = algorithms[arguments.agent]("MlpPolicy", env, seed=arguments.seed, **settings)
    eval_env.reset(seed=arguments.seed)
    clock = stopwatch.Race(
        arguments.goal,
        arguments.seconds,
        lambda: float(evaluate_policy(model, eval_env, stopwatch.EPISODES)[0]),
    )
    model.learn(stopwatch.FOREVER, callback=on_every_step(clock.tick))
    return clock.result()


def startup(arguments: argparse.Namespace) -> dict[str, Any]:
    seen: dict[str, float] = {}

    def watch(step: int) -> bool:
        now = time.monotonic() - arguments.began
        seen.setdefault("first_step", now)
        if step <= STARTUP_LEARNING_STARTS + 1:  # its update comes after this call
            return True
        seen["first_update"] = now
        return False

    model = make_model(arguments, STARTUP_LEARNING_STARTS)
    model.learn(stopwatch.FOREVER, callback=on_every_step(watch))
    return seen


def memory(arguments: argparse.Namespace) -> dict[str, Any]:
    """Of the whole process, and by how much it grows while the replay buffer fills."""
    import numpy as np

    model = make_model(arguments, LEARNING_STARTS)
    random, buffer = np.random.default_rng(0), model.replay_buffer
    obs = random.normal(size=(2, 1, *model.observation_space.shape))
    action = random.uniform(-1.0, 1.0, (1, *model.action_space.shape))
    before = stopwatch.resident_megabytes()
    for _ in range(ROWS):
        buffer.add(obs[0], obs[1], action, np.zeros(1), np.zeros(1), [{}])
    after = stopwatch.resident_megabytes()
    return {"process_mb": after, "replay_mb": after - before, "rows": buffer.size()}


def main() -> None:
    measures = {"rate": rate, "race": race, "startup": startup, "memory": memory}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("measure", choices=measures)
    parser.add_argument("--library", choices=("sb3", "sbx"), required=True)
    parser.add_argument("--env", default="Hopper-v5")
    parser.add_argument("--agent", choices=(*SETTINGS, "tqc", "crossq"), default="td3")
    parser.add_argument("--goal", type=float, action="append", help="a return to reach; repeatable")
    parser.add_argument("--seed", type=int, default=0, help="of a race")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--began", type=float, default=0.0, help="time.monotonic() of the start")
    arguments = parser.parse_args()
    stopwatch.report(measures[arguments.measure](arguments))


if __name__ == "__main__":
    main()

"""Does our TD3 learn, and fail, as Stable-Baselines3's does? The same settings, many seeds.

python benchmarks/parity.py                                  ten seeds of InvertedPendulum-v4
python benchmarks/parity.py --env Pendulum-v1 --steps 10000 --seeds 5

On InvertedPendulum TD3's first updates decide: on some seeds π ends at the bound in every state,
where tanh is flat, and stays. A baseline that did so more often than others' would be unfair to
compare with. Stable-Baselines3 runs in .venv-bench (`make bench` makes it), both with one thread.
"""

import argparse
import json
import os
import subprocess
import sys
from typing import Any

WARMUP, EPISODES, STATES = 1_000, 10, 256
Outcome = dict[str, float]


def ours(env: str, steps: int, seed: int) -> Outcome:
    from adac import Learner

    learner = Learner(env, "td3", seed=seed, overrides={"warmup": WARMUP}).learn(steps)
    saturation = learner.diagnose()["saturation_pi"]
    return {"return": float(learner.evaluate(EPISODES).returns.mean()), "saturation": saturation}


def theirs(env: str, steps: int, seed: int) -> Outcome:
    import numpy as np
    from stable_baselines3.common.evaluation import evaluate_policy

    from peers import make_model

    arguments = argparse.Namespace(env=env, library="sb3", agent="td3")
    model: Any = make_model(arguments, WARMUP, seed)
    model.learn(steps)
    seen = model.replay_buffer.observations[:steps, 0]
    chosen = seen[np.linspace(0, len(seen) - 1, STATES).astype(int)]
    action, _ = model.predict(chosen, deterministic=True)
    bound = np.abs(action) > 0.98 * model.action_space.high
    value, _ = evaluate_policy(model, model.get_env(), EPISODES)
    return {"return": float(value), "saturation": float(bound.mean())}


def one(python: str, library: str, settings: argparse.Namespace, seed: int) -> Outcome:
    from adac.experiments.sweeps.workers import SINGLE_THREAD

    words = ["--library", library, "--env", settings.env, "--steps", str(settings.steps)]
    command = [python, __file__, *words, "--seed", str(seed)]
    done = subprocess.run(
        command, env=os.environ | SINGLE_THREAD, capture_output=True, text=True, check=True
    )
    outcome: Outcome = json.loads(done.stdout.splitlines()[-1])
    return outcome


def compare(settings: argparse.Namespace) -> None:
    from speed import PEERS_PYTHON

    print(f"TD3 on {settings.env} after {settings.steps:,} steps: return (share of |π| > 0.98)")
    print("| seed | adac | Stable-Baselines3 |\n|--:|--:|--:|")
    pythons = {"adac": sys.executable, "sb3": str(PEERS_PYTHON)}
    stuck = dict.fromkeys(pythons, 0)
    for seed in range(settings.seeds):
        found = {name: one(python, name, settings, seed) for name, python in pythons.items()}
        for name, outcome in found.items():
            stuck[name] += outcome["saturation"] > 0.99
        cells = (f"{o['return']:.1f} ({o['saturation']:.2f})" for o in found.values())
        print(f"| {seed} | {' | '.join(cells)} |", flush=True)
    print(f"| stuck at the bound | {stuck['adac']} | {stuck['sb3']} |")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--env", default="InvertedPendulum-v4")
    parser.add_argument("--steps", type=int, default=2_000)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--library", choices=("adac", "sb3"), help="one run, as JSON")
    parser.add_argument("--seed", type=int, default=0, help="of that run")
    settings = parser.parse_args()
    if settings.library is None:
        compare(settings)
    else:
        learn = ours if settings.library == "adac" else theirs
        print(json.dumps(learn(settings.env, settings.steps, settings.seed)))


if __name__ == "__main__":
    main()

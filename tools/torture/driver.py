"""A sweep to be killed: python -m torture.driver FOLDER [ADDRESS]."""

import sys
from pathlib import Path

from adac.experiments.sweeps.sweep import Options, run
from adac.experiments.sweeps.trials import Trial, make_trial
from adac.training.train import Schedule

PLAN = Schedule(eval_every=200, eval_episodes=1, checkpoint_every=100, log_every=100)
SMALL = {"actor_hidden": [8], "critic_hidden": [8], "batch_size": 8, "warmup": 100}
STEPS = (200, 1_500, 200, 1_500)  # finished soon, and still running, side by side


def trials() -> list[Trial]:
    return [
        make_trial("Pendulum-v1", "td3", seed, steps, overrides=SMALL, schedule=PLAN)
        for seed, steps in enumerate(STEPS)
    ]


def main() -> None:
    folder, *address = sys.argv[1:]
    options = Options(Path(folder), jobs=2, address=address[0] if address else None)
    outcome = run("torture", trials(), options)
    print(f"OUTCOME {outcome.done} of {len(STEPS)}")
    raise SystemExit(bool(outcome.failed))


if __name__ == "__main__":
    main()

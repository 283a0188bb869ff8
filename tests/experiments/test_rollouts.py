"""Episodes of π at a few stages: what is kept is what π does, and it is drawn."""

import csv
import math
from pathlib import Path

import numpy as np
import pytest
from folders import write_run

from adac import Learner
from adac.experiments.analysis import rollouts
from adac.experiments.analysis.figures import draw
from adac.experiments.analysis.snapshots import snapshots_at
from helpers import SMALL, SMALL_LATENT


def test_an_episode_of_pi_is_kept_at_each_stage(tmp_path: Path) -> None:
    learner = Learner("adac/PendulumSparse-v0", "adac-td3", seed=3, overrides=SMALL_LATENT)
    learner.learn(30, callback=snapshots_at(tmp_path, [10, 30]))
    kept = rollouts.read_rollouts(tmp_path)
    assert list(kept) == [10, 30]
    env = learner.make_env()
    obs, _ = env.reset(seed=3)
    for angle in kept[30]:
        assert math.cos(angle) == pytest.approx(float(obs[0]), abs=1e-3)
        assert math.sin(angle) == pytest.approx(float(obs[1]), abs=1e-3)
        obs, _, terminated, truncated, _ = env.step(learner.predict(obs, deterministic=True)[0])
    assert terminated or truncated  # the whole episode, and no more
    assert not np.allclose(kept[10], kept[30])  # each stage has the policy of its time
    learner.close()


def test_a_task_without_an_angle_keeps_nothing(tmp_path: Path) -> None:
    learner = Learner("MountainCarContinuous-v0", "td3", overrides=SMALL)
    rollouts.record_rollout(learner, tmp_path)
    assert not (tmp_path / rollouts.FILE).exists()
    learner.close()


def test_the_figure_of_a_bonus_shows_what_pi_does(tmp_path: Path) -> None:
    run = tmp_path / "runs" / "a"
    write_run(run, [1.0, 2.0, 3.0], seed=0, metrics={"bonus": (0.5, 0.4, 0.1)})
    angles = np.linspace(0.0, 3.0, 100)
    lines = [f"200,{time},{angle:.3f}" for time, angle in enumerate(angles)]
    (run / rollouts.FILE).write_text("\n".join(["step,time,angle", *lines, ""]))
    draw("bonus", [tmp_path / "runs"], tmp_path, "x")
    with open(tmp_path / "x.csv", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["panel"] == "rollout at 200"]
    drawn = [(int(row["x"]), float(row["mean"])) for row in rows]
    assert drawn[0] == (0, 0.0)
    assert drawn[-1] == (99, 3.0)
    assert drawn == [(time, pytest.approx(angles[time], abs=1e-3)) for time, _ in drawn]

"""One episode of π at a few stages of a run: the right half of the paper's Figure 4.

Only of pendulums, whose position is a single angle: whether π spins, hangs or stands can be seen
from a row of rods. `record_rollout(learner, folder)` adds one stage to the folder's rollouts.csv.
Nothing in the learner changes.
"""

import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from adac.runs.csv_table import Table, read_table

if TYPE_CHECKING:
    from adac.training.learner import Learner

Floats = NDArray[np.float64]

FILE = "rollouts.csv"
COLUMNS = ("step", "time", "angle")  # radians from upright
# Tasks whose observation begins with the cosine and the sine of that angle.
PENDULUMS = ("adac/PendulumSparse-v0", "Pendulum-v1", "dm_control/pendulum-swingup-v0")


def record_rollout(learner: "Learner", folder: Path) -> None:
    """Add an episode of π as it is now, if the task is a pendulum; later stages are dropped."""
    if learner.env_id not in PENDULUMS:
        return
    folder.mkdir(parents=True, exist_ok=True)
    table = Table(folder / FILE, COLUMNS, learner.step - 1)
    for time, angle in enumerate(episode(learner)):
        table.add({"step": learner.step, "time": time, "angle": f"{angle:.3f}"})
    table.close()


def episode(learner: "Learner") -> list[float]:
    """The angles of one episode, always from the same start."""
    env = learner.make_env()
    obs, _ = env.reset(seed=learner.seed)
    angles, over = [], False
    while not over:
        cosine, sine = np.asarray(obs, np.float64).ravel()[:2]
        angles.append(math.atan2(sine, cosine))
        obs, _, terminated, truncated, _ = env.step(learner.predict(obs, deterministic=True)[0])
        over = terminated or truncated
    env.close()
    return angles


def read_rollouts(folder: Path) -> dict[int, Floats]:
    """Angles over time by stage; empty if none were recorded."""
    stages: dict[int, list[float]] = {}
    for row in read_table(folder / FILE):
        stages.setdefault(int(row["step"]), []).append(float(row["angle"]))
    return {step: np.array(angles) for step, angles in stages.items()}

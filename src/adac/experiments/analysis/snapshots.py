"""π and μ at a few fixed states while a run goes on: the cells below the paper's Figure 3.

`record_snapshots(learner, folder)` adds one stage to the folder's snapshots.csv, and
`snapshots_at(folder, steps)` is a callback for `Learner.learn` that does so at these steps.
Nothing in the learner changes, so a run with snapshots ends in the same bits as one without.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adac.experiments.analysis.rollouts import record_rollout
from adac.runs.csv_table import Table, read_table

if TYPE_CHECKING:
    from adac.training.learner import Learner

Floats = NDArray[np.float64]

FILE = "snapshots.csv"
COLUMNS = ("step", "state_index", "kind", "action")  # kind: "pi" once, "mu" once per sample
SAMPLES = 200  # of μ, per state and stage
VISITED = 4  # states of a task that has none named here
GRID = np.linspace(-1.0, 1.0, 81)

# (name, observation): x, ẋ, θ, θ̇ on CartPole; cos θ, sin θ, θ̇ on the pendulum, upright at 0.
STATES: dict[str, tuple[tuple[str, tuple[float, ...]], ...]] = {
    "adac/CartPoleContinuous-v0": (
        ("upright, at rest", (0.0, 0.0, 0.0, 0.0)),
        ("leaning left", (0.0, 0.0, -0.1, 0.0)),
        ("leaning right", (0.0, 0.0, 0.1, 0.0)),
        ("falling right", (0.0, 0.0, 0.1, 1.0)),
    ),
    "adac/PendulumSparse-v0": (
        ("upright, at rest", (1.0, 0.0, 0.0)),
        ("hanging, at rest", (-1.0, 0.0, 0.0)),
        ("hanging, swinging left", (-1.0, 0.0, 4.0)),
        ("hanging, swinging right", (-1.0, 0.0, -4.0)),
    ),
}


class Snapshot(NamedTuple):
    """One state at one stage; actions are the first coordinate, in [-1, 1]."""

    step: int
    state: int
    pi: float
    mu: Floats


def state_name(env_id: str, index: int) -> str:
    named = STATES.get(env_id, ())
    return named[index][0] if 0 <= index < len(named) else f"state {index + 1}"


def states_of(learner: "Learner") -> NDArray[np.float32]:
    """The named states of the task, or some that a seeded random walk visits."""
    if learner.env_id in STATES:
        return np.array([obs for _, obs in STATES[learner.env_id]], np.float32)
    env = learner.make_env()
    obs, _ = env.reset(seed=0)
    env.action_space.seed(0)
    seen = [obs]
    while len(seen) < VISITED:
        for _ in range(5):
            obs, _, terminated, truncated, _ = env.step(env.action_space.sample())
            if terminated or truncated:
                obs, _ = env.reset()
        seen.append(obs)
    env.close()
    return np.array(seen, np.float32)


def take(learner: "Learner", states: NDArray[np.float32] | None = None) -> list[Snapshot]:
    """π with the weights that are evaluated, and SAMPLES draws of μ, at each state."""
    import jax

    chosen = states_of(learner) if states is None else states
    repeated = np.repeat(chosen, SAMPLES, axis=0)
    count, explorer = len(repeated), learner.agent.explorer
    memory = learner.loop.init_memory(explorer, count)
    first = np.ones(count, bool)  # ξ has the same marginal at every step of an episode
    key, number = jax.random.key(learner.seed), np.int32(learner.step)
    drawn, _ = learner.loop.running.act(repeated, memory, first, key, number, explorer=explorer)
    mu = np.asarray(drawn, np.float64)[:, 0].reshape(len(chosen), SAMPLES)
    pi = learner.policy(chosen)[:, 0]
    return [Snapshot(learner.step, i, float(pi[i]), mu[i]) for i in range(len(chosen))]


def record_snapshots(learner: "Learner", folder: Path) -> None:
    """Add the present stage to folder/snapshots.csv; stages of an abandoned future are dropped."""
    folder.mkdir(parents=True, exist_ok=True)
    table = Table(folder / FILE, COLUMNS, learner.step - 1)
    for shot in take(learner):
        for kind, actions in (("pi", [shot.pi]), ("mu", shot.mu)):
            for action in actions:
                row = (shot.step, shot.state, kind, f"{action:.4f}")
                table.add(dict(zip(COLUMNS, row, strict=True)))
    table.close()


def snapshots_at(folder: Path, steps: Sequence[int]) -> "Callable[[Learner], None]":
    """A callback that records when a run reaches each of `steps` (or passes it, with many envs)."""
    waiting = sorted(steps)

    def callback(learner: "Learner") -> None:
        due = [step for step in waiting if step <= learner.step]
        if due:
            del waiting[: len(due)]
            if due[-1] > learner.step - learner.loop.environments.num_envs:
                record_snapshots(learner, folder)
                record_rollout(learner, folder)

    return callback


def read_snapshots(folder: Path) -> list[Snapshot]:
    """By stage, then by state; empty if none were taken."""
    pi: dict[tuple[int, int], float] = {}
    mu: dict[tuple[int, int], list[float]] = {}
    for row in read_table(folder / FILE):
        place, action = (int(row["step"]), int(row["state_index"])), float(row["action"])
        if row["kind"] == "pi":
            pi[place] = action
        else:
            mu.setdefault(place, []).append(action)
    return [Snapshot(*place, pi[place], np.array(mu[place])) for place in sorted(pi) if place in mu]


def density(samples: Floats, grid: Floats = GRID, width: float | None = None) -> Floats:
    """A kernel density on [-1, 1], reflected at both ends so that no mass is lost there.

    Without a width, Silverman's rule, held between 0.03 and 0.15.
    """
    if width is None:
        spread = float(samples.std())
        width = min(max(1.06 * spread * len(samples) ** -0.2, 0.03), 0.15)
    copies = np.concatenate([samples, 2.0 - samples, -2.0 - samples])
    z = (grid[:, None] - copies[None, :]) / width
    total: Floats = np.exp(-0.5 * z * z).sum(axis=1) / (len(samples) * width)
    return np.asarray(total / np.sqrt(2.0 * np.pi))

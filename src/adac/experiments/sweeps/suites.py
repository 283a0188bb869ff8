"""The named experiments as values; sweeps described in a TOML file are read by `suite_files`.

A suite is tasks × entrants × seeds. An entrant is a line in the legend: a named agent, with some
of its settings changed.
"""

import dataclasses
import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import gymnasium

from adac.core import presets
from adac.core.explorers import Analogous
from adac.envs import SUITE, import_module_of, register_package_of
from adac.errors import UserError
from adac.experiments.paper import ppo
from adac.experiments.sweeps.trials import Trial, make_trial
from adac.training.train import Schedule


@dataclass(frozen=True)
class Entrant:
    label: str
    agent: str
    settings: Mapping[str, Any] = field(default_factory=dict)


CHOOSING = (0, 1, 2, 3, 4)  # seeds on which settings are chosen
REPORTING = (100, 101, 102, 103, 104)  # seeds that no choice has seen


@dataclass(frozen=True)
class Suite:
    name: str
    title: str  # said when it starts; may be empty
    tasks: tuple[str, ...]
    entrants: tuple[Entrant, ...]
    steps: int | Mapping[str, int]  # for all tasks, or for each
    seeds: tuple[int, ...] = REPORTING
    schedule: Mapping[str, Any] = field(default_factory=dict)  # what differs from `plan`
    num_envs: int = 1
    action_repeat: int | Mapping[str, int] = 1  # for all tasks, or for those that have one
    snapshots: tuple[str, ...] = ()  # entrants whose policies are looked at, with the first seed
    figure: str = "curves"  # the kind that `adac reproduce` draws
    adac_settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # for each task

    def settings_of(self, task: str, entrant: Entrant) -> Mapping[str, Any]:
        """What an entrant itself says counts more than what the task's ADAC agents have.

        Where actions are repeated there is still one update per environment step.
        """
        own = self.adac_settings.get(task, {}) if _is_adac(entrant.agent) else {}
        repeat = self.repeat_of(task)
        often = {"updates_per_step": repeat} if repeat > 1 and entrant.agent != ppo.NAME else {}
        return {**often, **own, **entrant.settings}

    def repeat_of(self, task: str) -> int:
        repeat = self.action_repeat
        return repeat if isinstance(repeat, int) else repeat.get(task, 1)

    def steps_of(self, task: str) -> int:
        if isinstance(self.steps, int):
            return self.steps
        if task not in self.steps:
            raise UserError(f"the sweep '{self.name}' does not say how many steps {task} takes")
        return self.steps[task]


def _is_adac(agent: str) -> bool:
    return agent in presets.AGENTS and isinstance(presets.make(agent).explorer, Analogous)


def plan(steps: int) -> Schedule:
    """About a hundred evaluations a run at most, and a checkpoint every minute or so."""
    every = next((e for e in (200, 500, 1_000, 2_500, 5_000) if steps / e <= 60), 10_000)
    checkpoint = min(max(steps // 10, 1_000), 10_000)
    return Schedule(
        eval_every=every,
        eval_episodes=10,
        checkpoint_every=checkpoint,
        log_every=min(every, 1_000),
    )


def trials(suite: Suite) -> list[Trial]:
    """Seed by seed, so that an unfinished sweep holds whole comparisons."""
    for task in suite.tasks:
        require_task(task)
    return [
        _trial(suite, task, entrant, seed)
        for seed in suite.seeds
        for task in suite.tasks
        for entrant in suite.entrants
    ]


def require_task(task: str) -> None:
    """A misspelled name is told at once, and not by each of its trials."""
    try:
        import_module_of(task)
        register_package_of(task)
        gymnasium.spec(task.rpartition(":")[2])
    except (gymnasium.error.Error, ImportError) as error:
        raise UserError(f"no task is registered as '{task}': {' '.join(str(error).split())}") \
            from None  # fmt: skip


def _trial(suite: Suite, task: str, entrant: Entrant, seed: int) -> Trial:
    steps = suite.steps_of(task)
    return make_trial(
        task,
        entrant.agent,
        seed,
        steps,
        overrides=suite.settings_of(task, entrant),
        label=entrant.label,
        schedule=dataclasses.replace(plan(steps), **suite.schedule),
        num_envs=suite.num_envs,
        action_repeat=suite.repeat_of(task),
        snapshots=entrant.label in suite.snapshots and seed == suite.seeds[0],
    )


def narrow(suite: Suite, tasks: Sequence[str], labels: Sequence[str]) -> Suite:
    """Only some of its tasks and entrants; tasks also without their namespace."""
    kept = tuple(t for t in suite.tasks if not tasks or {t, t.rpartition("/")[2]} & set(tasks))
    entrants = tuple(e for e in suite.entrants if not labels or e.label in labels)
    for wanted in tasks:
        if wanted not in {name for t in kept for name in (t, t.rpartition("/")[2])}:
            raise _unknown("task", wanted, suite.tasks)
    for wanted in labels:
        if wanted not in {e.label for e in entrants}:
            raise _unknown("agent", wanted, [e.label for e in suite.entrants])
    return dataclasses.replace(suite, tasks=kept, entrants=entrants)


def _unknown(what: str, wanted: str, known: Iterable[str]) -> UserError:
    known = list(known)
    near = difflib.get_close_matches(wanted, known, n=3, cutoff=0.3) or known
    return UserError(f"this sweep has no {what} '{wanted}'; did you mean {', '.join(near)}?")


MOST_SEEDS = 100_000


def parse_seeds(text: str) -> tuple[int, ...]:
    """`5`: seeds 0 to 4; `3-6` and `0,2,7`: these."""
    try:
        spans = [range(int(text))] if text.isdigit() else [_span(p) for p in text.split(",")]
    except ValueError:
        raise UserError(f"seeds are a number (5), a list (0,2,7) or a range (3-6), not '{text}'") \
            from None  # fmt: skip
    wanted = sum(max(span.stop - span.start, 0) for span in spans)
    if wanted == 0:
        raise UserError("at least one seed is needed; 0-0 is the seed 0 alone")
    if wanted > MOST_SEEDS:
        raise UserError(f"'{text}' are {wanted:,} seeds: a sweep takes at most {MOST_SEEDS:,}")
    return tuple(dict.fromkeys(seed for span in spans for seed in span))


def _span(part: str) -> range:
    first, dash, last = part.strip().partition("-")
    return range(int(first), int(last if dash else first) + 1)


# -- the paper's experiments ----------------------------------------------------------------------


def named(*agents: str) -> tuple[Entrant, ...]:
    return tuple(Entrant(agent, agent) for agent in agents)


CARTPOLE = "adac/CartPoleContinuous-v0"
MOUNTAIN_CAR = "MountainCarContinuous-v0"
ACROBOT = "adac/AcrobotContinuous-v0"
PENDULUM = "adac/PendulumSparse-v0"
SWING_UP = "adac/CartPoleSwingUpSparse-v0"
HOPPER = "Hopper-v4"
ATLAS = "adac/RoboschoolAtlasForwardWalk-v1"

# The ablation's common point, spelled out: it stays where it is when a default moves. K = 8,
# because all but a few trials have it, and 32 costs twice; a ρ with which MountainCar's goal is
# ever seen, because without that its variants cannot differ.
REFERENCE: dict[str, Any] = {
    "particles": 8,
    "beta_start": 2.0,
    "beta_end": 1.0,
    "behaviour_lr": 3e-4,
    "space": "pre-squash",
    "log_det": True,
    "bandwidth": "median",
    "normalise_score": True,
    "score_floor": 0.0,
    "latent_correlation": (0.0, 0.95),
    "action_noise": 0.1,
    "co_training": True,
}


def _ablation() -> tuple[Entrant, ...]:
    """Each choice between the paper's SVGD and ours, changed alone; and the two ends."""
    changes: dict[str, dict[str, Any]] = {
        "reference": {},
        "space = action": {"space": "action", "log_det": False},
        "no log-det": {"log_det": False},
        "bandwidth = paper": {"bandwidth": "paper"},
        "raw score": {"normalise_score": False},
        **{f"ρ = {rho:g}": {"latent_correlation": rho} for rho in (0.0, 0.95)},
        **{f"K = {k}": {"particles": k} for k in (2, 32)},
        "β = 0.2": {"beta_start": 0.2, "beta_end": 0.2},
        "β = 0.2, floor": {"beta_start": 0.2, "beta_end": 0.2, "score_floor": 1.0},
        "β = 2 → 0.2": {"beta_end": 0.2},
        "no action noise": {"action_noise": 0.0},
        "no co-training": {"co_training": False},
    }
    variants = (Entrant(label, "adac-td3", REFERENCE | c) for label, c in changes.items())
    return (*variants, *named("paper-adac-td3", "td3"))


_PAPER = (
    Suite(
        "cartpole",
        "Figure 3: exploration on the modified CartPole",
        (CARTPOLE,),
        named("paper-adac-ddpg", "paper-adac-ddpg-no-cotraining", "paper-ddpg")
        + named("adac-ddpg", "adac-ddpg-no-cotraining", "ddpg", "ddpg-gaussian-1.0")
        + named("ddpg-ou-0.2", "ddpg-ou-1.0", "sac"),
        60_000,
        snapshots=("paper-adac-ddpg", "adac-ddpg"),
        figure="behaviour",
    ),
    Suite(
        "contamination",
        "Figure 4: an intrinsic reward in the task's critic, and beside it",
        (PENDULUM,),
        named("td3-vime", "adac-td3-vime", "paper-td3-vime", "paper-adac-td3-vime"),
        50_000,
        snapshots=("td3-vime", "adac-td3-vime"),
        figure="bonus",
    ),
    Suite(
        "sparse",
        "Figure 5: four tasks with sparse rewards",
        (MOUNTAIN_CAR, ACROBOT, PENDULUM, SWING_UP),
        named("td3", "td3-vime", "adac-td3", "adac-td3-vime", "paper-adac-td3-vime", "sac"),
        {MOUNTAIN_CAR: 50_000, ACROBOT: 50_000, PENDULUM: 50_000, SWING_UP: 150_000},
    ),
    Suite(
        "benchmark",
        "Table 2 and Figure 7: fourteen tasks",
        tuple(task.id for task in SUITE if task.group == "benchmark"),
        named("adac-td3", "td3", "sac", "paper-adac-td3", "paper-adac-ddpg", "ddpg", "ppo"),
        1_000_000,
        adac_settings={task: {"particles": 8} for task in (HOPPER, ATLAS)},  # Appendix E
    ),
    Suite(
        "ablation",
        "Each choice between the paper's SVGD and ours; it decides the defaults",
        (PENDULUM, CARTPOLE, MOUNTAIN_CAR),
        _ablation(),
        {PENDULUM: 15_000, CARTPOLE: 15_000, MOUNTAIN_CAR: 20_000},
        CHOOSING,
        figure="dots",
    ),
)
# Sparse rewards and swing-ups on which others publish, and mazes; `analysis.published` has theirs.
BONUSES = ("vime", "rnd", "disagreement", "counts", "ex2", "icm")
DM_CONTROL = (
    "dm_control/cartpole-swingup_sparse-v0",
    "dm_control/pendulum-swingup-v0",
    "dm_control/acrobot-swingup_sparse-v0",
    "dm_control/finger-turn_hard-v0",
    "dm_control/hopper-hop-v0",
)
EXPLORATION = Suite(
    "exploration",
    "Exploration that the field can compare: dm_control, classic tasks and mazes",
    (*DM_CONTROL, MOUNTAIN_CAR, SWING_UP, "PointMaze_UMaze-v3", "PointMaze_Medium-v3"),
    named("adac-explore", "adac-td3", "td3", "sac", "td3-pink", "maxinfo-sac"),
    200_000,
    schedule={"eval_every": 5_000},
    action_repeat={task: 2 for task in DM_CONTROL},  # as most of the published figures have it
)
PAPER: dict[str, Suite] = {suite.name: suite for suite in _PAPER}
EXPLORERS = Suite(
    "explorers",
    "Every way to explore, side by side, on TD3 and beside SAC's",
    (MOUNTAIN_CAR, PENDULUM, "dm_control/cartpole-swingup_sparse-v0", "Hopper-v4"),
    (
        *named("td3", "td3-pink", "td3-white-or-pink", "td3-repeated", "td3-gsde"),
        *named("td3-parameter-noise", "td3-optimistic", "soft-q", "mulex"),
        # 50,000 steps are 50 episodes of three of the tasks, and 500 of them are GEP-PG's own.
        Entrant("gep-pg", "gep-pg", {"episodes": 20, "random_episodes": 5}),
        *named("adac-td3", "adac-td3-pink", "adac-td3-repeated", "adac-td3-entropy"),
        *named("adac-maxinfo", "sac", "sac-pink", "sac-optimistic", "maxinfo-sac"),
        *(Entrant(f"td3-{bonus}", f"td3-{bonus}") for bonus in BONUSES),
        *(Entrant(f"adac-td3-{bonus}", f"adac-td3-{bonus}") for bonus in BONUSES),
    ),
    50_000,
    seeds=REPORTING[:3],
)
SUITES: dict[str, Suite] = PAPER | {one.name: one for one in (EXPLORATION, EXPLORERS)}

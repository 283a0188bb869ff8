"""What the tables of a run say in words, and which setting may help.

The thresholds lie between the runs of version 0.1 that learned and those that collapsed; both are
in results/former.
"""

import math
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from adac.runs.csv_table import Row, number_in, read_table
from adac.runs.folder import flatten, read_config

SATURATED = (
    0.95  # share of π's actions at the bound: 0.91 in runs that learned, 1 in collapsed ones
)
COLLAPSED = 0.03  # spread of μ: 0.07 and more in runs that learned, up to 0.03 in collapsed ones
OVERESTIMATE = 2.0  # times the highest value that the returns allow; critics are off by less
ENTROPY_DIMENSIONS = 8  # of actions: SAC's Q has up to α ln 2 more per step for each
IDLE = 0.01  # of the worst return: a policy that only avoids costs, and does nothing
DWARFED = 3.0  # bonus per return of an episode; runs that learned had up to 2.6
KEPT = 0.1  # share of the steps that the replay buffer should remember
EPISODES_KEPT = 20  # fewer are too alike for a critic to learn from
NOISY = 0.2  # standard error of an evaluation, per range of the whole curve
PRECISE = 0.1  # the same, where a curve can be read
MOST_EPISODES = 100  # of an evaluation, to ask for
FEW = 3  # rows or episodes that say nothing yet


class Level(StrEnum):
    fine = "fine"
    doubtful = "doubtful"  # may be right for this task
    wrong = "wrong"


class Finding(NamedTuple):
    """One thing that was looked at."""

    subject: str
    level: Level
    says: str  # what was measured
    advice: str = ""


class Tables(NamedTuple):
    """What a run has written."""

    config: dict[str, Any]
    metrics: list[Row]
    evaluations: list[Row]

    def setting(self, name: str) -> Any:
        """A setting of the agent, wherever in it; None where it has no such setting."""
        flat = flatten(self.config["agent"])
        return next((v for path, v in flat.items() if path.rsplit(".", 1)[-1] == name), None)

    @property
    def step(self) -> int:
        return max((int(row["step"]) for row in (*self.metrics, *self.evaluations)), default=0)


def doctor(folder: str | Path) -> list[Finding]:
    """Look at a run folder's tables: each symptom that they allow to judge, healthy or not."""
    folder = Path(folder)
    config = read_config(folder)
    tables = Tables(
        config, read_table(folder / "metrics.csv"), read_table(folder / "evaluations.csv")
    )
    return examine(tables)


def examine(tables: Tables) -> list[Finding]:
    found = (symptom(tables) for symptom in SYMPTOMS)
    return [finding for finding in found if finding is not None]


def policy_at_the_bound(tables: Tables) -> Finding | None:
    share = _late(tables.metrics, "saturation_pi")
    if share is None:
        return None
    says = f"{share:.0%} are at their bound"
    if share < SATURATED:
        return Finding("actions of π", Level.fine, says)
    remedy = "normalise_obs=true"  # large observations drive a squashed policy to its bound
    if tables.setting("bound_penalty") == 0:
        remedy = "bound_penalty=0.1"
    elif tables.setting("normalise_obs"):
        remedy = f"actor_lr={(tables.setting('actor_lr') or 3e-4) / 3:.1g}"
    return Finding(
        "actions of π",
        Level.wrong if share > 0.5 * (1 + SATURATED) else Level.doubtful,
        f"{says}: π hardly reacts to the state, unless the task wants full force everywhere",
        f"--set {remedy}",
    )


def behaviour_collapsed(tables: Tables) -> Finding | None:
    spread, beta = _late(tables.metrics, "spread"), tables.setting("beta_end")
    if spread is None or beta is None:  # other explorers have no width of their own to lose
        return None
    says = f"a standard deviation of {spread:.2g} within a state, where actions are from -1 to 1"
    if spread >= COLLAPSED:
        return Finding("width of μ", Level.fine, says)
    wider, led = max(1.0, 3 * float(beta)), tables.setting("eta") is not None
    return Finding(
        "width of μ",
        Level.doubtful if led else Level.wrong,
        f"{says}: μ no longer explores" + (", unless the bonus leads it" if led else ""),
        f"--set beta_start={wider:g} beta_end={wider:g}",
    )


def overestimation(tables: Tables) -> Finding | None:
    q, values = _late(tables.metrics, "q"), _values_of_returns(tables)
    if q is None or not any(values) or tables.setting("reward_units"):
        return None  # nothing to compare, or Q is in other units than the returns
    highest, scale = max(values), max(abs(value) for value in values)
    bonus = tables.setting("eta") is not None
    says = f"Q is {_short(q)}, and the best episode was worth {_short(highest)} at most"
    if q <= highest + (OVERESTIMATE - 1) * scale + _entropy(tables):
        return Finding("size of Q", Level.fine, says)
    if bonus and _late(tables.metrics, "q_behaviour") is None:
        remedy = "lower eta: the one critic of this agent adds the bonus to the reward"
    elif tables.setting("critics") == 1:
        remedy = "--set critics=2"
    elif (tables.setting("updates_per_step") or 1) > 1:
        remedy = "--set updates_per_step=1"
    else:
        remedy = f"--set critic_lr={(tables.setting('critic_lr') or 3e-4) / 3:.1g}"
    return Finding("size of Q", Level.wrong, f"{says}: it overestimates", remedy)


def no_reward_seen(tables: Tables) -> Finding | None:
    returns, episodes = _returns(tables), _last(tables.metrics, "episodes") or 0
    if not returns or episodes < FEW or tables.setting("reward_free"):
        return None
    low, high = min(returns), max(returns)
    subject, remedy = "reward", "--agent adac-explore, or --set intrinsic=rnd"
    if tables.setting("eta") is not None:
        remedy = f"--set eta={3 * float(tables.setting('eta')):.2g}, or more steps"
    if low == high:
        says = f"all of {episodes:.0f} episodes returned {_short(low)}: nothing tells good from bad"
        return Finding(subject, Level.wrong, says, remedy)
    late = _late(tables.evaluations, "mean_return")
    if late is not None and high <= 0 and late > IDLE * low:
        says = f"π returns {_short(late)} and no episode was above 0: it only avoids costs"
        return Finding(subject, Level.doubtful, says, remedy)
    return Finding(subject, Level.fine, f"episodes returned from {_short(low)} to {_short(high)}")


def bonus_dwarfs_reward(tables: Tables) -> Finding | None:
    bonus, returns = _late(tables.metrics, "episode_bonus"), _returns(tables)
    if bonus is None or not returns or min(returns) == max(returns):
        return None  # without a reward a bonus is all there is
    largest = max(abs(value) for value in returns)
    ratio = bonus / largest
    says = f"an episode collects a bonus of {_short(bonus)}, and returned {_short(largest)} at most"
    if ratio <= DWARFED:
        return Finding("size of the bonus", Level.fine, says)
    eta = tables.setting("eta")
    remedy = "--set eta=" + (f"{float(eta) / ratio:.1g}" if eta is not None else "…, less")
    return Finding(
        "size of the bonus", Level.doubtful, f"{says}: novelty decides what μ does", remedy
    )


def buffer_too_small(tables: Tables) -> Finding | None:
    size, length = tables.setting("replay_size"), _late(tables.metrics, "episode_length") or 0.0
    if size is None or not tables.step:
        return None
    wanted = max(KEPT * tables.step, EPISODES_KEPT * length)
    says = f"holds {size:,} transitions; the run has taken {tables.step:,} steps"
    if size >= min(wanted, tables.step):
        return Finding("replay buffer", Level.fine, says)
    return Finding(
        "replay buffer",
        Level.doubtful,
        f"{says}: what was seen early is forgotten",
        f"--set replay_size={min(tables.step, 1_000_000)}",
    )


def evaluation_noisy(tables: Tables) -> Finding | None:
    means = _column(tables.evaluations, "mean_return")
    deviation = _late(tables.evaluations, "std_return")
    episodes = _late(tables.evaluations, "episodes")
    if len(means) < FEW or deviation is None or not episodes or min(means) == max(means):
        return None
    scale = max(means) - min(means)
    error = deviation / math.sqrt(episodes)
    says = f"each is uncertain by ± {_short(error)}, and the curve spans {_short(scale)}"
    if error <= NOISY * scale:
        return Finding("evaluations", Level.fine, says)
    wanted = min(math.ceil((deviation / (PRECISE * scale)) ** 2), MOST_EPISODES)
    remedy = f"--eval-episodes {max(wanted, 2 * round(episodes))}"
    return Finding("evaluations", Level.doubtful, f"{says}: differences are mostly chance", remedy)


SYMPTOMS: tuple[Callable[[Tables], Finding | None], ...] = (
    no_reward_seen,
    policy_at_the_bound,
    behaviour_collapsed,
    overestimation,
    bonus_dwarfs_reward,
    buffer_too_small,
    evaluation_noisy,
)


def _values_of_returns(tables: Tables) -> list[float]:
    """What states of the episodes can be worth: the whole return at once, or its rate for ever."""
    discount = float(tables.setting("discount") or 0.0)
    repeat = float(tables.config["env_kwargs"].get("action_repeat", 1))
    found = []
    for rows, total, length in (
        (tables.metrics, "episode_return", "episode_length"),
        (tables.evaluations, "mean_return", "mean_length"),
    ):
        for row in rows:
            value, steps = number_in(row, total), number_in(row, length)
            if value is not None and steps:
                rate = value * repeat / steps
                found += [value, rate / (1 - discount) if discount < 1 else value]
    return found


def _entropy(tables: Tables) -> float:
    """What SAC's entropy may add to Q."""
    temperature, discount = _late(tables.metrics, "temperature"), tables.setting("discount")
    if temperature is None or discount is None or discount >= 1:
        return 0.0
    return temperature * ENTROPY_DIMENSIONS * math.log(2) / (1 - float(discount))


def _returns(tables: Tables) -> list[float]:
    names = ("min_return", "mean_return", "max_return")
    played = [value for name in names for value in _column(tables.evaluations, name)]
    return played + _column(tables.metrics, "episode_return")


def _column(rows: list[Row], name: str) -> list[float]:
    values = (number_in(row, name) for row in rows)
    return [value for value in values if value is not None and math.isfinite(value)]


def _late(rows: list[Row], name: str) -> float | None:
    """The median of a column's last quarter; None where it has too few numbers to judge by."""
    values = _column(rows, name)
    return median(values[-max(FEW, len(values) // 4) :]) if len(values) >= FEW else None


def _last(rows: list[Row], name: str) -> float | None:
    return next(iter(_column(rows, name)[-1:]), None)


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.3g}"

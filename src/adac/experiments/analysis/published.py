"""Returns that others have published on the tasks of the suite `exploration`, beside ours.

Read from the raw files that their authors keep in public, at 100,000 and 200,000 environment steps:
mean and standard deviation (of the population) over seeds. "Updates" are those for each decision.
The files count environment steps, but do not say how often an action was repeated (1 or 2).
"""

import math
from collections import Counter
from dataclasses import dataclass

from adac.experiments.analysis import statistics
from adac.experiments.analysis.results import Group, Results
from adac.experiments.analysis.statistics import Moments

STEPS = (100_000, 200_000)

# task, method, updates, seeds, at 100,000, at 200,000, source (GitHub repository: file)
_FIGURES = """
cartpole-swingup_sparse  SAC        1  10    93.8±157.6   614.6±290.4  SonyResearch/simba:results/sac.csv
cartpole-swingup_sparse  SAC        1   3   266.2±352.4   781.3±18.7   DAVIAN-Robotics/SimbaV2:results/baseline/sac.csv
cartpole-swingup_sparse  TD7        1   5    15.1±14.3    221.2±291.3  SonyResearch/simba:results/td7.csv
cartpole-swingup_sparse  MR.Q       1  10   286.5±249.7   714.6±102.1  DAVIAN-Robotics/SimbaV2:results/baseline/mrq.csv
cartpole-swingup_sparse  DR.Q       1  10   392.3±331.4   517.6±338.2  dmksjfl/DR.Q:results/drq.csv
cartpole-swingup_sparse  SimbaV2    1   5    33.1±66.2    182.5±314.7  DAVIAN-Robotics/SimbaV2:results/simbaV2_utd1.csv
cartpole-swingup_sparse  FlashSAC   1   5   134.4±223.6   279.3±348.2  Holiday-Robot/FlashSAC:results/stateRL_cpusim/FlashSAC.csv
cartpole-swingup_sparse  TD-MPC2    1   3     0.3±0.5     308.2±339.3  DAVIAN-Robotics/SimbaV2:results/baseline/tdmpc2.csv
cartpole-swingup_sparse  XQC        2  10     0.0±0.0       0.0±0.0    Holiday-Robot/FlashSAC:results/stateRL_cpusim/baseline/XQC.csv
cartpole-swingup_sparse  BRO        2   5   295.8±333.5   811.3±16.4   DAVIAN-Robotics/SimbaV2:results/baseline/bro_utd2.csv
cartpole-swingup_sparse  BRO       10   5   797.2±38.3    839.1±12.6   DAVIAN-Robotics/SimbaV2:results/baseline/bro_utd10.csv
pendulum-swingup         SAC        1  10   327.8±334.6   479.8±369.7  SonyResearch/simba:results/sac.csv
pendulum-swingup         SAC        1   3   817.8±14.0    804.4±38.9   DAVIAN-Robotics/SimbaV2:results/baseline/sac.csv
pendulum-swingup         TD7        1   5   222.6±198.3   336.0±404.2  SonyResearch/simba:results/td7.csv
pendulum-swingup         MR.Q       1  10   616.6±243.3   796.9±120.7  DAVIAN-Robotics/SimbaV2:results/baseline/mrq.csv
pendulum-swingup         DR.Q       1  10   679.5±313.2   742.8±249.2  dmksjfl/DR.Q:results/drq.csv
pendulum-swingup         SimbaV2    1   5    39.6±48.4    349.7±296.1  DAVIAN-Robotics/SimbaV2:results/simbaV2_utd1.csv
pendulum-swingup         FlashSAC   1   5   133.5±181.6   366.9±371.8  Holiday-Robot/FlashSAC:results/stateRL_cpusim/FlashSAC.csv
pendulum-swingup         TD-MPC2    1   3   724.0±119.9   824.5±37.2   DAVIAN-Robotics/SimbaV2:results/baseline/tdmpc2.csv
pendulum-swingup         XQC        2  10    85.1±254.3    83.5±235.0  danielpalenicek/xqc:results/xqc.csv
pendulum-swingup         BRO        2   5   811.7±25.1    837.0±40.2   DAVIAN-Robotics/SimbaV2:results/baseline/bro_utd2.csv
pendulum-swingup         BRO       10   5   818.6±22.2    810.4±68.4   DAVIAN-Robotics/SimbaV2:results/baseline/bro_utd10.csv
finger-turn_hard         SAC        1  10   266.0±131.8   369.8±105.6  SonyResearch/simba:results/sac.csv
finger-turn_hard         SAC        1   3   165.2±121.0   179.5±60.9   DAVIAN-Robotics/SimbaV2:results/baseline/sac.csv
finger-turn_hard         TD7        1   5    77.8±38.5    199.4±70.7   SonyResearch/simba:results/td7.csv
finger-turn_hard         MR.Q       1  10   229.8±138.6   639.4±153.0  DAVIAN-Robotics/SimbaV2:results/baseline/mrq.csv
finger-turn_hard         DR.Q       1  10   269.0±189.6   630.8±156.5  dmksjfl/DR.Q:results/drq.csv
finger-turn_hard         SimbaV2    1   5   318.0±81.3    564.6±189.0  DAVIAN-Robotics/SimbaV2:results/simbaV2_utd1.csv
finger-turn_hard         TD-MPC2    1   3   483.6±79.2    797.1±55.5   DAVIAN-Robotics/SimbaV2:results/baseline/tdmpc2.csv
finger-turn_hard         XQC        2  10   325.9±183.6   573.8±199.8  danielpalenicek/xqc:results/xqc.csv
finger-turn_hard         BRO        2   5   329.3±159.7   720.4±82.5   DAVIAN-Robotics/SimbaV2:results/baseline/bro_utd2.csv
finger-turn_hard         BRO       10   5   515.9±204.6   847.1±69.5   DAVIAN-Robotics/SimbaV2:results/baseline/bro_utd10.csv
hopper-hop               SAC        1  10     0.9±2.4      72.5±35.8   SonyResearch/simba:results/sac.csv
hopper-hop               SAC        1   3     0.5±0.5      79.2±56.1   DAVIAN-Robotics/SimbaV2:results/baseline/sac.csv
hopper-hop               TD7        1   5     0.4±0.6      18.5±14.9   SonyResearch/simba:results/td7.csv
hopper-hop               MR.Q       1  10    17.5±25.8     72.8±76.2   DAVIAN-Robotics/SimbaV2:results/baseline/mrq.csv
hopper-hop               DR.Q       1  10    47.7±78.4    137.5±86.6   dmksjfl/DR.Q:results/drq.csv
hopper-hop               SimbaV2    1   5    10.8±20.1     53.2±50.3   DAVIAN-Robotics/SimbaV2:results/simbaV2_utd1.csv
hopper-hop               TD-MPC2    1   3    13.6±10.4    166.6±34.9   DAVIAN-Robotics/SimbaV2:results/baseline/tdmpc2.csv
hopper-hop               XQC        2  10     3.9±10.6     57.5±54.0   danielpalenicek/xqc:results/xqc.csv
hopper-hop               BRO        2   5    55.4±12.4    184.8±46.1   DAVIAN-Robotics/SimbaV2:results/baseline/bro_utd2.csv
hopper-hop               BRO       10   5   172.2±50.2    261.1±10.4   DAVIAN-Robotics/SimbaV2:results/baseline/bro_utd10.csv
"""  # noqa: E501 (one row of a file, one line)


@dataclass(frozen=True)
class Line:
    """A method on a task: ours, or somebody's."""

    name: str
    updates: float
    returns: tuple[Moments | None, ...]  # at STEPS
    source: str  # empty for ours


def _line(cells: list[str]) -> Line:
    name, updates, seeds, *printed, source = cells
    returns = (tuple(map(float, one.split("±"))) for one in printed)
    moments = tuple(Moments(mean, std, int(seeds)) for mean, std in returns)
    return Line(name, float(updates), moments, source)


def _figures() -> dict[str, list[Line]]:
    found: dict[str, list[Line]] = {}
    for task, *cells in (line.split() for line in _FIGURES.strip().splitlines()):
        found.setdefault(f"dm_control/{task}-v0", []).append(_line(cells))
    return found


FIGURES = _figures()


def beside(results: Results) -> dict[str, list[Line]]:
    """{task: our lines, then the published ones}, for the tasks that have any."""
    return {
        env: [*(line for line in map(_ours, groups.values()) if any(line.returns)), *FIGURES[env]]
        for env, groups in results.groups.items()
        if env in FIGURES
    }


def tracks(env: str, last: float) -> dict[str, list[tuple[int, Moments]]]:
    """{name: [(step, return)]} of a task's published lines up to the step `last`."""
    lines = FIGURES.get(env, [])
    names = Counter((line.name, line.updates) for line in lines)
    found = {}
    for line in lines:
        pairs = zip(STEPS, line.returns, strict=True)
        points = [(step, one) for step, one in pairs if step <= last and one is not None]
        if points:
            twice = names[line.name, line.updates] > 1
            found[_named(line, points[0][1].seeds if twice else None)] = points
    return found


def _named(line: Line, seeds: int | None) -> str:
    """With what tells it from the others: more than one update a decision, or its seeds."""
    more = [f"UTD {line.updates:g}"] if line.updates != 1 else []
    more += [] if seeds is None else [f"{seeds} seeds"]
    return line.name + (f" ({', '.join(more)})" if more else "")


def _ours(group: Group) -> Line:
    settings = group.runs[0].config["agent"]
    return Line(
        group.label,
        float(settings.get("updates_per_step", math.nan)),
        tuple(_at(group, step) for step in STEPS),
        "",
    )


def _at(group: Group, step: int) -> Moments | None:
    """Of the evaluations at just this step."""
    found = [run.returns[step] for run in group.runs if step in run.returns]
    return statistics.moments(found) if found else None


def markdown(results: Results) -> str:
    return "\n".join(_task(env, lines) for env, lines in beside(results).items())


def _task(env: str, lines: list[Line]) -> str:
    head = " | ".join(f"at {step:,}" for step in STEPS)
    rows = [
        f"| {line.name} | {line.updates:g} | {cells(line)[0]} | "
        f"{' | '.join(cells(line)[1:])} | {line.source or 'here'} |"
        for line in lines
    ]
    return "\n".join(
        [f"### {env}, published and here\n", f"| method | updates | seeds | {head} | source |",
         "|---|--:|--:|" + "--:|" * len(STEPS) + "---|", *rows, ""]
    )  # fmt: skip


def cells(line: Line) -> list[str]:
    """Seeds, and the returns at STEPS."""
    seeds = max((one.seeds for one in line.returns if one is not None), default=0)
    return [str(seeds or ""), *(_text(one) for one in line.returns)]


def _text(moments: Moments | None) -> str:
    if moments is None:
        return ""
    return f"{moments.mean:.1f}" + ("" if math.isnan(moments.std) else f" ± {moments.std:.1f}")

"""Table 2 of the paper as data: mean ± standard deviation over 20 trials, and its marks.

The marks are kept as printed. Welch's test on the printed numbers gives the same † and * everywhere
and the same bold but for seven cells that are printed plain though they do not differ from the
best at 0.05: SAC on RoboschoolHopper, InvertedDoublePendulum and LunarLanderContinuous, TD3 on
Ant, HalfCheetah, Walker2d and BipedalWalker.
"""

from adac.experiments.analysis.statistics import Marks, Moments

TRIALS = 20
STEPS = 1_000_000  # "or until reaching performance convergence, whichever happens earlier"

# The paper's columns, and the names of these agents here.
COLUMNS: dict[str, str] = {
    "ADAC (TD3)": "adac-td3",
    "ADAC (DDPG)": "adac-ddpg",
    "TD3": "td3",
    "DDPG": "ddpg",
    "SAC": "sac",
    "PPO": "ppo",
}

# Cells as printed: a leading "!" for bold, a trailing † or *.
_PRINTED = """
RoboschoolAnt              2219±373      838.1*±97.1    !2903†±666    450.0±27.9     !2726±652    1280±71
RoboschoolHopper           !2299†±333    766.5*±10      !2302†±537    543.8±307      2089±657     1229±345
RoboschoolHalfCheetah      1578†±166     !1711*±95      607.2±246.2   441.6±120.4    807.0±252.6  1225±184.2
RoboschoolAtlasForwardWalk !234.6†±55.7  186.7*±37.9    190.6±50.1    52.63±26.2     126.0±47.1   107.6±29.4
RoboschoolWalker2d         !1769†±452    !1564*±651     995.1±146.3   208.7±137.1    1021±263     578.9±231.3
Ant                        3353±847      1226*±18       4034†±517     370.5±223      !4291±1498   1401±168
Hopper                     !3598†±374    374.5*±36.5    2845±609      38.93±0.88     !3307±825    1555±458
HalfCheetah                9392±199      2238*±40       10526†±2367   1009±49        !11541±2989  881.7±10.1
Walker2d                   !5122†±1314   1291*±42       4630†±778     186.2±33.3     4067±1211    1146±368
InvertedPendulum           !1000†±0      !1000*±0       !1000†±0      !1000*±0       !1000±0      98.90±2.08
InvertedDoublePendulum     !9359†±0.17   9334*±1.39     7665±566      27.20±2.61     9353±2896    98.90±5.88
BipedalWalker              !309.8†±15.6  -52.77*±1.94   288.4†±51.25  -123.90±11.17  !307.2±57.92 266.9±28.52
BipedalWalkerHardcore      !-10.76†±27.70 -98.52±3.21   -57.97±21.08  -50.05*±10.27  -127.4±45.2  -105.3±22.2
LunarLanderContinuous      !290.0†±50.9  85.67*±23.42   !289.7†±54.1  -65.89±96.48   283.3±69.29  59.32±68.44
"""  # noqa: E501 (one row of the paper, one line)


def _cell(text: str) -> tuple[Moments, Marks]:
    mean, _, std = text.lstrip("!").partition("±")
    signs = "".join(c for c in mean if c in "†*")
    return Moments(float(mean.rstrip("†*")), float(std), TRIALS), Marks(text[0] == "!", signs)


def _table() -> dict[str, dict[str, tuple[Moments, Marks]]]:
    lines = [line.split() for line in _PRINTED.strip().splitlines()]
    return {
        task: dict(zip(COLUMNS.values(), map(_cell, cells), strict=True)) for task, *cells in lines
    }


# {task: {agent: (mean ± std, marks as printed)}}
TABLE_2 = _table()


def paper_name(env_id: str) -> str:
    """The paper's name of a task: no namespace, no version."""
    return env_id.rsplit("/", 1)[-1].rsplit("-v", 1)[0]

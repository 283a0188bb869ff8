"""Generated commands, settings, sweeps and spaces: one sentence each, never a traceback."""

import contextlib
import io
import random
import signal
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import gymnasium
import numpy as np
import typer
from gymnasium import spaces

from adac.cli.main import app, main
from adac.core import presets, settings
from adac.errors import AdacError
from adac.experiments.sweeps import suite_files, suites
from adac.training.environments import check_spaces
from torture.tally import Tally

VALUES: tuple[Any, ...] = (
    "", "0", "-1", "1e9", "1e400", "nan", "inf", "true", "none", "[1,2]", "1,2,", "ü", "\ud800",
    "\x00", "a=b", "--", "-h", "9" * 5_000, "../..", "/etc/passwd", "$(id)", "'; DROP", "0x10",
    "1_000", " ",
)  # fmt: skip
OBJECTS: tuple[Any, ...] = (
    *VALUES, None, True, -1, 0, 2.5, float("nan"), 10**400, [], [1], {}, {"a": []}, (), object(),
    np.ones(2), np.float32(1), 1j, b"x", int, lambda: 0,
)  # fmt: skip


SECONDS = 60  # for one answer, on a machine with other work
ELSEWHERE = {"watch", "push", "pull", "tune"}  # serves; ask the network; starts Ray at once


def commands() -> dict[str, list[str]]:
    """Every command that ends by itself, with its options."""
    group: Any = typer.main.get_command(app)
    return {
        name: [word for option in one.params for word in option.opts if word.startswith("-")]
        for name, one in group.commands.items()
        if name not in ELSEWHERE
    }


def command(draw: random.Random, folder: Path) -> None:
    """Of a task that does not exist, so that nothing is trained."""
    known = commands()
    name = draw.choice([*known, "x", ""])
    words = [name, draw.choice(("NoSuchTask-v0", str(folder), *VALUES))]
    options = ["--help", "--debug", "--x", *known.get(name, [])]
    for _ in range(draw.randrange(4)):
        words += [draw.choice(options), draw.choice(VALUES)]
    said, code = io.StringIO(), None
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        try:
            main(words)
        except SystemExit as stop:
            code = stop.code
    text = said.getvalue()
    if code not in (0, 1, 2) or ("--debug" not in words and "Traceback" in text):
        raise AssertionError(f"{words}: {code}: {text}")
    if "--debug shows where" in text:
        raise AssertionError(f"{words}: a raw error: {text}")
    ours = [line for line in text.splitlines() if line.startswith("adac: ")]
    if "--debug" not in words and len([line for line in ours if "warning" not in line]) > 1:
        raise AssertionError(f"{words}: more than a sentence: {text}")


def setting(draw: random.Random, folder: Path) -> None:
    agent = presets.make(draw.choice(list(presets.AGENTS)))
    name = draw.choice([*settings.names(agent), "x", "", "explorer.particles", "a.b.c"])
    settings.override(agent, {name: draw.choice(OBJECTS)})


def description(draw: random.Random, folder: Path) -> None:
    data: Any = settings.to_json(presets.make(draw.choice(list(presets.AGENTS))))
    place = data
    while isinstance(place, dict) and place:
        name = draw.choice(list(place))
        if isinstance(place[name], dict) and draw.random() < 0.7:
            place = place[name]
            continue
        place[name] = draw.choice(OBJECTS)
        break
    settings.from_json(data)


def sweep(draw: random.Random, folder: Path) -> None:
    lines = [
        'name = "x"', 'tasks = ["Pendulum-v1"]', 'agents = ["td3"]', "steps = 100", "seeds = 2",
        "num_envs = 1", "[settings]", "tau = 0.1",
    ]  # fmt: skip
    for _ in range(draw.randrange(1, 4)):
        line = draw.randrange(len(lines))
        odd = (
            '""',
            "[]",
            "{}",
            "-1",
            "1e400",
            "nan",
            "[[[[",
            '"td4"',
            "true",
            "\x00",
            "1979-05-27",
        )
        key = lines[line].partition("=")[0]
        lines[line] = draw.choice((f"{key}= {draw.choice(odd)}", draw.choice(odd), key))
    path = folder / "sweep.toml"
    path.write_text("\n".join(lines), "utf-8")
    suites.trials(suite_files.read_toml(path))
    suites.parse_seeds(draw.choice(VALUES))


def space(draw: random.Random, folder: Path) -> None:
    def one() -> gymnasium.Space[Any]:
        shape = tuple(draw.randrange(4) for _ in range(draw.randrange(4)))
        low, high = draw.choice(((-1.0, 1.0), (-np.inf, np.inf), (0.0, 0.0), (-3e38, 3e38)))
        kinds: tuple[Callable[[], gymnasium.Space[Any]], ...] = (
            lambda: spaces.Box(low, high, shape, np.float32),
            lambda: spaces.Box(0, 255, shape, np.uint8),
            lambda: spaces.Discrete(3),
            lambda: spaces.MultiBinary(3),
            lambda: spaces.Dict({"a": spaces.Box(low, high, shape, np.float32)}),
            lambda: spaces.Text(5),
            lambda: spaces.Tuple(()),
        )
        return draw.choice(kinds)()

    env: Any = gymnasium.Env()
    env.observation_space, env.action_space = one(), one()
    check_spaces(env, "Odd-v0")


KINDS = {f.__name__: f for f in (command, setting, description, sweep, space)}


def run(seed: str, times: int) -> Tally:
    tally, draw = Tally(), random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="adac-torture-") as place, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(times):
            _one(draw.choice(list(KINDS)), Path(place), draw, tally)
    return tally


def _too_long(number: int, frame: FrameType | None) -> None:
    raise TimeoutError(f"more than {SECONDS} seconds")


def _one(name: str, folder: Path, draw: random.Random, tally: Tally) -> None:
    outcome = "broken"
    signal.signal(signal.SIGALRM, _too_long)
    signal.alarm(SECONDS)
    try:
        with contextlib.chdir(folder):  # some commands write a page or a picture
            KINDS[name](draw, folder)
        outcome = "accepted" if name != "command" else "answered"
    except AdacError as error:
        outcome = "refused in a sentence"
        if "\n" in str(error):
            tally.fail(f"{name}: more than a sentence: {error}")
    except Exception as error:
        tally.fail(f"{name}: {type(error).__name__}: {error}")
    finally:
        signal.alarm(0)
    tally.note(f"{name}: {outcome}")

"""`adac train` and `adac resume`: one run, into its folder."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from itertools import count
from pathlib import Path
from typing import Annotated, Any

import typer

from adac.cli import doctor
from adac.cli.options import (
    Modules,
    Settings,
    Tensorboard,
    Wandb,
    folder_name,
    given_options,
    import_modules,
    parse_kwargs,
    parse_settings,
    spelled_out,
    steps_option,
)
from adac.cli.policies import RunFolder
from adac.cli.stop import Stop
from adac.errors import RunError, UserError


@dataclass(frozen=True)
class TrainOptions:
    """What `adac train` takes besides the task; a field is an option."""

    agent: Annotated[
        str | None, typer.Option(help="A named agent: `adac list agents`.", show_default="adac-td3")
    ] = None
    steps: Annotated[int, steps_option("Environment steps: 100000, 1e5 or 100k.")] = 100_000
    seed: Annotated[int, typer.Option(help="The same seed gives the same run, bit for bit.")] = 0
    out: Annotated[
        Path | None,
        typer.Option(
            help="The run folder.",
            show_default="runs/ENV-AGENT-sSEED",
            metavar="DIR",
            parser=folder_name,
        ),
    ] = None
    set_: Settings = None
    env_kwargs: Annotated[
        list[str] | None,
        typer.Option(
            "--env-kwargs", metavar="NAME=VALUE ...", help="Keyword arguments of `gymnasium.make`."
        ),
    ] = None
    config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Repeat the run of this config.json or run folder; other options change it.",
        ),
    ] = None
    preset: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="An agent and its settings, as `adac tune` writes them."),
    ] = None
    start_from: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="DIR",
            help="Begin with the weights of this run. The agent is that run's, too, unless you "
            "name one. Replay buffer and optimisers are new.",
        ),
    ] = None
    with_optimisers: Annotated[
        bool,
        typer.Option("--with-optimisers", help="With --from: keep its optimiser states, too."),
    ] = False
    data: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SOURCE",
            help="Fill the buffer from a run folder, an .npz file or minari:NAME; repeatable.",
        ),
    ] = None
    offline: Annotated[int, steps_option("Updates from --data alone, before the first step.")] = 0
    reward_free: Annotated[
        bool,
        typer.Option(
            "--reward-free",
            help="Learn from the bonus alone. A later run with --from learns the task.",
        ),
    ] = False
    modules: Modules = None
    num_envs: Annotated[int, typer.Option(help="Environments side by side.")] = 1
    subprocesses: Annotated[
        bool,
        typer.Option("--subprocesses", help="One process per environment, for slow simulators."),
    ] = False
    action_repeat: Annotated[
        int, typer.Option(help="Environment steps per action. Every step counts towards --steps.")
    ] = 1
    eval_every: Annotated[int, steps_option("Steps between evaluations; 0: never.")] = 5_000
    eval_episodes: Annotated[int, typer.Option(help="Episodes of an evaluation.")] = 10
    checkpoint_every: Annotated[
        int, steps_option("Steps between checkpoints; 0: only at the end.")
    ] = 10_000
    log_every: Annotated[int, steps_option("Steps between rows of metrics.csv.")] = 1_000
    stop_return: Annotated[
        float | None,
        typer.Option(
            help="End when an evaluation's mean return reaches this.", show_default="never"
        ),
    ] = None
    save_best: Annotated[
        bool,
        typer.Option("--save-best", help="Keep the policy of the best evaluation in DIR/best."),
    ] = False
    info_keywords: Annotated[
        list[str] | None,
        typer.Option(
            "--info",
            metavar="KEYWORD",
            help="Log this number of `info` as a column of the tables; repeatable.",
        ),
    ] = None
    video_every: Annotated[
        int, steps_option("Steps between videos of the target policy, in DIR/videos; 0: none.")
    ] = 0
    tensorboard: Tensorboard = False
    wandb: Wandb = False


# How --help groups what most runs do not need.
PANELS = {
    "The task": ("env_kwargs", "modules", "num_envs", "subprocesses", "action_repeat"),
    "Begin with weights or data": (
        "start_from", "with_optimisers", "data", "offline", "reward_free",
    ),
    "While it runs": (
        "eval_every", "eval_episodes", "stop_return", "save_best", "checkpoint_every", "log_every",
        "info_keywords", "video_every", "tensorboard", "wandb",
    ),
}  # fmt: skip


def register(app: typer.Typer) -> None:
    app.command()(spelled_out(train, TrainOptions, PANELS))
    app.command()(resume)


def train(
    context: typer.Context,
    env: Annotated[
        str | None,
        typer.Argument(metavar="ENV", help="A Gymnasium id; `adac list envs` shows some."),
    ] = None,
    *,
    options: TrainOptions,
) -> None:
    """Train an agent on a task, into a run folder."""
    from adac.runs.files import locked
    from adac.runs.folder import make_folder

    import_modules(options.modules)
    past = _past(options.config)
    typed = given_options(context, TrainOptions)
    options = _with_past(options, past, typed)
    if options.steps < (0 if options.offline else 1):
        raise UserError(f"steps must be at least 1, not {options.steps}")
    schedule = _schedule(vars(options))
    if options.out is not None:
        _require_free(options.out)
    learner = _learner(env, options, past)
    folder = options.out or _fresh_folder(learner.env_id, learner.agent_name, learner.seed)
    make_folder(folder)
    horizon = None if "steps" in typed else past.get("horizon")
    more = {"tensorboard": options.tensorboard, "wandb": options.wandb, "horizon": horizon}
    with Stop() as stop, locked(folder, patience=0.0):
        _require_free(folder)  # also of one that has begun since
        _run(learner, options.steps, folder, schedule, stop, **more)


def _past(path: Path | None) -> dict[str, Any]:
    """The configuration that is to be repeated, if there is one."""
    from adac.runs.folder import read_config, read_config_file

    if path is None:
        return {}
    return read_config(path) if path.is_dir() else read_config_file(path)


def _with_past(options: TrainOptions, past: Mapping[str, Any], typed: set[str]) -> TrainOptions:
    """Whatever nobody typed is as it was.

    Of what a run's config.json says, that is: where to write, what to import and whom to send the
    results are not a file's to choose.
    """
    from adac.runs.folder import CONFIG, PLAN

    names = {field.name for field in fields(TrainOptions)} - {"agent", "env_kwargs"} - typed
    found = {name: past[name] for name in names & (CONFIG.keys() | PLAN.keys()) & past.keys()}
    if "start_from" in names and past.get("from"):
        found["start_from"] = Path(past["from"]["folder"])
    return replace(options, **found)


def _schedule(values: Mapping[str, Any]) -> Any:
    from adac.training.train import Schedule

    names = (field.name for field in fields(Schedule))
    return Schedule(**{name: values[name] for name in names if values.get(name) is not None})


def _learner(env: str | None, options: TrainOptions, past: dict[str, Any]) -> Any:
    from adac.core import presets, settings
    from adac.runs.preset import Preset, read_preset
    from adac.training.learner import Learner

    task = env or past.get("env")
    if task is None:
        raise UserError("name a task, such as `adac train Pendulum-v1`, or --config FILE")
    preset = Preset(presets.DEFAULT, {}) if options.preset is None else read_preset(options.preset)
    repeats = bool(past) and options.agent is None and options.preset is None
    agent: Any = settings.from_json(past["agent"]) if repeats else options.agent or preset.agent
    if options.start_from is not None and not (repeats or options.agent or options.preset):
        agent = None  # that run's
    changes = preset.settings | parse_settings(options.set_ or [])
    learner = Learner(
        task,
        agent,
        seed=options.seed,
        num_envs=options.num_envs,
        subprocesses=options.subprocesses,
        overrides=changes | ({"reward_free": "true"} if options.reward_free else {}),
        env_kwargs=_env_kwargs(task, options, past),
        start_from=options.start_from,
        with_optimisers=options.with_optimisers,
    )
    for source in options.data or []:
        learner.add_dataset(source)
    if repeats:
        learner.agent_name = past["agent_name"]
        learner.label = past.get("label", learner.agent_name)
    return learner


def _env_kwargs(task: str, options: TrainOptions, past: dict[str, Any]) -> dict[str, Any]:
    from adac.training.folders import task_settings

    repeated = {} if options.action_repeat == 1 else {"action_repeat": options.action_repeat}
    given = None if options.env_kwargs is None else parse_kwargs(options.env_kwargs)
    if options.config is None or past.get("env") != task:
        return (given or {}) | repeated
    return task_settings(options.config, past, given) | repeated


def resume(
    folder: RunFolder,
    modules: Modules = None,
    steps: Annotated[
        int | None,
        steps_option("Environment steps in total.", show_default="what the run was to take"),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE ...", help="Change settings from here on."),
    ] = None,
    tensorboard: Tensorboard = False,
    wandb: Wandb = False,
) -> None:
    """Continue an interrupted run, to the same bits as if it had never stopped."""
    from adac.runs.files import locked
    from adac.runs.folder import read_config
    from adac.training.learner import Learner

    config = read_config(folder)
    planned = steps if steps is not None else config.get("steps")
    if planned is None:
        raise UserError(f"{folder} does not say how long to train: give --steps")
    total = int(planned)
    import_modules(modules)
    with Stop() as stop, locked(folder, patience=0.0):
        learner = Learner.load(folder, overrides=parse_settings(set_ or []))
        schedule = _schedule(config)
        if steps is not None and steps < learner.step:
            raise UserError(f"{folder} is at step {learner.step:,} already, past --steps {steps:,}")
        if learner.step - total >= learner.loop.environments.stride:  # a plan of another version
            total = learner.step
        evaluated = not schedule.eval_every or learner.evaluated == learner.step
        if learner.step >= total and evaluated:
            print(
                f"{folder} is at step {learner.step:,} already; give a larger --steps to continue"
            )
            return
        if steps is None and _reached(folder, learner.step, config.get("stop_return")):
            print(f"{folder} has reached its stop_return; give --steps to continue")
            return
        horizon = config.get("horizon") if steps is None else None
        options = {"tensorboard": tensorboard, "wandb": wandb, "horizon": horizon}
        _run(learner, total, folder, schedule, stop, **options)


def _reached(folder: Path, step: int, goal: float | None) -> bool:
    """Whether the run ended because an evaluation returned as much as it was to."""
    from adac.runs.csv_table import number_in, read_table

    last = (read_table(folder / "evaluations.csv") or [{}])[-1]
    reached = number_in(last, "mean_return")
    if goal is None or reached is None:
        return False
    return last["step"] == str(step) and reached >= goal


def _run(learner: Any, until: int, folder: Path, schedule: Any, stop: Stop, **options: Any) -> None:
    from adac.runs.checkpoint import Store
    from adac.training.train import train as train_until

    print(
        f"{learner.agent_name} on {learner.env_id}, seed {learner.seed}, "
        f"from step {learner.step:,} to {until:,}, into {folder}"
    )
    try:
        finished = train_until(
            learner, until, schedule, out=folder, progress_bar=True, stop=stop, **options
        )
    except RunError as error:
        last = Store(folder / "checkpoint").last_step()
        if last is None or not (folder / "config.json").exists():  # there is nothing to resume yet
            raise
        raise RunError(
            f"{error}; the last good checkpoint is of step {last:,}: `adac resume {folder}`"
        ) from error
    finally:
        learner.close()
    if finished:
        print(f"done: {folder}")
        print(f"next: adac plot {folder}, adac eval {folder} --video policy.mp4")
        doctor.warn(folder)
    else:
        print(f"stopped at step {learner.step:,} and saved; continue with: adac resume {folder}")
        raise typer.Exit(128 + stop.signal)


def _require_free(folder: Path) -> None:
    if os.path.exists(folder / "config.json"):  # False also where the name is too long
        raise UserError(
            f"{folder} already holds a run: continue it with `adac resume {folder}`, "
            "or choose another --out"
        )


def _fresh_folder(env: str, agent: str, seed: int) -> Path:
    """runs/ENV-AGENT-sSEED, with a number behind it if that is taken; made, so it is taken now."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", f"{env.split('/')[-1]}-{agent}-s{seed}")
    for number in count(1):
        folder = Path("runs") / (name if number == 1 else f"{name}-{number}")
        try:
            folder.mkdir(parents=True)
            break
        except FileExistsError:
            continue
    return folder

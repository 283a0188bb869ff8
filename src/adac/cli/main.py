"""The `adac` command."""

import io
import os
import re
import signal
import sys
import traceback
import warnings
from dataclasses import fields
from itertools import count
from pathlib import Path
from typing import Annotated, Any

import typer

from adac.cli import doctor, listing, policies
from adac.cli import experiments as commands
from adac.cli import reports as report_commands
from adac.cli.options import Modules, import_modules, parse_settings
from adac.cli.policies import RunFolder
from adac.cli.stop import Stop
from adac.errors import AdacError, RunError, UserError

app = typer.Typer(
    help="Exploration in continuous control: train, watch, evaluate, save and resume.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
reproduce = typer.Typer(help="Repeat the experiments of the paper.", no_args_is_help=True)
app.add_typer(reproduce, name="reproduce")
policies.register(app)
doctor.register(app)
commands.register(app, reproduce)
report_commands.register_report(app, reproduce)
listing.register(app)


@app.callback()
def options(
    debug: Annotated[
        bool,
        typer.Option("--debug", help="Show the traceback of a failure (anywhere on the line)."),
    ] = False,
) -> None:
    """Exploration in continuous control: train, watch, evaluate, save and resume."""


Tensorboard = Annotated[
    bool, typer.Option("--tensorboard", help="Write TensorBoard event files too.")
]
Wandb = Annotated[bool, typer.Option("--wandb", help="Log to Weights & Biases (works offline).")]


def _folder_name(text: str) -> Path:
    if not text.strip():  # an unset variable of a script, not the folder one happens to be in
        raise typer.BadParameter("name a folder; '.' is the one you are in")
    return Path(text)


@app.command()
def train(
    env: Annotated[str, typer.Argument(metavar="ENV", help="A Gymnasium id: `adac list envs`.")],
    agent: Annotated[str, typer.Option(help="A named agent: `adac list agents`.")] = "adac-td3",
    steps: Annotated[int, typer.Option(help="Environment steps.")] = 100_000,
    seed: Annotated[int, typer.Option(help="The same seed gives the same run, bit for bit.")] = 0,
    out: Annotated[
        Path | None,
        typer.Option(
            help="The run folder.",
            show_default="runs/ENV-AGENT-sSEED",
            metavar="DIR",
            parser=_folder_name,
        ),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE ...", help="Override settings of the agent."),
    ] = None,
    modules: Modules = None,
    num_envs: Annotated[int, typer.Option(help="Environments side by side.")] = 1,
    action_repeat: Annotated[
        int, typer.Option(help="Environment steps per action. Every step counts towards --steps.")
    ] = 1,
    eval_every: Annotated[int, typer.Option(help="Steps between evaluations; 0: never.")] = 5_000,
    eval_episodes: Annotated[int, typer.Option(help="Episodes of an evaluation.")] = 10,
    checkpoint_every: Annotated[
        int, typer.Option(help="Steps between checkpoints; 0: only at the end.")
    ] = 10_000,
    log_every: Annotated[int, typer.Option(help="Steps between rows of metrics.csv.")] = 1_000,
    stop_return: Annotated[
        float | None,
        typer.Option(
            help="End when an evaluation's mean return reaches this.", show_default="never"
        ),
    ] = None,
    save_best: Annotated[
        bool, typer.Option("--save-best", help="Keep the best evaluation's policy, in DIR/best.")
    ] = False,
    tensorboard: Tensorboard = False,
    wandb: Wandb = False,
) -> None:
    """Train an agent on a task, into a run folder."""
    from adac.runs.files import locked
    from adac.runs.folder import make_folder
    from adac.training.learner import Learner
    from adac.training.train import Schedule

    if steps < 1:
        raise UserError(f"steps must be at least 1, not {steps}")
    schedule = Schedule(
        eval_every, eval_episodes, checkpoint_every, log_every, stop_return, save_best
    )
    overrides = parse_settings(set_ or [])
    import_modules(modules)
    if out is not None:
        _require_free(out)
    learner = Learner(
        env,
        agent,
        seed=seed,
        num_envs=num_envs,
        overrides=overrides,
        env_kwargs={} if action_repeat == 1 else {"action_repeat": action_repeat},
    )
    folder = _fresh_folder(env, agent, seed) if out is None else out
    make_folder(folder)
    with Stop() as stop, locked(folder, patience=0.0):
        _require_free(folder)  # also of one that has begun since
        _run(learner, steps, folder, schedule, stop, tensorboard=tensorboard, wandb=wandb)


@app.command()
def resume(
    folder: RunFolder,
    modules: Modules = None,
    steps: Annotated[
        int | None,
        typer.Option(help="Environment steps in total.", show_default="what the run was to take"),
    ] = None,
    tensorboard: Tensorboard = False,
    wandb: Wandb = False,
) -> None:
    """Continue an interrupted run, to the same bits as if it had never stopped."""
    from adac.runs.files import locked
    from adac.runs.folder import read_config
    from adac.training.learner import Learner
    from adac.training.train import Schedule

    config = read_config(folder)
    planned = steps if steps is not None else config.get("steps")
    if planned is None:
        raise UserError(f"{folder} does not say how long to train: give --steps")
    total = int(planned)
    import_modules(modules)
    with Stop() as stop, locked(folder, patience=0.0):
        learner = Learner.load(folder)
        schedule = Schedule(
            **{f.name: config[f.name] for f in fields(Schedule) if f.name in config}
        )
        if steps is not None and steps < learner.step:
            raise UserError(f"{folder} is at step {learner.step:,} already, past --steps {steps:,}")
        total = max(total, learner.step)  # where several environments stepped past it
        evaluated = not schedule.eval_every or learner.evaluated == learner.step
        if learner.step >= total and evaluated:
            print(f"{folder} is at step {learner.step:,} already; train on with --steps")
            return
        if steps is None and _reached(folder, learner.step, config.get("stop_return")):
            print(f"{folder} has reached its stop_return; train on with --steps")
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
        if last is None:
            raise
        raise RunError(
            f"{error}; the last good checkpoint is of step {last:,}: `adac resume {folder}`"
        ) from error
    finally:
        learner.close()
    if finished:
        print(f"done: {folder}")
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


@reproduce.command()
def theorem(
    mdps: Annotated[int, typer.Option(help="How many random MDPs.")] = 20_000,
    seed: Annotated[int, typer.Option(help="Seed of the MDPs.")] = 0,
    out: Annotated[Path, typer.Option(help="Where the PNG and the CSV go.")] = Path("theorem"),
) -> None:
    """Check Theorem 1 on random tabular MDPs, with counter-examples where it fails."""
    from adac.experiments.paper.theorem import run

    run(mdps, seed, out)


def expand_settings(arguments: list[str]) -> list[str]:
    """`--set a=1 b=2` as `--set a=1 --set b=2`."""
    expanded: list[str] = []
    setting = False
    for argument in arguments:
        if argument == "--set":
            setting = True
            continue
        if setting and (argument.startswith("-") or "=" not in argument):
            setting = False
        expanded += ["--set", argument] if setting else [argument]
    return expanded


def main(arguments: list[str] | None = None) -> None:
    """Run the command; every failure is one sentence on stderr and an exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal may not know ± or μ
    words = sys.argv[1:] if arguments is None else arguments
    given = [word for word in words if word != "--debug"]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("default", UserWarning)
            warnings.showwarning = _show_warning
            app(args=expand_settings(given))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except Exception as error:
        sys.exit(_explain(error, debug=given != words))
    finally:
        if arguments is None:  # all is said and saved: what is left is Python's own way out
            signal.signal(signal.SIGINT, signal.SIG_IGN)


def _explain(error: Exception, *, debug: bool) -> int:
    if debug:
        traceback.print_exception(error)
    text = f"{type(error).__name__}: {error} (--debug shows where)"
    if isinstance(error, AdacError):
        text = str(error)
    elif isinstance(error, OSError) and error.filename and error.strerror:
        text = f"{error.filename}: {error.strerror}"
    print(f"adac: {text}", file=sys.stderr)
    return error.exit_code if isinstance(error, AdacError) else 1


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    print(f"adac: warning: {message}", file=sys.stderr)


if __name__ == "__main__":
    main()

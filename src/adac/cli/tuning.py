"""`adac tune`: better settings for a task."""

import re
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from adac.cli.options import (
    Address,
    Jobs,
    Modules,
    Settings,
    folder_name,
    import_modules,
    parse_settings,
    spelled_out,
    steps_option,
)
from adac.errors import UserError

SHOWN = 10  # rows of the table


@dataclass(frozen=True)
class TuneOptions:
    """What `adac tune` takes besides the task."""

    agent: Annotated[str, typer.Option(help="A named agent: `adac list agents`.")] = "adac-td3"
    trials: Annotated[int, typer.Option(help="How many settings to try.")] = 50
    steps: Annotated[int, steps_option("Environment steps of a trial.")] = 50_000
    out: Annotated[
        Path | None,
        typer.Option(
            help="The folder of the search.",
            show_default="tunings/ENV-AGENT",
            metavar="DIR",
            parser=folder_name,
        ),
    ] = None
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="NAME", help="Tune only this setting; repeatable."),
    ] = None
    set_: Settings = None
    modules: Modules = None
    seed: Annotated[
        int, typer.Option(help="Seed of the first trial; the others count on from it.")
    ] = 0
    eval_episodes: Annotated[int, typer.Option(help="Episodes of an evaluation.")] = 10
    num_envs: Annotated[int, typer.Option(help="Environments side by side.")] = 1
    jobs: Jobs = None
    address: Address = None
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List the settings and their ranges, and stop.")
    ] = False


def register(app: typer.Typer) -> None:
    app.command()(spelled_out(tune, TuneOptions))


def tune(
    env: Annotated[
        str, typer.Argument(metavar="ENV", help="A Gymnasium id; `adac list envs` shows some.")
    ],
    *,
    options: TuneOptions,
) -> None:
    """Search for better settings of an agent on a task. The same command continues a search."""
    from adac.experiments.sweeps.suites import require_task
    from adac.experiments.tuning.study import Plan

    import_modules(options.modules)
    require_task(env)
    if options.trials < 1:
        raise UserError(f"trials must be at least 1, not {options.trials}")
    plan = Plan(
        env,
        options.agent,
        options.steps,
        options.seed,
        options.eval_episodes,
        options.num_envs,
        parse_settings(options.set_ or []),
        tuple(name.replace("-", "_") for name in options.only or ()),
    )
    space = plan.space()
    if options.dry_run:
        for one in space.values():
            print(f"{one.name}: {one}  (now {one.value})  {one.sentence}")
        return
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", f"{env.split('/')[-1]}-{options.agent}")
    _tune(plan, options.out or Path("tunings") / name, options)


def _tune(plan: Any, folder: Path, options: TuneOptions) -> None:
    from adac.experiments.tuning import tune as tuning

    how = tuning.Options(folder, options.trials, options.jobs, options.address)
    try:
        found = tuning.tune(plan, how)
    except KeyboardInterrupt as stop:
        print("interrupted: the same command goes on from the last checkpoints")
        raise typer.Exit(128 + int(stop.args[0] if stop.args else signal.SIGINT)) from None
    _show(found)
    print(f"train with it: adac train {plan.task} --preset {found.files[-1]}")


def _show(found: Any) -> None:
    from rich.console import Console
    from rich.table import Table

    names = sorted({name for row in found.rows for name in row.settings})
    table = Table(box=None, header_style="bold")
    for name in ("trial", "score"):
        table.add_column(name, no_wrap=True)
    for name in names:
        table.add_column(name, overflow="fold")  # a number that is cut is another number
    for row in found.rows[:SHOWN]:
        score = row.state if row.score is None or row.state != "complete" else f"{row.score:,.1f}"
        values = (row.settings.get(name, "") for name in names)
        cells = (f"{v:.3g}" if isinstance(v, float) else str(v) for v in values)
        table.add_row(f"{row.number}{' (as it was)' if row.number == 0 else ''}", score, *cells)
    Console().print(table)
    for name, share in found.importances.items():
        print(f"{name}: {share:.0%} of the difference")
    for path in found.files:
        print(path)

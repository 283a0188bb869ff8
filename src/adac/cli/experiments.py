"""`adac sweep` and `adac reproduce NAME`."""

import dataclasses
import re
import signal
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from adac.cli.options import Address, Jobs, spelled_out, steps_option
from adac.errors import UserError
from adac.experiments.analysis import figures
from adac.experiments.sweeps import suite_files, suites
from adac.experiments.sweeps.suites import PAPER, SUITES, Suite
from adac.experiments.sweeps.trials import Trial, checkpoint_step, is_done


@dataclasses.dataclass(frozen=True)
class SweepOptions:
    """What `sweep` and every `reproduce` take."""

    seeds: Annotated[
        str | None,
        typer.Option(
            help="How many (5), a list (0,2,7) or a range (3-6).", show_default="the sweep's"
        ),
    ] = None
    steps: Annotated[
        int | None, steps_option("Environment steps of a trial.", show_default="the sweep's")
    ] = None
    task: Annotated[list[str] | None, typer.Option(help="Only this task; repeatable.")] = None
    agent: Annotated[
        list[str] | None, typer.Option(help="Only this agent or variant; repeatable.")
    ] = None
    jobs: Jobs = None
    address: Address = None
    out: Annotated[Path, typer.Option(help="Each sweep gets a folder in here.")] = Path("sweeps")
    publish: Annotated[
        bool,
        typer.Option("--publish", help="Keep small text results of finished trials in --results."),
    ] = False
    results: Annotated[Path, typer.Option(help="Where --publish puts them.")] = Path("results")
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List the trials and stop.")] = False


def register(app: typer.Typer, reproduce: typer.Typer) -> None:
    """Add the commands to the program."""
    app.command()(spelled_out(sweep, SweepOptions))
    for name, suite in PAPER.items():
        command = spelled_out(partial(_reproduce, name), SweepOptions)
        reproduce.command(name, help=f"{suite.title}.")(command)


def sweep(
    what: Annotated[
        str,
        typer.Argument(metavar="FILE.toml|NAME", help=f"A file, or one of {', '.join(SUITES)}."),
    ],
    options: SweepOptions,
) -> None:
    """Run many trials on all cores or on a cluster. The same command continues a sweep."""
    if _run(_suite(what, options), options):
        raise typer.Exit(1)


def _reproduce(name: str, options: SweepOptions) -> None:
    suite, folder = _suite(name, options), options.out / name
    failed = _run(suite, options)
    if not options.dry_run:
        for path in figures.draw(suite.figure, [folder], folder / "figures", name):
            print(path)
    if failed:
        raise typer.Exit(1)


def _suite(what: str, options: SweepOptions) -> Suite:
    suite = suites.narrow(suite_files.find(what), options.task or [], options.agent or [])
    if options.seeds is not None:
        suite = dataclasses.replace(suite, seeds=suites.parse_seeds(options.seeds))
    if options.steps is not None:
        suite = dataclasses.replace(suite, steps=options.steps)
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", suite.name):
        raise UserError(
            f"'{suite.name}' cannot be the name of a sweep: use letters, digits, dots and dashes"
        )
    return suite


def _run(suite: Suite, options: SweepOptions) -> bool:
    """Whether a trial failed."""
    from adac.experiments.sweeps import sweep  # needs the extra `experiments`

    trials = suites.trials(suite)
    if suite.title:
        print(suite.title)
    folder = options.out / suite.name
    if options.dry_run:
        _list(trials, folder)
        return False
    published = options.results / suite.name if options.publish else None
    try:
        outcome = sweep.run(
            suite.name, trials, sweep.Options(folder, options.jobs, options.address, published)
        )
    except KeyboardInterrupt as stop:
        print("interrupted: the same command continues from the last checkpoints")
        raise typer.Exit(128 + int(stop.args[0] if stop.args else signal.SIGINT)) from None
    print(f"{outcome.done} of {len(trials)} trials are finished, in {folder}")
    for name, reason in outcome.failed.items():
        print(f"failed twice: {name}: {reason} (see {folder / name / 'failure.txt'})")
    return bool(outcome.failed)


def _list(trials: list[Trial], folder: Path) -> None:
    for trial in trials:
        step = checkpoint_step(folder / trial.id)
        done = is_done(folder / trial.id)
        state = "finished" if done else f"at step {step:,}" if step else "not begun"
        print(f"{trial.id}  {trial.steps:,} steps  {state}")
    total = sum(trial.steps for trial in trials)
    print(f"{len(trials)} trials, {total:,} steps in all")

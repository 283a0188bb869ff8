"""`adac sweep` and `adac reproduce NAME`."""

import dataclasses
import importlib
import importlib.util
import re
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from adac.errors import UserError

if TYPE_CHECKING:
    from adac.experiments.suites import Suite
    from adac.experiments.trials import Trial

Seeds = Annotated[
    str | None,
    typer.Option(help="How many (5), a list (0,2,7) or a range (3-6).", show_default="the sweep's"),
]
Steps = Annotated[
    int | None, typer.Option(help="Environment steps of a trial.", show_default="the sweep's")
]
Tasks = Annotated[list[str] | None, typer.Option("--task", help="Only this task; repeatable.")]
Agents = Annotated[
    list[str] | None, typer.Option("--agent", help="Only this agent or variant; repeatable.")
]
Jobs = Annotated[
    int | None, typer.Option(help="Trials at once on this machine.", show_default="one a core")
]
Address = Annotated[
    str | None, typer.Option(help="A running Ray cluster: host:port, or auto.", metavar="HOST:PORT")
]
Out = Annotated[Path, typer.Option(help="Each sweep gets a folder in here.")]
Publish = Annotated[
    bool, typer.Option("--publish", help="Keep small text results of finished trials in --results.")
]
Results = Annotated[Path, typer.Option(help="Where --publish puts them.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be run, and stop.")]

PAPER = ("cartpole", "contamination", "sparse", "benchmark", "ablation")
_SHORT = {
    "cartpole": "Figure 3: exploration on the modified CartPole, seven agents.",
    "contamination": "Figure 4: an intrinsic reward in the task's critic, and beside it.",
    "sparse": "Figure 5: four tasks with sparse rewards, seven agents.",
    "benchmark": "Table 2 and Figure 6: fourteen tasks, six agents.",
    "ablation": "Each choice between the paper's SVGD and ours, on the small tasks.",
}


def register(app: typer.Typer, reproduce: typer.Typer) -> None:
    """Add the commands to the program."""
    app.command()(sweep)
    for name in PAPER:
        reproduce.command(name, help=_SHORT[name])(_reproducer(name))


def sweep(
    what: Annotated[
        str, typer.Argument(metavar="FILE.toml|NAME", help=f"A file, or one of {', '.join(PAPER)}.")
    ],
    seeds: Seeds = None,
    steps: Steps = None,
    task: Tasks = None,
    agent: Agents = None,
    jobs: Jobs = None,
    address: Address = None,
    out: Out = Path("sweeps"),
    publish: Publish = False,
    results: Results = Path("results"),
    dry_run: DryRun = False,
) -> None:
    """Run many trials on all cores or a cluster; run it again to continue what was interrupted."""
    suite = _suite(what, seeds, steps, task, agent)
    if _run(suite, out, jobs, address, results if publish else None, dry_run):
        raise typer.Exit(1)


def _reproducer(name: str):  # type: ignore[no-untyped-def]  # typer reads the inner signature
    def command(
        seeds: Seeds = None,
        steps: Steps = None,
        task: Tasks = None,
        agent: Agents = None,
        jobs: Jobs = None,
        address: Address = None,
        out: Out = Path("sweeps"),
        publish: Publish = False,
        results: Results = Path("results"),
        dry_run: DryRun = False,
    ) -> None:
        suite = _suite(name, seeds, steps, task, agent)
        failed = _run(suite, out, jobs, address, results if publish else None, dry_run)
        if not dry_run:
            _draw(name, out / name)
        if failed:
            raise typer.Exit(1)

    return command


def _suite(
    what: str,
    seeds: str | None,
    steps: int | None,
    tasks: list[str] | None,
    agents: list[str] | None,
) -> "Suite":
    from adac.experiments import suites

    suite = suites.narrow(suites.find(what), tasks or [], agents or [])
    if seeds is not None:
        suite = dataclasses.replace(suite, seeds=suites.parse_seeds(seeds))
    if steps is not None:
        suite = dataclasses.replace(suite, steps=steps)
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", suite.name):
        raise UserError(f"'{suite.name}' is no name for a sweep: letters, digits, dots and dashes")
    return suite


def _run(
    suite: "Suite",
    out: Path,
    jobs: int | None,
    address: str | None,
    results: Path | None,
    dry_run: bool,
) -> bool:
    from adac.experiments import suites
    from adac.experiments.sweep import Options, run

    trials = suites.trials(suite)
    folder = out / suite.name
    if dry_run:
        _list(trials, folder)
        return False
    published = None if results is None else results / suite.name
    try:
        outcome = run(suite.name, trials, Options(folder, jobs, address, published))
    except KeyboardInterrupt as stop:
        print("interrupted: the same command continues from the last checkpoints")
        raise typer.Exit(128 + int(stop.args[0] if stop.args else signal.SIGINT)) from None
    print(f"{outcome.done} of {len(trials)} trials are finished, in {folder}")
    for name, reason in outcome.failed.items():
        print(f"failed twice: {name}: {reason} (see {folder / name / 'failure.txt'})")
    return bool(outcome.failed)


def _list(trials: "list[Trial]", folder: Path) -> None:
    from adac.experiments.trials import checkpoint_step, is_done

    for trial in trials:
        step = checkpoint_step(folder / trial.id)
        done = is_done(folder / trial.id)
        state = "finished" if done else f"at step {step:,}" if step else "not begun"
        print(f"{trial.id}  {trial.steps:,} steps  {state}")
    total = sum(trial.steps for trial in trials)
    print(f"{len(trials)} trials, {total:,} steps in all")


def _draw(name: str, folder: Path) -> None:
    """The experiment's figures, from its trials' folders."""
    if importlib.util.find_spec("adac.experiments.figures") is None:
        return
    figures = importlib.import_module("adac.experiments.figures")
    for path in figures.draw(name, folder, folder / "figures") or ():
        print(path)

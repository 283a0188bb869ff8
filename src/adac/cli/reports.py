"""`adac plot`, `adac figure`, `adac report` and `adac reproduce svgd`: what is made of runs."""

from pathlib import Path
from typing import Annotated

import typer

from adac.cli.help import App
from adac.experiments.analysis import figures
from adac.experiments.analysis.sheet import Look

Folders = Annotated[
    list[Path],
    typer.Argument(
        metavar="DIR...",
        help="Run folders, or folders of them at any depth; also files of `adac results export`.",
    ),
]


def register_report(app: typer.Typer, reproduce: typer.Typer) -> None:
    app.command()(plot)
    app.command()(figure)
    app.command()(report)
    reproduce.command()(svgd)
    results = App(help="Exchange results with other programs.")
    results.command()(export)
    app.add_typer(results, name="results")


def plot(
    folders: Folders,
    out: Annotated[
        Path | None,
        typer.Option(
            "-o", "--out", help="The picture: .png, .svg or .pdf.", show_default="DIR's name, .png"
        ),
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(
            help="A column of metrics.csv or evaluations.csv, e.g. bias or spread.",
            show_default="returns of the target policy",
        ),
    ] = None,
    smooth: Annotated[
        int, typer.Option(help="Running mean of each seed, over this many points on either side.")
    ] = 0,
    seeds: Annotated[
        bool, typer.Option("--seeds", help="A thin line for each seed instead of a band.")
    ] = False,
    hours: Annotated[
        bool, typer.Option("--hours", help="Over hours of training instead of steps.")
    ] = False,
    ours_only: Annotated[
        bool,
        typer.Option("--ours-only", help="Without the returns that others have published."),
    ] = False,
) -> None:
    """Draw learning curves; runs that differ only in their seed become a mean and a band."""
    look = Look(smooth, seeds, hours, published=not ours_only)
    print(figures.plot(folders, out, metric, look))


def report(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="A run folder, or a folder of them at any depth.")
    ],
    out: Annotated[Path, typer.Option("-o", "--out", help="The page.")] = Path("report.html"),
    title: Annotated[
        str | None, typer.Option(help="Title of the page.", show_default="DIR's name")
    ] = None,
) -> None:
    """Write one HTML page: learning curves, final table, snapshots, settings."""
    from adac.experiments.analysis.report import write_report

    notes = write_report(folder, out, title)
    for note in notes:
        print(f"note: {note}")
    print(out)


def figure(
    kind: Annotated[
        str, typer.Argument(metavar="KIND", help=f"One of {', '.join(figures.KINDS)}.")
    ],
    folders: Folders,
    out: Annotated[Path, typer.Option("-o", "--out", help="Where PNG, SVG and CSV go.")] = Path(),
    stem: Annotated[
        str | None, typer.Option("--as", help="Name of the files.", show_default="DIR's, or KIND")
    ] = None,
) -> None:
    """Draw a figure of any runs, with its numbers and the table of final scores."""
    for path in figures.draw(kind, folders, out, stem):
        print(path)


def export(
    folders: Folders,
    out: Annotated[Path, typer.Option("-o", "--out", help="The file.")] = Path("results.csv"),
) -> None:
    """Write every evaluation as CSV, in the columns that SimbaV2 publishes."""
    from adac.experiments.analysis.exchange import Record, write
    from adac.experiments.analysis.results import read_results

    found = read_results(*folders)
    for note in found.notes:
        print(f"note: {note}")
    groups = found.all_groups()
    write((Record(g.label, g.env, r.seed, r.returns) for g in groups for r in g.runs), out)
    print(out)


def svgd(
    seeds: Annotated[
        str, typer.Option(help="How many (5), a list (0,2,7) or a range (3-6).")
    ] = "1",
    steps: Annotated[int, typer.Option(help="Amortised steps for each sampler.")] = 2_000,
    particles: Annotated[int, typer.Option(help="K, of both forms.")] = 32,
    out: Annotated[Path, typer.Option(help="Where PNG, SVG and CSV go.")] = Path("svgd"),
    publish: Annotated[
        bool, typer.Option("--publish", help="Keep what each sampler reached in --results.")
    ] = False,
    results: Annotated[Path, typer.Option(help="Where --publish puts it.")] = Path("results"),
) -> None:
    """Draw Figure 1: amortised SVGD under several β, in the paper's form and in ours."""
    from adac.experiments.paper.svgd_figure import run
    from adac.experiments.sweeps.suites import parse_seeds

    for path in run(out, parse_seeds(seeds), steps, results if publish else None, particles):
        print(path)

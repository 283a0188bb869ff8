"""`adac report`, `adac figure` and `adac reproduce svgd`."""

from pathlib import Path
from typing import Annotated

import typer


def register_report(app: typer.Typer, reproduce: typer.Typer) -> None:
    app.command()(report)
    app.command()(figure)
    reproduce.command()(svgd)


def report(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="A run folder, or a folder of them at any depth.")
    ],
    out: Annotated[Path, typer.Option("-o", "--out", help="The page.")] = Path("report.html"),
    title: Annotated[
        str | None, typer.Option(help="At the top of the page.", show_default="DIR's name")
    ] = None,
) -> None:
    """One self-contained page: learning curves, final table, snapshots, settings."""
    from adac.experiments.analysis.report import write_report

    notes = write_report(folder, out, title)
    for note in notes:
        print(f"note: {note}")
    print(out)


def figure(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="An experiment, as in `adac reproduce`.")
    ],
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="A folder of trials, such as results/NAME.")
    ],
    out: Annotated[Path, typer.Option("-o", "--out", help="Where PNG, SVG and CSV go.")] = Path(),
    stem: Annotated[
        str | None, typer.Option("--as", help="Their name.", show_default="NAME")
    ] = None,
) -> None:
    """An experiment's figure, its numbers and its table, from trials that were run before."""
    from adac.experiments.analysis.figures import draw

    for path in draw(name, folder, out, stem):
        print(path)


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
    """Figure 1: amortised SVGD under several β on two densities, the paper's form and ours."""
    from adac.experiments.paper.svgd_figure import run
    from adac.experiments.sweeps.suites import parse_seeds

    for path in run(out, parse_seeds(seeds), steps, results if publish else None, particles):
        print(path)

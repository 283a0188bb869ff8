"""`adac report` and `adac reproduce svgd`."""

from pathlib import Path
from typing import Annotated

import typer


def register_report(app: typer.Typer, reproduce: typer.Typer) -> None:
    app.command()(report)
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
    from adac.experiments.report import write_report

    notes = write_report(folder, out, title)
    for note in notes:
        print(f"note: {note}")
    print(out)


def svgd(
    seed: Annotated[int, typer.Option(help="Of the samplers.")] = 0,
    steps: Annotated[int, typer.Option(help="Amortised steps for each sampler.")] = 2_000,
    out: Annotated[Path, typer.Option(help="Where PNG, SVG and CSV go.")] = Path("svgd"),
) -> None:
    """Figure 1: amortised SVGD under several β on two densities, the paper's form and ours."""
    from adac.experiments.svgd_figure import run

    for path in run(out, seed, steps):
        print(path)

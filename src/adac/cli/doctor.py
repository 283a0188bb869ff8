"""`adac doctor`: what a run's tables say, in words."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from adac.runs.doctor import Finding, Level
from adac.runs.doctor import doctor as look_at

MARKS = {Level.fine: ("ok", "green"), Level.doubtful: ("?", "yellow"), Level.wrong: ("!!", "red")}


def register(app: typer.Typer) -> None:
    app.command()(doctor)


def doctor(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR...", help="Run folders.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say what a run's metrics mean, and which setting may help where something is wrong."""
    found = {str(folder): look_at(folder) for folder in folders}
    if as_json:
        rows = {name: [finding._asdict() for finding in all_] for name, all_ in found.items()}
        print(json.dumps(rows, ensure_ascii=False))
        return
    console = Console(highlight=False, soft_wrap=True)
    for name, findings in found.items():
        console.print(name, style="bold", markup=False)
        for finding in findings:
            console.print(_line(finding))
        if not findings:
            console.print("  too few rows in metrics.csv and evaluations.csv to judge by")


def warn(folder: Path) -> None:
    """After training: what is clearly wrong, if anything is."""
    for finding in look_at(folder):
        if finding.level is Level.wrong:
            print(f"{finding.subject}: {finding.says}; try {finding.advice}")


def _line(finding: Finding) -> Text:
    mark, colour = MARKS[finding.level]
    line = Text.assemble(f"  {mark:<3}", (f"{finding.subject}: ", "bold"), finding.says)
    line.stylize(colour, 2, 5)
    if finding.advice:
        line.append(f"\n     try {finding.advice}", "cyan")
    return line

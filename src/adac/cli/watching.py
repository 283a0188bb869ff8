"""`adac watch`: a run while it goes on, in a browser."""

import contextlib
from pathlib import Path
from typing import Annotated

import typer

from adac.errors import UserError


def register(app: typer.Typer) -> None:
    app.command()(watch)


def watch(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="A run folder, or a folder of them at any depth.")
    ],
    port: Annotated[int, typer.Option(help="Port on this machine; 0 takes a free one.")] = 8700,
    open_: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
) -> None:
    """Show a run in the browser while it goes on: curves, where μ and π go, the last video."""
    from adac.experiments.watching.server import Server

    if not folder.is_dir():
        raise UserError(f"{folder} is not a folder")
    with Server(folder, port) as server:
        print(f"{server.address} shows {folder} to this machine only; Ctrl-C ends it", flush=True)
        if open_:
            typer.launch(server.address)
        with contextlib.suppress(KeyboardInterrupt):
            server.serve_forever()

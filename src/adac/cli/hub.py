"""`adac push` and `adac pull`: runs to and from the Hugging Face hub."""

from pathlib import Path
from typing import Annotated

import typer

from adac.cli.options import Modules, folder_name, import_modules
from adac.cli.policies import RunFolder

Repository = Annotated[str, typer.Argument(metavar="USER/NAME", help="A repository of the hub.")]


def register(app: typer.Typer) -> None:
    app.command()(push)
    app.command()(pull)


def push(
    folder: RunFolder,
    repository: Repository,
    modules: Modules = None,
    private: Annotated[
        bool, typer.Option("--private", help="Make a new repository private.")
    ] = False,
) -> None:
    """Upload a run to the Hugging Face hub: policy, weights, curves, a video and a model card."""
    from adac.experiments.hub.push import push as upload

    import_modules(modules)
    print(upload(folder, repository, private=private))


def pull(
    repository: Repository,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The folder.", show_default="NAME", parser=folder_name),
    ] = None,
    revision: Annotated[
        str | None, typer.Option(help="A commit, branch or tag.", show_default="the newest")
    ] = None,
) -> None:
    """Download a run from the Hugging Face hub. All of it is checked, and no code of it runs."""
    from adac.experiments.hub.pull import pull as download

    folder = Path(repository.rpartition("/")[2]) if out is None else out
    names = download(repository, folder, revision=revision)
    print(f"{folder}: {len(names)} files; try: adac eval {folder}")

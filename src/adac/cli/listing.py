"""`adac list`: the named agents, the tasks, and every setting with its meaning."""

import sys
from enum import StrEnum
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Column, Table

from adac.cli.options import Modules, import_modules, parse_settings
from adac.errors import UserError


class Listing(StrEnum):
    agents = "agents"
    envs = "envs"
    settings = "settings"


def register(app: typer.Typer) -> None:
    app.command("list")(list_)


def list_(
    what: Annotated[Listing, typer.Argument(help="What to list.")],
    agent: Annotated[
        str | None, typer.Argument(help="Whose settings.", show_default="adac-td3")
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE ...", help="With these settings changed."),
    ] = None,
    modules: Modules = None,
) -> None:
    """List the named agents, the tasks of the paper, or what each setting of an agent means."""
    if what is not Listing.settings and (agent or set_):
        raise UserError(f"`adac list {what}` lists all of them: leave '{agent or set_}' out")
    import_modules(modules)
    console = Console(width=None if sys.stdout.isatty() else 120)
    if what is Listing.settings:
        console.print(_settings_table(agent, set_ or []))
    else:
        console.print(_agents_table() if what is Listing.agents else _envs_table())
    if what is Listing.envs:
        console.print("Any other Gymnasium id with continuous actions works too, also module:Id.")


def _agents_table() -> Table:
    from adac.core.presets import AGENTS, DEFAULT

    table = Table("agent", "what it is", box=None, pad_edge=False)
    for name, (text, _) in AGENTS.items():
        table.add_row(f"[bold]{name}[/]" if name == DEFAULT else name, text)
    return table


def _envs_table() -> Table:
    from adac import envs

    task = Column("task", no_wrap=True)  # to be copied, however narrow the terminal
    table = Table(task, "group", "observations", "actions", "extra", box=None, pad_edge=False)
    for one in (*envs.SUITE, *envs.EXTRAS):
        table.add_row(one.id, one.group, str(one.obs_dim), str(one.action_dim), one.extra)
    return table


def _settings_table(agent: str | None, changes: list[str]) -> Table:
    from adac.core import presets, settings

    chosen = settings.override(presets.make(agent or presets.DEFAULT), parse_settings(changes))
    name = Column("setting", no_wrap=True)
    table = Table("part", name, "value", "what it means", box=None, pad_edge=False)
    before = ""
    for line in settings.describe(chosen):
        part = f"{line.part} {line.kind}" if line.part else line.kind
        table.add_row(
            "" if part == before else part, line.name, settings.typed(line.value), line.sentence
        )
        before = part
    return table

"""Options that several commands share, and how their texts become values."""

import copy
import dataclasses
import importlib
import inspect
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from adac.errors import UserError

Modules = Annotated[
    list[str] | None,
    typer.Option(
        "--import",
        metavar="MODULE",
        help="Import this module first: it registers a task or defines a part.",
    ),
]
Tensorboard = Annotated[
    bool, typer.Option("--tensorboard", help="Write TensorBoard event files too.")
]
Wandb = Annotated[bool, typer.Option("--wandb", help="Log to Weights & Biases (works offline).")]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE ...", help="Override settings of the agent."),
]
Jobs = Annotated[
    int | None, typer.Option(help="Trials at once on this machine.", show_default="one a core")
]
Address = Annotated[
    str | None,
    typer.Option(help="A running Ray cluster: host:port, or auto.", metavar="HOST:PORT"),
]
SEVERAL = ("--set", "--env-kwargs")  # options with one or more NAME=VALUE behind them
_THOUSANDS = {"k": 10**3, "m": 10**6}


def number_of_steps(text: str | int) -> int:
    """`100000`, `100_000`, `1e5`, `100k` or `0.1M`."""
    plain = str(text).strip().lower().replace(",", "").replace("_", "")
    times = _THOUSANDS.get(plain[-1:], 1)
    try:
        number = float(plain[:-1] if times > 1 else plain) * times
        if number == int(number):
            return int(number)
    except (ValueError, OverflowError):
        pass
    raise typer.BadParameter(f"'{text}' is no whole number: write 100000, 1e5 or 100k")


def folder_name(text: str) -> Path:
    if not text.strip():  # an unset variable of a script, not the folder one happens to be in
        raise typer.BadParameter("name a folder; '.' is the one you are in")
    return Path(text)


def steps_option(help: str, **more: Any) -> Any:
    return typer.Option(help=help, parser=number_of_steps, metavar="INTEGER", **more)


def spelled_out(
    command: Callable[..., None], kind: type[Any], panels: Mapping[str, Sequence[str]] = {}
) -> Callable[..., None]:
    """`command(…, options)` with the fields of `kind` as parameters, as typer reads signatures.

    `panels` names the groups that --help shows some of them in.
    """
    *own, _ = inspect.signature(command).parameters.values()
    places = {name: panel for panel, names in panels.items() for name in names}
    shared = [
        _in_panel(p, places[p.name]) if p.name in places else p
        for p in inspect.signature(kind).parameters.values()
    ]

    def spelled(**given: Any) -> None:
        mine = {parameter.name: given.pop(parameter.name) for parameter in own}
        command(**mine, options=kind(**given))

    spelled.__name__ = getattr(command, "__name__", "command")
    spelled.__doc__ = command.__doc__
    parameters = [p.replace(kind=p.KEYWORD_ONLY) for p in (*own, *shared)]
    spelled.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    spelled.__annotations__ = {p.name: p.annotation for p in parameters}
    return spelled


def _in_panel(parameter: inspect.Parameter, panel: str) -> inspect.Parameter:
    option = copy.copy(parameter.annotation.__metadata__[0])  # other commands may have it, too
    option.rich_help_panel = panel
    return parameter.replace(annotation=Annotated[parameter.annotation.__origin__, option])


def given_options(context: typer.Context, kind: type[Any]) -> set[str]:
    """Those fields of `kind` that somebody typed."""
    names = {field.name for field in dataclasses.fields(kind)}
    return {name for name in names if _is_typed(context, name)}


def _is_typed(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def import_modules(names: list[str] | None) -> None:
    """From where one stands, too: the command is not started by a file that lies there."""
    here = os.getcwd()
    if names and here not in sys.path:
        sys.path.append(here)
    for name in names or []:
        try:
            importlib.import_module(name)
        except (ImportError, TypeError, ValueError) as error:
            raise UserError(
                f"--import {name} failed: {error}; it names a module, "
                "installed or a .py file in the folder that you are in"
            ) from None
    _require_names_of_their_own(names or [])


def _require_names_of_their_own(modules: list[str]) -> None:
    from adac.core.settings import hidden

    for kind in hidden():
        if kind.__module__ in modules:
            raise UserError(
                f"adac already has a {kind.__name__}: rename the one in {kind.__module__}"
            )


def parse_settings(items: list[str]) -> dict[str, str]:
    pairs = _pairs("--set", items)
    return {name.replace("-", "_"): value for name, value in pairs.items()}


def parse_kwargs(items: list[str]) -> dict[str, Any]:
    """What a task is made with: numbers, truths, null and lists as JSON has them, else a text."""
    return {name: _json_or_text(value) for name, value in _pairs("--env-kwargs", items).items()}


def _pairs(option: str, items: list[str]) -> dict[str, str]:
    pairs = {}
    for item in items:
        name, equals, value = item.partition("=")
        if not equals or not name:
            raise UserError(f"{option} wants NAME=VALUE, not '{item}'")
        pairs[name.strip()] = value.strip()
    return pairs


def _json_or_text(value: str) -> Any:
    words = {"True": True, "False": False, "None": None}  # Python's
    try:
        return words[value] if value in words else json.loads(value)
    except ValueError:
        return value


def expand_settings(arguments: list[str]) -> list[str]:
    """`--set a=1 b=2` as `--set a=1 --set b=2`."""
    expanded: list[str] = []
    option = before = ""
    for argument in arguments:
        if before in SEVERAL and "=" not in argument:
            raise UserError(f"{before} wants NAME=VALUE, not '{argument}'")
        before = argument
        if argument in SEVERAL:
            option = argument
            continue
        if option and (argument.startswith("-") or "=" not in argument):
            option = ""
        expanded += [option, argument] if option else [argument]
    return expanded

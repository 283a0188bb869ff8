"""How `--help` looks: commands in the order of use, no type behind a flag or a named argument."""

from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup

FIRST = ("train", "resume", "eval", "plot", "report", "doctor", "export", "list", "sweep")


class _Command(TyperCommand):
    def get_params(self, ctx: Any) -> list[Any]:
        return _without_needless_types(super().get_params(ctx))


class _Group(TyperGroup):
    def list_commands(self, ctx: Any) -> list[str]:
        names = super().list_commands(ctx)
        first = [name for name in FIRST if name in names]
        return first + [name for name in names if name not in first]

    def get_params(self, ctx: Any) -> list[Any]:
        return _without_needless_types(super().get_params(ctx))


class App(typer.Typer):
    """A typer whose commands look like that."""

    def __init__(self, **options: Any):
        super().__init__(cls=_Group, no_args_is_help=True, **options)

    def command(self, name: str | None = None, **options: Any) -> Callable[[Any], Any]:
        return super().command(name, cls=_Command, **options)


def _without_needless_types(parameters: list[Any]) -> list[Any]:
    for parameter in parameters:
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
        elif isinstance(parameter, TyperArgument) and parameter.metavar:  # DIR says more than Path
            parameter.display_type_rich = lambda ctx: None  # type: ignore[method-assign]
    return parameters

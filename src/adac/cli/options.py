"""Options that several commands share: `--import MODULE` and `--set NAME=VALUE`."""

import importlib
import os
import sys
from typing import Annotated

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


def import_modules(names: list[str] | None) -> None:
    """From where one stands, too: the command is not started by a file that lies there."""
    here = os.getcwd()
    if names and here not in sys.path:
        sys.path.append(here)
    for name in names or []:
        try:
            importlib.import_module(name)
        except ImportError as error:
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
                f"adac has a {kind.__name__} of its own: call that of {kind.__module__} otherwise"
            )


def parse_settings(items: list[str]) -> dict[str, str]:
    pairs = {}
    for item in items:
        name, equals, value = item.partition("=")
        if not equals or not name:
            raise UserError(f"--set wants NAME=VALUE, not '{item}'")
        pairs[name.strip().replace("-", "_")] = value.strip()
    return pairs

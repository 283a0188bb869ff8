"""The `adac` command."""

import importlib.metadata
import io
import os
import re
import signal
import sys
import traceback
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

from adac.cli import doctor, hub, listing, policies, training, tuning, watching
from adac.cli import experiments as commands
from adac.cli import reports as report_commands
from adac.cli.help import App
from adac.cli.options import expand_settings
from adac.errors import AdacError

app = App(
    help="Exploration in continuous control: train, watch, evaluate, save and resume.",
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
reproduce = App(help="Repeat the experiments of the paper.")
app.add_typer(reproduce, name="reproduce")
training.register(app)
policies.register(app)
doctor.register(app)
tuning.register(app)
watching.register(app)
hub.register(app)
commands.register(app, reproduce)
report_commands.register_report(app, reproduce)
listing.register(app)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"adac {importlib.metadata.version('adac')}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
    debug: Annotated[
        bool,
        typer.Option("--debug", help="Show the traceback of a failure (anywhere on the line)."),
    ] = False,
) -> None:
    """Exploration in continuous control: train, watch, evaluate, save and resume."""


@reproduce.command()
def theorem(
    mdps: Annotated[int, typer.Option(help="How many random MDPs.")] = 20_000,
    seed: Annotated[int, typer.Option(help="Seed of the MDPs.")] = 0,
    out: Annotated[Path, typer.Option(help="Where the PNG and the CSV go.")] = Path("theorem"),
) -> None:
    """Check Theorem 1 on random tabular MDPs, with counter-examples where it fails."""
    from adac.experiments.paper.theorem import run

    run(mdps, seed, out)


def main(arguments: list[str] | None = None) -> None:
    """Run the command; every failure is one sentence on stderr and an exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal may not know ± or μ
    words = sys.argv[1:] if arguments is None else arguments
    given = [word for word in words if word != "--debug"]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("default", UserWarning)
            warnings.showwarning = _show_warning
            app(args=expand_settings(given))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except Exception as error:
        sys.exit(_explain(error, debug=given != words))
    finally:
        if arguments is None:  # all is said and saved: what is left is Python's own way out
            signal.signal(signal.SIGINT, signal.SIG_IGN)


def _explain(error: Exception, *, debug: bool) -> int:
    if debug:
        traceback.print_exception(error)
    text = f"{type(error).__name__}: {error} (--debug shows where)"
    if isinstance(error, AdacError):
        text = str(error)
    elif isinstance(error, OSError) and error.filename and error.strerror:
        text = f"{error.filename}: {error.strerror}"
    print(f"adac: {_harmless(text)}", file=sys.stderr)
    return error.exit_code if isinstance(error, AdacError) else 1


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    print(f"adac: warning: {_harmless(str(message))}", file=sys.stderr)


def _harmless(text: str) -> str:
    """A stranger's file may be quoted in it, and a terminal obeys control characters."""
    return re.sub(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", lambda m: repr(m[0])[1:-1], text)


if __name__ == "__main__":
    main()

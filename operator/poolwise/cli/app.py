"""The ``poolwise`` command and the table of its sub-commands."""

from __future__ import annotations

import importlib
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from poolwise import __version__
from poolwise.errors import InvalidInput, PoolwiseError

COMMANDS: dict[str, str] = {
    "plan": "poolwise.cli.plan:plan",
    "explain": "poolwise.cli.explain:explain",
    "run": "poolwise.cli.run:run",
}
"""Name of each sub-command and the function behind it, in the order of ``--help``.

The module is imported when the command is looked up, so that ``poolwise plan`` answers without
loading kopf and the Kubernetes client.
"""


class _LazyGroup(TyperGroup):
    """Finds sub-commands in :data:`COMMANDS`."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            return None
        module, function = COMMANDS[cmd_name].split(":")
        alone = typer.Typer(add_completion=False, rich_markup_mode="markdown")
        alone.command(cmd_name)(getattr(importlib.import_module(module), function))
        return typer.main.get_command(alone)


app = typer.Typer(cls=_LazyGroup, no_args_is_help=True, add_completion=False)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def poolwise(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Put AI workloads on the node pool that fits them."""


def main() -> None:
    """Run the command line: exit 2 for what a person wrote wrongly, 1 for what failed."""
    try:
        app()
    except InvalidInput as error:
        sys.exit(_complain(error, 2))
    except PoolwiseError as error:
        sys.exit(_complain(error, 1))


def _complain(error: Exception, code: int) -> int:
    typer.echo(f"poolwise: {error}", err=True)
    return code

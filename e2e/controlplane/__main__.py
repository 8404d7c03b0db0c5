"""``python -m e2e.controlplane``: control planes by hand."""

from __future__ import annotations

import sys
import time
from typing import Annotated

import typer

from e2e.controlplane import named, nodes
from e2e.controlplane.client import Client, Object
from e2e.controlplane.cluster import ControlPlane
from e2e.errors import HarnessError, ProcessFailed
from e2e.profiles import render
from e2e.progress import say
from e2e.tools import cache

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
Name = Annotated[str, typer.Option(help="Which one; several run side by side.")]


@app.command()
def up(
    name: Name = "dev",
    detach: Annotated[bool, typer.Option(help="Return, and leave it running.")] = False,
    profiles: Annotated[
        list[str] | None, typer.Option("--nodes", help="Cluster profile to add nodes of.")
    ] = None,
) -> None:
    """Start a control plane; print the line that points kubectl at it."""
    documents = {profile: _render(profile) for profile in profiles or []}
    if named.is_running(name):
        say(f"==> control plane {name} is running already")
        _tell(named.attach(name))
        return
    with cache.locked(named.FOLDER, "starting a control plane"):
        control_plane = named.prepare(name, detached=detach)
        control_plane.start()
    try:
        say(f"==> control plane {name} is ready after {control_plane.ready_seconds:.1f} s")
        _add_nodes(control_plane, documents)
        _tell(control_plane)
        if not detach:
            control_plane.wait()
    except ProcessFailed:
        raise  # all has ended, and the logs stay to be read
    except BaseException:
        named.stop(name)
        raise


@app.command()
def down(name: Name = "dev") -> None:
    """End a control plane, and all that it holds."""
    say(f"==> {name} has ended" if named.stop(name) else f"==> no control plane {name} was running")


@app.command(name="list")
def list_() -> None:
    """Print the control planes of this clone."""
    for name in named.names():
        running = named.is_running(name)
        state = named.attach(name).url if running else "not running; `down` clears its remains"
        print(f"{name}\t{state}")


def _render(profile: str) -> list[Object]:
    try:
        return render(profile)
    except KeyError as error:
        raise typer.BadParameter(error.args[0], param_hint="--nodes") from error


def _add_nodes(control_plane: ControlPlane, documents: dict[str, list[Object]]) -> None:
    client = Client(control_plane.kubeconfig)
    for profile, rendered in documents.items():
        started = time.monotonic()
        added = nodes.add(client, rendered)
        say(f"==> {len(added)} nodes of {profile} after {time.monotonic() - started:.1f} s")
    client.close()


def _tell(control_plane: ControlPlane) -> None:
    """Print the one line for the shell to stdout, the rest to people."""
    state = control_plane.state
    say(f"==> {control_plane.url}, kubectl is {state.binaries['kubectl']}")
    say(f"==> to end it: make cluster-down CLUSTER={state.name}")
    print(f"export KUBECONFIG={control_plane.kubeconfig}")


if __name__ == "__main__":
    try:
        app()
    except HarnessError as error:
        sys.exit(str(error))

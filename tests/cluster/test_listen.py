"""Why an address cannot be listened on, in the words of the operating system."""

from __future__ import annotations

import errno
import socket

import pytest

from poolwise.cluster.listen import cannot_listen


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (OSError(errno.EADDRINUSE, "error while attempting to bind"), "address already in use"),
        (
            socket.gaierror(socket.EAI_NONAME, "Name or service not known"),
            "name or service not known",
        ),
        (OSError("could not bind on any address"), "could not bind on any address"),
    ],
    ids=["a-number", "a-name", "no-number"],
)
def test_the_setting_and_the_reason_are_named(error: OSError, reason: str) -> None:
    told = str(cannot_listen("metrics_listen", "nowhere:8080", error))
    assert told == (
        "environment variable POOLWISE_METRICS_LISTEN: "
        f"'nowhere:8080' cannot be listened on: {reason}"
    )

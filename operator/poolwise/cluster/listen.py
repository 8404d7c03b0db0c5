"""Addresses to listen on, as settings spell them."""

from __future__ import annotations

import os
import socket

from poolwise.environment import PREFIX
from poolwise.errors import InvalidInput


def address_and_port(listen: str) -> tuple[str, int]:
    """``0.0.0.0:8080`` or ``[::]:8080`` in its parts."""
    address, _, port = listen.rpartition(":")
    return address.strip("[]"), int(port)


def cannot_listen(setting: str, listen: str, error: OSError) -> InvalidInput:
    """What to say when the operating system refuses."""
    if error.errno is None or isinstance(error, socket.gaierror):  # with numbers of its own
        reason = error.strerror or str(error)
    else:
        reason = os.strerror(error.errno)
    where = f"environment variable {PREFIX}{setting.upper()}"
    return InvalidInput(where, f"{listen!r} cannot be listened on: {reason.lower()}")

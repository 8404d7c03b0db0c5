"""How close to each other the nodes of a gang are to be: the answer of
:mod:`poolwise.plan.candidates.topology`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Wish:
    """Levels of the fabric that a gang wants to share, and whether it insists."""

    levels: tuple[str, ...] = ()
    """Node labels, nearest first: one domain of the nearest that has room; empty: any nodes."""
    must_share: bool = False
    """Whether the gang waits for a domain of one of the levels rather than take other nodes."""
    reason: str = ""
    """A clause for people, with the share of communication where that decided; empty: the pods
    have one node, or the fabric is not known."""
    share: float | None = None
    """Of a step, for communication between nodes; None: nobody asked."""


ANYWHERE = Wish()

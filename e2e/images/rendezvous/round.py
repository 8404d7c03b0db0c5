"""Who has joined, and what to tell them: the store's decisions, without its sockets.

A round is met when every rank has joined. From then on, each barrier opens when every rank has
arrived, and the round is broken when one leaves before the last barrier, called ``end``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Message = dict[str, Any]
END = "end"


class Refused(Exception):
    """A join that does not fit; ``final`` when waiting will not help."""

    def __init__(self, reason: str, *, final: bool) -> None:
        super().__init__(reason)
        self.final = final


@dataclass(frozen=True)
class Member:
    """What a rank says of itself when it joins."""

    rank: int
    world_size: int
    host: str
    steps_done: int = 0


@dataclass
class Round:
    """One gathering of all ranks, and after it is broken the next one."""

    world_size: int
    number: int = 1
    members: dict[int, Member] = field(default_factory=dict)
    ended: bool = False
    _is_met: bool = False
    _arrived: dict[str, set[int]] = field(default_factory=dict)

    def join(self, member: Member) -> Message | None:
        """Add a rank; the message to all when it was the last one missing.

        Raises :class:`Refused`.
        """
        self._check(member)
        self.members[member.rank] = member
        if len(self.members) < self.world_size:
            return None
        self._is_met = True
        return {
            "event": "met",
            "round": self.number,
            "ranks": sorted(self.members),
            "hosts": {rank: self.members[rank].host for rank in sorted(self.members)},
            # Every step ends with a barrier: what one rank has done, all of them have done.
            "steps_done": max(each.steps_done for each in self.members.values()),
        }

    def _check(self, member: Member) -> None:
        if self.ended:
            raise Refused("the run has ended", final=True)
        if member.world_size != self.world_size:
            raise Refused(
                f"rank {member.rank} expects {member.world_size} ranks, node 0 expects "
                f"{self.world_size}",
                final=True,
            )
        if not 0 <= member.rank < self.world_size:
            raise Refused(f"rank {member.rank}: there are only {self.world_size}", final=True)
        if holder := self.members.get(member.rank):
            # Its holder may be a pod that is gone and that nobody told us of: it may fall silent.
            raise Refused(f"rank {member.rank} is held by {holder.host}", final=False)

    def arrive(self, rank: int, barrier: str) -> Message | None:
        """A rank waits at a barrier; the message to all when it was the last."""
        arrived = self._arrived.setdefault(barrier, set())
        arrived.add(rank)
        if len(arrived) < self.world_size:
            return None
        del self._arrived[barrier]
        self.ended = barrier == END
        return {"event": "go", "barrier": barrier}

    def leave(self, rank: int) -> Message | None:
        """A rank is gone; the message to all others when that breaks the round."""
        member = self.members.pop(rank, None)
        if member is None or self.ended or not self._is_met:
            return None
        return {"event": "lost", "rank": rank, "host": member.host}

    def begin_again(self) -> None:
        """Forget all members: they join the next round anew."""
        self.number += 1
        self.members.clear()
        self._arrived.clear()
        self._is_met = False

    @property
    def missing(self) -> list[int]:
        """Ranks that have not joined."""
        return [rank for rank in range(self.world_size) if rank not in self.members]


def check_met(message: Mapping[str, Any], world_size: int) -> str | None:
    """What is wrong with the ranks that a rank was told of, in one sentence, or None."""
    ranks = list(message["ranks"])
    if ranks == list(range(world_size)):
        return None
    return f"met ranks {ranks}, expected each of 0 to {world_size - 1} once"

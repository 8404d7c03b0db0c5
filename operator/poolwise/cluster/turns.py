"""So many things at the same time, shared alike among those who want them."""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field


@dataclass(eq=False)
class Party:
    """One of those who share: what it has, and who of it waits."""

    held: int = 0
    last: int = 0
    """Number of its last turn; 0: it had none."""
    waiting: deque[asyncio.Future[None]] = field(default_factory=deque)

    @property
    def waits(self) -> bool:
        """Whether somebody of it waits; who gave up no longer does."""
        while self.waiting and self.waiting[0].done():
            self.waiting.popleft()
        return bool(self.waiting)


class Turns:
    """At most so many at once; one that gets free goes to the party that holds fewest, and of those
    to the one that has had none for longest.

    A queue in order of arrival would have a party that wants one wait for another that came just
    before it and wants hundreds.
    """

    def __init__(self, most: int) -> None:
        self._free = most
        self._given = 0
        self._parties: defaultdict[object, Party] = defaultdict(Party)

    @asynccontextmanager
    async def turn(self, name: object) -> AsyncIterator[None]:
        """One turn of a party, for as long as the context lasts."""
        await self._taken(name)
        try:
            yield
        finally:
            self._given_back(name)

    async def _taken(self, name: object) -> None:
        party = self._parties[name]
        if self._free:
            self._free -= 1
            self._give(party)
            return
        turn = asyncio.get_running_loop().create_future()
        party.waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():  # it got its turn, and cannot use it any more
                self._given_back(name)
            self._tidied(name)
            raise

    def _given_back(self, name: object) -> None:
        self._parties[name].held -= 1
        self._tidied(name)
        others = [each for each in self._parties.values() if each.waits]
        if not others:
            self._free += 1
            return
        next_ = min(others, key=lambda each: (each.held, each.last))
        next_.waiting.popleft().set_result(None)
        self._give(next_)

    def _give(self, party: Party) -> None:
        self._given += 1
        party.held, party.last = party.held + 1, self._given

    def _tidied(self, name: object) -> None:
        """Nothing is kept of a party that neither has nor wants any."""
        party = self._parties.get(name)
        if party is not None and not (party.held or party.waits):
            del self._parties[name]

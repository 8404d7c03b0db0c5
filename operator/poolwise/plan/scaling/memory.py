"""What the controller remembers from one decision to the next. Immutable values.

A controller that forgets everything (a restart without a record) holds until it has seen two looks,
and then knows the present load; what it learned of speeds, lengths and bursts comes back with time,
or at once from :meth:`Memory.as_mapping`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from poolwise.plan.signals.sample import Sample


@dataclass(frozen=True, slots=True)
class Moments:
    """Count and powers of lengths, fading: recent requests count more."""

    count: float = 0.0
    total: float = 0.0
    squares: float = 0.0


@dataclass(frozen=True, slots=True)
class Bin:
    """Load between two decisions."""

    at_seconds: float
    """Its end."""
    seconds: float
    arrivals: float
    """Requests that came, over all replicas."""
    projected: float = 0.0
    """Largest demand (in replicas) until a start would end, as foreseen then without bursts."""
    demand: float = 0.0
    """In replicas, as it was then."""


@dataclass(frozen=True)
class Memory:
    """Nothing yet, as it is made."""

    samples: Mapping[str, Sample] = field(default_factory=dict)
    """The newest of each replica that was used."""
    bins: tuple[Bin, ...] = ()
    """Oldest first."""
    prompts: Moments = Moments()
    answers: Moments = Moments()
    computed_share: float | None = None
    """Of prompt tokens: those that no prefix cache had."""
    log_slowness: Mapping[str, float] = field(default_factory=dict)
    """By pool: ln(observed time of a token / predicted one)."""
    slowness_weight: Mapping[str, float] = field(default_factory=dict)
    """By pool: how much was observed of it, fading."""
    wanted: tuple[tuple[float, int], ...] = ()
    """(time, replicas) of recent decisions, before they were held up by anything."""
    turns: tuple[float, ...] = ()
    """When the direction of scaling changed."""
    direction: int = 0
    """Of the last change: 1 up, -1 down, 0 none yet."""

    def as_mapping(self) -> dict[str, Any]:
        """What is worth keeping over a restart, for JSON; :meth:`read` reads it."""
        return {
            "bins": [[each.at_seconds, each.seconds, each.arrivals] for each in self.bins],
            "prompts": _listed(self.prompts),
            "answers": _listed(self.answers),
            "computedShare": self.computed_share,
            "logSlowness": dict(self.log_slowness),
            "slownessWeight": dict(self.slowness_weight),
            "turns": list(self.turns),
            "direction": self.direction,
        }

    @staticmethod
    def read(document: Mapping[str, Any]) -> Memory:
        """What :meth:`as_mapping` made. ValueError, TypeError or KeyError for anything else."""
        share = document["computedShare"]
        return Memory(
            bins=tuple(Bin(*map(float, each)) for each in document["bins"]),
            prompts=Moments(*map(float, document["prompts"])),
            answers=Moments(*map(float, document["answers"])),
            computed_share=None if share is None else float(share),
            log_slowness={key: float(value) for key, value in document["logSlowness"].items()},
            slowness_weight={
                key: float(value) for key, value in document["slownessWeight"].items()
            },
            turns=tuple(map(float, document["turns"])),
            direction=int(document["direction"]),
        )


def _listed(moments: Moments) -> list[float]:
    return [moments.count, moments.total, moments.squares]

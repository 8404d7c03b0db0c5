"""Where a figure is predicted, as far as its residual (:mod:`poolwise.model.residual`) goes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Site:
    """Where a figure is predicted."""

    labels: tuple[str, ...]
    """What is alike or not: a model, an accelerator, an engine."""
    coordinates: tuple[float, ...]
    """What is near or far: logarithms of sizes and lengths, years."""
    shares: tuple[float, ...] = ()
    """Of what the formulas say that the time goes to: memory, arithmetic, links, the rest."""

"""All that the tables know, for predictions: constants, and what runs alike tell beyond them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from poolwise.model.efficiency import Calibration
from poolwise.model.residual import residuals

if TYPE_CHECKING:  # the tables take a while to import
    from poolwise.tables import Tables


def shipped(tables: Tables) -> Calibration:
    """What the package comes with."""
    return Calibration(tables.efficiencies, residuals(tables.residuals))

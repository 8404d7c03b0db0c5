"""Models and machines that the tests of this layer share."""

from __future__ import annotations

from poolwise.model import presets
from poolwise.model.shapes import Model
from poolwise.tables import models

_ROWS = models.load()


def preset(name: str) -> Model:
    """A shipped model by any of its spellings."""
    row = _ROWS.find(name)
    assert row is not None, name
    return presets.model(row)

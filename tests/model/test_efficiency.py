from __future__ import annotations

import subprocess
import sys

import pytest

from poolwise.errors import TableError
from poolwise.model.efficiency import Calibration, Provenance
from poolwise.model.hardware import Device
from poolwise.tables.efficiencies import EfficiencyRow


def row(scope: str, value: float, number_format: str = "*") -> EfficiencyRow:
    return EfficiencyRow(
        phase="training",
        term="compute",
        scope=scope,
        format=number_format,
        value=value,
        count=9,
        provenance="fitted",
        source="a table",
        date="2025-11",
        spread=0.1,
    )


def device(name: str, family: str) -> Device:
    return Device(name, False, family, 80e9, 3e12, {"bf16": 1e15}, 700, {})


CALIBRATION = Calibration(
    [row("*", 0.5), row("hopper", 0.6), row("hopper", 0.55, "fp8"), row("H100", 0.65)]
)


@pytest.mark.parametrize(
    ("name", "family", "number_format", "value", "provenance"),
    [
        ("H100", "hopper", "bf16", 0.65, Provenance.FITTED),
        ("H20", "hopper", "bf16", 0.6, Provenance.INHERITED),
        ("H20", "hopper", "fp8", 0.55, Provenance.INHERITED),
        ("MI300X", "cdna3", "bf16", 0.5, Provenance.INHERITED),
    ],
)
def test_the_most_specific_scope_wins(
    name: str, family: str, number_format: str, value: float, provenance: Provenance
) -> None:
    found = CALIBRATION.efficiency("training", "compute", device(name, family), number_format)
    assert (found.value, found.provenance) == (value, provenance)


@pytest.mark.parametrize(
    ("rows", "value"),
    [
        ([row("H100", 0.65, "bf16"), row("*", 0.95, "fp16")], 0.65),
        ([row("hopper", 0.6, "bf16"), row("hopper", 0.5), row("*", 0.95, "fp16")], 0.6),
        ([row("H100", 0.65, "bf16"), row("H100", 0.7, "fp16")], 0.7),
        ([row("*", 0.5, "fp16"), row("*", 0.6, "bf16")], 0.5),
    ],
    ids=["its own", "its family's", "measured", "measured elsewhere"],
)
def test_a_format_that_nobody_measured_here_is_like_that_of_the_same_units(
    rows: list[EfficiencyRow], value: float
) -> None:
    asked = ("training", "compute", device("H100", "hopper"), "fp16")
    assert Calibration(rows).value(*asked) == value


def test_a_constant_that_nobody_has_is_named() -> None:
    with pytest.raises(TableError, match="no efficiency for decode memory of H100 bf16"):
        CALIBRATION.efficiency("decode", "memory", device("H100", "hopper"), "bf16")


def test_a_chain_is_as_good_as_its_weakest_link() -> None:
    links = [Provenance.FITTED, Provenance.INHERITED, Provenance.MEASURED]
    assert Provenance.weakest(links) is Provenance.INHERITED


def test_replacing_a_value_leaves_the_original() -> None:
    other = CALIBRATION.replaced({("training", "compute", "H100", "*"): 0.7})
    h100 = device("H100", "hopper")
    assert other.value("training", "compute", h100) == 0.7
    assert CALIBRATION.value("training", "compute", h100) == 0.65


def test_the_model_is_imported_without_the_tables() -> None:
    """They read and check every row, which takes longer than the model's bar for its import."""
    told = (
        "import sys, poolwise.model.serving.prediction, poolwise.model.training.step;"
        "print([name for name in sys.modules if name.startswith(('poolwise.tables', 'pydantic'))])"
    )
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

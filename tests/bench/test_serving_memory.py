from __future__ import annotations

from pathlib import Path

import pytest

from bench import tables as measured
from bench.columns import COLUMNS
from bench.fit.serving_memory import fitted, logs, working_ratios
from bench.fit.shipping import rounded
from bench.serving_memory import Judged, lines, services
from poolwise import tables
from poolwise.model.efficiency import Calibration

TABLES = tables.load()
CALIBRATION = Calibration(TABLES.efficiencies)
SAMPLE = Path(__file__).resolve().parents[2] / "bench" / "sample"
HAS_DATA = measured.exists(measured.DEFAULT_FOLDER, "serve_measured")


def test_the_shipped_figures_of_memory_are_those_of_the_logs() -> None:
    shipped = {(row.phase, row.term, row.scope, row.format): row for row in TABLES.efficiencies}
    for row in fitted(logs(TABLES), CALIBRATION):
        told = shipped[row.phase, row.term, row.scope, row.format]
        assert (told.value, told.spread) == (rounded(row.value), rounded(row.spread))
        assert (told.count, told.date, told.source) == (row.count, row.date, row.source)


def test_every_logged_start_is_inside_its_bound() -> None:
    several = logs(TABLES)
    assert len(several) == 11
    for each in several:
        found = each.predicted(CALIBRATION)
        predicted = found.activations_bytes + found.reserve_bytes
        assert each.working_bytes <= 1.001 * (predicted + found.more_bytes)


def test_the_reserve_is_between_the_logs() -> None:
    ratios = working_ratios(logs(TABLES), CALIBRATION)
    assert 4 <= sum(ratios > 0.0) <= 7


def verdicts(folder: Path) -> list[Judged]:
    rows = measured.read(folder, "serve_measured")
    return [each.verdict for each in services(rows, TABLES)]


def test_no_service_of_the_sample_is_refused() -> None:
    found = verdicts(SAMPLE)
    assert len(found) > 20
    assert Judged.REFUSED not in found


@pytest.mark.skipif(not HAS_DATA, reason="the measured tables are not here")
def test_no_measured_service_is_refused() -> None:
    found = verdicts(measured.DEFAULT_FOLDER)
    assert len(found) > 3000
    assert Judged.REFUSED not in found
    assert found.count(Judged.STARTS) > 0.98 * len(found)


def row(**cells: str) -> dict[str, str]:
    stated = {
        "row_id": "1", "mode": "online-agg", "engine": "vllm", "gpu": "H100-SXM5-80GB",
        "model": "Llama-3.1-70B", "n_gpus": "2", "tp": "2", "pp": "1", "weight_precision": "bf16",
        "isl": "1024", "osl": "1024", "concurrency": "8", "tpot_ms_mean": "20",
    }  # fmt: skip
    return dict.fromkeys(COLUMNS["serve_measured"], "") | stated | cells


@pytest.mark.parametrize(
    ("cells", "verdict"),
    [
        ({}, Judged.STARTS),
        ({"isl": "30000"}, Judged.TOLD_MORE),
        ({"isl": "60000"}, Judged.REFUSED),
        ({"n_gpus": "1", "tp": "1"}, Judged.IMPOSSIBLE),
    ],
)
def test_a_service_is_judged_by_its_layout(cells: dict[str, str], verdict: Judged) -> None:
    (found,) = services([row(**cells)], TABLES)
    assert found.verdict is verdict


def test_what_does_not_start_is_told_by_model_and_device() -> None:
    told = list(lines(list(services([row(), row(isl="60000")], TABLES))))
    assert "1 of 2 services that ran: refused" in told
    assert told[-1] == "  1: REFUSED, Llama-3.1-70B, H100-SXM5-80GB, 2, vllm"

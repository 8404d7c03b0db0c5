"""When measured runs were, and how their clients send."""

from dataclasses import replace

import pytest

from bench.serving_clients import sends_together, stays_in_step
from bench.serving_dates import software_year
from bench.serving_runs import Run, runs, token_seconds
from bench.tables import Row
from poolwise import tables
from poolwise.model.efficiency import Calibration

TABLES = tables.load()
CALIBRATION = Calibration(TABLES.efficiencies)
COLUMNS = (
    *("attn_dp", "moe_tp", "moe_ep", "moe_precision", "kv_precision", "batch_per_dp", "group"),
    *("qps_offered", "prefill_cfg", "decode_cfg", "source_date", "engine_version"),
    *("params_b", "active_b", "notes", "source", "source_ref"),
)
SWEEP = {
    "row_id": "x",
    "engine": "sglang",
    "engine_version": "0.5.1.post1",
    "model": "Qwen3-32B",
    "gpu": "H100-SXM5-80GB",
    "n_gpus": "4",
    "tp": "4",
    "pp": "1",
    "mode": "online-agg",
    "weight_precision": "bf16",
    "isl": "4096",
    "osl": "128",
    "concurrency": "64",
    "tpot_ms_mean": "40",
}


def row(**cells: str) -> Row:
    return dict.fromkeys(COLUMNS, "") | SWEEP | cells


@pytest.mark.parametrize(
    ("cells", "in_step", "together"),
    [
        pytest.param({}, True, True, id="equal lengths, prompts first"),
        pytest.param({"engine": "vllm"}, False, False, id="prompts beside tokens"),
        pytest.param({"source_date": "2026-03-01"}, False, False, id="drawn lengths"),
        pytest.param({"isl": "1024", "osl": "1024"}, False, False, id="lengths that are drawn"),
        pytest.param({"isl": "4000", "osl": "100"}, True, False, id="another sweep"),
        pytest.param({"mode": "online"}, False, False, id="requests at a rate"),
        pytest.param({"isl": "many"}, True, False, id="no length"),
    ],
)
def test_who_stays_in_step(cells: dict[str, str], in_step: bool, together: bool) -> None:
    made = row(**cells)
    assert stays_in_step(made, made["engine"]) is in_step
    assert sends_together(made, made["engine"]) is together


def test_half_of_the_prompts_of_clients_that_send_together_delay_tokens() -> None:
    run = only()
    assert run.together
    together = token_seconds(run, CALIBRATION)
    drawn = token_seconds(replace(run, together=False), CALIBRATION)
    alone = token_seconds(replace(run, apart=True), CALIBRATION)
    assert together - alone == pytest.approx((drawn - alone) / 2.0)
    assert together > 1.3 * alone


def only(**cells: str) -> Run:
    made = row(**cells)
    (found,) = runs([made], TABLES, [made["mode"]], "tpot_ms_mean")
    return found


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        pytest.param({"source_date": "2026-03-27"}, 2026 + 2.5 / 12, id="of the run"),
        pytest.param({}, 2025 + 7.5 / 12, id="of the release"),
        pytest.param({"engine_version": "0.0.0"}, None, id="neither"),
        pytest.param({"source_date": "last March", "engine_version": ""}, None, id="no date"),
    ],
)
def test_when_software_was_current(cells: dict[str, str], expected: float | None) -> None:
    assert software_year(row(**cells)) == (expected and pytest.approx(expected))

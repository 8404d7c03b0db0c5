from __future__ import annotations

import pytest

from bench.tables import Row
from bench.training_runs import Run, described, laid, problem, runs, sequence_tokens
from poolwise.errors import InvalidInput
from poolwise.model import transformer
from poolwise.model.efficiency import Calibration
from poolwise.model.shapes import Transformer
from poolwise.model.work import Execution, Method, Recompute
from poolwise.tables import load

TABLES = load()
CELLS: Row = {
    "source": "a table",
    "source_date": "v25.04.02",
    "params_b": "70.6",
    "active_b": "70.6",
    "framework": "NeMo",
    "task": "pretrain",
    "model": "llama-3.1-70b",
    "gpu": "H100-SXM5-80GB",
    "n_gpus": "64",
    "interconnect": "",
    "seq_len": "8192",
    "global_batch": "128",
    "micro_batch": "1",
    "precision": "fp8-cs",
    "tp": "4",
    "pp": "4",
    "vp": "5",
    "cp": "2",
    "ep": "NA",
    "sharding": "DistOpt(ZeRO-1)",
    "act_ckpt": "",
    "layers_used": "",
    "samples_per_s": "",
    "tokens_per_s_per_gpu": "1024",
    "group": "a family",
    "notes": "",
}


def run(**changes: str) -> Run:
    (found,) = runs([CELLS | changes], TABLES)
    return found


def test_a_row_is_work_on_a_machine() -> None:
    found = run()
    assert found.work.precision == "fp8"
    assert found.step_seconds == pytest.approx(128 * 8192 / (64 * 1024))
    layout = laid(found, Calibration(TABLES.efficiencies))
    assert layout is not None
    sizes = layout.layout
    assert (sizes.data, sizes.tensor, sizes.pipeline, sizes.context) == (2, 4, 4, 2)
    assert (sizes.interleave, sizes.zero_stage, sizes.recompute) == (5, 1, Recompute.NONE)


@pytest.mark.parametrize(
    ("gpu", "precision"), [("H100-SXM5-80GB", "fp8"), ("A100-PCIE-80GB", "bf16")]
)
def test_a_mixed_submission_is_in_eight_bits_where_the_device_has_them(
    gpu: str, precision: str
) -> None:
    found = run(gpu=gpu, precision="fp8/bf16 mixed (see submission)")
    assert found.work.precision == precision


def test_a_proxy_has_fewer_layers() -> None:
    shape = run(layers_used="8", vp="2").work.model.shape
    assert isinstance(shape, Transformer)
    assert shape.layers == 8


def test_what_a_source_leaves_out_is_searched() -> None:
    found = run(tp="", pp="", cp="", micro_batch="", sharding="", task="lora")
    assert found.work.method is Method.LORA
    layout = laid(found, Calibration(TABLES.efficiencies))
    assert layout is not None
    assert layout.layout.count == 64


@pytest.mark.parametrize(
    ("words", "bytes_per_second"),
    [
        ("DGX H100 + NDR IB 400 Gb/s/GPU", 400e9),
        ("1600 Gb/s RoCE per node", 200e9),
        ("IB/RoCE 3200 Gb/s node (not stated)", 400e9),
        ("NVLINK Gen5 1800 GB/s + NVSWITCH Gen5 | 4x ConnectX-7 IB NDR 400 Gb/s", 200e9),
        ("NVLINK Gen4 900 GB/s + NVSWITCH Gen3", 400e9),
    ],
)
def test_networks_are_read_from_words(words: str, bytes_per_second: float) -> None:
    link = run(interconnect=words).machine.interconnect
    assert link.inter_node_bytes_per_second == bytes_per_second


@pytest.mark.parametrize(
    ("gpu", "of_one"),
    [
        ("V100-SXM2-16GB", 6.25e9),
        ("GH200-96GB", 50e9),
        ("MI250X", 25e9),
        ("MI250X-GCD", 12.5e9),
        ("Gaudi2", 37.5e9),
        ("H100-SXM5-80GB", 50e9),
        ("GB300-NVL72", 100e9),
    ],
)
def test_a_network_that_nobody_states_is_that_of_the_usual_machine(gpu: str, of_one: float) -> None:
    link = run(gpu=gpu, interconnect="").machine.interconnect
    assert link.inter_node_bytes_per_second / link.accelerators_per_node == of_one


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        (
            {"model": "nobody knows", "params_b": ""},
            "neither shape nor counts of the model are known",
        ),
        ({"gpu": "abacus"}, "accelerator is not known"),
        ({"global_batch": ""}, "count or global batch is not stated"),
        ({"tokens_per_s_per_gpu": ""}, "no rate is stated"),
    ],
    ids=str,
)
def test_rows_that_are_no_run_say_why(changes: Row, why: str) -> None:
    assert list(runs([CELLS | changes], TABLES)) == []
    assert problem(CELLS | changes, TABLES) == why


def test_what_nobody_can_compare_is_predicted_but_not_fitted() -> None:
    found = run(notes="variable-length sequences", seq_len="512 max")
    assert not found.is_comparable
    assert found.work.sequence_tokens == 256
    assert run().is_comparable


@pytest.mark.parametrize(
    ("words", "year"),
    [
        ("v25.04.02", 2025 + 3.5 / 12),
        ("26.06 Ne", 2026 + 5.5 / 12),
        ("2024-09", 2024 + 8.5 / 12),
        ("2023-11..2024 (repo state 2025-07-21)", 2023 + 10.5 / 12),
        ("2024", 2024.5),
        ("", None),
    ],
)
def test_software_has_a_date(words: str, year: float | None) -> None:
    found = run(source_date=words).work.software_year
    assert found == (None if year is None else pytest.approx(year))


def test_stages_that_do_not_divide_the_stated_layers_mean_the_whole_model() -> None:
    """Llama 4 Maverick has 48 layers; its 2 x 12 stages do not divide the 32 that a source says."""
    cells = {"model": "Llama-4-Maverick-17B-128E-Instruct", "layers_used": "32"}
    shapes = [
        run(**cells, pp=pipeline, vp=virtual).work.model.shape
        for pipeline, virtual in (("2", "12"), ("2", "4"))
    ]
    assert [getattr(shape, "layers", None) for shape in shapes] == [48, 32]


def test_a_model_of_unknown_shape_has_a_usual_one() -> None:
    found = run(model="GPT3-20B", params_b="20", active_b="20")
    shape = found.work.model.shape
    assert isinstance(shape, Transformer)
    assert transformer.shape_parameters(shape).body == pytest.approx(20e9, rel=0.1)
    assert transformer.parameters(found.work.model).total == pytest.approx(20e9)
    assert not found.is_comparable


def test_a_sparse_model_of_unknown_shape_has_its_active_count() -> None:
    found = run(model="A-100B-MoE", params_b="100", active_b="10")
    count = transformer.parameters(found.work.model)
    assert found.is_sparse
    assert count.total == pytest.approx(100e9)
    assert count.active == pytest.approx(10e9)


@pytest.mark.parametrize("active", ["-1", "-10"])
def test_a_model_that_nothing_of_is_active_is_no_model(active: str) -> None:
    with pytest.raises(InvalidInput, match="active parameters are no count"):
        run(model="A-100B-MoE", params_b="100", active_b=active)


@pytest.mark.parametrize(
    ("total", "active"), [("671", "37"), ("116.8", "5.1"), ("1000", "32"), ("400", "17")]
)
def test_a_very_sparse_model_of_unknown_shape_is_laid_out(total: str, active: str) -> None:
    sizes = dict.fromkeys(("tp", "pp", "vp", "cp"), "")
    found = run(model="Mystery-X", params_b=total, active_b=active, n_gpus="512", **sizes)
    counted = transformer.parameters(found.work.model)
    assert min(counted.attention, counted.experts, counted.norms) > 0.0
    assert laid(found, Calibration(TABLES.efficiencies)) is not None


@pytest.mark.parametrize(
    ("cell", "tokens"),
    [("8192.0", 8192), ("8.192e3", 8192), ("8k", 8192), ("512 max", 256), ("8,192", None)],
)
def test_lengths_are_read_whole_or_not_at_all(cell: str, tokens: int | None) -> None:
    assert sequence_tokens(CELLS | {"seq_len": cell}) == tokens


def test_what_ran_is_laid_though_nothing_is_said_to_fit() -> None:
    sizes = {"model": "llama-3.1-405b", "n_gpus": "32", "global_batch": "126"}
    found = run(**sizes, tp="8", pp="", cp="", act_ckpt="none", micro_batch="")
    layout = laid(found, Calibration(TABLES.efficiencies)).layout
    assert (layout.tensor, layout.count, layout.recompute) == (8, 32, Recompute.NONE)


@pytest.mark.parametrize("layers", ["2", "3"])
def test_a_short_proxy_of_a_sparse_model_has_a_sparse_layer(layers: str) -> None:
    found = run(model="deepseek-v3", layers_used=layers, pp="1", vp="1")
    shape = found.work.model.shape
    assert isinstance(shape, Transformer)
    assert shape.experts
    assert shape.experts.dense_layers == int(layers) - 1


def test_a_row_without_a_rate_is_described_and_no_run() -> None:
    cells = CELLS | {"tokens_per_s_per_gpu": "", "peak_mem_gib": "60"}
    assert described(cells, TABLES) is not None
    assert not list(runs([cells], TABLES))
    assert problem(cells, TABLES) == "no rate is stated"


@pytest.mark.parametrize(
    ("framework", "execution"),
    [
        ("PyTorch 2.11.0+cu130, eager", Execution.EAGER),
        ("HuggingFace Transformers 5.17", Execution.EAGER),
        ("transformers 5.17, compiled", Execution.FUSED),
        ("torchtitan", Execution.FUSED),
        ("", Execution.FUSED),
    ],
)
def test_a_framework_tells_how_it_runs(framework: str, execution: Execution) -> None:
    assert run(framework=framework.lower()).work.execution is execution

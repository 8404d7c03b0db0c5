"""Rivals are asked for exactly what was run, and compared on the rows that both predict."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from bench.rivals.aiconfigurator import FIELDS, Rival, predictions, short
from bench.rivals.checkpoints import Checkpoint
from bench.rivals.comparison import by_row, compare, scores, unpredicted
from bench.rivals.comparison import predictions as published
from bench.rivals.questions import LAYOUT, Question, Worker, question, wanted

ROW = {
    "row_id": "S1",
    "source": "aiconfigurator silicon_sample (continuous public serving benchmark data)",
    "mode": "online-agg",
    "gpu": "B200-SXM-180GB",
    "engine": "trtllm",
    "model": "DeepSeek-V3",
    "weight_precision": "nvfp4",
    "n_gpus": "8",
    "tp": "8",
    "pp": "1",
    "attn_dp": "1",
    "moe_tp": "8",
    "moe_ep": "1",
    "isl": "1024",
    "osl": "512",
    "concurrency": "64",
    "batch_per_dp": "64",
    "tpot_ms_mean": "10",
    "ttft_ms_mean": "200",
}
SPLIT = ROW | {
    "mode": "online-disagg",
    "n_gpus": "12",
    "concurrency": "100",
    "prefill_cfg": "workers=2,bs=1,tp=4,pp=1,dp=1,moe_tp=4,moe_ep=1",
    "decode_cfg": "workers=1,bs=13,tp=1,pp=1,dp=8,moe_tp=1,moe_ep=8",
}


def asked(row) -> Question:
    found = question(row)
    assert isinstance(found, Question), found
    return found


def test_an_aggregated_row_is_asked_as_it_ran():
    keywords = asked(ROW).keywords()
    assert keywords["mode"] == "agg"
    assert keywords["system_name"] == "b200_sxm"
    assert (keywords["tp_size"], keywords["moe_tp_size"], keywords["batch_size"]) == (8, 8, 64)
    assert (keywords["isl"], keywords["osl"]) == (1024, 512)


def test_blank_attention_data_parallelism_is_told_by_the_load_of_a_rank():
    row = ROW | {"attn_dp": "", "batch_per_dp": "8", "moe_tp": "1", "moe_ep": "8"}
    assert asked(row).workers == (Worker(1, 1, 8, 1, 8, batch=8),)


def test_a_rank_is_never_asked_to_hold_more_than_its_share():
    row = ROW | {"attn_dp": "8", "tp": "1", "batch_per_dp": "64"}
    assert asked(row).workers[0].batch == 8


def test_dense_models_have_no_experts_to_place():
    row = ROW | {"model": "Qwen3-32B", "weight_precision": "", "moe_tp": "0", "moe_ep": "0"}
    (worker,) = asked(row).workers
    assert (worker.tensor, worker.moe_tensor, worker.moe_expert) == (8, 8, 1)


def test_prefill_and_decode_apart():
    keywords = asked(SPLIT).keywords()
    assert keywords["mode"] == "disagg"
    assert (keywords["prefill_tp_size"], keywords["prefill_batch_size"]) == (4, 1)
    assert (keywords["decode_attention_dp_size"], keywords["decode_batch_size"]) == (8, 13)
    assert (keywords["prefill_num_workers"], keywords["decode_num_workers"]) == (2, 1)


@pytest.mark.parametrize(
    ("stated", "read"),
    [
        (("64", "1", "8", "8"), Worker(8, 1, 1, 1, 8, batch=64)),
        (("1", "64", "8", "8"), Worker(1, 1, 8, 1, 8, batch=8)),
        (("4", "4", "1", "16"), Worker(1, 1, 4, 1, 4, batch=16)),
        (("2", "2", "1", "4"), Worker(2, 1, 2, 1, 4, batch=32)),
    ],
)
def test_sizes_of_the_same_accelerators_are_not_multiplied(stated, read):
    row = ROW | dict(zip(LAYOUT, stated, strict=True))
    assert asked(row).workers == (read,)


def test_a_rack_may_be_as_wide_as_it_says():
    row = ROW | {"gpu": "GB200-NVL72", "tp": "64", "moe_tp": "8", "moe_ep": "8"}
    assert asked(row).workers[0].tensor == 64


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"gpu": "MI300X"}, "accelerator"),
        ({"model": "unheard-of"}, "checkpoint"),
        ({"isl": ""}, "lengths"),
        (
            {**SPLIT, "decode_cfg": SPLIT["prefill_cfg"].replace("workers=2", "workers=")},
            "instances",
        ),
        ({"concurrency": "", "batch_per_dp": ""}, "load"),
    ],
)
def test_what_cannot_be_asked_has_a_reason(changed, reason):
    assert reason in str(question(ROW | changed))


def test_other_sources_are_left_alone():
    assert wanted([ROW | {"source": "MLPerf"}, ROW | {"mode": "static-batch"}, ROW]) == [ROW]


def test_a_format_that_is_not_shipped_is_written_on_a_shipped_shape(tmp_path: Path):
    shapes = tmp_path / "shapes"
    shapes.mkdir()
    (shapes / "some--model_config.json").write_text('{"hidden_size": 8}')
    for form, named in (("nvfp4", "hf_quant_config.json"), ("fp8_block", "config.json")):
        folder = Path(Checkpoint("some/model", form).path(shapes, tmp_path))
        assert "quant" in (folder / named).read_text()
        assert "hidden_size" in (folder / "config.json").read_text()
    assert Checkpoint("some/model").path(shapes, tmp_path) == "some/model"


def rival(estimate) -> Rival:
    return Rival(estimate, lambda system, backend: "1.3", Path(), Path())


def test_rows_that_ask_the_same_are_asked_once():
    calls = []

    def estimate(path, **keywords):
        calls.append(keywords)
        return SimpleNamespace(tpot=9.0, ttft=150.0)

    found = list(predictions([ROW, ROW | {"row_id": "S2"}], rival(estimate)))
    assert found == [
        ("S1", "9", "150", "", "1.3", "SILICON"),
        ("S2", "9", "150", "", "1.3", "SILICON"),
    ]
    assert len(calls) == 1
    assert len(FIELDS) == len(found[0])


def test_its_formulas_are_asked_where_its_tables_have_a_gap():
    def estimate(path, database_mode, **keywords):
        if database_mode == "SILICON":
            raise ValueError("a gap")
        return SimpleNamespace(tpot=9.0, ttft=150.0)

    (found,) = predictions([ROW], rival(estimate))
    assert found[-1] == "HYBRID"


def test_a_refusal_is_its_answer():
    def estimate(path, **keywords):
        raise RuntimeError("OOM: the model 'a/b' does not fit (tp=8)")

    (found,) = predictions([ROW], rival(estimate))
    assert found[1:4] == ("", "", "does not fit by its memory estimate")
    assert short(ValueError()) == "ValueError"
    assert short(ValueError("a  new\nkind")) == "a new kind"


def test_both_are_scored_on_the_rows_that_both_predict():
    rows = [ROW, ROW | {"row_id": "S2"}, SPLIT | {"row_id": "S3"}]
    ours = {"S1": (0.011, 0.2), "S2": (0.010, None), "S3": (0.010, 0.2)}
    other = {"S1": (0.012, 0.3), "S2": (None, 0.2), "S4": (0.1, 0.1)}
    found = compare(ours, other, rows)
    assert found["tpot", "all", ""].ours.mdape == pytest.approx(10)
    assert found["tpot", "all", ""].ratio == pytest.approx(2)
    assert found["tpot", "all", ""].as_dict()["rows"] == 1
    assert {(key[0], both.rival.rows) for key, both in found.items()} == {("tpot", 1), ("ttft", 1)}
    assert ("tpot", "gpu", "B200-SXM-180GB") in found


def test_rows_that_state_no_format_are_scored_apart_from_those_that_count():
    times = {"S1": (0.011, 0.2), "S2": (0.02, 0.2)}
    unstated = {"row_id": "S2", "weight_precision": "", "moe_precision": ""}
    found = scores(times, [ROW, ROW | unstated])
    assert found["tpot", "all", ""].rows == 2
    assert found["tpot", "eligible", "eligible"].rows == 1
    assert found["tpot", "eligible", "eligible"].mdape == pytest.approx(10)


def test_our_figures_are_gathered_by_row():
    figures = [("S1", "tpot", 0.01), ("S1", "ttft", 0.2), ("S2", "ttft_disagg", 0.3)]
    assert by_row(figures) == {"S1": (0.01, 0.2), "S2": (None, 0.3)}


def test_prefill_and_decode_apart_are_scored_apart():
    assert {key[0] for key in scores({"S1": (0.01, 0.2)}, [SPLIT])} == {
        "tpot_disagg",
        "ttft_disagg",
    }


def test_the_published_predictions_say_why_where_they_say_nothing():
    found = published()
    silent = sum(times == (None, None) for times in found.values())
    assert silent == unpredicted().total()
    assert len(found) > 3 * silent

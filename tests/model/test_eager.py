"""Training that runs operator by operator, against the same run fused."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolwise.model import transformer
from poolwise.model.calibration import shipped
from poolwise.model.prediction import TrainingPrediction
from poolwise.model.shapes import Custom, Model, Transformer
from poolwise.model.training import eager as unfused_costs
from poolwise.model.training.memory import training_memory
from poolwise.model.training.shard import shard
from poolwise.model.training.step import predict_training
from poolwise.model.work import Execution, Method, Recompute, TrainingLayout, TrainingWork
from tests.model.training_cases import TABLES, machine, pretraining

H100, H200 = machine("H100-SXM5-80GB"), machine("H200-SXM-141GB")
GIB = 2**30
CALIBRATION = shipped(TABLES)


def eager(work: TrainingWork) -> TrainingWork:
    return replace(work, execution=Execution.EAGER)


def predicted(work: TrainingWork, layout: TrainingLayout) -> TrainingPrediction:
    return predict_training(work, layout, H100, CALIBRATION)


@pytest.mark.parametrize(
    ("model", "batch", "method", "recompute", "measured_gib"),
    [
        ("llama-3.2-1b", (2, 4096), Method.FULL, Recompute.NONE, (28.2, 45.9)),
        ("llama-3.1-8b", (4, 2048), Method.LORA, Recompute.FULL, (21.8, 33.0)),
        ("llama-3.1-8b", (2, 2048), Method.LORA, Recompute.NONE, (36.5, 49.6)),
        ("gpt-2-xl", (8, 1024), Method.FULL, Recompute.NONE, (44.7, 52.6)),
    ],
)
def test_peaks_are_those_that_an_h100_showed(
    model: str,
    batch: tuple[int, int],
    method: Method,
    recompute: Recompute,
    measured_gib: tuple[float, float],
) -> None:
    """Samples and tokens of each; fused, then not."""
    work = replace(pretraining(model, *batch), method=method)
    layout = TrainingLayout(zero_stage=0, micro_batch_size=batch[0], recompute=recompute)
    for ran, measured in zip((work, eager(work)), measured_gib, strict=True):
        needed = training_memory(ran, layout, H100).needed_bytes / GIB
        assert needed == pytest.approx(measured, rel=0.18)


def test_weights_in_fp32_and_their_copies_take_18_bytes() -> None:
    work = eager(pretraining("llama-3.2-1b", 1))
    memory = training_memory(work, TrainingLayout(zero_stage=0), H100)
    state = memory.weights_bytes + memory.gradients_bytes + memory.optimizer_bytes
    assert state == pytest.approx(18 * transformer.parameters(work.model).total)


@pytest.mark.parametrize("changes", [{"precision": "fp32"}, {"model": None}])
def test_where_nothing_is_cast_and_no_layers_are_known_it_is_the_same(
    changes: dict[str, object],
) -> None:
    custom = Model("a user's own", Custom(25e6, 25e6, 4.1e9, 90e6))
    work = pretraining("llama-3.2-1b", 8)
    work = replace(work, **(changes if changes.get("precision") else {"model": custom}))
    layout = TrainingLayout()
    assert training_memory(eager(work), layout, H200) == training_memory(work, layout, H200)
    assert predicted(eager(work), layout).step_seconds == predicted(work, layout).step_seconds


@given(
    st.sampled_from(["llama-3.1-8b", "gpt-2-xl", "qwen3-30b-a3b"]),
    st.sampled_from([Method.FULL, Method.LORA]),
    st.sampled_from(list(Recompute)),
    st.sampled_from([1, 2, 8]),
    st.sampled_from([0, 1, 3]),
)
def test_it_is_never_faster_nor_smaller(
    model: str, method: Method, recompute: Recompute, tensor: int, zero_stage: int
) -> None:
    work = replace(pretraining(model, 16, 1024), method=method)
    layout = TrainingLayout(8 // tensor, tensor, zero_stage=zero_stage, recompute=recompute)
    fused, unfused = predicted(work, layout), predicted(eager(work), layout)
    # Few tokens wait for the host either way.
    assert unfused.step_seconds.mid > fused.step_seconds.mid * (1 - 1e-9)
    assert unfused.memory.needed_bytes > fused.memory.needed_bytes


def test_what_it_takes_longer_goes_with_the_bandwidth() -> None:
    """So that memory gains where arithmetic gained: its share of the step grows."""
    work, layout = pretraining("llama-3.1-8b", 8, 2048), TrainingLayout(8)

    def share(of: TrainingWork) -> float:
        found = predicted(of, layout)
        seconds = {term.name: term.seconds for term in found.ledger}
        return seconds["MemoryBandwidth"] / found.step_seconds.mid

    assert share(eager(work)) > 1.5 * share(work)


def test_adapters_move_bytes_where_there_are_some_and_weights_where_they_are_trained() -> None:
    work, layout = pretraining("llama-3.1-8b", 8, 2048), TrainingLayout(8)
    shape = work.model.shape
    assert isinstance(shape, Transformer)
    whole, adapted = (
        unfused_costs.traffic_counts(
            replace(work, method=method), shape, layout, shard(work, layout), passes=3.0
        )
        for method in (Method.FULL, Method.LORA)
    )
    assert whole.adapter == adapted.weight == 0.0
    assert whole.weight > 0.0
    assert adapted.adapter > 0.0


def test_activations_of_routed_experts_are_not_kept_twice() -> None:
    """What a layer keeps beside its hidden elements: nothing, where experts count with it."""

    def kept_of_the_mlp_bytes(name: str) -> float:
        shape = pretraining(name).model.shape
        assert isinstance(shape, Transformer)
        of_hidden_bytes = unfused_costs.GATED_KEPT_BYTES * shape.hidden
        return unfused_costs.layer_kept_bytes(shape, Method.FULL) - of_hidden_bytes

    assert kept_of_the_mlp_bytes("qwen3-30b-a3b") == 0.0
    # Llama 3.1 8B has 14,336 inner elements, 2 bytes of each.
    assert kept_of_the_mlp_bytes("llama-3.1-8b") == pytest.approx(2 * 14336)

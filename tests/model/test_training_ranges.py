"""How sure a step is: as the model of what it computes, and as what was told of its input."""

from __future__ import annotations

from dataclasses import replace

import pytest

from poolwise.model.prediction import TrainingPrediction
from poolwise.model.training.input import checkpoint_share, supply_seconds
from poolwise.model.training.step import predict_training
from poolwise.model.work import TrainingLayout, TrainingWork
from tests.model.shapes import preset
from tests.model.training_cases import CALIBRATION, machine, pretraining

H100 = machine("H100-SXM5-80GB")
RESNET = TrainingWork(
    preset("resnet-50"), 1024, None, "bf16", bytes_per_sample=115e3, cpu_seconds_per_sample=0.03
)
LAYOUT = TrainingLayout(8, zero_stage=0, micro_batch_size=128)


def predicted(work: TrainingWork, layout: TrainingLayout = LAYOUT) -> TrainingPrediction:
    return predict_training(work, layout, H100, CALIBRATION)


@pytest.mark.parametrize("cpu_seconds", [0.03, 0.3, 3.0])
def test_what_waits_for_its_input_is_as_sure_as_what_was_told_of_it(cpu_seconds: float) -> None:
    """Supply takes far longer than all else, whose error hides behind it."""
    slow = replace(RESNET, cpu_seconds_per_sample=cpu_seconds)
    step = predicted(slow).step_seconds
    supply = supply_seconds(slow, LAYOUT.count, H100)
    assert (step.mid, step.low, step.high) == pytest.approx((supply, supply, supply))


def test_a_range_ends_where_supply_does() -> None:
    """Between the two: nothing shorter than the supply, and nothing surer than the rest beyond."""
    fed = predicted(replace(RESNET, cpu_seconds_per_sample=0.0)).step_seconds
    for supplied in (1.2 * fed.low, 0.9 * fed.high):
        cpu_seconds = supplied * H100.host.cores / RESNET.global_batch_samples
        work = replace(RESNET, cpu_seconds_per_sample=cpu_seconds)
        assert supply_seconds(work, LAYOUT.count, H100) == pytest.approx(supplied)
        step = predicted(work).step_seconds
        assert step.low == pytest.approx(supplied)
        assert step.high == pytest.approx(fed.high)


def test_checkpoints_stretch_both_ends_of_the_range() -> None:
    work, layout = pretraining("llama-3.1-70b", 256), TrainingLayout(4, 8, 2)
    saving = replace(work, checkpoint_interval_seconds=600)
    plain = predicted(work, layout).step_seconds
    saved = predicted(saving, layout).step_seconds
    share = checkpoint_share(saving, layout.count, H100)
    assert share > 0.0
    assert (saved.low, saved.high) == pytest.approx(
        (plain.low * (1 + share), plain.high * (1 + share))
    )


def test_what_the_model_says_of_the_rest_is_as_unsure_however_long_supply_takes() -> None:
    """The load, and with it the power, follows from it."""
    fed, waiting = predicted(replace(RESNET, cpu_seconds_per_sample=0.0)), predicted(RESNET)
    assert waiting.fitted_spread == fed.fitted_spread == pytest.approx(fed.step_seconds.spread)
    assert waiting.step_seconds.spread == pytest.approx(0.0, abs=1e-12)

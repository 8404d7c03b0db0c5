"""What was learned is found again, also by an operator whose work has one field more."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from poolwise.model.shapes import Model, Transformer
from poolwise.model.work import TrainingLayout, TrainingWork
from poolwise.plan.learning.corrections import alike, name_of, workload_of
from tests.plan.machines import model

WORK = TrainingWork(model("llama-3.1-8b"), 256, 4096, "bf16")
LAYOUT = TrainingLayout(data=8)


@dataclass(frozen=True)
class OfALaterVersion(TrainingWork):
    """By another name, with fields that are as they always were."""

    more: bool = False
    kinds: tuple[str, ...] = field(default_factory=tuple)


def test_a_field_that_has_its_default_and_another_name_of_a_class_change_no_identity() -> None:
    told = {name: getattr(WORK, name) for name in WORK.__dataclass_fields__}
    later = OfALaterVersion(**told)
    assert workload_of(later) == workload_of(WORK)
    assert alike(later, LAYOUT) == alike(WORK, LAYOUT)
    assert workload_of(replace(later, more=True)) != workload_of(WORK)


@pytest.mark.parametrize(
    "changed", [{"sequence_tokens": 2048}, {"global_batch_samples": 128}, {"precision": "fp8"}]
)
def test_what_differs_is_other_work(changed: dict[str, object]) -> None:
    other = replace(WORK, **changed)  # type: ignore[arg-type]
    assert workload_of(other) != workload_of(WORK)
    assert alike(other, LAYOUT) != alike(WORK, LAYOUT)


def test_length_is_no_other_work_and_a_layout_is_no_step_alike() -> None:
    assert workload_of(replace(WORK, steps=7.0)) == workload_of(WORK)
    assert alike(WORK, replace(LAYOUT, data=16)) != alike(WORK, LAYOUT)


def test_each_shape_that_a_spec_spells_out_is_a_model_of_its_own() -> None:
    shape = WORK.model.shape
    assert isinstance(shape, Transformer)
    one, other = (Model("transformer", replace(shape, layers=layers)) for layers in (16, 32))
    assert name_of(one) != name_of(other)
    assert name_of(replace(one)) == name_of(one)

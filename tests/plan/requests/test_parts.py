"""Parallel sizes of a run that its model rules out are refused: no pool could ever help."""

import pytest

from tests.plan.requests.test_requests import TRAINING, changed, read, refusal


def divided(preset, **sizes):
    document = changed(TRAINING, "model", {"preset": preset})
    return changed(changed(document, "training.parallelism", sizes), "accelerators", {"count": 84})


@pytest.mark.parametrize(
    ("preset", "field", "given", "says"),
    [
        ("llama-3.1-70b", "tensor", 3, "must divide the 64 heads of Llama-3.1-70B, is 3"),
        ("qwen2.5-7b", "tensor", 7, "must divide or be a multiple of the 4 key-value heads of"),
        ("llama-3.1-70b", "pipeline", 84, "must be at most the 80 layers of Llama-3.1-70B, is 84"),
        ("llama-3.1-70b", "expert", 2, "must be 1, since Llama-3.1-70B has no experts, is 2"),
        ("mixtral-8x7b", "expert", 3, "must divide the 8 experts of Mixtral-8x7B-v0.1, is 3"),
        ("resnet-50", "pipeline", 2, "must be 1, since ResNet-50 is no transformer, is 2"),
    ],
)
def test_what_the_model_does_not_have_is_not_divided(preset, field, given, says):
    told = refusal(divided(preset, **{field: given}))
    assert told.startswith(f"spec.training.parallelism.{field}: ")
    assert says in told


def test_what_it_has_is():
    assert read(divided("mixtral-8x7b", tensor=2, expert=2)).request.fixed.expert == 2

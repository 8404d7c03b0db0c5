"""Whole experts on the accelerators of a replica: what a model has and what an engine can do."""

import pytest

from tests.plan.requests.test_requests import SERVICE, changed, read, refusal

MIXTRAL = changed(SERVICE, "model", {"preset": "mixtral-8x7b"})


@pytest.mark.parametrize(
    ("document", "engine", "given", "says"),
    [
        pytest.param(
            SERVICE,
            "vllm",
            {"tensor": 4, "expert": 4},
            "must be 1, since Llama-3.1-8B has no experts, is 4",
            id="experts of a dense model",
        ),
        pytest.param(
            MIXTRAL,
            "vllm",
            {"expert": 3},
            "must divide the 8 experts of Mixtral-8x7B-v0.1, is 3",
            id="unequal experts",
        ),
        pytest.param(
            MIXTRAL,
            "vllm",
            {"tensor": 2, "expert": 4},
            "must divide tensor (2), is 4",
            id="more sharers of experts than accelerators",
        ),
        pytest.param(
            MIXTRAL,
            "vllm",
            {"tensor": 4, "expert": 2},
            "must be 1 or tensor (4) for engine vllm, which lays experts out over all"
            " accelerators that share a layer, is 2",
            id="vllm shares experts among all",
        ),
        pytest.param(
            MIXTRAL,
            "tgi",
            {"expert": 4},
            "must be 1 for engine tgi, is 4",
            id="tgi shares no experts",
        ),
    ],
)
def test_what_no_engine_would_do_is_refused(document, engine, given, says):
    asked = changed(changed(document, "engine", {"type": engine}), "parallelism", given)
    assert refusal(asked) == f"spec.parallelism.expert: {says}"


@pytest.mark.parametrize(
    ("engine", "given", "tensor", "expert"),
    [
        ("vllm", {"expert": 4}, 4, 4),
        ("vllm", {"tensor": 4, "expert": 1}, 4, 1),
        ("sglang", {"tensor": 4, "expert": 2}, 4, 2),
        ("sglang", {"expert": 2}, None, 2),
        ("custom", {"tensor": 4, "expert": 2}, 4, 2),
    ],
)
def test_experts_are_shared_as_the_engine_will(engine, given, tensor, expert):
    """vLLM's flag takes no number: experts go over the whole tensor-parallel group."""
    document = changed(changed(MIXTRAL, "engine", {"type": engine}), "parallelism", given)
    fixed = read(document).request.fixed
    assert (fixed.tensor, fixed.expert) == (tensor, expert)

"""What twice the accelerators gain a first token, measured and predicted."""

import pytest

from bench.model.outcome import Outcome
from bench.model.widening import gains, lines
from poolwise.model.prediction import Interval


def first_token(
    width: int, measured: float, predicted: float, isl: str = "1024", attn_dp: str = "1"
) -> Outcome:
    row = {
        "row_id": f"{width}{isl}{measured}",
        "gpu": "X",
        "engine": "vllm",
        "model": "llama",
        "isl": isl,
        "tp": str(width),
        "n_gpus": str(width),
        "attn_dp": attn_dp,
    }
    return Outcome("ttft", row, measured, True, Interval(predicted, predicted, predicted))


def test_a_job_counts_once_for_each_doubling() -> None:
    found = gains([first_token(2, 1.0, 1.2), first_token(4, 0.8, 0.6), first_token(8, 0.8, 0.4)])
    (first,) = found["X", "vllm", "llama", "1024", "2 to 4"]
    (second,) = found["X", "vllm", "llama", "1024", "4 to 8"]
    assert first == pytest.approx((2.0, 1.25))
    assert second == pytest.approx((1.5, 1.0))
    assert "| X | vllm | llama | 1024 | 2 to 4 | 1 | x1.25 | x2.00 |" in lines(found)


def test_other_prompts_and_groups_of_their_own_are_no_wider_run_of_the_job() -> None:
    narrow = first_token(2, 1.0, 1.0)
    for other in (first_token(4, 0.5, 0.5, isl="8192"), first_token(4, 0.5, 0.5, attn_dp="4")):
        assert not gains([narrow, other])

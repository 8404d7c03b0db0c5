from __future__ import annotations

import pytest

from poolwise.cli.explain import parse_target
from poolwise.cluster.resources import INFERENCE_SERVICES, TRAINING_JOBS, Resource
from poolwise.errors import InvalidInput


@pytest.mark.parametrize(
    ("kind", "resource"),
    [
        ("tj", TRAINING_JOBS),
        ("TrainingJob", TRAINING_JOBS),
        ("trainingjobs", TRAINING_JOBS),
        ("isvcp", INFERENCE_SERVICES),
        ("inferenceservices.poolwise.dev", INFERENCE_SERVICES),
    ],
)
def test_kinds_are_spelt_as_for_kubectl(kind: str, resource: Resource) -> None:
    assert parse_target(f"{kind}/x") == (resource, "x")


@pytest.mark.parametrize("target", ["tj", "tj/", "pod/x", "tj/a/b", ""])
def test_anything_else_is_told_what_to_write(target: str) -> None:
    with pytest.raises(InvalidInput, match="write tj/NAME"):
        parse_target(target)

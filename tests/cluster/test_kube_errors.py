"""What a refusal of the API server means: a right of ours is missing, or a child is not liked."""

from __future__ import annotations

import json

import pytest
from kubernetes.aio.client.exceptions import ApiException

from poolwise.cluster.kube_errors import translated
from poolwise.errors import Forbidden, NamespaceEnds, Refused

RIGHT = (
    'jobs.batch is forbidden: User "system:serviceaccount:poolwise-system:poolwise" cannot create '
    'resource "jobs" in API group "batch" in the namespace "ml"'
)
QUOTA = 'jobs.batch "train" is forbidden: exceeded quota: none, requested: count/jobs.batch=1'
POLICY = "jobs.batch \"train\" is forbidden: ValidatingAdmissionPolicy 'x' denied request: no"
ENDING = 'jobs.batch "train" is forbidden: unable to create new content in namespace ml because'


@pytest.mark.parametrize(
    ("sentence", "error"),
    [(RIGHT, Forbidden), (QUOTA, Refused), (POLICY, Refused), (ENDING, Refused)],
)
def test_only_a_missing_right_is_told_as_one(sentence, error):
    found = translated(ApiException(status=403, reason=sentence), "apply jobs/train")
    assert type(found) is error
    assert str(found) == f"apply jobs/train: {sentence}"


@pytest.mark.parametrize(
    ("details", "error"),
    [
        ({"causes": [{"reason": "NamespaceTerminating", "field": "metadata.namespace"}]}, True),
        ({"causes": [{"reason": "FieldValueInvalid", "field": "spec"}]}, False),
        ({"causes": None}, False),
        (None, False),
    ],
)
def test_a_namespace_that_is_being_deleted_is_told_by_the_cause(details, error):
    answer = ApiException(status=403, reason="Forbidden")
    answer.body = json.dumps({"kind": "Status", "message": ENDING, "details": details})
    assert isinstance(translated(answer, "apply jobs/train"), NamespaceEnds) is error

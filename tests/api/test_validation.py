"""Bad input without an API server; tests/apiserver asks a real one for the same sentences."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise.api import RESOURCES
from poolwise.api.base import Resource
from poolwise.api.validation import defaulted, problems
from tests.api.mutations import full_objects, mutations
from tests.apiserver.bad_input import ACCEPTED, BASES, REFUSED, Accepted, Refused, changed

EXAMPLES = Path(__file__).resolve().parent.parent.parent / "examples"


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.name)
def test_bad_input_gets_field_and_range(case: Refused) -> None:
    before = copy.deepcopy(case.document)
    sentences = "\n".join(problems(case.document))
    for words in case.says:
        assert words in sentences
    assert case.document == before


@pytest.mark.parametrize("case", ACCEPTED, ids=lambda case: case.name)
def test_what_only_looks_bad_gets_none(case: Accepted) -> None:
    assert problems(case.document) == []


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.stem)
def test_examples_are_valid(path: Path) -> None:
    documents = [document for document in yaml.safe_load_all(path.read_text()) if document]
    assert documents
    for document in documents:
        assert problems(document) == []


def test_the_classes_of_the_reliability_study_are_covered() -> None:
    cases: list[Refused | Accepted] = [*REFUSED, *ACCEPTED]
    covered = {case.name.split("-")[0] for case in cases}
    elsewhere = {
        "B38",  # updates: tests/apiserver/test_admission.py
        "B39",
        "B48",
        "B45",  # the cluster changes, not the object: tests of the operator
        "B47",
    }
    asked = {f"B{number}" for number in (*range(1, 60), *range(79, 85))}
    assert asked - covered - elsewhere == set()


def test_sentences_are_those_of_the_api_server() -> None:
    broken = changed(
        BASES["job"],
        {"training.globalBatchSize": 0, "training.precision": "BF16", "queueName": "a/b"},
    )
    assert problems(broken) == [
        "spec.training.globalBatchSize: Invalid value: 0: spec.training.globalBatchSize in body"
        " should be greater than or equal to 1",
        'spec.training.precision: Unsupported value: "BF16": supported values: "bf16", "fp16",'
        ' "fp32", "fp8"',
    ]


def test_rules_are_checked_once_the_schema_holds() -> None:
    broken = changed(BASES["job"], {"queueName": "a/b", "accelerators": {"min": 2, "max": 1}})
    assert problems(broken) == [
        "spec.accelerators.min: Invalid value: must be at most max (1), is 2",
        'spec.queueName: Invalid value: "a/b": must be a name of lower-case letters, digits,'
        " '-' and '.', without a namespace",
    ]


@pytest.mark.parametrize("percentile", ["abc", "99%", "", "1e1", "nan"])
def test_a_percentile_that_is_no_number_gets_one_sentence(percentile: str) -> None:
    targets = [{"metric": "TTFT", "percentile": each, "target": "1s"} for each in (percentile, 99)]
    (sentence,) = problems(changed(BASES["service"], {"slo": targets}))
    assert sentence == (
        f'spec.slo[0].percentile: Invalid value: "{percentile}": must be above 0 and below 100:'
        ' an integer, or a string such as "99.9"'
    )


by_kind = pytest.mark.parametrize("resource", RESOURCES, ids=lambda resource: resource.__name__)


@by_kind
def test_a_full_object_is_valid(resource: type[Resource]) -> None:
    for document in full_objects(resource):
        assert problems(document) == []


@by_kind
def test_a_terminal_gets_no_control_characters(resource: type[Resource]) -> None:
    hostile = [m.document for m in mutations(resource) if m.what == "control characters"]
    assert hostile
    for document in hostile:
        document["metadata"] = {"name": "a\x1b[31m", "labels": {"\x1b": "\x1b"}}
        assert not set("\x1b\n\u200b") & set("".join(problems(document)))


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        ({}, "Object 'Kind' is missing"),
        ({"kind": "TrainingJob"}, "apiVersion not set"),
        ({"kind": "Pod", "apiVersion": "v1"}, 'no matches for kind "Pod" in version "v1"'),
        ({"kind": ["x"], "apiVersion": 7}, 'no matches for kind "[\'x\']" in version "7"'),
    ],
)
def test_other_kinds_are_named(document: dict[str, Any], sentence: str) -> None:
    assert problems(document) == [sentence]


@pytest.mark.parametrize("part", ["metadata", "spec"])
@pytest.mark.parametrize("value", [None, [], "text", 7, True, {"name": []}], ids=str)
def test_a_document_of_any_form_gets_sentences(part: str, value: Any) -> None:
    sentences = problems({**BASES["job"], part: value})
    assert sentences
    assert all(isinstance(sentence, str) for sentence in sentences)


@by_kind
def test_no_mutation_of_a_type_gets_past_the_schema(resource: type[Resource]) -> None:
    wrong = [m for m in mutations(resource) if m.what.startswith("as ")]
    assert len(wrong) > 100
    for mutation in wrong:
        field = mutation.path[-1] if isinstance(mutation.path[-1], str) else mutation.path[-2]
        assert str(field) in "\n".join(problems(mutation.document)), str(mutation)


@pytest.mark.parametrize("value", [2**63, -(10**20), 10**400], ids=["2^63", "-1e20", "1e400"])
def test_a_whole_number_beyond_64_bits_is_none(value: int) -> None:
    changes = {"training": {"globalBatchSize": value}}
    sentences = problems(changed(BASES["job"], changes))
    assert any('spec.training.globalBatchSize: Invalid value: "number"' in s for s in sentences)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(max_examples=60, deadline=None)
@given(resource=st.sampled_from(RESOURCES), name=st.data(), value=JSON)
def test_any_value_of_any_field_gets_sentences_or_is_read(
    resource: type[Resource], name: st.DataObject, value: Any
) -> None:
    base = next(each for each in BASES.values() if each["kind"] == resource.__name__)
    field = name.draw(st.sampled_from(sorted(next(full_objects(resource))["spec"])))
    document = {**base, "spec": {**base["spec"], field: value}}
    told = problems(document)
    assert all(isinstance(each, str) and each for each in told)
    if not told:
        resource.model_validate(document)


def test_defaults_are_filled_in_below_what_is_there() -> None:
    stored = defaulted(changed(BASES["service"], {"scaling": {"maxReplicas": 4}}))["spec"]
    assert stored["scaling"] == {
        **{"mode": "Direct", "minReplicas": 1, "maxReplicas": 4},
        **{"redundancy": 0, "scaleToZero": False},
    }
    assert stored["model"] == {"preset": "llama-3.1-8b", "quantization": "Auto"}
    assert "accelerators" not in stored

"""What was measured of workloads, from a file: ``poolwise plan --observed FILE``.

::

    - {model: llama-3.1-8b, phase: token, pool: h100, ratio: 1.12, at: "2026-11-20T10:00:00Z"}
    - {model: llama-3.1-8b, phase: token, pool: h100, ratio: 1.09}

``phase`` is ``training`` (a step), ``first-token`` or ``token``; ``ratio`` is the measured time
over the predicted one; without ``at`` it was measured now.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from poolwise.cli.manifests import named, parsed
from poolwise.errors import InvalidInput
from poolwise.model.correction import Correction, Phase, Sample
from poolwise.plan.learning.corrections import Corrections, Subject
from poolwise.plan.observed import Decisions
from poolwise.tables import Tables


class _Measurement(BaseModel):
    model_config = ConfigDict(extra="forbid")

    model: str
    phase: Phase
    pool: str
    ratio: float = Field(gt=0, allow_inf_nan=False)
    at: AwareDatetime | None = None


_MEASUREMENTS = TypeAdapter(list[_Measurement])


def read_corrections(path: str, tables: Tables, now: datetime) -> Corrections:
    """The corrections that a file's measurements make. Raises InvalidInput."""
    documents = list(parsed(path))
    if len(documents) != 1:
        raise InvalidInput(path, f"holds {len(documents)} documents, must hold one list")
    try:
        found = _MEASUREMENTS.validate_python(documents[0])
    except ValidationError as error:
        raise _sentence(path, _foremost(error)) from error
    known: dict[Subject, Correction] = {}
    for number, each in enumerate(found, start=1):
        row = tables.model(each.model)
        if row is None:
            raise InvalidInput(f"{path}: item {number}", f"{each.model!r} is not a known model")
        subject = Subject(row.name, each.phase, each.pool)
        sample = Sample((each.at or now).timestamp(), each.ratio)
        before = known.get(subject, Correction(each.phase))
        known[subject] = before.with_samples([sample])
    return Corrections(known)


def elsewhere(path: str, corrections: Corrections, answer: Decisions) -> Iterator[str]:
    """A sentence for each pool of a file that the plan does not have."""
    have = ", ".join(sorted(answer.places)) or "none"
    for pool in sorted({subject.pool for subject in corrections.known} - answer.places.keys()):
        yield f"{path}: what was measured on {pool!r} is not used: the pools are {have}"


def _foremost(error: ValidationError) -> ErrorDetails:
    """A field that nobody knows before one that is missing: it is often the same, misspelt."""
    every = error.errors()
    return next((each for each in every if each["type"] == "extra_forbidden"), every[0])


def _sentence(path: str, error: ErrorDetails) -> InvalidInput:
    """Which item and field, what it holds and what is allowed, in our words where pydantic has
    none that a reader of YAML would know."""
    if not error["loc"]:
        return InvalidInput(path, f"holds {named(error['input'])}, must hold a list")
    number, *fields = error["loc"]
    where = ": ".join((path, f"item {int(number) + 1}", *map(str, fields)))
    match error["type"]:
        case "missing":
            return InvalidInput(where, "is missing")
        case "extra_forbidden":
            known = ", ".join(_Measurement.model_fields)
            return InvalidInput(where, f"is not a field; there are {known}")
        case "model_type":
            return InvalidInput(where, f"is {named(error['input'])}, expected an object")
    problem = error["msg"]
    shown = f"{error['input']!r:.64}"
    return InvalidInput(where, f"{shown} cannot be used: {problem[:1].lower()}{problem[1:]}")

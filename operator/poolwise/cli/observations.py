"""What was measured of workloads, from a file: ``poolwise plan --observed FILE``.

::

    - {model: llama-3.1-8b, phase: token, pool: h100, ratio: 1.12, at: "2026-11-20T10:00:00Z"}
    - {model: llama-3.1-8b, phase: token, pool: h100, ratio: 1.09}

``phase`` is ``training`` (a step), ``first-token`` or ``token``; ``ratio`` is the measured time
over the predicted one; without ``at`` it was measured now.
"""

from __future__ import annotations

from datetime import datetime

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from poolwise.cli.manifests import parsed
from poolwise.errors import InvalidInput
from poolwise.model.correction import Correction, Phase, Sample
from poolwise.plan.corrections import Corrections, Subject
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
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise InvalidInput(path, f"{where}: {first['msg']}" if where else first["msg"]) from error
    known: dict[Subject, Correction] = {}
    for each in found:
        row = tables.model(each.model)
        if row is None:
            raise InvalidInput(path, f"{each.model!r} is not a known model")
        subject = Subject(row.name, each.phase, each.pool)
        sample = Sample((each.at or now).timestamp(), each.ratio)
        before = known.get(subject, Correction(each.phase))
        known[subject] = before.with_samples([sample])
    return Corrections(known)

"""When what ran a job goes, some time after its end.

It is told so (``ttlSecondsAfterFinished``) once the job's own status tells of the end, and not
before: until then nothing else knows of it. One that went while the operator was away, or while the
job was paused, would be made again, and the job would run once more. A TrainJob has no such field.
"""

from __future__ import annotations

from poolwise.plan.conditions import Type
from poolwise.plan.observed import Manifest, Object
from poolwise.plan.reading import is_true, mapping
from poolwise.plan.records.runtimes import Runtime

FIELD = "ttlSecondsAfterFinished"
KINDS = (Runtime.JOB, Runtime.JOB_SET)


def has_told_its_end(job: Object) -> bool:
    """Whether the status of a TrainingJob says that it is over, for good."""
    return is_true(mapping(job, "status"), Type.COMPLETE, Type.FAILED)


def cleanup(job: Object, child: Object) -> Manifest:
    """What changes about it on a live child, as a merge patch; empty where nothing does."""
    wanted = mapping(job, "spec").get(FIELD) if has_told_its_end(job) else None
    if child.get("kind") not in KINDS or mapping(child, "spec").get(FIELD) == wanted:
        return {}
    return {"spec": {FIELD: wanted}}

"""The custom resources as pydantic models: the one source of the API.

Belongs here: the fields of TrainingJob, InferenceService and AcceleratorPool with their types,
bounds, defaults and descriptions, the CRDs generated from them, and the checks that the API server
makes of them. A leaf: nothing here knows of pools, plans or the cluster.

Printer columns read these paths, so status must fill them: ``.status.plan.pool``,
``.status.plan.summary.accelerators`` (``64xH100-SXM5-80GB``), ``.status.plan.summary.shape``
(``dp4 tp8 pp2``), ``.status.plan.bottleneck``, ``.status.replicas`` (services), the reason of the
condition ``Ready``; for pools ``.status.accelerator``, ``.status.nodes``, ``.status.free``,
``.status.role``. The scale subresource reads ``.status.replicas`` and ``.status.selector``.
"""

from poolwise.api.acceleratorpool import AcceleratorPool, AcceleratorPoolSpec
from poolwise.api.inferenceservice import InferenceService, InferenceServiceSpec
from poolwise.api.trainingjob import TrainingJob, TrainingJobSpec

GROUP = "poolwise.dev"
VERSION = "v1alpha1"
RESOURCES = (TrainingJob, InferenceService, AcceleratorPool)

__all__ = [
    "GROUP",
    "RESOURCES",
    "VERSION",
    "AcceleratorPool",
    "AcceleratorPoolSpec",
    "InferenceService",
    "InferenceServiceSpec",
    "TrainingJob",
    "TrainingJobSpec",
]

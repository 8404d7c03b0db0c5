"""What pods ask for beside accelerators, and what Kubernetes would refuse of it."""

import pytest

from poolwise.api.resources import Resources
from poolwise.errors import InvalidInput
from poolwise.plan.requests.pod_resources import pod_resources
from poolwise.plan.requests.request import PodResources

GIB = 2.0**30
TAKEN = {
    "limits-stand-alone": (
        {"requests": {"cpu": "500m"}, "limits": {"cpu": 4, "memory": "1Gi"}},
        PodResources(0.5, GIB),
    ),
    "others": (
        {"limits": {"smarter-devices/fuse": 1, "ephemeral-storage": "1Gi", "rdma/hca": "0"}},
        PodResources(others=(("ephemeral-storage", GIB), ("smarter-devices/fuse", 1.0))),
    ),
    "thousands-of-thousandths": (
        {"requests": {"rdma/hca": "1000m"}, "limits": {"rdma/hca": 1}},
        PodResources(others=(("rdma/hca", 1.0),)),
    ),
    "huge-pages": (
        {"limits": {"hugepages-1Gi": "2048Mi", "cpu": 1}},
        PodResources(1.0, others=(("hugepages-1Gi", 2 * GIB),)),
    ),
}
REFUSED = {
    "what-only-nodes-have": (
        {"limits": {"pods": "1"}},
        ".limits.pods: must be cpu, ephemeral-storage, memory, huge pages or a name with a domain"
        " such as rdma/hca",
    ),
    "no-domain": (
        {"requests": {"gpu": "1"}},
        ".requests.gpu: must be cpu, ephemeral-storage, memory, huge pages or a name with a domain"
        " such as rdma/hca",
    ),
    "half-a-device": (
        {"requests": {"rdma/hca": "500m"}},
        ".requests.rdma/hca: must be a whole number, is 0.5",
    ),
    "more-at-most": (
        {"requests": {"rdma/hca": "1"}, "limits": {"rdma/hca": "2"}},
        ".requests.rdma/hca: must be what limits say (2), as of anything but cpu, memory and"
        " ephemeral-storage, is 1",
    ),
    "half-a-page": (
        {"requests": {"hugepages-2Mi": "3Mi", "cpu": 1}},
        ".requests.hugepages-2Mi: must be whole pages of 2Mi, is 3145728 bytes",
    ),
    "pages-of-no-size": (
        {"limits": {"hugepages-big": "2Mi", "cpu": 1}},
        ".limits.hugepages-big: must have a size of pages in its name, as hugepages-2Mi has; big is"
        " none",
    ),
    "nothing-beside-pages": (
        {"limits": {"hugepages-2Mi": "4Mi"}},
        ": must ask for cpu or memory where it asks for huge pages",
    ),
}


@pytest.mark.parametrize(("given", "counted"), TAKEN.values(), ids=TAKEN)
def test_pod_resources_are_what_the_scheduler_counts(given, counted):
    assert pod_resources(Resources.model_validate(given)) == counted


@pytest.mark.parametrize(("given", "told"), REFUSED.values(), ids=REFUSED)
def test_what_a_pod_would_be_refused_is_refused_before_it_has_a_place(given, told):
    with pytest.raises(InvalidInput) as caught:
        pod_resources(Resources.model_validate(given))
    assert str(caught.value) == f"spec.run.resources{told}"

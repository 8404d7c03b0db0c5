"""What the model answers about one training run on one pool, remembered."""

from __future__ import annotations

from dataclasses import dataclass, replace

from poolwise.model.bottleneck import bottleneck
from poolwise.model.efficiency import Calibration
from poolwise.model.hardware import Machine
from poolwise.model.prediction import Bottleneck
from poolwise.model.training.step import step_seconds
from poolwise.model.work import TrainingLayout
from poolwise.plan.candidates.memo import Memo, Page
from poolwise.plan.candidates.training_layouts import (
    NoTrainingShape,
    TrainingSearch,
    TrainingShape,
    divisors,
)
from poolwise.plan.capacity import Gang
from poolwise.plan.pool import Pool
from poolwise.plan.requests.request import TrainingRequest


@dataclass(frozen=True, slots=True)
class TrainingAnswers:
    """Answers that depend on the run and the machine, and on no free capacity."""

    request: TrainingRequest
    pool: Pool
    calibration: Calibration
    page: Page

    def shape(self, count: int) -> TrainingShape | NoTrainingShape:
        """The fastest layout over so many accelerators."""
        return self.page.get(count, lambda: self._search(count).best(count))

    def bottleneck(self, layout: TrainingLayout) -> Bottleneck:
        """Elasticities of the throughput; more memory may change micro-batch and recomputation."""
        return self.page.get(layout, lambda: self._bottleneck(self._search(layout.count), layout))

    def _search(self, count: int) -> TrainingSearch:
        assert self.pool.machine is not None, "pools without a machine are excluded"
        size = gang_of(count, self.request, self.pool).accelerators
        machine = gang_machine(self.pool.machine, size, count)
        return TrainingSearch(self.request.work, self.request.fixed, machine, self.calibration)

    def _bottleneck(self, search: TrainingSearch, layout: TrainingLayout) -> Bottleneck:
        def throughput(changed: Machine) -> float:
            seconds = step_seconds(search.work, layout, changed, search.calibration)
            if changed.device.memory_bytes != search.machine.device.memory_bytes:
                larger = replace(search, machine=changed)
                seconds *= larger.rechosen(layout) / search.rechosen(layout)
            return 1 / seconds

        return bottleneck(throughput, search.machine)


def training_answers(
    request: TrainingRequest, pool: Pool, calibration: Calibration, memo: Memo
) -> TrainingAnswers:
    """Answers about a run on a pool that is not excluded."""
    subject = (request.work, request.fixed, pool.accelerators_per_node, repr(pool.machine))
    return TrainingAnswers(request, pool, calibration, memo.page((*subject, calibration)))


def gang_of(count: int, request: TrainingRequest, pool: Pool) -> Gang:
    """Pods of a run: equal ones, one per node, as large as divides the count."""
    size = max(d for d in divisors(count) if d <= max(pool.accelerators_per_node, 1))
    return Gang(
        pods=count // size,
        accelerators=size,
        cores=request.pod.cores,
        memory_bytes=request.pod.memory_bytes,
        one_per_node=True,
    )


def gang_machine(machine: Machine, pod_accelerators: int, count: int) -> Machine:
    """The machine as a gang sees it: nodes of its pods' size, with their share of the host."""
    link = machine.interconnect
    whole = link.accelerators_per_node
    if count <= whole or pod_accelerators == whole:
        return machine
    domain = pod_accelerators if link.domain_accelerators == whole else link.domain_accelerators
    link = replace(link, accelerators_per_node=pod_accelerators, domain_accelerators=domain)
    host = replace(machine.host, cores=machine.host.cores * pod_accelerators / whole)
    return replace(machine, interconnect=link, host=host)

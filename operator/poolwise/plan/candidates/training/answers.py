"""What the model answers about one training run on one pool, remembered."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from poolwise.model.bottleneck import BUYABLE, bottleneck
from poolwise.model.efficiency import Calibration
from poolwise.model.hardware import Machine, Resource
from poolwise.model.prediction import Bottleneck
from poolwise.model.work import TrainingLayout, TrainingWork
from poolwise.plan.candidates.machines import felt_by_run, fully_fed, reads_or_writes
from poolwise.plan.candidates.situation import Situation
from poolwise.plan.candidates.topology import communication_share, wish
from poolwise.plan.candidates.training.divisions import divisors
from poolwise.plan.candidates.training.layouts import (
    NoTrainingShape,
    TrainingSearch,
    TrainingShape,
)
from poolwise.plan.closeness import Wish
from poolwise.plan.learning import Undescribed
from poolwise.plan.learning.corrections import TrainingEstimates
from poolwise.plan.ledger.capacity import Gang
from poolwise.plan.memo import Memo, Page
from poolwise.plan.pool import Pool
from poolwise.plan.requests.request import TrainingRequest


@dataclass(frozen=True, slots=True)
class _Place:
    """Counts for which the run feels the same machine, with what is known of it there."""

    search: TrainingSearch
    fed: TrainingSearch
    """Where nothing waits for storage."""
    page: Page
    fed_page: Page


@dataclass(slots=True)
class TrainingAnswers:
    """Answers that depend on the run and the machine, and on no free capacity."""

    request: TrainingRequest
    pool: Pool
    calibration: Calibration
    memo: Memo
    measured: TrainingEstimates | Undescribed
    """What runs of this model on this pool took, beside what the model says."""
    shared: Page
    """What holds for the run everywhere."""
    alone: Page
    """What holds for the run on the pool's device and host whatever its links."""
    _places: dict[int, _Place] = field(default_factory=dict)

    def shape(self, count: int) -> TrainingShape | NoTrainingShape:
        """The fastest layout over so many accelerators.

        Samples and checkpoints cost every layout the same, so that storage has no say in which is
        the fastest.
        """
        place = self._place(count)
        found = place.fed_page.get(count, lambda: place.fed.fastest(count))
        if isinstance(found, NoTrainingShape):
            return found
        told = place.page.get(("told", found), lambda: place.search.told(found))
        return TrainingShape(found, self.measured.corrected(told, found))

    def has_room_on(self, count: int) -> bool:
        """Whether memory leaves any layout over so many accelerators, free or not."""
        return self._place(count).fed.has_room_on(count)

    def bottleneck(self, layout: TrainingLayout) -> Bottleneck:
        """Elasticities of the throughput; more memory may change micro-batch and recomputation."""
        place = self._place(layout.count)
        return place.page.get(layout, lambda: self._bottleneck(place.search, layout))

    def wish(self, layout: TrainingLayout, gang: Gang) -> Wish:
        """How close to each other the run's nodes are to be here."""
        return wish(self.request.where, gang, self.pool, lambda: self._communication_share(layout))

    def _communication_share(self, layout: TrainingLayout) -> float:
        place, work = self._place(layout.count), self.request.work
        return place.page.get(
            ("communication", layout),
            lambda: communication_share(work, layout, place.search.machine, self.calibration),
        )

    def _place(self, count: int) -> _Place:
        """All counts inside a node are one place, and so are all of whole nodes."""
        assert self.pool.machine is not None, "pools without a machine are excluded"
        machine = gang_machine(self.pool.machine, _pod_size(count, self.pool), count)
        alike = count
        if machine is self.pool.machine:
            alike = -1 if count <= machine.interconnect.accelerators_per_node else 0
        if alike not in self._places:
            felt = felt_by_run(machine, self.request.work, count)
            self._places[alike] = self._new_place(felt)
        return self._places[alike]

    def _new_place(self, machine: Machine) -> _Place:
        work, fixed = self.request.work, self.request.fixed
        linked = self.memo.page((self.alone, machine.interconnect))
        pages = (self.shared, self.alone, linked)
        search = TrainingSearch(work, fixed, machine, self.calibration, *pages)
        page = self._page(machine)
        if not reads_or_writes(work):
            return _Place(search, search, page, page)
        fed = fully_fed(machine)
        return _Place(search, replace(search, machine=fed), page, self._page(fed))

    def _page(self, machine: Machine) -> Page:
        return self.memo.page((self.alone, machine.interconnect, machine.host))

    def _bottleneck(self, search: TrainingSearch, layout: TrainingLayout) -> Bottleneck:
        base = search.step_seconds(layout)

        def throughput(changed: Machine) -> float:
            if changed is search.machine:
                return 1 / base
            grown = self._grown(search, changed)
            if changed.device.memory_bytes == search.machine.device.memory_bytes:
                return 1 / grown.step_seconds(layout)
            if grown.sizes_that_fit(layout) == search.sizes_that_fit(layout):
                return 1 / base
            return search.rechosen(layout) / grown.rechosen(layout) / base

        return bottleneck(throughput, search.machine, list(_felt(search.work, layout)))

    def _grown(self, search: TrainingSearch, machine: Machine) -> TrainingSearch:
        alone = _alone(self.shared, machine, self.calibration, self.memo)
        linked = self.memo.page((alone, machine.interconnect))
        return replace(search, machine=machine, alone=alone, linked=linked)


def training_answers(request: TrainingRequest, pool: Pool, situation: Situation) -> TrainingAnswers:
    """Answers about a run on a pool that is not excluded."""
    measured = situation.corrections.training(request.work, pool.name, situation.now)
    assert pool.machine is not None, "pools without a machine are excluded"
    calibration, memo = situation.calibration, situation.memo
    shared = memo.page((request.work, request.fixed))
    alone = _alone(shared, pool.machine, calibration, memo)
    return TrainingAnswers(request, pool, calibration, memo, measured, shared, alone)


def _alone(shared: Page, machine: Machine, calibration: Calibration, memo: Memo) -> Page:
    return memo.page((shared, machine.device, machine.host.dispatch_speed, calibration))


def _felt(work: TrainingWork, layout: TrainingLayout) -> Iterator[Resource]:
    """Resources that the run may be held back by."""
    for each in BUYABLE:
        is_silent = each is Resource.INTERCONNECT and layout.count == 1
        is_fed = each is Resource.INPUT and not reads_or_writes(work)
        if not (is_silent or is_fed):
            yield each


def gang_of(count: int, request: TrainingRequest, pool: Pool) -> Gang:
    """Pods of a run: equal ones, one per node, as large as divides the count."""
    size = _pod_size(count, pool)
    return Gang(
        pods=count // size,
        accelerators=size,
        cores=request.pod.cores,
        memory_bytes=request.pod.memory_bytes,
        one_per_node=True,
        others=request.pod.others,
    )


def _pod_size(count: int, pool: Pool) -> int:
    most = max(pool.accelerators_per_node, 1)
    sizes = divisors(count)
    return sizes[bisect_right(sizes, most) - 1]


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

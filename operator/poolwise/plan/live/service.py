"""A service as its controller sees it: from the spec, the placement, and the pool it is in."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from poolwise.model.efficiency import Calibration
from poolwise.model.prediction import NINE_IN_TEN
from poolwise.model.serving.prediction import predict_serving
from poolwise.model.shapes import Transformer
from poolwise.model.work import ServingLayout, Target
from poolwise.plan.children.engines import flags_of
from poolwise.plan.decision import PlacementRecord
from poolwise.plan.live.mismatch.cache import CacheRoom
from poolwise.plan.pool import Pool as PlacedPool
from poolwise.plan.records.hourly import cost_per_hour
from poolwise.plan.requests.request import ServingRequest
from poolwise.plan.scaling.service import Loading, Modelled, Pool, Predictor, Service


@dataclass(frozen=True, slots=True)
class Placed:
    """A service that runs."""

    name: str
    request: ServingRequest
    record: PlacementRecord
    pool: PlacedPool

    @property
    def layout(self) -> ServingLayout:
        """How a replica is laid out."""
        return self.record.serving_layout

    @property
    def targets(self) -> tuple[Target, ...]:
        """That it is scaled by."""
        return self.request.work.targets

    @property
    def reported(self) -> tuple[Target, ...]:
        """That are measured and told: also where only the rate counts."""
        return self.request.work.targets or self.request.work.reported

    def predictor(self, calibration: Calibration) -> Predictor:
        """How a replica behaves; keep it while the placement stays."""
        assert self.pool.machine is not None
        return Modelled(self.request.work, self.layout, self.pool.machine, calibration)

    def room(self, is_at_most: bool) -> CacheRoom:
        """What decides how much a replica's cache holds."""
        assert self.pool.machine is not None
        device, per_node = self.pool.machine.device, self.pool.accelerators_per_node
        engine, flags = self.request.work.engine, flags_of(self.request.arguments)
        return CacheRoom(self.layout, device, engine, per_node, is_at_most, flags)

    def log_band(self, calibration: Calibration) -> float:
        """Half-width of ln(measured / predicted) time of a token, nine in ten; 0: no tokens."""
        assert self.pool.machine is not None
        work = self.request.work
        told = predict_serving(work, self.layout, self.pool.machine, calibration, 0.0).itl_seconds
        return NINE_IN_TEN * told.spread

    def service(
        self,
        predictor: Predictor,
        start_seconds: float,
        room: int | None,
        interval_seconds: float,
        overdue: int = 0,
        further: tuple[Pool, ...] = (),
    ) -> Service:
        """What has to be kept.

        :param room: for so many more replicas in the pool; None: nobody knows.
        :param overdue: replicas that do not start: they take room, and are none.
        :param further: pools that the service may be on as well; behind its Service, which knows no
            weights, all replicas get the same share.
        """
        request, most = self.request, self.request.most_replicas
        if room is not None:
            most = (self.record.replicas or 0) + room
        least, limit = max(request.least_replicas, 1), request.max_cost_per_hour
        return Service(
            name=self.name,
            targets=self.targets,
            pools=(
                self.kind(predictor, start_seconds, most - overdue, self.cost_per_hour),
                *further,
            ),
            least_replicas=least,
            most_replicas=max(request.most_replicas - overdue, least),
            most_cost_per_hour=math.inf if limit is None else limit,
            redundancy=request.redundancy,
            interval_seconds=interval_seconds,
            is_even=bool(further),
        )

    def kind(
        self, predictor: Predictor, start_seconds: float, most: int, unknown_cost: float = 0.0
    ) -> Pool:
        """Its replicas here, at most so many of them.

        :param unknown_cost: per hour of one, where the pool has no price that can be compared.
        """
        is_priced = self.pool.price is not None and self.pool.price_problem is None
        return Pool(
            name=self.pool.name,
            predictor=predictor,
            start_seconds=start_seconds,
            cost_per_replica_hour=self.cost_per_hour if is_priced else unknown_cost,
            most_replicas=max(most, 0),
            loading=self._loading(),
        )

    @property
    def cost_per_hour(self) -> float:
        """Of one replica; 0 where nobody knows a price."""
        return cost_per_hour(self.pool, replace(self.record, replicas=1)) or 0.0

    def _loading(self) -> Loading | None:
        """Weights from their store; None where nobody can tell how large they are."""
        model = self.request.work.model
        if not isinstance(model.shape, Transformer) or self.pool.machine is None:
            return None
        host = self.pool.machine.host
        return Loading(
            replica_bytes_per_second=host.model_load_bytes_per_second,
            shared_bytes_per_second=host.shared_read_bytes_per_second,
        )

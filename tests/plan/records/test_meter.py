"""What a workload has cost so far: exact over restarts, prices, attempts, and hours without us."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise.model.work import ServingLayout
from poolwise.plan.pool import Price
from poolwise.plan.records.meter import Meter, rate, read, told
from poolwise.plan.status.accrual import brought_up_to_date
from poolwise.plan.status.pods import Live
from poolwise.plan.status.workload import status
from tests.plan.children.given import (
    cpu_pool,
    h100_pool,
    placed_job,
    placed_service,
    service,
    training_job,
)
from tests.plan.junk import broken
from tests.plan.status.test_status import kept, live_deployment, live_job

START = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
POOL = h100_pool()
JOB_COST = 110.0
"""Per hour: two of eight accelerators' nodes at 55."""
JOB_KILOWATTS = 16 * 640 / 1000


def at(hours):
    return START + timedelta(hours=hours)


def text(hours):
    return f"{at(hours):%Y-%m-%dT%H:%M:%SZ}"


def pod(name, started, ended=None):
    """Of a gang; bound at ``started`` hours."""
    bound = {"type": "PodScheduled", "status": "True", "lastTransitionTime": text(started)}
    state = {} if ended is None else {"terminated": {"exitCode": 0, "finishedAt": text(ended)}}
    phase = "Running" if ended is None else "Succeeded"
    return {
        "metadata": {"name": name},
        "spec": {"nodeName": f"node-of-{name}"},
        "status": {
            "phase": phase,
            "conditions": [bound],
            "containerStatuses": [{"name": "train", "state": state}],
        },
    }


RUNS = {"ready": 2, "active": 2, "startTime": text(0)}


def over(hours, **more):
    return {
        "succeeded": 2,
        "startTime": text(0),
        "completionTime": text(hours),
        "conditions": [{"type": "Complete", "status": "True", "lastTransitionTime": text(hours)}],
        **more,
    }


class Operator:
    """One that comes and goes; only the status outlives it."""

    def __init__(self, resource=None, plan=None, pool=POOL):
        self.resource = resource or training_job()
        self.plan = plan or placed_job()
        self.pool = pool
        self.look(0, [], [])
        self.plan = kept(self.plan)

    def look(self, hours, children, pods, accrual_seconds=0.0, plan=None):
        before = self.resource.get("status")
        pools = {self.pool.name: self.pool} if self.pool else {}
        live = Live(children, pods)
        shown = status(self.resource, plan or self.plan, pools, live, at(hours))
        shown = brought_up_to_date(shown, at(hours), accrual_seconds)
        self.resource = {**self.resource, "status": shown}
        return shown != before

    @property
    def document(self):
        return self.resource["status"].get("observed", {}).get("accrued", {})

    @property
    def meter(self):
        return read(self.document)


GANG = [pod("a", 1), pod("b", 1.5)]


def test_nothing_is_paid_for_before_a_pod_is_on_a_node():
    operator = Operator()
    waiting = {"metadata": {"name": "a"}, "spec": {}, "status": {"phase": "Pending"}}
    operator.look(0.5, [live_job(active=2, startTime=text(0))], [waiting])
    assert operator.document == {}


def test_a_run_is_paid_for_from_its_first_pod_at_the_price_of_what_it_holds():
    operator = Operator()
    assert operator.look(2, [live_job(**RUNS)], GANG)
    assert operator.document == {
        "cost": 0.0,
        "currency": "USD",
        "kilowattHours": 0.0,
        "acceleratorHours": 0.0,
        "until": text(1),
        "perHour": {"cost": JOB_COST, "kilowatts": JOB_KILOWATTS, "accelerators": 16},
    }
    found = operator.meter.at(at(11))
    assert (found.cost, found.accelerator_hours) == (10 * JOB_COST, 160)
    assert found.kilowatt_hours == pytest.approx(10 * JOB_KILOWATTS)


def test_while_it_runs_nothing_is_written():
    operator = Operator()
    operator.look(2, [live_job(**RUNS)], GANG)
    assert not any(operator.look(hours, [live_job(**RUNS)], GANG) for hours in (3, 40, 900))


def test_it_is_brought_up_to_date_now_and_then_without_losing_a_cent():
    operator = Operator()
    operator.look(2, [live_job(**RUNS)], GANG)
    moments = [2 + step / 7 for step in range(70)]
    writes = [operator.look(moment, [live_job(**RUNS)], GANG, 3600.0) for moment in moments]
    assert sum(writes) == pytest.approx(10, abs=1)
    assert operator.meter.at(at(21)).cost == pytest.approx(20 * JOB_COST, abs=0.01)


def test_an_end_is_exact_and_final_whenever_it_is_seen():
    operator = Operator()
    operator.look(2, [live_job(**RUNS)], GANG)
    ended = [pod("a", 1, ended=20.9), pod("b", 1.5, ended=21)]
    assert operator.look(26, [live_job(**over(21.01))], ended)  # nobody looked for five hours
    assert operator.document["cost"] == 20 * JOB_COST
    assert "perHour" not in operator.document
    assert operator.document["until"] == text(21)
    assert not operator.look(27, [live_job(**over(21.01))], ended)
    assert not operator.look(28, [live_job(**over(21.01))], [])  # its pods were cleaned up
    operator.look(900, [], [])  # and then the Job
    assert operator.document["cost"] == 20 * JOB_COST


def test_an_end_without_pods_is_that_of_the_job():
    operator = Operator()
    operator.look(2, [live_job(**RUNS)], GANG)
    operator.look(26, [live_job(**over(21))], [])
    assert operator.document["cost"] == 20 * JOB_COST


def test_a_job_that_failed_has_cost_what_it_has():
    operator = Operator()
    operator.look(2, [live_job(**RUNS)], GANG)
    failure = {"type": "Failed", "status": "True", "lastTransitionTime": text(6)}
    operator.look(9, [live_job(failed=3, startTime=text(0), conditions=[failure])], [])
    assert operator.document["cost"] == 5 * JOB_COST


def test_a_run_that_nobody_saw_running_is_counted_from_its_plan():
    operator = Operator()
    operator.look(26, [live_job(**over(21))], [])
    assert operator.document["cost"] == 21 * JOB_COST
    assert operator.document["acceleratorHours"] == 21 * 16
    assert not operator.look(27, [live_job(**over(21))], [])


def test_a_price_counts_from_when_it_is_seen():
    operator = Operator()
    operator.look(2, [live_job(**RUNS)], GANG)
    operator.pool = replace(POOL, price=Price(110.0, "USD", "spec.price"))
    assert operator.look(11, [live_job(**RUNS)], GANG)
    assert operator.document["perHour"]["cost"] == 2 * JOB_COST
    assert operator.meter.at(at(12)).cost == 10 * JOB_COST + 2 * JOB_COST


def test_hours_at_an_unknown_price_are_told():
    operator = Operator(pool=replace(POOL, price=None))
    operator.look(2, [live_job(**RUNS)], GANG)
    operator.pool = POOL
    operator.look(11, [live_job(**RUNS)], GANG)
    assert operator.document["unpricedAcceleratorHours"] == 160
    assert operator.meter.at(at(12)).cost == JOB_COST


def test_sums_of_another_currency_are_not_added():
    operator = Operator()
    operator.look(2, [live_job(**RUNS)], GANG)
    operator.pool = replace(POOL, price=Price(50.0, "EUR", "spec.price"))
    operator.look(11, [live_job(**RUNS)], GANG)
    assert (operator.document["cost"], operator.document["currency"]) == (0, "EUR")
    assert operator.document["acceleratorHours"] == 160


def test_attempts_add_up():
    operator = Operator()
    operator.look(2, [live_job(**RUNS)], GANG)
    suspended = replace(placed_job(), placed=False, chosen=None, candidates=(), claim=None)
    operator.look(11, [live_job()], [], plan=suspended)  # its pods are gone
    assert "perHour" not in operator.document
    operator.look(31, [live_job(**RUNS)], [pod("a", 30), pod("b", 30)])
    assert operator.meter.at(at(32)).cost == 10 * JOB_COST + 2 * JOB_COST


def test_ranks_that_are_replaced_do_not_stop_the_meter():
    operator = Operator()
    operator.look(2, [live_job(**RUNS)], GANG)
    pods = [pod("a", 1, ended=5), pod("b", 1.5), pod("c", 5.2)]
    before = operator.document
    operator.look(6, [live_job(**RUNS)], pods)
    assert operator.document == before
    assert operator.meter.at(at(11)).cost == 10 * JOB_COST


def test_a_pool_that_is_gone_keeps_its_last_price():
    operator = Operator()
    operator.look(2, [live_job(**RUNS)], GANG)
    operator.pool = None
    operator.look(3, [live_job(**RUNS)], GANG)
    assert operator.meter.at(at(11)).cost == 10 * JOB_COST


def test_a_service_that_grows_costs_more_from_then_on():
    serving = placed_service(POOL, ServingLayout())
    operator = Operator(service(), serving)
    deployment = live_deployment(replicas=3, readyReplicas=3, updatedReplicas=3)
    operator.look(1, [deployment], GANG)
    assert operator.document["perHour"]["cost"] == pytest.approx(3 * 55 / 8)
    operator.plan = kept(placed_service(POOL, ServingLayout(), replicas=6))
    operator.look(11, [deployment], GANG)
    assert operator.meter.at(at(12)).cost == pytest.approx((10 * 3 + 6) * 55 / 8, abs=1e-4)


ROLLED = [pod("c", 5), pod("d", 5.5)]
"""Pods of a newer spec in place of those of the gang."""


def test_replicas_that_come_after_a_rollout_cost_nothing_before_they_came():
    operator = Operator(service(), placed_service(POOL, ServingLayout()))
    deployment = live_deployment(replicas=3, readyReplicas=3, updatedReplicas=3)
    operator.look(1, [deployment], GANG)
    operator.look(6, [deployment], ROLLED)
    operator.plan = kept(placed_service(POOL, ServingLayout(), replicas=6))
    operator.look(11, [deployment], [*ROLLED, pod("e", 11)])
    assert operator.document["until"] == text(11)
    assert operator.meter.at(at(12)).cost == pytest.approx((10 * 3 + 6) * 55 / 8, abs=1e-4)


def test_a_price_that_comes_after_a_rollout_takes_nothing_back():
    operator = Operator(service(), placed_service(POOL, ServingLayout()))
    deployment = live_deployment(replicas=3, readyReplicas=3, updatedReplicas=3)
    operator.look(1, [deployment], GANG)
    operator.look(6, [deployment], ROLLED)
    before = operator.meter.at(at(11)).cost
    operator.pool = replace(POOL, price=Price(0.0, "USD", "spec.price"))
    operator.look(11, [deployment], ROLLED)
    assert operator.document["cost"] == pytest.approx(before) == pytest.approx(10 * 3 * 55 / 8)


@pytest.mark.parametrize("price", [80.0, None])
def test_replicas_on_a_further_pool_are_paid_for_at_its_price(price):
    far = replace(POOL, name="far", price=price and Price(price, "USD", "a test"))
    first, second = (
        kept(placed_service(pool, ServingLayout(), replicas=count))
        for pool, count in ((POOL, 2), (far, 3))
    )
    spread = replace(first, parts=(second,))

    def told(plan, resource):
        live = Live([live_deployment(replicas=5, readyReplicas=5, updatedReplicas=5)], GANG)
        return status(resource, plan, {POOL.name: POOL, "far": far}, live, at(1))

    found = told(spread, service())
    shown, plan = found["observed"]["accrued"]["perHour"], found["plan"]
    assert shown["accelerators"] == 5
    assert [(each["pool"], each["replicas"]) for each in plan["further"]] == [("far", 3)]
    if price is None:
        assert "cost" not in shown and "costPerHour" not in plan
    else:
        whole = (2 * 55 + 3 * price) / 8
        assert shown["cost"] == pytest.approx(whole)
        assert plan["costPerHour"] == pytest.approx(whole, rel=1e-3)
        assert plan["further"][0]["costPerHour"] == pytest.approx(3 * price / 8)
    # 5 accelerators as the meter counts them, not the 2 of the first pool.
    assert plan["energyJoules"] == pytest.approx(5 * plan["powerWatts"] * 3600.0, rel=1e-3)
    assert plan["energyJoules"] == pytest.approx(shown["kilowatts"] * 3.6e6, rel=1e-3)
    before = {**service(), "status": found}
    assert told(spread, before)["plan"] == plan, "told again it is the same"
    alone = told(first, before)["plan"]
    assert "further" not in alone and alone["costPerHour"] == pytest.approx(2 * 55 / 8)
    assert alone["energyJoules"] == pytest.approx(2 * alone["powerWatts"] * 3600.0, rel=1e-3)


def test_a_first_pool_that_is_gone_keeps_the_cost_of_all():
    """It grew by that of the further pools with each look."""
    far = replace(POOL, name="far")
    first, second = (
        kept(placed_service(pool, ServingLayout(), replicas=count))
        for pool, count in ((POOL, 2), (far, 3))
    )
    spread, resource = replace(first, parts=(second,)), service()
    live = Live([live_deployment(replicas=5, readyReplicas=5, updatedReplicas=5)], GANG)
    for pools in ({POOL.name: POOL, "far": far}, {"far": far}, {"far": far}):
        found = status(resource, spread, pools, live, at(1))
        resource = {**resource, "status": found}
        assert found["observed"]["accrued"]["perHour"]["cost"] == pytest.approx(5 * 55 / 8)


def test_cores_are_paid_for_by_their_share_of_a_node():
    pool = cpu_pool()
    layout = ServingLayout(cpu_cores=21.5, cpu_memory_bytes=2.0**34)
    operator = Operator(service(), placed_service(pool, layout, replicas=2), pool)
    operator.look(1, [live_deployment(replicas=2, readyReplicas=2, updatedReplicas=2)], GANG)
    assert operator.document["perHour"] == {"cost": 2.2, "kilowatts": 1.02, "accelerators": 0}


MOMENTS = st.lists(st.floats(0, 500), min_size=1, max_size=9).map(sorted)


@settings(max_examples=30)
@given(MOMENTS, st.floats(0.1, 500), st.booleans())
def test_whenever_it_is_looked_at_the_sum_is_the_same(moments, price, is_exact):
    """The sum of any run of looks differs from one look by the rounding of the writes alone."""
    operator = Operator(pool=replace(POOL, price=Price(price, "USD", "spec.price")))
    for moment in moments:
        operator.look(1 + moment, [live_job(**RUNS)], GANG, 0.0 if is_exact else 1.0)
    end = 601
    operator.look(700, [live_job(**over(end))], [pod("a", 1, ended=end), pod("b", 1.5, ended=end)])
    assert operator.document["cost"] == pytest.approx(600 * price * 2, abs=1e-3)


TOLD = told(Meter(START, rate(8, None, 1.5), 12.5, 3.25, 9.0, 1.0, "USD"))


@given(broken(TOLD))
def test_a_damaged_meter_does_no_harm(damaged):
    assert isinstance(told(read(damaged)), dict)


def test_what_is_told_is_read_again():
    meter = Meter(START, rate(8, None, 1.5), 12.5, 3.25, 9.0, 1.0, "USD")
    assert read(told(meter)) == meter
    assert told(Meter()) == {}


def test_what_is_paid_already_is_not_paid_again_by_a_start_in_the_past():
    per_hour = rate(8, 10.0, 1.0)
    used = Meter().started(at(0), per_hour, "USD").stopped(at(10))
    again = used.started(at(5), per_hour, "USD")
    assert again.until == at(10)
    assert again.at(at(12)).cost == pytest.approx(12 * 10.0)

"""Whether what runs stays inside what its owner allows: a condition with numbers, and no more."""

from dataclasses import replace

import pytest

from poolwise.handlers.announcement import announcements
from poolwise.model.work import ServingLayout
from poolwise.plan.pool import Price
from poolwise.plan.records.meter import Meter, Rate
from poolwise.plan.status.budget import Money, within_budget
from tests.plan.children.given import placed_service, service, training_job
from tests.plan.records.test_meter import GANG, POOL, RUNS, Operator, at, over, pod
from tests.plan.status.test_status import kept, live_deployment, live_job

# The job costs $110 per hour from its first pod, an hour after its start, and is expected to end
# 83 hours after its second one came, half an hour later: at $9,185.


def job(limit):
    return training_job(objective={"goal": "Time", "maxCost": str(limit)})


def budget(operator):
    conditions = operator.resource["status"]["conditions"]
    return next((each for each in conditions if each["type"] == "WithinBudget"), None)


def running(limit, *moments):
    operator = Operator(job(limit))
    for hours in moments:
        operator.look(hours, [live_job(**RUNS)], GANG)
    return operator


def test_without_a_limit_or_a_cost_there_is_no_budget():
    operator = Operator()
    operator.look(2, [live_job(**RUNS)], GANG)
    assert budget(operator) is None
    assert budget(Operator(job(9100))) is None


def test_what_is_expected_to_suffice_says_until_when():
    found = budget(running(9300, 2))
    assert (found["status"], found["reason"]) == ("True", "WithinLimit")
    assert found["message"] == (
        "maxCost is $9,300, reached about 2026-11-25 01:32 UTC at $110 per hour;"
        " it is expected to end about 2026-11-25 00:30 UTC"
    )


def test_of_a_run_whose_end_nobody_knows_it_is_said_when_its_budget_is_reached():
    rate = Rate(accelerators=16.0, cost=110.0, kilowatts=None)
    meter = Meter(until=at(2), rate=rate, cost=110.0, currency="USD")
    [found] = within_budget(job(9100)["spec"], Money(meter, None, at(2)))
    assert (found.status, found.reason) == (True, "WithinLimit")
    assert found.message == (
        "maxCost is $9,100, reached about 2026-11-24 23:43 UTC at $110 per hour"
    )


def test_what_will_not_suffice_is_said_long_before():
    found = budget(running(5000, 2))
    assert (found["status"], found["reason"]) == ("False", "CostWillExceed")
    assert "reached about 2026-11-23 10:27 UTC" in found["message"]
    assert "Nothing stops it: raise objective.maxCost, or set spec.suspend" in found["message"]


def test_a_run_that_takes_longer_than_expected_is_warned_near_its_limit():
    assert budget(running(9900, 2, 85))["reason"] == "CostWillExceed"
    assert budget(running(50_000, 2, 85))["reason"] == "WithinLimit"


def test_what_is_spent_is_spent():
    operator = running(5000, 2, 60)
    found = budget(operator)
    assert (found["status"], found["reason"]) == ("False", "CostExceeded")
    assert (
        "which was spent by 2026-11-23 10:27 UTC; it goes on costing $110 per hour"
        in found["message"]
    )
    assert not operator.look(61, [live_job(**RUNS)], GANG)  # and that is told once
    operator.look(71, [live_job(**over(71))], [pod("a", 1, ended=71), pod("b", 1.5, ended=71)])
    assert budget(operator)["message"] == "maxCost is $5,000, and it has cost $7,700"


def test_a_budget_that_was_kept_stays_kept():
    operator = running(9100, 2)
    operator.look(71, [live_job(**over(71))], [pod("a", 1, ended=71), pod("b", 1.5, ended=71)])
    assert budget(operator)["status"] == "True"


def test_all_is_told_in_the_currency_that_was_paid_in():
    pool = replace(POOL, price=Price(55.0, "EUR", "spec.price"))
    run = Operator(job(5000), pool=pool)
    told = []
    for hours in (2, 60):
        run.look(hours, [live_job(**RUNS)], GANG)
        told.append(budget(run)["message"])
    run.look(71, [live_job(**over(71))], [pod("a", 1, ended=71), pod("b", 1.5, ended=71)])
    told.append(budget(run)["message"])
    resource = service(objective={"goal": "Cost", "maxCostPerHour": "21"})
    chat = Operator(resource, placed_service(POOL, ServingLayout()), pool)
    chat.look(1, [live_deployment(replicas=3, readyReplicas=3, updatedReplicas=3)], GANG)
    told.append(budget(chat)["message"])
    assert all("€" in each and "$" not in each for each in told), told


def test_its_owner_gets_an_event_and_only_one():
    operator = running(5000, 2)
    before = operator.resource["status"]
    told = list(announcements({}, before))
    warned = [each for each in told if each.reason == "CostWillExceed"]
    assert [each.is_warning for each in warned] == [True]
    operator.look(30, [live_job(**RUNS)], GANG)
    assert list(announcements(before, operator.resource["status"])) == []


def test_a_service_that_got_dearer_is_told():
    resource = service(objective={"goal": "Cost", "maxCostPerHour": "21"})
    operator = Operator(resource, placed_service(POOL, ServingLayout()))
    live = [live_deployment(replicas=3, readyReplicas=3, updatedReplicas=3)]
    operator.look(1, live, GANG)
    assert budget(operator)["message"] == "costs $20.62 per hour, maxCostPerHour is $21.00"
    operator.plan = kept(operator.plan)
    operator.pool = replace(POOL, price=Price(80.0, "USD", "spec.price"))
    operator.look(2, live, GANG)
    assert (budget(operator)["status"], budget(operator)["reason"]) == ("False", "CostExceeded")


@pytest.mark.parametrize("limit", ["many", [], {}, "1e999"])
def test_a_damaged_limit_does_no_harm(limit):
    resource = training_job(objective={"goal": "Time", "maxCost": limit})
    operator = Operator(resource)
    operator.look(2, [live_job(**RUNS)], GANG)
    assert operator.document["perHour"]["cost"] == 110


def test_a_limit_per_hour_that_just_pays_is_kept():
    """Three replicas at $0.10 are $0.30, and in binary fractions a little more."""
    rate = Rate(accelerators=3.0, cost=3 * 0.1, kilowatts=None)
    spent = Money(Meter(until=at(2), rate=rate, cost=1.0, currency="USD"), None, at(2))
    [found] = within_budget({"objective": {"maxCostPerHour": "0.3"}}, spent)
    assert (found.status, found.reason) == (True, "WithinLimit"), found.message

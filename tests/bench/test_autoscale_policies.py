"""Rival laws against worked examples of their sources."""

import dataclasses

import pytest

from bench.autoscale.policies import apa, hpa, llmd_slo, wva_saturation
from bench.autoscale.policies.hpa_running import HpaRunning
from bench.autoscale.policies.hpa_utilization import HpaUtilization
from bench.autoscale.policies.keda_waiting import KedaWaiting
from bench.autoscale.policies.kpa import Kpa
from bench.autoscale.policies.llmd_slo import LlmdSlo
from bench.autoscale.policies.service import Bounds
from bench.autoscale.policies.static import Hourly, Static
from bench.autoscale.policies.wva_saturation import Load, WvaSaturation
from poolwise.plan.signals.sample import Sample
from tests.bench.autoscale_views import SERVICE, gauges, histogram, replica, view

BOUNDS = Bounds(1, 100)


def pods(ready: int, starting: int = 0):
    return [replica(each) for each in range(ready)] + [
        replica(ready + each, ready=False) for each in range(starting)
    ]


@pytest.mark.parametrize(
    ("mean", "ready", "starting", "expected"),
    [
        (20.0, 4, 0, 8),
        (10.9, 4, 0, 4),
        (5.0, 4, 0, 2),
        (20.0, 4, 4, 8),  # 80 in flight on 8 pods: on target
        (30.0, 4, 4, 12),
        (5.0, 4, 4, 6),  # starting ones count as on target on the way down
        (11.5, 4, 4, 8),  # 46 on 8 pods would say down where 4 say up
    ],
)
def test_hpa_counts_pods_without_the_metric(mean, ready, starting, expected):
    values = {f"r{each}": mean for each in range(ready)}
    assert hpa.pods_replicas(values, pods(ready, starting), 10.0) == expected


def test_hpa_does_nothing_without_any_metric():
    assert hpa.pods_replicas({}, pods(3), 10.0) == 3


def test_hpa_external_average_is_the_total_over_the_target():
    assert hpa.external_replicas(23.0, 4, 5.0) == 5
    assert hpa.external_replicas(21.0, 4, 5.0) == 4  # within 10 %
    assert hpa.external_replicas(0.0, 4, 5.0) == 0


def test_hpa_goes_down_to_the_greatest_of_its_window():
    behaviour = hpa.Behaviour(BOUNDS)
    assert behaviour.allowed(0.0, 10, 10) == 10
    assert behaviour.allowed(150.0, 10, 3) == 10
    assert behaviour.allowed(299.0, 10, 2) == 10
    assert behaviour.allowed(301.0, 10, 2) == 3
    assert behaviour.allowed(451.0, 3, 2) == 2


def test_hpa_doubles_or_adds_four_in_fifteen_seconds():
    behaviour = hpa.Behaviour(BOUNDS)
    assert behaviour.allowed(0.0, 2, 50) == 6
    assert behaviour.allowed(14.0, 6, 50) == 6
    assert behaviour.allowed(15.0, 6, 50) == 12


def test_hpa_goes_up_to_the_least_of_an_up_window():
    behaviour = hpa.Behaviour(BOUNDS, up=llmd_slo.UP_DIRECTION)
    assert behaviour.allowed(0.0, 4, 4) == 4
    assert behaviour.allowed(15.0, 4, 7) == 4
    assert behaviour.allowed(31.0, 4, 8) == 7


def test_hpa_keeps_its_bounds():
    behaviour = hpa.Behaviour(Bounds(3, 8))
    assert behaviour.allowed(0.0, 6, 40) == 8
    assert behaviour.allowed(600.0, 8, 0) == 3


def test_hpa_running_counts_waiting_requests():
    law = HpaRunning(SERVICE, target=16.0)
    assert law.desired(view(0.0, 2, gauges(0.0, 2, running=16.0, waiting=16.0))) == 4


def test_hpa_utilization_cannot_tell_one_request_from_a_full_batch():
    one = HpaUtilization(SERVICE).desired(view(0.0, 4, gauges(0.0, 4, running=1.0)))
    full = HpaUtilization(SERVICE).desired(view(0.0, 4, gauges(0.0, 4, running=200.0)))
    assert one == full == 5


def test_keda_on_an_empty_queue_falls_to_the_minimum_after_its_window():
    law = KedaWaiting(SERVICE)
    assert law.desired(view(0.0, 4, gauges(0.0, 4, waiting=6.0))) == 5
    assert law.desired(view(15.0, 5, gauges(15.0, 5))) == 5
    assert law.desired(view(330.0, 5, gauges(330.0, 5))) == 1


def test_kpa_scales_on_the_stable_mean_and_panics_on_twice_its_pods():
    law = Kpa(SERVICE, target=10.0)
    assert law.desired(view(0.0, 4, gauges(0.0, 4, running=10.0))) == 4
    burst = [law.desired(view(at, 4, gauges(at, 4, running=40.0))) for at in (2.0, 4.0, 6.0, 8.0)]
    assert burst == [10, 12, 16, 16]  # means over 6 s of 40, then 160
    assert law.desired(view(10.0, 16, gauges(10.0, 16, running=0.0))) == 16


def test_kpa_leaves_panic_after_a_whole_stable_window():
    law = Kpa(SERVICE, target=10.0)
    law.desired(view(0.0, 1, gauges(0.0, 1, running=40.0)))
    last = [law.desired(view(float(at), 4, gauges(float(at), 4))) for at in range(2, 64, 2)]
    assert last[-2] == 4 and last[-1] == 2  # at 62 s; at most halved


@pytest.mark.parametrize(
    ("current", "value", "expected"),
    [(4, 0.54, 4), (4, 0.6, 5), (4, 1.5, 8), (8, 0.46, 8), (8, 0.3, 5), (8, 0.05, 4)],
)
def test_apa_by_its_law(current, value, expected):
    assert apa.replicas(current, value, 0.5) == expected


def test_apa_counts_starting_pods_as_idle_on_the_way_up():
    assert apa.pending_guard(current=8, ready=4, proposed=16, ratio=2.0) == 8
    assert apa.pending_guard(current=8, ready=4, proposed=16, ratio=3.0) == 12
    assert apa.pending_guard(current=8, ready=4, proposed=4, ratio=0.25) == 5


def test_apa_takes_the_least_recommendation_of_its_cooldown():
    law = apa.Apa(SERVICE)
    low = law.desired(view(0.0, 8, gauges(0.0, 8, kv=0.1)))
    assert low == 4
    # the mean of 0.1 and 0.7 is 0.4: 7 would do, but 4 was said within 300 s
    assert law.desired(view(10.0, 8, gauges(10.0, 8, kv=0.7))) == 4


@pytest.mark.parametrize(
    ("saturation", "replicas", "ready", "expected"),
    [
        (0.8, 8, 8, 12),
        (0.8, 8, 4, 6),  # the flaw: a scale-up that asks for less than there is
        (0.5, 8, 8, 8),
        (0.2, 8, 8, 4),
        (0.2, 8, 4, 4),  # down is uncredited
        (0.0, 8, 8, 0),
        (2.0, 3, 3, 11),
    ],
)
def test_llmd_formula(saturation, replicas, ready, expected):
    assert llmd_slo.formula(saturation, replicas, ready, 0.55, 0.40) == expected


def test_llmd_reads_the_worse_p90_of_the_last_minute_and_clamps_it():
    law = LlmdSlo(SERVICE)
    asked = [law.desired(_llmd_view(at, 4, 30.0)) for at in (0.0, 15.0, 30.0)]
    # 0 before there is a rate, then clamped to 2: means of 0, 1, 1.33 ask for 0, 8, 10;
    # up to the least of the last 30 s
    assert asked == [4, 4, 8]
    assert law.desired(_llmd_view(45.0, 8, 30.0)) == 8  # doubled within these 60 s already


def test_llmd_goes_down_one_in_two_minutes():
    law = LlmdSlo(SERVICE)
    asked = [law.desired(view(at, n)) for at, n in ((0.0, 8), (15.0, 8), (195.0, 8), (210.0, 7))]
    assert asked == [8, 8, 7, 7]
    assert law.desired(view(315.0, 7)) == 6


def _llmd_view(at, ready, seconds):
    count = int(at) * 10
    ttft = histogram((1.0, 2.5, 5.0, 40.0), [seconds] * count)
    return view(at, ready, {f"r{n}": Sample(f"r{n}", at, ttft_seconds=ttft) for n in range(ready)})


@pytest.mark.parametrize(
    ("loads", "expected"),
    [
        ([Load(0.75, 0.0)] * 4, 1),
        ([Load(0.9, 9.0)] * 4, 1),
        ([Load(0.5, 2.5)] * 4, 1),
        ([Load(0.6, 0.0)] * 4, 0),  # 0.8 on three
        ([Load(0.5, 0.0)] * 4, -1),  # 0.667 on three
        ([Load(0.1, 0.0)], 0),
        ([], 0),
    ],
)
def test_wva_saturation_moves_by_one(loads, expected):
    assert wva_saturation.change(loads, 0.8) == expected


def test_wva_saturation_does_nothing_while_a_replica_starts():
    law = WvaSaturation(SERVICE, window_seconds=0.0)
    assert law.desired(view(0.0, 3, gauges(0.0, 3, kv=0.9), starting=1)) == 4


def test_wva_saturation_is_followed_by_an_hpa_after_240_seconds():
    law = WvaSaturation(SERVICE)
    asked = [law.desired(view(at, 3, gauges(at, 3, kv=0.9))) for at in (0.0, 15.0, 240.0, 255.0)]
    assert asked == [3, 3, 4, 4]


def test_static_and_hourly():
    assert Static(7).desired(view(0.0, 1)) == 7
    law = Hourly((3, 9, 5))
    assert law.desired(view(0.0, 1)) == 3
    assert law.desired(view(3600.0 - 70.0, 1)) == 9
    assert law.desired(view(7200.0 - 10.0, 1)) == 9
    assert law.desired(view(99_999.0, 1)) == 5


def test_draining_replicas_do_not_count():
    seen = view(0.0, 4, gauges(0.0, 4, running=32.0))
    leaving = dataclasses.replace(seen.replicas[3], is_draining=True)
    seen = dataclasses.replace(seen, replicas=(*seen.replicas[:3], leaving))
    assert HpaRunning(SERVICE, target=16.0).desired(seen) == 6

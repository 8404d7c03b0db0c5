"""What clients of a gateway see: what was counted between looks, at the targets' percentiles."""

import pytest

from poolwise.model.work import Metric, Target
from poolwise.plan.gateway.clients import Clients, words
from poolwise.plan.gateway.reading import PickerTold, read
from tests.plan.gateway.told import E2E, OLD, durations, extension, router

TTFT, E2E_P90 = Target(Metric.TTFT, 99, 1.0), Target(Metric.E2E, 90, 0.5)
EVERY_SECONDS = 10.0


def after(*texts: str, replica: str = "epp-0") -> tuple[Clients, float]:
    """Looks at one picker, ten seconds apart."""
    found, at = Clients(), 0.0
    for text in texts:
        look = read(text, replica, at)
        assert isinstance(look, PickerTold)
        found, at = found.after([look], "chat", at), at + EVERY_SECONDS
    return found, at - EVERY_SECONDS


def signals(known: tuple[Clients, float], *targets: Target):
    found, now = known
    return {each["metric"]: each for each in found.told(targets, now).get("signals", ())}


def test_each_target_that_is_measured_and_the_queue_by_what_came_between_looks():
    """A p99 takes 1,000 requests; what was counted before the first look is of another time."""
    found = signals(after(router(0, 9000), router(2000, 9000)), TTFT, E2E_P90)
    assert {name: each["samples"] for name, each in found.items()} == dict.fromkeys(
        ("TTFT", "E2E", "Queue"), 2000
    )
    assert found["TTFT"] == {
        "metric": "TTFT",
        "percentile": 99,
        "targetSeconds": 1.0,
        "lowSeconds": 0.0,
        "highSeconds": 0.5,
        "samples": 2000,
        "lateShareLow": 0.0,
        "lateShareHigh": 0.0,
    }
    assert found["Queue"] == {
        "metric": "Queue",
        "percentile": 99,
        "lowSeconds": 0.0,
        "highSeconds": 0.5,
        "samples": 2000,
    }


def test_a_target_that_is_not_measured_is_left_out():
    found = signals(after(extension(0), extension(2000)), TTFT, E2E_P90)
    assert found.keys() == {"E2E", "Queue"}
    assert not signals(after(extension(0), extension(2000)))


def test_too_few_requests_say_how_many_and_no_more():
    found = signals(after(router(0), router(20)), TTFT)
    assert {name: each["samples"] for name, each in found.items()} == {"TTFT": 20, "Queue": 20}
    assert not any("lowSeconds" in each or "lateShareLow" in each for each in found.values())


def test_one_look_tells_nothing():
    found, now = after(router(5000))
    assert not found.told([TTFT], now)


def test_a_picker_that_restarts_counts_anew():
    found = signals(after(router(5000), router(7000), router(100)), TTFT)
    assert found["TTFT"]["samples"] == 2100


def test_counters_that_go_back_are_no_requests():
    found = signals(after(router(5000), router(7000), router(6500), router(6600)), TTFT)
    assert found["TTFT"]["samples"] == 2100


def test_an_older_look_is_none():
    texts = [read(router(count), "epp-0", at) for count, at in ((0, 10.0), (5000, 5.0))]
    found = Clients()
    for look in texts:
        assert isinstance(look, PickerTold)
        found = found.after([look], "chat", 10.0)
    assert not found.told([TTFT], 10.0)


def test_pickers_count_together():
    found = Clients()
    for at, count in ((0.0, 0), (10.0, 1000)):
        looks = [read(router(count), name, at) for name in ("epp-0", "epp-1")]
        found = found.after([each for each in looks if isinstance(each, PickerTold)], "chat", at)
    assert signals((found, 10.0), TTFT)["TTFT"]["samples"] == 2000


@pytest.mark.parametrize("pools", ["other", "both"])
def test_latencies_of_another_pool_are_not_the_services(pools):
    """They bear no pool's name: what the queue is of tells whose they are."""
    other = 'inference_extension_flow_control_queue_size{inference_pool="other"} 0\n'
    chat = other.replace("other", "chat") if pools == "both" else ""
    found = signals(after(other + chat + extension(0), other + chat + extension(2000)), E2E_P90)
    assert not found


def test_what_cannot_be_used_is_one_sentence_and_goes_with_the_next_look():
    broken = durations(E2E[OLD], -4, 6)
    found, now = after(extension(0), broken)
    assert found.told([E2E_P90], now) == {
        "problem": f"epp-0: {E2E[OLD]} has a bucket that holds -4 observations"
    }
    found, now = after(broken, extension(0))
    assert "problem" not in found.told([E2E_P90], now)


def test_it_is_told_in_words():
    found, now = after(router(0), router(1500, 500))
    told = {"heldRequests": 3.0, **found.told([TTFT, E2E_P90], now)}
    assert words(told) == (
        "TTFT p99 500 ms to 1 s (target 1 s, 2,000 samples); "
        "E2E p90 500 ms to 1 s (target 500 ms, 2,000 samples); "
        "Queue p99 500 ms to 1 s (2,000 samples); 3 requests held"
    )
    found, now = after(router(0), router(2000))
    assert words(found.told([TTFT], now)).startswith("TTFT p99 up to 500 ms (target 1 s")
    found, now = after(router(0), router(20))
    assert words(found.told([TTFT], now)).startswith("TTFT p99 not known, too few samples (target")
    assert words({"signals": [{"metric": "E2E", "percentile": 90, "lowSeconds": 5.0}]}) == (
        "E2E p90 above 5 s"
    )
    assert words({"inferencePool": "chat", "heldRequests": 0.0, "wakeUpSeconds": 90.0}) == ""
    assert words({"signals": ["junk"], "problem": "epp-0: no\n"}) == "epp-0: no"

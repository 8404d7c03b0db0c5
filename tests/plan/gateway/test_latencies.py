"""What endpoint pickers measure counts as what it is, under its names old and new."""

import math

import pytest

from poolwise.plan.gateway.latencies import read
from poolwise.plan.signals.adapters import Fault
from poolwise.plan.signals.sample import Histogram, Sample
from tests.plan.gateway.told import E2E, FLOW, NEW, OLD, durations, extension, router, waits

TOLD = Histogram((0.5, 1.0, math.inf), (4.0, 10.0, 10.0), 5.5)
"""4 early, 6 late."""


def told(text: str) -> Sample:
    found = read(text, "epp-0", 100.0)
    assert isinstance(found, Sample), found
    return found


def test_the_router_tells_everything_and_each_request_counts_once():
    """Told under old names too; of answers that are not streamed the first token is the last, and
    who was evicted from the queue never got a replica."""
    assert told(router(4, 6)) == Sample(
        "epp-0",
        100.0,
        ttft_seconds=TOLD,
        inter_token_seconds=TOLD,
        tpot_seconds=TOLD,
        e2e_seconds=TOLD,
        queue_seconds=TOLD,
    )


def test_the_extension_tells_whole_requests_and_its_queue_and_what_begins_later_is_left_out():
    """Its first tokens are counted from when a replica was chosen, its normalised times have the
    first token in them, its average queue is that of the engines."""
    assert told(extension(4, 6)) == Sample("epp-0", 100.0, e2e_seconds=TOLD, queue_seconds=TOLD)


@pytest.mark.parametrize("name", [*E2E.values(), "inference_model_request_duration_seconds"])
def test_whole_requests_under_each_name_they_had(name):
    assert told(durations(name, 4, 6)) == Sample("epp-0", 100.0, e2e_seconds=TOLD)


def test_all_flows_count_together():
    other = durations(E2E[NEW], 1, 2, FLOW.replace("default", "other"))
    found = told(durations(E2E[NEW], 4, 6, FLOW) + other).e2e_seconds
    assert found is not None and found.counts == (5.0, 13.0, 13.0)


@pytest.mark.parametrize(
    "text",
    ["", 'inference_pool_ready_pods{name="chat"} 2\n', waits(OLD, 0, 3, "RejectedCapacity")],
)
def test_before_the_first_request_it_tells_nothing_and_that_is_no_fault(text):
    assert read(text, "epp-0", 100.0) is None


def test_nonsense_is_one_sentence():
    found = read(durations(E2E[OLD], -4, 6), "epp-0", 100.0)
    assert found == Fault(f"{E2E[OLD]} has a bucket that holds -4 observations")

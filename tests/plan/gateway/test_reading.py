"""What endpoint pickers tell of their queues, release by release."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolwise.plan.gateway.reading import PickerTold, read, read_queue
from poolwise.plan.signals.adapters import Fault
from tests.plan.gateway.told import E2E, durations

NEW, OLD = "llm_d_epp_", "inference_extension_"
FLOW = '{fairness_id="default",inference_pool="chat",model_name="m",priority="0"}'
OTHER = '{fairness_id="b",inference_pool="chat",model_name="m",priority="-1"}'


def told(text: str) -> PickerTold:
    found = read(text, "epp-0", 100.0)
    assert isinstance(found, PickerTold), found
    assert read_queue(text, "epp-0", 100.0) == replace(found, measured=None, problem="")
    return found


def test_the_queue_of_all_flows_under_the_newest_name_alone():
    text = "".join(
        f"{prefix}flow_control_queue_size{flow} {count}\n"
        for prefix in (NEW, OLD)
        for flow, count in ((FLOW, 2), (OTHER, 3))
    )
    assert told(text).queues == {"chat": 5.0}
    assert told(text.replace(NEW, "else_")).queues == {"chat": 5.0}


@pytest.mark.parametrize(
    "sign",
    [
        f"{OLD}flow_control_dispatch_cycle_duration_seconds_count 812",
        f"{NEW}flow_control_dispatch_cycle_duration_seconds_count 812",
        f'{NEW}flow_control_pool_saturation{{inference_pool="chat",stage="effective"}} 1',
    ],
)
def test_a_layer_that_runs_is_known_before_any_request(sign):
    """Cycles since 1.4 of the extension, saturation since 1.5; the queue's gauge comes with the
    first request of a flow, and goes with its last."""
    found = told(sign + "\n")
    assert found.runs_flow_control
    assert not found.queues


@pytest.mark.parametrize(
    "text",
    [
        'inference_extension_info{commit="x",build_ref="v1.3.0"} 1\n',
        'inference_pool_ready_pods{name="chat"} 0\n',
        f"{OLD}flow_control_queue_size{FLOW} 0\n",  # 1.1 to 1.3: the first two hold nothing
    ],
)
def test_what_tells_no_cycles_may_refuse_requests_at_once(text):
    assert not told(text).runs_flow_control


def test_a_gauge_below_zero_is_no_queue():
    """As a flow leaves it that was forgotten while a request revived it."""
    text = f"{NEW}flow_control_queue_size{FLOW} -1\n{NEW}flow_control_queue_size{OTHER} 2\n"
    assert told(text).queues == {"chat": 2.0}


def test_queues_are_told_apart_by_their_pool():
    text = f"{NEW}flow_control_queue_size{FLOW} 1\n" + (
        f"{NEW}flow_control_queue_size{FLOW.replace('chat', 'other')} 4\n"
    )
    assert told(text).queues == {"chat": 1.0, "other": 4.0}
    assert told(text).pools == {"chat", "other"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("<html>no</html>", "not Prometheus' text format"),
        (f"{NEW}flow_control_queue_size{FLOW} NaN\n", "not a possible count"),
        (f"{NEW}flow_control_queue_size{FLOW} 1e300\n", "more than a gateway can hold"),
        (f"{NEW}flow_control_queue_size{FLOW} many\n", "not a number"),
        (
            "".join(f'{NEW}flow_control_queue_size{{a="{n}"}} 1\n' for n in range(20_001)),
            "more than 4000 series",
        ),
    ],
)
def test_nonsense_is_one_sentence(text, why):
    found = read(text, "epp-0", 100.0)
    assert isinstance(found, Fault) and why in found.reason


def test_latencies_that_cannot_be_read_hide_no_queue():
    """Whether requests are held is decided by, latencies are not."""
    found = told(f"{NEW}flow_control_queue_size{FLOW} 2\n" + durations(E2E[NEW], -4, 6))
    assert (found.queues, found.measured) == ({"chat": 2.0}, None)
    assert "holds -4 observations" in found.problem
    many = "".join(f'{E2E[NEW]}_count{{a="{each}"}} 1\n' for each in range(20_001))
    found = told(f"{NEW}flow_control_queue_size{FLOW} 2\n" + many)
    assert (found.queues, found.measured) == ({"chat": 2.0}, None)
    assert "more than 4000 series" in found.problem


@given(st.text(max_size=300))
def test_no_text_breaks_the_reader(text):
    queue, bucket = f"{NEW}flow_control_queue_size{text}\n", f"{E2E[NEW]}_bucket{text}\n"
    for each in (queue, bucket, text):
        assert isinstance(read(each, "epp-0", 100.0), PickerTold | Fault)

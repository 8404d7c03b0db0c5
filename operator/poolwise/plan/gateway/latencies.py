"""What an endpoint picker measures of the requests that it passes on: as their clients see them.

Its clock starts when a request comes to it, so that the wait in its own queue is in it, which no
engine tells. Metrics that are called alike and measure something else are left out: before the
llm-d router 0.9 ``request_ttft_seconds`` began once a replica was chosen, and for an answer that is
not streamed the first token comes with the last one; ``normalized_time_per_output_token_seconds``
is a whole request's time over its tokens, not the gap between two; ``average_queue_size`` is of the
engines' queues. Sources: pkg/epp/metrics and pkg/epp/handlers of the Gateway API Inference
Extension (1.0 to 1.5) and of the llm-d router (0.9).
"""

from __future__ import annotations

from poolwise.plan.signals.adapters import Fault, sample
from poolwise.plan.signals.names import Adapter, labelled, named
from poolwise.plan.signals.sample import Sample

_WAIT = "flow_control_request_queue_duration_seconds"
PICKER = Adapter(
    ("",),
    {
        "ttft_seconds": (labelled("llm_d_epp_request_ttft_seconds", "streaming", "true"),),
        "inter_token_seconds": named("llm_d_epp_request_streaming_itl_seconds"),
        "tpot_seconds": named("llm_d_epp_request_streaming_tpot_seconds"),
        "e2e_seconds": named(
            "llm_d_epp_request_duration_seconds",
            "inference_objective_request_duration_seconds",
            "inference_model_request_duration_seconds",
        ),
        "queue_seconds": tuple(
            labelled(f"{prefix}{_WAIT}", "outcome", "Dispatched")
            for prefix in ("llm_d_epp_", "inference_extension_")
        ),
    },
    frozenset(
        {"fairness_id", "priority", "model_name", "target_model_name", "streaming", "outcome"}
    ),
)
"""One name after the other, each whole: a picker tells under several prefixes at once."""


def read(text: str, replica: str, at_seconds: float) -> Sample | Fault | None:
    """What it counted since it started; None before its first request."""
    return sample(text, (PICKER,), replica, at_seconds)

"""What endpoint pickers tell of the requests that they passed on, release by release."""

from __future__ import annotations

from collections.abc import Mapping

from tests.plan.signals.texts import family

MODELS = 'model_name="m",target_model_name="m"'
FLOW = f'{MODELS},fairness_id="default",priority="0"'
OLD, NEW = "inference_extension_", "llm_d_epp_"
E2E = {OLD: "inference_objective_request_duration_seconds", NEW: f"{NEW}request_duration_seconds"}
WAIT = "flow_control_request_queue_duration_seconds"


def buckets(early: float, late: float = 0.0) -> Mapping[str, float]:
    """So many within half a second, so many within one."""
    return {"0.5": early, "1": early + late, "+Inf": early + late}


def waits(prefix: str, early: float, late: float = 0.0, outcome: str = "Dispatched") -> str:
    """In the queue of flow control."""
    labels = f'{FLOW},inference_pool="chat",outcome="{outcome}"'
    return family(prefix + WAIT, buckets(early, late), early * 0.25 + late * 0.75, labels)


def durations(name: str, early: float, late: float = 0.0, labels: str = MODELS) -> str:
    """Any other histogram of times."""
    return family(name, buckets(early, late), early * 0.25 + late * 0.75, labels)


def router(early: float, late: float = 0.0) -> str:
    """The llm-d router 0.9, which tells deprecated names as well."""
    return "".join(
        (
            durations(f"{NEW}request_ttft_seconds", early, late, f'{FLOW},streaming="true"'),
            durations(f"{NEW}request_ttft_seconds", 0, 70, f'{FLOW},streaming="false"'),
            durations("inference_objective_request_ttft_seconds", 90),
            durations(f"{NEW}request_streaming_itl_seconds", early, late, FLOW),
            durations(f"{NEW}request_streaming_tpot_seconds", early, late, FLOW),
            durations(E2E[NEW], early, late, FLOW),
            durations(E2E[OLD], early, late),
            waits(NEW, early, late),
            waits(NEW, 0, 50, "EvictedTTL"),
            waits(OLD, early, late),
        )
    )


def extension(early: float, late: float = 0.0) -> str:
    """The Gateway API Inference Extension 1.4 with the predictor of latencies."""
    return "".join(
        (
            durations("inference_objective_request_ttft_seconds", 90),
            durations("inference_objective_request_tpot_seconds", 90),
            durations("inference_objective_normalized_time_per_output_token_seconds", 90),
            'inference_pool_average_queue_size{name="chat"} 4\n',
            durations(E2E[OLD], early, late),
            waits(OLD, early, late),
        )
    )

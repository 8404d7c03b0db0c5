"""Latency and throughput of one service: what its engine observes, what was predicted and asked."""

from __future__ import annotations

from collections.abc import Mapping

from observability.frame import Section
from observability.panels import YELLOW, About, Panel, series
from observability.query import Query, gauge

_ENGINE = 'namespace="$namespace", name="$name"'
ENGINE_HISTOGRAMS: Mapping[str, str] = {
    "TTFT": "vllm:time_to_first_token_seconds",
    "ITL": "vllm:inter_token_latency_seconds",
    "E2E": "vllm:e2e_request_latency_seconds",
}
"""The targets' words, and vLLM's."""

_TITLES = {
    "TTFT": "Time to first token",
    "ITL": "Time between tokens",
    "E2E": "Time of a whole request",
}
_WATCHED_AS_A_LINE = "/^(predicted|target)/"


def observed(metric: str, percentile: str) -> str:
    """A percentile of the engines of all replicas together."""
    buckets = f"{ENGINE_HISTOGRAMS[metric]}_bucket{{{_ENGINE}}}"
    rate = f"sum by (namespace, name, le) (rate({buckets}[$__rate_interval]))"
    return f"histogram_quantile({percentile}, {rate})"


def told(what: str, metric: str) -> str:
    """What was predicted, or is the target."""
    chosen = f'{_ENGINE}, metric="{metric}", percentile="$percentile"'
    return gauge(f"workload_{what}_latency_seconds{{{chosen}}}", "namespace", "name")


def _latency(metric: str) -> Panel:
    return series(
        About(
            f"{_TITLES[metric]} ({metric})",
            "What the engines observe, against prediction and target. Above the target: is the "
            "traffic above spec.traffic? Then raise it, and it is planned anew. Observed figures "
            "are only as fine as the engine's buckets.",
            "s",
            height=9,
        ),
        Query(observed(metric, "$percentile / 100"), "observed p$percentile"),
        Query(observed(metric, "0.5"), "observed p50"),
        Query(told("predicted", metric), "predicted p$percentile"),
        Query(told("target", metric), "target p$percentile"),
        dashed=_WATCHED_AS_A_LINE,
    )


LATENCY = Section(
    "Latency: observed, predicted, target",
    (
        *(_latency(metric) for metric in ENGINE_HISTOGRAMS),
        series(
            About(
                "Observed over predicted",
                "1 is a perfect prediction; below it at less than the planned traffic. Above "
                "2.5 for long (the alert PoolwisePredictionOff): see docs/alerts.md.",
                "suffix:x",
                width=12,
                limits=((2.5, YELLOW),),
            ),
            *(
                Query(
                    f"{observed(metric, '$percentile / 100')} / {told('predicted', metric)}",
                    metric,
                )
                for metric in ENGINE_HISTOGRAMS
            ),
        ),
        series(
            About(
                "Requests in the engines",
                "Requests that run, and that wait for a place in the batch. Waiting for long "
                "means that the replicas are saturated: more replicas, or a larger batch.",
                "none",
                width=12,
            ),
            Query(f"sum(vllm:num_requests_running{{{_ENGINE}}})", "running"),
            Query(f"sum(vllm:num_requests_waiting{{{_ENGINE}}})", "waiting"),
        ),
    ),
)

THROUGHPUT = Section(
    "Throughput",
    (
        series(
            About(
                "Tokens per second",
                "Prompt and generated tokens of all replicas, against the prediction at the "
                "planned traffic. Less is usual with less traffic; more with the tail inside its "
                "target means that the plan is too careful.",
                "si:tokens/s",
            ),
            Query(
                f"sum(rate(vllm:prompt_tokens_total{{{_ENGINE}}}[$__rate_interval])) + "
                f"sum(rate(vllm:generation_tokens_total{{{_ENGINE}}}[$__rate_interval]))",
                "observed",
            ),
            Query(
                f"max(poolwise_workload_predicted_tokens_per_second{{{_ENGINE}}})",
                "predicted",
            ),
            dashed=_WATCHED_AS_A_LINE,
        ),
        series(
            About(
                "Requests per second",
                "Requests that ended, by how they ended. Aborted ones mean that clients gave up: "
                "compare with the latency above.",
                "reqps",
            ),
            Query(
                "sum by (finished_reason) "
                f"(rate(vllm:request_success_total{{{_ENGINE}}}[$__rate_interval]))",
                "{{finished_reason}}",
            ),
            stacked=True,
        ),
        series(
            About(
                "Key-value cache",
                "Used part of the cache, of the fullest and of the average replica. Near 1 "
                "requests are preempted and computed again: more replicas, or shorter contexts.",
                "percentunit",
                limits=((0.95, YELLOW),),
            ),
            Query(f"max(vllm:kv_cache_usage_perc{{{_ENGINE}}})", "fullest"),
            Query(f"avg(vllm:kv_cache_usage_perc{{{_ENGINE}}})", "average"),
        ),
    ),
)

SCALING = Section(
    "Scaling",
    (
        series(
            About(
                "Replicas",
                "Replicas that the load asks for, those that exist, and requests that the gateway "
                "before them holds. Asked for more than there are for long: see the condition "
                "ScalingActive and docs/scaling.md.",
                "none",
            ),
            Query(gauge(f"service_desired_replicas{{{_ENGINE}}}"), "asked for"),
            Query(gauge(f"service_current_replicas{{{_ENGINE}}}"), "there"),
            Query(gauge(f"service_held_requests{{{_ENGINE}}}"), "held requests"),
        ),
        series(
            About(
                "Attainment",
                "Share of requests (gaps between tokens for ITL) inside each target, at least. "
                "Below the percentile of the target it is missed.",
                "percentunit",
            ),
            Query(
                gauge(f"service_slo_attainment{{{_ENGINE}}}", "metric", "percentile"),
                "{{metric}} p{{percentile}}",
            ),
        ),
        series(
            About(
                "Burn rate",
                "How fast the requests that may be late are used up: at 1 they just last. Above "
                "for long: see what limits a replica in status.scaling.",
                "suffix:x",
                limits=((1.0, YELLOW),),
            ),
            Query(
                gauge(f"service_slo_burn_rate{{{_ENGINE}}}", "metric", "percentile"),
                "{{metric}} p{{percentile}}",
            ),
        ),
    ),
)

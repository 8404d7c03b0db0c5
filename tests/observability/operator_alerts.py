"""Cases of the alerts about the operator itself."""

from __future__ import annotations

from tests.observability.alert_case import Case

JOB = {"namespace": "poolwise-system", "job": "poolwise-metrics"}
POD = {**JOB, "pod": "poolwise-a"}


def own(
    series: str, replica: str = "a", /, namespace: str = "poolwise-system", **labels: str
) -> str:
    """A series of one replica, with the labels that scraping adds."""
    scraped = {
        "namespace": namespace,
        "job": "poolwise-metrics",
        "pod": f"poolwise-{replica}",
        "instance": f"{namespace}-{replica}:8080",
    }
    told = ",".join(f'{name}="{value}"' for name, value in (scraped | labels).items())
    return f"{series}{{{told}}}"


BUILD = {own("poolwise_build_info", version="1"): "1x90"}
_FAILURES = own("poolwise_reconcile_failures_total", kind="TrainingJob", error="Unavailable")


def _requests(code: str, verb: str = "list") -> str:
    return own("poolwise_api_requests_total", verb=verb, resource="nodes", code=code)


def _passes(*counts: str) -> dict[str, str]:
    """Cumulative counts of passes up to 0.5 s, 2 s, 5 s and any."""
    bounds = ("0.5", "2.0", "5.0", "+Inf")
    return {
        own("poolwise_plan_duration_seconds_bucket", le=le): count
        for le, count in zip(bounds, counts, strict=True)
    }


OPERATOR_CASES = (
    Case(
        "PoolwiseAbsent",
        {'up{job="another"}': "1x20"},
        5,
        {},
        "No series poolwise_build_info has been scraped for 5 minutes. Workloads run on; nothing "
        "new is placed.",
        {"one replica that reports": BUILD},
    ),
    Case(
        "PoolwiseNotReady",
        {own("poolwise_ready"): "0x20", own("poolwise_ready", "b"): "1x20"},
        5,
        POD,
        "poolwise-system/poolwise-a has not been ready for 5 minutes. GET /readyz on it says why "
        "in one line.",
        {"ready again after four minutes": {own("poolwise_ready"): "0x4 1x20"}},
    ),
    Case(
        "PoolwiseNoLeader",
        {own("poolwise_leader"): "0x20", own("poolwise_leader", "b"): "0x20"},
        2,
        JOB,
        "In poolwise-system no replica has held the Lease for 2 minutes; a failover takes at most "
        "18 s. Nothing is written.",
        {
            "a standby beside the leader": {
                own("poolwise_leader"): "0x20",
                own("poolwise_leader", "b"): "1x20",
            },
            "a failover of one minute": {
                own("poolwise_leader"): "1 0x20",
                own("poolwise_leader", "b"): "0 0 1x20",
            },
        },
    ),
    Case(
        "PoolwiseTwoLeaders",
        {own("poolwise_leader"): "1x20", own("poolwise_leader", "b"): "1x20"},
        2,
        JOB,
        "In poolwise-system 2 replicas say that they lead. They may promise the same accelerators "
        "twice.",
        {
            "two installations": {
                own("poolwise_leader"): "1x20",
                own("poolwise_leader", namespace="team-a"): "1x20",
            },
            "a hand-over within a scrape": {
                own("poolwise_leader"): "1 1 0x20",
                own("poolwise_leader", "b"): "0 1x20",
            },
        },
    ),
    Case(
        "PoolwiseRestarts",
        {**BUILD, own("process_start_time_seconds"): "100 200 300 400x80"},
        3,
        POD,
        "poolwise-system/poolwise-a has started 3 times within an hour.",
        {
            "two restarts": {**BUILD, own("process_start_time_seconds"): "100 200 300x80"},
            "another program": {own("process_start_time_seconds"): "100 200 300 400x80"},
        },
    ),
    Case(
        "PoolwiseWatchStale",
        {own("poolwise_watch_age_seconds", resource="pods"): "0+30x20"},
        6,
        {**POD, "resource": "pods"},
        "The watch of pods on poolwise-system/poolwise-a has received nothing for 3m 0s; a "
        "bookmark comes each minute.",
        {"bookmarks alone": {own("poolwise_watch_age_seconds", resource="pods"): "70x20"}},
    ),
    Case(
        "PoolwiseReconcileFailures",
        {_FAILURES: "0+1x40"},
        16,
        {**JOB, "kind": "TrainingJob", "error": "Unavailable"},
        "TrainingJob fails with Unavailable 1 times a minute, for 15 minutes without a pause.",
        {"a burst that has passed": {_FAILURES: "0+5x8 40x40"}},
    ),
    Case(
        "PoolwiseForbidden",
        {_requests("403"): "0+6x20"},
        6,
        {**JOB, "verb": "list", "resource": "nodes", "code": "403"},
        "The API server answers 403 to list nodes, 6 times a minute.",
        {
            "conflicts, which are tried again": {_requests("409"): "0+6x20"},
            "refused once, long ago": {_requests("403"): "6x20"},
            "the quota of a tenant": {_requests("403", "apply"): "0+6x20"},
        },
    ),
    Case(
        "PoolwiseThrottled",
        {_requests("429"): "0+6x30", _requests("200"): "0+54x30"},
        11,
        JOB,
        "10% of the requests of Poolwise in poolwise-system are answered 429.",
        {"one of 25": {_requests("429"): "0+6x30", _requests("200"): "0+144x30"}},
    ),
    Case(
        "PoolwiseApiErrors",
        {
            _requests("none"): "0+3x30",
            _requests("503"): "0+3x30",
            _requests("200"): "0+54x30",
        },
        11,
        JOB,
        "10% of the requests of Poolwise in poolwise-system fail (5xx, or no answer).",
        {
            "one of 25": {_requests("503"): "0+6x30", _requests("200"): "0+144x30"},
            "not found": {_requests("404"): "0+54x30", _requests("200"): "0+6x30"},
        },
    ),
    Case(
        "PoolwiseQueueBacklog",
        {own("poolwise_queue_depth"): "40x30"},
        10,
        JOB,
        "40 workloads wait for one of the 16 workers in poolwise-system, for 10 minutes without a "
        "pause.",
        {
            "drained once": {own("poolwise_queue_depth"): "40x5 3 40x30"},
            "as many as workers": {own("poolwise_queue_depth"): "16x30"},
        },
    ),
    Case(
        "PoolwiseSlowPlanning",
        _passes("0x40", "0+6x40", "0+60x40", "0+60x40"),
        16,
        JOB,
        "One of ten passes in poolwise-system takes more than 4.667s; 0.2 s is usual with 1,000 "
        "nodes.",
        {
            "one slow pass of twenty": _passes("0+57x40", "0+57x40", "0+60x40", "0+60x40"),
            "no pass at all": _passes("5x40", "5x40", "90x40", "90x40"),
        },
    ),
    Case(
        "PoolwiseLoopHangs",
        {own("poolwise_longest_running_seconds", loop="scaling"): "0 0+60x20"},
        8,
        {**POD, "loop": "scaling"},
        "On poolwise-system/poolwise-a something of scaling has been under way for 7m 0s; it takes "
        "seconds.",
        {
            "at rest": {own("poolwise_longest_running_seconds", loop="planning"): "0x20"},
            "an outage that requests wait for": {
                own("poolwise_longest_running_seconds", loop="writing"): "0+60x5 0x20"
            },
        },
    ),
    Case(
        "PoolwiseLoopLag",
        {own("poolwise_loop_lag_seconds"): "1x20"},
        5,
        POD,
        "On poolwise-system/poolwise-a timers run 1s late. The Lease may be lost.",
        {"one long pause": {own("poolwise_loop_lag_seconds"): "0 0 4 0x20"}},
    ),
)

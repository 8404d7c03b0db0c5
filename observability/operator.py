"""The operator itself: who leads, what fails, how fast it is, and what it takes."""

from __future__ import annotations

from observability.frame import Frame, Section
from observability.operator_process import PROCESS
from observability.panels import (
    BLUE,
    GREEN,
    RED,
    YELLOW,
    About,
    Column,
    figure,
    grid,
    series,
    value_of,
)
from observability.query import Query

_LEADERS = {"1": ("one", GREEN), "0": ("none", RED)}
_REQUESTS = "poolwise_api_requests_total"
_YES_NO = {"1": ("yes", GREEN), "0": ("no", YELLOW)}

_STATE = Section(
    "State",
    (
        figure(
            About(
                "Leader",
                "Replicas that hold the Lease; exactly one should. None for more than 20 s, or "
                "more than one: see PoolwiseNoLeader and PoolwiseTwoLeaders in docs/alerts.md.",
                "none",
                width=4,
                height=5,
                limits=((2, RED),),
            ),
            Query("sum(poolwise_leader)"),
            mappings=_LEADERS,
        ),
        figure(
            About(
                "Ready replicas",
                "Replicas whose caches are filled and that reach the API server. Fewer than "
                "installed: GET /readyz of the other one says why.",
                "none",
                width=4,
                height=5,
                limits=((1, GREEN),),
                base=RED,
            ),
            Query("sum(poolwise_ready) or vector(0)"),
        ),
        figure(
            About(
                "Failures per minute",
                "Workloads whose reconciliation failed, whatever the reason. More than a few: "
                "see which below, and the log for the API server's sentence.",
                "suffix:/min",
                width=4,
                height=5,
                limits=((1, YELLOW), (10, RED)),
            ),
            Query("60 * sum(rate(poolwise_reconcile_failures_total[5m])) or vector(0)"),
        ),
        grid(
            About(
                "Replicas",
                "Every process, its version, and what it does. Two versions are usual only "
                "during an upgrade.",
                "none",
                width=12,
                height=5,
            ),
            (
                Query("max by (namespace, pod, version) (poolwise_build_info)"),
                Query("max by (namespace, pod) (poolwise_leader)"),
                Query("max by (namespace, pod) (poolwise_ready)"),
            ),
            {
                "namespace": Column("Namespace"),
                "pod": Column("Pod"),
                "version": Column("Version"),
                value_of(0): None,
                value_of(1): Column("Leads", "", {"1": ("yes", GREEN), "0": ("standby", BLUE)}),
                value_of(2): Column("Ready", "", _YES_NO),
            },
        ),
    ),
)

_WORK = Section(
    "Work",
    (
        series(
            About(
                "Planning passes",
                "Time of one pass over the whole cluster; 0.2 s is usual with 1,000 nodes. Much "
                "more: is its CPU limit too low?",
                "s",
                width=6,
                limits=((2, YELLOW),),
            ),
            *(
                Query(
                    f"histogram_quantile({quantile}, sum by (le) "
                    "(rate(poolwise_plan_duration_seconds_bucket[$__rate_interval])))",
                    f"p{100 * quantile:g}",
                )
                for quantile in (0.5, 0.9, 0.99)
            ),
        ),
        series(
            About(
                "Queue",
                "Workloads that wait for a worker. For long above the number of workers (16): the "
                "API server is slow, or refuses.",
                "none",
                width=6,
                limits=((16, YELLOW),),
            ),
            Query("max by (pod) (poolwise_queue_depth)", "{{pod}}"),
        ),
        series(
            About(
                "Longest under way",
                "Age of the oldest pass, look or write of each loop. What grows and never falls "
                "hangs: see PoolwiseLoopHangs in docs/alerts.md.",
                "s",
                width=6,
                limits=((300, RED),),
            ),
            Query("max by (loop) (poolwise_longest_running_seconds)", "{{loop}}"),
        ),
        series(
            About(
                "Reconcile failures",
                "By kind and error; the words are those of docs/conditions.md. Forbidden means a "
                "missing right, Unavailable an API server that does not answer.",
                "suffix:/min",
                width=6,
            ),
            Query(
                "60 * sum by (kind, error) "
                "(rate(poolwise_reconcile_failures_total[$__rate_interval]))",
                "{{kind}} {{error}}",
            ),
            stacked=True,
        ),
    ),
)

_API = Section(
    "API server",
    (
        series(
            About(
                "Requests by code",
                "Requests, watches apart; none means no answer. Converged is silent: a steady "
                "rate of writes without changes is a bug worth reporting.",
                "reqps",
            ),
            Query(f"sum by (code) (rate({_REQUESTS}[$__rate_interval]))", "{{code}}"),
            stacked=True,
        ),
        series(
            About(
                "Requests by verb and resource",
                "What the operator asks for. Writes of statuses and children follow decisions; "
                "lists come every POOLWISE_RELIST_SECONDS.",
                "reqps",
            ),
            Query(
                f"topk(10, sum by (verb, resource) (rate({_REQUESTS}[$__rate_interval])))",
                "{{verb}} {{resource}}",
            ),
        ),
        series(
            About(
                "Refused requests",
                "Answers other than 2xx, by what was asked. 403 is a missing right, 409 a "
                "conflict that is tried again, 429 throttling, 5xx trouble of the API server.",
                "reqps",
            ),
            Query(
                "sum by (verb, resource, code) "
                f'(rate({_REQUESTS}{{code!~"2.."}}[$__rate_interval])) > 0',
                "{{code}} {{verb}} {{resource}}",
            ),
        ),
        series(
            About(
                "Age of the watches",
                "Time since each watch received anything; a bookmark comes each minute. Above "
                "120 s it is dead, and above POOLWISE_WATCH_STALE_SECONDS the pod is restarted.",
                "s",
                width=12,
                limits=((120, YELLOW), (180, RED)),
            ),
            Query("max by (pod, resource) (poolwise_watch_age_seconds)", "{{resource}} {{pod}}"),
        ),
        series(
            About(
                "Ghosts",
                "Objects whose deletion no watch told of, found by listing again. A few after an "
                "interruption are usual; many mean that something cuts the watches.",
                "suffix:/min",
                width=12,
            ),
            Query(
                "60 * sum by (resource) (rate(poolwise_cache_ghosts_total[$__rate_interval]))",
                "{{resource}}",
            ),
        ),
    ),
)

OPERATOR = Frame(
    "operator",
    "Poolwise / Operator",
    "The operator itself: leader, readiness, failures, speed, requests to the API server, memory.",
    (_STATE, _WORK, _API, PROCESS),
)

"""What a process of the operator takes: memory, CPU, and how often it starts."""

from __future__ import annotations

from observability.frame import Section
from observability.panels import YELLOW, About, series
from observability.query import Query

_OF_POOLWISE = "and on (instance) poolwise_build_info"
"""The process_* metrics have no prefix of ours: only those of processes that report as Poolwise."""

PROCESS = Section(
    "Process",
    (
        series(
            About(
                "Memory",
                "Resident memory of each replica; 105 MiB at rest, 145 MiB with 1,000 nodes and "
                "300 workloads. Growing without more objects is a leak worth reporting.",
                "bytes",
                width=6,
            ),
            Query(f"process_resident_memory_bytes {_OF_POOLWISE}", "{{pod}}"),
        ),
        series(
            About(
                "CPU",
                "Cores that each replica uses; passes take at most half of the time. At its "
                "limit for long: raise the limit.",
                "none",
                width=6,
            ),
            Query(
                f"rate(process_cpu_seconds_total[$__rate_interval]) {_OF_POOLWISE}",
                "{{pod}}",
            ),
        ),
        series(
            About(
                "Lag of the event loop",
                "How late timers run. Above half a second the Lease is in danger: raise the CPU "
                "limit, or look for throttling.",
                "s",
                width=6,
                limits=((0.5, YELLOW),),
            ),
            Query("max by (pod) (poolwise_loop_lag_seconds)", "{{pod}}"),
        ),
        series(
            About(
                "Starts within an hour",
                "How often each replica started anew. The last state of the container (kubectl "
                "describe pod) says why it ended.",
                "none",
                width=6,
            ),
            Query(f"changes(process_start_time_seconds[1h]) {_OF_POOLWISE}", "{{pod}}"),
        ),
    ),
)

"""Minutes of a service: what came in them, and nothing that came before."""

from poolwise.plan.live.mismatch.history import History
from poolwise.plan.scaling.seen import Phase, ReplicaSeen
from poolwise.plan.signals.sample import Sample

NOW = 1_000_000.0
REPLICAS = [ReplicaSeen(each, "h100", Phase.READY, NOW - 7200, NOW - 7100) for each in "ab"]


def looked(history: History, at_seconds: float, **requests: float) -> History:
    samples = {
        name: Sample(name, at_seconds, finished_requests=count) for name, count in requests.items()
    }
    return history.after(samples, REPLICAS, at_seconds, is_short=False)


def test_what_a_replica_counted_before_its_first_look_did_not_come_since_the_last_one():
    """It was ready long ago, and could not be read."""
    history = looked(looked(History(), NOW, a=100.0), NOW + 10.0, a=103.0, b=5000.0)
    [minute] = history.minutes
    assert minute.settled is not None
    assert minute.settled.finished_requests == 3.0

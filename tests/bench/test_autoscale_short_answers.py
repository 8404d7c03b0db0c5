"""The law of short answers against the simulator."""

from bench.autoscale.short_answers import compared


def test_several_replicas_behind_a_router_are_late_as_the_law_tells():
    for each in compared(600.0, replicas=(8,), tokens=(2, 4), per_second=(8.0,)):
        assert each.simulated > 0.01
        assert 0.6 < each.told / each.simulated < 1.6


def test_one_replica_by_itself_is_late_more_often():
    (found,) = compared(600.0, replicas=(1,), tokens=(2,), per_second=(8.0,))
    assert found.simulated > 2.0 * found.told

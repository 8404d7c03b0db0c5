"""The law of short answers against the simulator."""

from bench.autoscale.short_answers import compared


def test_several_replicas_behind_a_router_are_late_as_the_law_tells():
    for each in compared(600.0, replicas=(8,), tokens=(2, 4), per_second=(8.0,)):
        assert each.simulated > 0.01
        assert 0.6 < each.told / each.simulated < 1.6


def test_one_replica_by_itself_is_late_as_chance_has_it():
    alone = list(compared(600.0, replicas=(1,), tokens=(2, 4), per_second=(8.0,)))
    behind = list(compared(600.0, replicas=(8,), tokens=(2, 4), per_second=(8.0,)))
    for one, several in zip(alone, behind, strict=True):
        assert 0.6 < one.told / one.simulated < 1.6
        assert one.simulated > 1.5 * several.simulated

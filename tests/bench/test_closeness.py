"""The thresholds of mode Auto are read off pairs of placements."""

import pytest

from bench.closeness import pairs, table, verdict
from bench.placement.sia import placed
from bench.tables import DEFAULT_FOLDER
from poolwise.plan.candidates.topology import DOMINANT, LITTLE


def row(placement, step, sync, application="bert", batch="8"):
    return {
        "application": application,
        "gpu_pool": "aws",
        "placement": placement,
        "local_batch": batch,
        "step_time_s": str(step),
        "sync_time_s": str(sync),
    }


def test_a_pair_is_the_same_run_on_one_node_and_on_several():
    rows = [
        row("4", 1.0, 0.1),
        row("22", 2.0, 1.0),
        row("1111", 4.0, 3.0),
        row("8", 1.0, 0.1),
        row("4", 1.0, 0.1, batch="16"),
        row("4", 1.0, 0.1, application="gpt_pmp"),
        row("22", 9.0, 0.1, application="gpt_pmp"),
    ]
    found = list(pairs(rows))
    assert [(each.share, each.times) for each in found] == [(0.5, 2.0), (0.75, 4.0)]
    assert "the least share among them was 50%" in verdict(found)
    assert len(table(found).splitlines()) == 3


def test_without_a_slow_pair_nothing_is_said_of_them():
    found = list(pairs([row("4", 1.0, 0.1), row("22", 1.0, 0.1)]))
    assert verdict(found) == (
        "1 pairs; 1 below 20%: 0.0% took a tenth longer, 0.0% half as long again"
    )


@pytest.mark.skipif(not DEFAULT_FOLDER.exists(), reason="the measured data are not here")
def test_the_thresholds_are_what_was_measured():
    found = list(pairs(placed(DEFAULT_FOLDER)))
    assert len(found) > 1000
    assert not any(each.times > 1.5 for each in found if each.share < LITTLE)
    assert all(each.share > DOMINANT for each in found if each.times >= 1.9)

"""One trace at many sizes, and what is told of them in sum."""

from dataclasses import replace

import numpy as np

from bench.autoscale import peaks


def test_each_peak_is_replayed_and_the_sum_counts_who_is_in_time_and_no_dearer(tmp_path):
    draw = np.random.default_rng(0)
    lengths = draw.integers(200, 400, 7200)
    rows = (f"{0.1 * at},{tokens},{tokens}" for at, tokens in enumerate(lengths))
    text = "\n".join(["arrival_s,input_tokens,output_tokens", *rows])
    (tmp_path / "steady.csv").write_text(text)
    found = peaks.replayed(tmp_path, "steady", 2)
    assert found.is_in_time
    assert found.cost >= 1.0

    def with_hours(times):
        hours = times * found.static.replica_hours
        return replace(found, ours=replace(found.ours, replica_hours=hours))

    late = replace(found, ours=replace(found.ours, attainment=0.9))
    told = peaks.text([with_hours(4.0), with_hours(0.25), late]).splitlines()
    assert len(told) == 2 + 3 + 2
    assert told[2].startswith("| 2 | 99.00 | ")
    assert told[-1].startswith("2 of 3 in time, 1 of them no dearer than the best static fleet; ")

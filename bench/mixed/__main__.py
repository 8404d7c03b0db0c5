"""``python -m bench.mixed [--queues N] [--first SEED]``: queues of runs and services together.

Small queues are told beside the best of all their assignments, larger ones alone. ``lost`` is the
sum over services of the share that each pays more than on its best pool, ``done`` the sum of the
times of runs to their ends; all but ``for ever`` are means of a queue.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Sequence

from bench.mixed.outcomes import Outcome, best, followed
from bench.mixed.queues import CROWDS, HOUR_SECONDS, MIXES, Mix, queue

CLEARLY = 0.01
"""An answer is worse if it exceeds the best by such a share."""


def main() -> None:
    """A line for each mix; for small ones one more, and how far the first is from the second."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queues", type=int, default=50, help="of each mix")
    parser.add_argument("--first", type=int, default=0, help="seed")
    asked = parser.parse_args()
    seeds = range(asked.first, asked.first + asked.queues)
    for mix in (*MIXES, *CROWDS):
        ours = [followed(queue(mix, seed)) for seed in seeds]
        print(_line(mix.name, ours), flush=True)
        if mix in MIXES:
            print(_beside(mix, seeds, ours), flush=True)


def _beside(mix: Mix, seeds: Sequence[int], ours: Sequence[Outcome]) -> str:
    """The best assignments, and how far the planner is from them."""
    least = [best(queue(mix, seed)) for seed in seeds]
    pairs = list(zip(ours, least, strict=True))
    over = [
        a.rank[1] / max(b.rank[1], 1.0) - 1.0 for a, b in pairs if a.for_ever == b.for_ever
    ] or [0.0]
    more = sum(a.for_ever > b.for_ever for a, b in pairs)
    worse = sum(each > CLEARLY for each in over)
    return (
        f"{_line('  best', least)}\n    over the best: median {statistics.median(over):.1%},"
        f" mean {statistics.mean(over):.1%}, worst {max(over):.0%}; clearly worse in {worse},"
        f" more wait for ever in {more} of {len(pairs)}"
    )


def _line(name: str, found: Sequence[Outcome]) -> str:
    lost = statistics.mean(each.lost for each in found)
    waited_hours = statistics.mean(each.waited_seconds for each in found) / HOUR_SECONDS
    done_hours = statistics.mean(each.done_seconds for each in found) / HOUR_SECONDS
    per_hour = statistics.mean(each.per_hour for each in found)
    cost = statistics.mean(each.cost for each in found)
    return (
        f"{name:18} services: lost {lost:6.3f}, waited {waited_hours:6.3f} h, ${per_hour:6.2f}/h;"
        f" runs: done {done_hours:8.2f} h, ${cost:9.2f};"
        f" for ever {sum(each.for_ever for each in found)}"
    )


if __name__ == "__main__":
    main()

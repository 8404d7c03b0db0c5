"""Whether the simulator can be believed: ``python -m bench.autoscale.validation``.

Against queues with a known law (:mod:`.queue_limits`), the serving model's own steps, and batches
that were measured (:mod:`.splitwise`); and laws of the controller against it: of short answers
(:mod:`.short_answers`), and of prompts that wait for each other (:mod:`.met_prompts`).
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path

from bench.autoscale import met_prompts, short_answers, splitwise
from bench.autoscale.engine import engine, gaps
from bench.autoscale.queue_limits import queues
from bench.autoscale.scene import Routing
from bench.autoscale.splitwise import Timed, corrected, factor, factor_and_floor, timed
from bench.placement.traces import read
from bench.programs import ends_on_bad_input
from bench.tables import DEFAULT_FOLDER

WORST = 8
SHORT_SECONDS = 1200.0


@ends_on_bad_input
def main() -> int:
    """Print all figures."""
    parser = argparse.ArgumentParser(prog="python -m bench.autoscale.validation")
    parser.add_argument("--data", type=Path, default=DEFAULT_FOLDER, help="folder of the tables")
    parser.add_argument("--requests", type=int, default=200_000, help="of each queue")
    asked = parser.parse_args()
    rows = read(asked.data, splitwise.TABLE)
    for check in queues(asked.requests):
        print(f"{check.name}: {100 * check.error:+.2f} %")
    worst = max(gaps(engine()), key=lambda gap: abs(gap.share))
    print(
        f"reduced step against the model's own, worst: {100 * worst.share:+.2f} % at {worst.batch}"
    )
    for late in short_answers.compared(SHORT_SECONDS):
        print(
            f"answers of {late.tokens} tokens, {late.per_second:g} requests/s on each of "
            f"{late.replicas} replicas: {100 * late.simulated:.2f} % late, by the law "
            f"{100 * late.told:.2f} %"
        )
    for routing in Routing:
        met = met_prompts.compared(asked.data, SHORT_SECONDS, routing=routing)
        print("\n".join(met_prompts.summary(met)))
    found = list(timed(rows))
    kinds = {
        "as shipped": found,
        "one factor learnt": list(corrected(found, factor)),
        "a factor and a floor learnt": list(corrected(found, factor_and_floor)),
    }
    for name, each in kinds.items():
        print("\n".join(_summary(name, each)))
    return 0


def _summary(name: str, found: list[Timed]) -> Iterator[str]:
    for phase in ("prompt", "token"):
        ours = [each for each in found if each.phase == phase]
        errors = [abs(each.error) for each in ours]
        yield (
            f"{name}, {phase}: {len(ours)} batches, median error "
            f"{100 * statistics.median(errors):.1f} %, worst:"
        )
        for each in sorted(ours, key=lambda one: -abs(one.error))[:WORST]:
            yield f"  {each.pool}, {each.batch}: {100 * each.error:+.0f} %"


if __name__ == "__main__":
    sys.exit(main())

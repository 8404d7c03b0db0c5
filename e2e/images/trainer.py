"""``python -m e2e.images.trainer``: a training loop without accelerators, with the metrics of one.

Each step takes as long as it is told to, and is timed as a real loop would time its own; every so
many steps a checkpoint is "written", for which training waits.
"""

from __future__ import annotations

import argparse
import time

from prometheus_client import Counter, Gauge, Histogram, start_http_server


def main() -> None:
    """Train until somebody ends it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--host", default="0.0.0.0")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--step-seconds", type=float, required=True)
    parser.add_argument("--batch", type=int, default=1, help="samples of a step")
    parser.add_argument("--save-every", type=int, default=0, help="steps; 0: never")
    parser.add_argument("--save-seconds", type=float, default=0.0)
    given = parser.parse_args()
    steps = Counter("training_steps", "Optimizer steps.")
    samples = Counter("training_samples", "Samples of all ranks.")
    seconds = Histogram("training_step_seconds", "Time of a step.")
    saved = Gauge("training_last_checkpoint_timestamp_seconds", "Unix time.")
    start_http_server(given.port, given.host)
    number = 0
    while True:
        with seconds.time():
            time.sleep(given.step_seconds)
        number += 1
        steps.inc()
        samples.inc(given.batch)
        if given.save_every and number % given.save_every == 0:
            time.sleep(given.save_seconds)
            saved.set_to_current_time()


if __name__ == "__main__":
    main()

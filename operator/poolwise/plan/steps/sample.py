"""One look at the metrics of a run's rank 0; whatever it did not tell is None."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RunSample:
    """Counters count since the process started, or go on from its checkpoint."""

    replica: str
    """Name of the pod."""
    at_seconds: float
    """Unix time of the look, by our clock."""
    steps: float | None = None
    """Optimizer steps."""
    timed_steps: float | None = None
    """Those of which the time is known,"""
    timed_seconds: float | None = None
    """and its sum."""
    samples: float | None = None
    """Of all ranks together."""
    checkpoint_seconds: float | None = None
    """Unix time of the last checkpoint, by the clock of its node."""

    def done(self, batch_samples: float) -> float | None:
        """Steps that the process counts, from whichever counter it has."""
        if self.steps is not None:
            return self.steps
        if self.timed_steps is not None:
            return self.timed_steps
        return None if self.samples is None else self.samples / batch_samples

    @property
    def missing(self) -> tuple[str, ...]:
        """Metrics of :mod:`.reading` that it lacks."""
        told = {
            STEPS: self.steps,
            STEP_SECONDS: self.timed_steps,
            SAMPLES: self.samples,
            CHECKPOINT: self.checkpoint_seconds,
        }
        return tuple(name for name, value in told.items() if value is None)


STEPS = "training_steps_total"
STEP_SECONDS = "training_step_seconds"
SAMPLES = "training_samples_total"
CHECKPOINT = "training_last_checkpoint_timestamp_seconds"
METRICS = (STEPS, STEP_SECONDS, SAMPLES, CHECKPOINT)
"""What a training container may tell (docs/metrics.md)."""
RANK_LABELS = frozenset({"rank", "local_rank", "node_rank", "global_rank"})
"""What ranks that tell a series each are told apart by."""

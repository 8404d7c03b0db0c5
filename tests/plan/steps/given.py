"""A run that tells its steps, as some training loop would."""

from __future__ import annotations

from dataclasses import dataclass

from poolwise.plan.steps.sample import RunSample

START = 1_795_000_000.0


@dataclass
class Loop:
    """Steps of one length, with a checkpoint now and then; ``sample`` is what a look finds."""

    step_seconds: float = 2.0
    at_seconds: float = START
    steps: float = 0.0
    timed_seconds: float = 0.0
    saved_seconds: float | None = None
    is_timed: bool = True

    def go(self, seconds: float) -> Loop:
        """Train for so long."""
        self.at_seconds += seconds
        self.steps += seconds / self.step_seconds
        self.timed_seconds += seconds
        return self

    def save(self, stall_seconds: float) -> Loop:
        """Write a checkpoint while training waits."""
        self.at_seconds += stall_seconds
        self.saved_seconds = self.at_seconds
        return self

    def sample(self) -> RunSample:
        return RunSample(
            "run-0",
            self.at_seconds,
            steps=float(int(self.steps)),
            timed_steps=float(int(self.steps)) if self.is_timed else None,
            timed_seconds=int(self.steps) * self.step_seconds if self.is_timed else None,
            checkpoint_seconds=self.saved_seconds,
        )

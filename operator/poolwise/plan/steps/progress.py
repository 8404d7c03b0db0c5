"""What is known of one run: a fold over looks at its rank 0.

Two times of a step are measured, since they answer two questions:

- ``step_seconds``, which is held against the model: the run's own ``training_step_seconds`` where
  it tells them, else the time between steps. Of windows of looks; the first steps of each process
  (compilation, caches, autotuning) and windows in which a checkpoint was written are left out, so
  that what the model has as a term of its own is not counted twice. The median of the newest
  windows is told, which no outlier moves.
- ``pace_seconds``, by which the rest of the run goes on: wall-clock time over steps since the
  process was warm, with checkpoints, evaluation and whatever else there is in between.

A process that starts anew counts from zero, or goes on from its checkpoint's step. Which one shows
at its first look: a count that is not below the checkpoint's goes on from it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import median

from poolwise.model.correction import WINDOW, WarmUp
from poolwise.plan.steps.sample import RunSample

TIMED_STEPS = 1
"""A window holds so many steps at least whose time was told,"""
COUNTED_STEPS = 20
"""or so many that are only counted: one more or less at its ends makes 5 %."""
PACE_STEPS = 10
"""Before a pace is told."""


@dataclass(frozen=True, slots=True)
class Rhythm:
    """How looks are made into measurements."""

    warm_up: WarmUp
    """In steps and seconds of each process."""
    window_seconds: float
    """Least length of a measurement."""

    @staticmethod
    def of(interval_seconds: float) -> Rhythm:
        """For looks that far apart: one minute, and two of warm-up, at 15 s."""
        return Rhythm(WarmUp(seconds=8.0 * interval_seconds), 4.0 * interval_seconds)


@dataclass(frozen=True, slots=True)
class Mark:
    """A look that something is measured from."""

    at_seconds: float
    steps: float
    timed_steps: float | None
    timed_seconds: float | None


@dataclass(frozen=True, slots=True)
class Process:
    """One life of rank 0."""

    name: str
    """Pod and restarts."""
    first: Mark
    newest: Mark
    warm: Mark | None = None
    """Since when it is warm."""
    opened: Mark | None = None
    """Where the window under way begins."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Immutable; :meth:`after` gives the next."""

    at_seconds: float = 0.0
    """Of the newest look."""
    steps_before: float = 0.0
    """Steps of earlier processes, where this one counts from zero."""
    counted: float = 0.0
    """Of the process."""
    windows: tuple[float, ...] = ()
    """Seconds of a step in each of the newest windows, oldest first."""
    pace_seconds: float | None = None
    checkpoint_seconds: float | None = None
    """Unix time of the last checkpoint."""
    checkpoint_steps: float | None = None
    """Steps done by then."""
    process: Process | None = None

    @property
    def steps(self) -> float:
        """Done, over all processes."""
        return self.steps_before + self.counted

    @property
    def step_seconds(self) -> float | None:
        """Measured; None before the first window."""
        return median(self.windows) if self.windows else None

    def moved(self) -> Progress:
        """The same run in another place: steps go on, their times are others."""
        return replace(self, windows=(), pace_seconds=None, process=None)

    def after(
        self, sample: RunSample, process: str, batch_samples: float, rhythm: Rhythm
    ) -> Progress:
        """With one look more; one that is not newer tells nothing.

        :param process: names this life of rank 0: another one has to warm up again.
        """
        done = sample.done(batch_samples)
        if done is None or sample.at_seconds <= self.at_seconds:
            return self._with_checkpoint(sample)
        mark = Mark(sample.at_seconds, done, sample.timed_steps, sample.timed_seconds)
        if self.process is None or self.process.name != process or done < self.counted:
            return self._restarted(sample, mark, process)
        is_saved = sample.checkpoint_seconds not in (None, self.checkpoint_seconds)
        found = self._with_checkpoint(sample, mark)
        counted = replace(found, at_seconds=mark.at_seconds, counted=done)
        return counted._measured(mark, is_saved, rhythm)

    def _restarted(self, sample: RunSample, mark: Mark, process: str) -> Progress:
        known = self._with_checkpoint(sample)
        before = self.steps_before
        if mark.steps < self.counted:
            kept = known.checkpoint_steps or 0.0
            before = 0.0 if mark.steps >= kept else kept
        return replace(
            known,
            at_seconds=mark.at_seconds,
            steps_before=before,
            counted=mark.steps,
            process=Process(process, mark, mark),
        )

    def _with_checkpoint(self, sample: RunSample, mark: Mark | None = None) -> Progress:
        """Steps at that moment lie between those of the looks around it; of one that was written
        before the first look nobody knows them."""
        saved = sample.checkpoint_seconds
        if saved is None or saved == self.checkpoint_seconds:
            return self
        steps = self.steps
        if mark is not None and self.process is not None:
            newest = self.process.newest
            share = (saved - newest.at_seconds) / (mark.at_seconds - newest.at_seconds)
            steps += min(max(share, 0.0), 1.0) * (mark.steps - newest.steps)
        known = float(int(steps)) if self.at_seconds else None
        return replace(self, checkpoint_seconds=saved, checkpoint_steps=known)

    def _measured(self, mark: Mark, is_saved: bool, rhythm: Rhythm) -> Progress:
        assert self.process is not None, "a process tells"
        process = replace(self.process, newest=mark)
        if process.warm is None:
            is_warm = _is_warm(process.first, mark, rhythm.warm_up)
            warm = mark if is_warm else None
            return replace(self, process=replace(process, warm=warm, opened=warm))
        assert process.opened is not None, "it began when the process was warm"
        found = replace(self, pace_seconds=_pace(process.warm, mark) or self.pace_seconds)
        if is_saved:
            return replace(found, process=replace(process, opened=mark))
        seconds = _window_seconds(process.opened, mark, rhythm.window_seconds)
        if seconds is None:
            return replace(found, process=process)
        windows = (*self.windows, seconds)[-WINDOW:]
        return replace(found, windows=windows, process=replace(process, opened=mark))


def _is_warm(first: Mark, mark: Mark, warm_up: WarmUp) -> bool:
    steps, seconds = mark.steps - first.steps, mark.at_seconds - first.at_seconds
    return steps >= warm_up.samples and seconds >= warm_up.seconds


def _pace(since: Mark, mark: Mark) -> float | None:
    made = mark.steps - since.steps
    return (mark.at_seconds - since.at_seconds) / made if made >= PACE_STEPS else None


def _window_seconds(opened: Mark, mark: Mark, least_seconds: float) -> float | None:
    """Seconds of a step between two looks; None where they are too near to tell."""
    passed, made = mark.at_seconds - opened.at_seconds, mark.steps - opened.steps
    if passed < least_seconds:
        return None
    timed = _timed(opened, mark)
    if timed is not None:
        steps, seconds = timed
        return seconds / steps if steps >= TIMED_STEPS and seconds > 0.0 else None
    return passed / made if made >= COUNTED_STEPS else None


def _timed(opened: Mark, mark: Mark) -> tuple[float, float] | None:
    """Steps that were timed between two looks, and their seconds; None where they were not."""
    if None in (opened.timed_steps, opened.timed_seconds, mark.timed_steps, mark.timed_seconds):
        return None
    assert opened.timed_steps is not None and opened.timed_seconds is not None
    assert mark.timed_steps is not None and mark.timed_seconds is not None
    return mark.timed_steps - opened.timed_steps, mark.timed_seconds - opened.timed_seconds

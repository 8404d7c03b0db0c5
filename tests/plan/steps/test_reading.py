"""What rank 0 answers, true or not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Summary, generate_latest

from poolwise.plan.signals.adapters import Fault
from poolwise.plan.steps.reading import read
from poolwise.plan.steps.sample import METRICS, RunSample

NOW = 1_795_000_000.0


def told(text: str) -> RunSample:
    found = read(text, "run-0", NOW)
    assert isinstance(found, RunSample), found
    return found


def fault(text: str) -> str:
    found = read(text, "run-0", NOW)
    assert isinstance(found, Fault), found
    return found.reason


@pytest.mark.parametrize("kind", [Histogram, Summary])
def test_what_the_python_client_tells(kind):
    registry = CollectorRegistry()
    Counter("training_steps", "s", registry=registry).inc(12)
    seconds = kind("training_step_seconds", "s", registry=registry)
    for _ in range(12):
        seconds.observe(0.5)
    Counter("training_samples", "s", registry=registry).inc(12 * 256)
    gauge = Gauge("training_last_checkpoint_timestamp_seconds", "s", registry=registry)
    gauge.set(NOW - 60.0)
    found = told(generate_latest(registry).decode())
    assert found == RunSample("run-0", NOW, 12.0, 12.0, 6.0, 3072.0, NOW - 60.0)
    assert found.missing == ()


def test_ranks_that_each_tell_are_one_run():
    found = told(
        'training_steps_total{rank="0"} 10\ntraining_steps_total{rank="1"} 9\n'
        'training_samples_total{rank="0"} 40\ntraining_samples_total{rank="1"} 36\n'
    )
    assert (found.steps, found.samples) == (10.0, 76.0)


def test_a_summary_may_have_quantiles_that_are_not_known():
    found = told(
        'training_step_seconds{quantile="0.5"} NaN\n'
        "training_step_seconds_sum 30\ntraining_step_seconds_count 20\n"
    )
    assert (found.timed_steps, found.timed_seconds) == (20.0, 30.0)


def test_no_checkpoint_yet():
    text = "training_steps_total 3\ntraining_last_checkpoint_timestamp_seconds 0\n"
    assert told(text).checkpoint_seconds is None


@pytest.mark.parametrize("at_seconds", [NOW - 60.25, NOW + 40.0], ids=["fraction", "ahead"])
def test_one_checkpoint_is_one_at_each_look(at_seconds):
    """By a clock that is ahead of ours, too; and as a status tells it, which has whole seconds."""
    text = f"training_steps_total 3\ntraining_last_checkpoint_timestamp_seconds {at_seconds}\n"
    for later in (0.0, 15.0, 30.0):
        found = read(text, "run-0", NOW + later)
        assert isinstance(found, RunSample), found
        assert found.checkpoint_seconds == at_seconds // 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("<html><h1>It works!</h1></html>", "not Prometheus' text format"),
        ("", f"serves none of {METRICS[0]}"),
        ("python_info 1\n", "serves none of"),
        ("training_steps_total -1\n", "training_steps_total is -1"),
        ("training_steps_total NaN\n", "training_steps_total is nan"),
        ("training_samples_total +Inf\n", "training_samples_total is inf"),
        ("training_steps_total many\n", "not a number"),
        (
            f"training_last_checkpoint_timestamp_seconds {NOW * 1000}\n",
            "s in the future",
        ),
        (
            'training_samples_total{r="0"} 1e308\ntraining_samples_total{r="1"} 1e308\n',
            "training_samples_total is 1e+308, which is not a possible",
        ),
        (
            "training_step_seconds {count:4e300,sum:1,schema:0,zero_threshold:0,zero_count:0,"
            "positive_spans:[0:1],positive_deltas:[4e300]}\n",
            "training_step_seconds is 4e+300",
        ),
        ("training_steps_total 1\n" * 20_001, "more than 20000 series"),
    ],
)
def test_nonsense_is_one_sentence(text, words):
    assert words in fault(text)


@given(st.text(max_size=300))
def test_no_text_raises(text):
    for each in (text, "training_steps_total" + text):
        assert isinstance(read(each, "run-0", NOW), RunSample | Fault)

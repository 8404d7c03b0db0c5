"""The load generator's plan and report: pure."""

from __future__ import annotations

import asyncio
import statistics

import pytest

from e2e.controlplane import ports
from e2e.images.load.client import plan_and_target, run
from e2e.images.load.plan import Lengths, Plan
from e2e.images.load.report import Felt, percentile, summarize


def plan(**changes: object) -> Plan:
    values = {"rate_per_second": 50.0, "duration_seconds": 200.0, "seed": 1}
    lengths = {"inputs": Lengths(1000, 4000), "outputs": Lengths(100, 100)}
    return Plan(**{**values, **lengths, **changes})  # type: ignore[arg-type]


def test_the_same_seed_gives_the_same_requests() -> None:
    assert list(plan().requests()) == list(plan().requests())
    assert list(plan().requests()) != list(plan(seed=2).requests())


def test_requests_come_at_the_rate_and_as_long_as_asked_for() -> None:
    requests = list(plan().requests())
    assert len(requests) == pytest.approx(50 * 200, rel=0.05)
    assert all(0 < each.at_seconds < 200 for each in requests)
    inputs = sorted(each.input_tokens for each in requests)
    assert statistics.median(inputs) == pytest.approx(1000, rel=0.05)
    assert inputs[int(0.95 * len(inputs))] == pytest.approx(4000, rel=0.1)
    assert {each.output_tokens for each in requests} == {100}


@pytest.mark.parametrize("text", ["", "x", "0", "5,3", "1,2,3"])
def test_bad_lengths_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must be TOKENS or MEDIAN,P95, at least 1 and rising"):
        Lengths.parse(text)


def test_the_command_line_is_read() -> None:
    words = ["--url=http://a", "--rate=2", "--duration=3", "--input-tokens=1015,4085", "--seed=7"]
    planned, given = plan_and_target(words)
    assert planned == Plan(2.0, 3.0, Lengths(1015, 4085), Lengths(64, 64), 7)
    assert given.url == "http://a"


@pytest.mark.parametrize("words", ["--rate 0 --duration 1", "--rate 1 --duration -1"])
def test_a_load_of_nothing_is_refused(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        plan_and_target(["--url", "http://a", *words.split()])
    assert "must be more than 0" in capsys.readouterr().err


def test_percentiles_are_of_values_that_were_seen() -> None:
    values = [float(number) for number in range(100, 0, -1)]
    assert [percentile(values, percent) for percent in (1, 50, 99, 100)] == [1, 50, 99, 100]
    assert percentile([3.0], 50) == 3.0
    assert percentile([], 50) is None


def test_a_report_leaves_out_what_failed() -> None:
    felt = [Felt(10, [0.5, 0.75, 1.25], 1.5), Felt(20, [], 9.0, "status 503")]
    report = summarize(felt, 9.0)
    assert (report["requests"], report["answered"], report["errors"]) == (2, 1, {"status 503": 1})
    assert (report["inputTokens"], report["outputTokens"]) == (10, 3)
    assert report["ttftSeconds"]["p99"] == 0.5
    assert (report["itlSeconds"]["p50"], report["itlSeconds"]["p99"]) == (0.25, 0.5)


def test_an_engine_that_is_not_there_is_counted_and_does_not_end_the_load() -> None:
    (port,) = ports.free(1)
    few = plan(rate_per_second=100.0, duration_seconds=0.1)
    report = asyncio.run(run(f"http://127.0.0.1:{port}", few, "", 5.0))
    assert report["answered"] == 0
    assert sum(report["errors"].values()) == report["requests"] == len(list(few.requests()))

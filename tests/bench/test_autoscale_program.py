"""``python -m bench.autoscale``: what it prints, and what it says of input that it cannot use."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from bench.autoscale import __main__ as program
from bench.autoscale import document, scene, suite
from tests.bench.autoscale_cases import stream

ENGINE = ("--model", "llama-3.1-8b", "--accelerator", "L4", "--tensor", "1", "--sequences", "8")


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "half-hour.csv"
    rows = stream(0.4, 1500.0)
    columns = zip(rows.arrival_seconds, rows.input_tokens, rows.output_tokens, strict=True)
    lines = [f"{arrival:.3f},{prompt},{answer}" for arrival, prompt, answer in columns]
    path.write_text("\n".join(["arrival_s,input_tokens,output_tokens", *lines, "1,0,1"]))
    return path


def _run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr("sys.argv", ["bench.autoscale", *arguments])
    return program.main()


def test_it_prints_one_document(
    trace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ("static_mean", "hpa_running", "O1")
    asked = ("--trace", str(trace), "--json", "--peak-replicas", "3", *ENGINE)
    assert _run(monkeypatch, *asked, "--policies", *names) == 0
    told, complaints = capsys.readouterr()
    found = json.loads(told)
    assert found["trace"] == "half-hour"
    assert set(found["policies"]) == {"static_mean", "hpa_running"}
    assert set(found["oracles"]) == {"O1"}
    for figures in (*found["policies"].values(), *found["oracles"].values()):
        assert set(figures) == set(document.KEYS)
    assert found["oracles"]["O1"]["attainment"] >= 0.99
    assert "1 of 601 rows left out" in complaints
    assert "line 602: input_tokens is 0" in complaints


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--trace", "absent.csv"), "absent.csv: cannot be read"),
        (("--model", "nobody"), "--model: no model is named nobody"),
        (("--accelerator", "abacus"), "--accelerator: no accelerator is named abacus"),
        (("--model", "resnet-50"), "--model: resnet-50 does not answer token by token"),
        (("--accelerator", "L4", "--tensor", "1"), "does not fit 1 x L4"),
        (("--tensor", "3"), "--tensor: is 3, must divide the model's 64 heads"),
        (("--tensor", "64"), "--tensor: is 64, must be at most the 8 of a node"),
        (("--data", "nowhere"), "nowhere: is not a folder"),
    ],
)
def test_bad_input_is_said_in_one_sentence(
    arguments: tuple[str, ...],
    words: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert _run(monkeypatch, *arguments) == 2
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--peak-replicas", "0"), "--peak-replicas: is 0, must be above 0"),
        (("--start-delay-seconds", "-5"), "is -5, must be from 0 to 100000"),
        (("--start-delay-seconds", "100001"), "is 100001, must be from 0 to 100000"),
        (("--ttft-seconds", "nan"), "is nan, must be above 0 and at most 100000"),
        (("--ttft-seconds", "-1"), "is -1, must be above 0 and at most 100000"),
        (("--attainment", "-1"), "is -1, must be above 0 and below 1"),
        (("--slowness", "x"), "is x, must be a number"),
        (("--tensor", "0"), "--tensor: is 0, must be from 1 to 100000"),
        (("--sequences", "-3"), "--sequences: is -3, must be from 1 to 100000"),
        (("--processes", "0.5"), "--processes: is 0.5, must be a whole number"),
        (("--seed", "-1"), "--seed: is -1, must be 0 or more"),
    ],
)
def test_so_are_numbers_out_of_range(
    arguments: tuple[str, ...],
    words: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        _run(monkeypatch, *arguments)
    assert words in capsys.readouterr().err


def test_routers_are_told_by_the_words_that_choose_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        _run(monkeypatch, "--router", "foo")
    said = capsys.readouterr().err.splitlines()[-1]
    assert "least-outstanding" in said
    assert "Routing" not in said


@pytest.mark.parametrize(
    ("row", "seconds", "words"),
    [
        (
            "300,50",
            50,
            "odd: its requests all arrive within 49 s, must be spread over 60 s at least",
        ),
        ("900000,50", 600, "odd: no request fits a replica's cache of"),
        ("20000,50", 600, "odd: no request meets both targets even alone on an idle replica"),
    ],
)
def test_so_are_traces_that_nothing_can_be_said_of(
    row: str,
    seconds: int,
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "odd.csv"
    rows = [f"{second},{row}" for second in range(seconds)]
    path.write_text("\n".join(["arrival_s,input_tokens,output_tokens", *rows]))
    asked = ("--trace", str(path), "--peak-replicas", "3", *ENGINE)
    assert _run(monkeypatch, *asked, "--policies", "static_mean") == 2
    assert words in capsys.readouterr().err


def test_targets_that_are_met_at_any_rate_are_replayed_at_what_a_replica_serves(
    trace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wide = ("--ttft-seconds", "99999", "--tpot-seconds", "99999", "--peak-replicas", "3")
    asked = ("--trace", str(trace), "--json", *wide, *ENGINE, "--policies", "static_mean")
    assert _run(monkeypatch, *asked) == 0
    figures = json.loads(capsys.readouterr().out)["policies"]["static_mean"]
    assert figures["attainment"] == 1.0
    assert 1.0 <= figures["average_replicas"] <= 3.0


def test_a_short_trace_of_answers_of_one_token_is_replayed_from_its_half_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "short.csv"
    rows = [f"{second / 2},{100 + second},1" for second in range(400)]
    path.write_text("\n".join(["arrival_s,input_tokens,output_tokens", *rows]))
    asked = ("--trace", str(path), "--json", "--peak-replicas", "3", *ENGINE)
    assert _run(monkeypatch, *asked, "--policies", "best_static", "hpa_running") == 0
    best = json.loads(capsys.readouterr().out)["policies"]["best_static"]
    assert best["attainment"] >= 0.99
    assert best["itl_attainment"] == 1.0
    assert best["replica_hours"] == pytest.approx(best["average_replicas"] * 99.75 / 3600.0)


def test_a_folder_is_replayed_without_the_traces_that_nothing_can_be_said_of(
    trace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(program, "PEAKS", (3.0,))
    monkeypatch.setattr(scene, "START_DELAYS_SECONDS", (60.0,))
    header = "arrival_s,input_tokens,output_tokens"
    (trace.parent / "a-short.csv").write_text(f"{header}\n0,300,50\n9,300,50\n")
    (trace.parent / "a-torn.csv").write_bytes(gzip.compress(trace.read_bytes())[:-90])
    (trace.parent / "no-trace.csv").write_text("name\nx\n")
    asked = ("--data", str(trace.parent), "--full", "--json", *ENGINE, "--policies", "static_mean")
    assert _run(monkeypatch, *asked) == 0
    told, complaints = capsys.readouterr()
    assert [each["trace"] for each in json.loads(told)["grid"]] == ["half-hour"]
    assert "a-short: its requests all arrive within 9 s" in complaints
    assert "a-torn.csv: cannot be read: Compressed file ended" in complaints


def test_of_a_folder_a_trace_in_milliseconds_is_left_out_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [f"{1000 * second},300,50" for second in range(900)]
    path = tmp_path / "quarter-hour.csv"
    path.write_text("\n".join(["arrival_s,input_tokens,output_tokens", *rows]))
    assert _run(monkeypatch, "--data", str(tmp_path), "--json", *ENGINE) == 2
    told, complaints = capsys.readouterr()
    assert told == ""
    assert complaints.splitlines()[0] == (
        f"{path}: arrival_s spans 10.4 days, must be 8 at most (of seconds); left out"
    )


def test_every_policy_of_the_issue_has_its_name() -> None:
    assert set(suite.NAMES) == {
        "ours", "static_mean", "best_static", "hourly", "hpa_running", "hpa_utilization",
        "keda_waiting", "kpa", "apa", "wva_saturation", "wva_queue", "dynamo_load",
        "dynamo_hybrid", "dynamo_throughput", "llmd_slo", "O1", "O2",
    }  # fmt: skip
    assert set(suite.available()) == set(suite.NAMES)


def test_of_a_folder_of_short_traces_the_longest_is_replayed(
    trace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    head, *rows = trace.read_text().splitlines()
    (trace.parent / "a-part.csv").write_text("\n".join([head, *rows[:200]]))
    (trace.parent / "broken.csv").write_text(f"{head}\nx,y,z")
    asked = ("--data", str(trace.parent), "--json", "--peak-replicas", "3", *ENGINE)
    assert _run(monkeypatch, *asked, "--policies", "static_mean") == 0
    told, complaints = capsys.readouterr()
    assert json.loads(told)["trace"] == "half-hour"
    assert "broken.csv: no row is a request" in complaints


def test_policies_look_as_often_as_those_of_the_page() -> None:
    asked = program._arguments().parse_args([])
    assert program._settings(asked)["scraping"] == scene.Scraping()

"""Traces: bad files and rows, scaling that keeps bursts, windows."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.autoscale import traces
from bench.autoscale.request_files import has_columns
from bench.autoscale.traces import Trace
from bench.files import BadInput
from poolwise.sim.serving.requests import Requests
from tests.bench.autoscale_cases import stream

GOOD = "arrival_s,input_tokens,output_tokens,class\n5.0,10,3,a\n4.0,20,1,b\n"


def _file(folder: Path, text: str, name: str = "some.csv") -> Path:
    path = folder / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


@pytest.mark.parametrize("name", ["some.csv", "some.csv.gz"])
def test_rows_are_sorted_and_begin_at_zero(tmp_path: Path, name: str) -> None:
    trace = traces.load(_file(tmp_path, GOOD, name))
    assert trace.name == "some"
    assert trace.requests.arrival_seconds.tolist() == [0.0, 1.0]
    assert trace.requests.input_tokens.tolist() == [20, 10]
    assert not trace.complaint


def test_a_header_may_have_a_mark_of_its_encoding_and_blanks(tmp_path: Path) -> None:
    path = _file(tmp_path, "\ufeffarrival_s, input_tokens ,output_tokens\n0,20,7\n")
    assert has_columns(path)
    assert traces.load(path).requests.input_tokens.tolist() == [20]


def test_columns_may_come_in_any_order_and_prefixes_only_when_asked(tmp_path: Path) -> None:
    path = _file(tmp_path, "output_tokens,cached_tokens,arrival_s,input_tokens\n7,16,0,20\n")
    assert traces.load(path).requests.cached_tokens.tolist() == [0]
    assert traces.load(path, with_prefixes=True).requests.cached_tokens.tolist() == [16]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("x,1,1", "line 4: arrival_s is x, must be a number of seconds"),
        ("nan,1,1", "line 4: arrival_s is nan, must be a number of seconds"),
        ("1,0,1", "line 4: input_tokens is 0, must be from 1 to 10000000"),
        ("1,5,-2", "line 4: output_tokens is -2, must be"),
        ("1,inf,2", "line 4: input_tokens is inf"),
        ("1,,2", "line 4: input_tokens is '', must be from 1"),
        ("1,5", "line 4: has 2 cells, must have 3 at least"),
    ],
)
def test_bad_rows_are_left_out_and_named(tmp_path: Path, row: str, words: str) -> None:
    trace = traces.load(_file(tmp_path, f"{GOOD}{row}\n"))
    assert len(trace.requests) == 2
    assert "1 of 3 rows left out" in trace.complaint
    assert words in trace.complaint


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no column arrival_s and no input_tokens and no output_tokens"),
        ("arrival_s,input_tokens\n1,2\n", "no column output_tokens"),
        ("arrival_s,input_tokens,output_tokens\n", "no row is a request"),
        ("arrival_s,input_tokens,output_tokens\n1,2,x\n", "no row is a request (line 2"),
        (f"{GOOD}1700000000,2,3\n", "spans 19675.9 days, must be 8 at most"),
    ],
)
def test_no_trace_is_said_in_a_sentence(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(BadInput) as caught:
        traces.load(_file(tmp_path, text))
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "name", ["absent.csv", "folder.csv", "torn.csv.gz", "spoilt.csv.gz", "binary.csv"]
)
def test_what_cannot_be_read_is_said_too(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "torn.csv.gz").write_bytes(gzip.compress(GOOD.encode())[:-12])
    (tmp_path / "spoilt.csv.gz").write_bytes(gzip.compress(GOOD.encode())[:12] + b"\xff" * 40)
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00\x81")
    with pytest.raises(BadInput, match="cannot be read"):
        traces.load(tmp_path / name)
    assert has_columns(_file(tmp_path, GOOD))
    assert not has_columns(tmp_path / "binary.csv")


SPREADSHEETS = GOOD.replace(",", ";").encode(), GOOD.replace(",", "\t").encode()
NAMES = GOOD.replace("arrival_s", "Arrival_S").replace("class", "caf\xe9")


@pytest.mark.parametrize(
    "content",
    [
        *SPREADSHEETS,
        gzip.compress(GOOD.encode(), mtime=0),  # a name of the test, so without the time
        f"\n\n{GOOD}\n\n".replace("\n", "\r\n").encode(),
        NAMES.replace("a\n", "caf\xe9\n").replace("class", "name").encode(),
        GOOD.replace("3,a", "3,caf\xe9").encode("latin-1"),
    ],
)
def test_what_many_hands_write_is_read(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "some.csv"
    path.write_bytes(content)
    assert has_columns(path)
    trace = traces.load(path)
    assert trace.requests.input_tokens.tolist() == [20, 10]
    assert not trace.complaint


def test_a_name_that_says_gz_may_be_wrong(tmp_path: Path) -> None:
    path = tmp_path / "some.csv.gz"
    path.write_text(GOOD)
    assert len(traces.load(path).requests) == 2


@given(st.floats(0.05, 4.0))
def test_scaling_multiplies_the_requests_and_keeps_their_lengths(factor: float) -> None:
    trace = Trace("poisson", stream(5.0, 600.0))
    grown = traces.scaled(trace, factor).requests
    assert len(grown) == pytest.approx(factor * len(trace.requests), rel=0.15, abs=30)
    assert grown.arrival_seconds[-1] <= trace.seconds
    assert set(grown.input_tokens.tolist()) <= set(trace.requests.input_tokens.tolist())


def test_a_whole_factor_repeats_each_request() -> None:
    trace = Trace("poisson", stream(5.0, 600.0))
    grown = traces.scaled(trace, 3.0).requests
    assert sorted(grown.input_tokens) == sorted(np.tile(trace.requests.input_tokens, 3))


def test_bursts_of_copies_do_not_fall_together() -> None:
    """Ten requests at once each minute: each copy's bursts stay whole, at other moments."""
    arrivals = np.repeat(np.arange(1, 31) * 60.0, 10)
    ones = np.ones(len(arrivals), np.int64)
    trace = Trace("bursts", Requests.of(arrivals, ones, ones))
    grown = traces.scaled(trace, 3.0)
    moments, sizes = np.unique(grown.requests.arrival_seconds, return_counts=True)
    assert len(moments) == 90
    assert set(sizes) == {10}
    assert _dispersion(grown) == pytest.approx(_dispersion(trace), rel=0.1)


def _dispersion(trace: Trace) -> float:
    """Variance over mean of the arrivals in a second: 1 for a Poisson stream."""
    seconds = trace.requests.arrival_seconds.astype(np.int64)
    counts = np.bincount(seconds[seconds < int(trace.seconds)], minlength=int(trace.seconds))
    return float(counts.var() / counts.mean())


def test_thinning_keeps_a_subset_and_the_larger_share_all_of_the_smaller() -> None:
    trace = Trace("poisson", stream(5.0, 600.0))
    few, more = (set(traces.scaled(trace, share).requests.arrival_seconds) for share in (0.2, 0.6))
    assert few < more < set(trace.requests.arrival_seconds)


def test_a_window_begins_at_zero() -> None:
    trace = Trace("poisson", stream(5.0, 600.0))
    part = traces.window(trace, 120.0, 60.0).requests
    assert 0.0 <= part.arrival_seconds[0] < 2.0
    assert 55.0 < part.arrival_seconds[-1] < 60.0
    with pytest.raises(BadInput, match="no request in 60 s"):
        traces.window(trace, 1e6, 60.0)

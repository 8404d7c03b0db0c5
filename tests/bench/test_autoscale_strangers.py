"""Hours of services that are drawn from what is published of their clients."""

from pathlib import Path

import numpy as np
import pytest

from bench.autoscale import client_windows, strangers
from bench.autoscale.strangers import Hour
from bench.files import BadInput

WINDOWS = ["client,window_start_s,requests_in_600s,iat_cv,family_G_or_W,shape"]
QUANTILES = "model,client,window_start_s,field,mean,p1,p5,p10,p25,p50,p75,p90,p95,p99,p99.9"
PROMPTS = "100,120,140,160,200,240,300,340,400,500"
ANSWERS = "10,12,14,16,20,24,30,34,40,50"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A client that comes evenly, one in bursts, and one whose lengths nobody published."""
    starts = range(0, 7200, 600)
    windows = [
        *(f"0,{start},1500,1.0,G,1.0" for start in starts),
        *(f"1,{start},30,4.0,W,0.4" for start in starts),
        *(f"2,{start},900,1.0,G,1.0" for start in starts),
    ]
    (tmp_path / "servegen_some_client_windows.csv").write_text("\n".join([*WINDOWS, *windows]))
    lengths = [
        f"some,{client},{start},{field},1,{told}"
        for client in (0, 1)
        for start in (0, 21600)
        for field, told in (("input_tokens", PROMPTS), ("output_tokens", ANSWERS))
    ]
    empty = "other,7,0,input_tokens,,,,,,,,,,,"
    (tmp_path / "servegen_token_quantiles_6h.csv").write_text(
        "\n".join([QUANTILES, *lengths, empty])
    )
    return tmp_path


def _drawn(data: Path, is_coupled: bool = False, seed: int = 0, begin_seconds: float = 1200.0):
    clients = client_windows.clients(data, "some")
    return client_windows.stretch(clients, "some", begin_seconds, 1800.0, is_coupled, seed)


def test_as_many_come_in_each_window_as_were_published(data):
    requests = _drawn(data).requests
    assert len(requests) == 3 * 1530
    assert requests.arrival_seconds[0] == 0.0
    in_windows = np.bincount((requests.arrival_seconds / 600.0).astype(int))
    assert in_windows == pytest.approx([1530] * 3, abs=5)  # the first comes at 0, not at 600 s


def test_who_has_no_lengths_is_left_out(data):
    rates = [each.mean_rate for each in client_windows.clients(data, "some")]
    assert rates == [2.5, 0.05]


def test_lengths_lie_as_published(data):
    prompts = _drawn(data).requests.input_tokens
    assert np.quantile(prompts, [0.1, 0.5, 0.95]) == pytest.approx([140, 200, 340], rel=0.05)
    assert prompts.min() == 100 and prompts.max() == 500


@pytest.mark.parametrize(("is_coupled", "least", "most"), [(True, 0.95, 1.0), (False, -0.1, 0.1)])
def test_prompt_and_answer_have_one_rank_or_their_own(data, is_coupled, least, most):
    requests = _drawn(data, is_coupled).requests
    found = np.corrcoef(requests.input_tokens, requests.output_tokens)[0, 1]
    assert least <= found <= most


def test_equal_seeds_draw_equal_hours(data):
    one, same, other = (_drawn(data, seed=seed).requests for seed in (0, 0, 1))
    assert np.array_equal(one.arrival_seconds, same.arrival_seconds)
    assert not np.array_equal(one.arrival_seconds, other.arrival_seconds)


def test_a_time_at_which_nobody_came_is_told(data):
    with pytest.raises(BadInput, match="some: no request in 1800 s from 90000 s"):
        _drawn(data, begin_seconds=90000.0)


def test_a_row_that_is_none_is_told_with_its_line(data):
    path = data / "servegen_some_client_windows.csv"
    path.write_text(path.read_text() + "\n0,7200,many,1.0,G,1.0")
    with pytest.raises(BadInput, match=r"servegen_some_client_windows.csv:38: ValueError: .*many"):
        client_windows.clients.__wrapped__(data, "some")


def test_days_of_which_others_keep_a_part_are_left_out():
    for hour in strangers.drawn_hours():
        assert int(hour.begin_hours // 24) not in strangers.KEPT_DAYS.get(hour.model, ())


def test_an_hour_is_replayed_under_all(data, monkeypatch):
    monkeypatch.setattr(strangers, "PEAK_REPLICAS", 2.0)
    found = strangers.replayed(data, Hour("some", 1.0, 0.0, True, 0))
    assert len(found.others) == 1 + len(strangers.RIVALS)
    assert found.static.attainment >= found.aim == pytest.approx(0.99)
    head, rule, row, everything = strangers.text([found]).splitlines()
    assert row.startswith("| some | up to 1/s | 0 | of one rank | ")
    assert {line.count("|") for line in (head, rule, row, everything)} == {13}
    assert " of 1 | " in everything

"""Figures of README.md that another page tells are those of that page."""

from __future__ import annotations

import re
from collections.abc import Mapping

from e2e.docs.playing import REPOSITORY

_UNSEEN = re.compile(
    r"^\| (?P<policy>\w+) \| (?P<setting>[a-z ]+) \|.*"
    r"\| (?P<attained>\d) of 5 \| (?P<cost>[\d.]*) ?\|$",
    re.MULTILINE,
)
"""A row of the table of rivals that have not seen the trace."""


def text_of(name: str) -> str:
    """A page with its lines joined, since figures stand anywhere in them."""
    return " ".join((REPOSITORY / name).read_text(encoding="utf-8").split())


def rows() -> list[Mapping[str, str]]:
    page = (REPOSITORY / "docs" / "autoscaling-replay.md").read_text(encoding="utf-8")
    return [found.groupdict() for found in _UNSEEN.finditer(page)]


def test_what_the_readme_says_of_autoscalers_is_what_the_replays_say() -> None:
    readme, table = text_of("README.md"), rows()
    [ours] = [each for each in table if each["policy"] == "ours"]
    rivals = [each for each in table if each["policy"] != "ours"]
    assert len({each["policy"] for each in rivals}) == 11
    assert "Five recorded traces were replayed" in readme
    assert "Of eleven other autoscalers, one (Dynamo's load loop) keeps all five" in readme
    more = round(100 * (float(ours["cost"]) - 1))
    assert ours["attained"] == "4"
    assert f"at {more} % more than the best fixed fleets in hindsight" in readme
    [best] = [each for each in rivals if each["attained"] == "5"]
    assert (best["policy"], round(float(best["cost"]))) == ("dynamo_load", 2)
    costs = [float(each["cost"]) for each in rivals if each["attained"] == "4"]
    assert f"cost {min(costs):.1f} to {max(costs):.1f} times as much as the fleets" in readme

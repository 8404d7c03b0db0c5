"""The pictures are what the model draws, small, and readable on light and dark pages."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bench.pictures import memory, style, tails
from bench.pictures.__main__ import FOLDER, PICTURES, svg
from bench.pictures.examples import examples
from poolwise.model.hardware import Resource

REPOSITORY = Path(__file__).resolve().parent.parent.parent
MOST_BYTES = 60_000
LEAST_CONTRAST = {"text": 4.5, "shape": 3.0}
"""WCAG 2.1, 1.4.3 and 1.4.11."""
by_name = pytest.mark.parametrize("name", PICTURES)


@by_name
def test_a_picture_is_what_the_model_draws(name: str) -> None:
    drawn = (FOLDER / f"{name}.svg").read_text(encoding="utf-8")
    assert drawn == svg(name), "python -m bench.pictures"


@by_name
def test_nothing_in_a_picture_is_named_by_digits_that_a_machine_may_round_otherwise(
    name: str,
) -> None:
    named = re.findall(r'id="([^"]+)"', svg(name))
    assert named
    assert [each for each in named if re.fullmatch(r"[a-z][0-9a-f]{10}", each)] == []


@by_name
def test_a_picture_is_small_and_has_a_name(name: str) -> None:
    path = FOLDER / f"{name}.svg"
    assert path.stat().st_size < MOST_BYTES
    root = ElementTree.parse(path).getroot()
    assert root.findtext("{http://www.w3.org/2000/svg}title") == PICTURES[name].TITLE
    assert "prefers-color-scheme: dark" in path.read_text(encoding="utf-8")


def test_every_picture_is_shown_with_words_for_those_who_do_not_see_it() -> None:
    page = (REPOSITORY / "docs" / "concepts.md").read_text(encoding="utf-8")
    assert {path.stem for path in FOLDER.glob("*.svg")} == set(PICTURES)
    for name in PICTURES:
        before, _, _ = page.partition(f"](pictures/{name}.svg)")
        assert len(before.rpartition("![")[2]) > 40, name


def test_numbers_in_the_words_are_those_of_the_pictures() -> None:
    page = (REPOSITORY / "docs" / "concepts.md").read_text(encoding="utf-8")
    on = "H100-SXM5-80GB"
    chat, llama, reading = (
        examples()[name].prediction(on) for name in ("chat", "llama-70b", "summaries")
    )
    assert reading.arithmetic_intensity < reading.ridge_point
    requests = [memory.requests(case) for case in memory.CASES]
    for told in (
        f"`chat` at its planned load is at {chat.arithmetic_intensity:.0f} on an H100",
        f"the ridge at {chat.ridge_point:.0f}",
        f"`llama-70b` is at {llama.arithmetic_intensity:,.0f}",
        f"`summaries` is at {reading.arithmetic_intensity:.0f}, left of the ridge",
        f"runs {requests[0]} requests of {memory.REQUEST_TOKENS:,} tokens on an A10G",
        f"and {requests[3]} on an H100",
    ):
        assert told in page


def test_replicas_in_the_words_are_those_of_the_picture() -> None:
    lines = (REPOSITORY / "docs" / "concepts.md").read_text(encoding="utf-8").split()
    page = " ".join(lines)
    tight, loose, tightest = (tails.replicas(99.0, seconds) for seconds in (0.3, 2.0, 0.2))
    assert tightest > 1000
    told = (
        f"A p99 of 0.3 s instead of 2 s takes {tight:.0f} of them here instead of {loose:.0f}, and"
    )
    assert f"{told} one of 0.2 s more than a thousand" in page
    assert f"a median of 0.2 s takes {tails.replicas(50.0, 0.2):.0f}." in page


def test_what_reads_prompts_is_bound_by_arithmetic() -> None:
    bound = examples()["summaries"].candidates["H100-SXM5-80GB"].bottleneck
    assert bound is not None and bound.resource is Resource.COMPUTE


def luminance(colour: str) -> float:
    """Relative luminance, WCAG 2.1."""
    channels = [int(colour[start:end], 16) / 255 for start, end in pairwise((1, 3, 5, 7))]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("paper", [style.PAPER, style.DARK[style.PAPER]])
def test_shapes_stand_out_on_both_papers(paper: str) -> None:
    faint = [each for each in style.COLOURS if contrast(each, paper) < LEAST_CONTRAST["shape"]]
    assert faint == []


@pytest.mark.parametrize("ink", [style.INK, style.MUTED])
def test_text_is_readable_on_both_papers(ink: str) -> None:
    assert contrast(ink, style.PAPER) >= LEAST_CONTRAST["text"]
    assert contrast(style.DARK[ink], style.DARK[style.PAPER]) >= LEAST_CONTRAST["text"]

"""Models known by their counts alone."""

from __future__ import annotations

from poolwise.model.shapes import Answer, Custom

VISION = Custom(86e6, 86e6, 35e9, 3e8)


def test_serving_an_item_is_a_forward_pass_unless_it_takes_more() -> None:
    assert VISION.answer == Answer(flops=35e9, passes=1.0)


def test_an_item_of_many_passes_is_all_of_them() -> None:
    steps = Answer(flops=20 * 35e9, passes=20.0)
    assert Custom(86e6, 86e6, 35e9, 3e8, repeated=steps).answer == steps

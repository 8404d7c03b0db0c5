"""What is told of looks that fail in a row."""

import pytest

from poolwise.plan.signals.failing import REST_SECONDS, Failing


def after(*reasons: str, apart_seconds: float = 10.0) -> Failing:
    found = Failing()
    for number, reason in enumerate(reasons):
        found = found.after(reason, number * apart_seconds)
    return found


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("differs by -3600 s from ours", "differs by -3610 s from ours"),
        (
            "kv is 7.07, a share must lie between 0 and 1",
            "kv is 1e+300, a share must lie between 0 and 1",
        ),
        ("received 200 of 2035 bytes", "received 8 of 99 bytes"),
    ],
)
def test_numbers_that_move_are_no_news(first, second):
    assert after(first, second, apart_seconds=10 * REST_SECONDS) == Failing(2, first, 0.0)


def test_another_failure_is_told_a_minute_later_at_the_earliest():
    assert after("no answer", "answers HTTP 404").reason == "no answer"
    assert after("no answer", "answers HTTP 404", apart_seconds=REST_SECONDS) == Failing(
        2, "answers HTTP 404", REST_SECONDS
    )


def test_another_replica_is_another_failure():
    first, second = (f"chat-{n}: went back" for n in (0, 1))
    assert after(first, second, apart_seconds=REST_SECONDS).reason == second

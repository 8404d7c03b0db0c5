"""Logs are one JSON object a line, whoever writes them and whatever users wrote."""

from __future__ import annotations

import io
import json
import logging

import pytest
import structlog

from poolwise.cluster import logs


@pytest.fixture
def stream():
    stream = io.StringIO()
    logs.configure("info", stream)
    yield stream
    structlog.reset_defaults()


def lines(stream):
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_our_own_and_foreign_loggers_write_alike(stream):
    structlog.get_logger("poolwise.test").info("placed", pool="h100")
    logging.getLogger("somebody").warning("careful")
    ours, theirs = lines(stream)
    assert (ours["message"], ours["level"], ours["pool"]) == ("placed", "info", "h100")
    assert (theirs["message"], theirs["level"], theirs["logger"]) == (
        "careful",
        "warning",
        "somebody",
    )
    assert {"time", "logger"} <= ours.keys() & theirs.keys()


def test_text_of_users_cannot_break_out_of_its_line(stream):
    structlog.get_logger("poolwise.test").info("seen", name="a\n{}\x1b[31mred")
    [line] = lines(stream)
    assert line["name"] == "a\n{}\x1b[31mred"
    assert "\x1b" not in stream.getvalue()


def test_kopf_is_quiet_unless_something_is_wrong(stream):
    logging.getLogger("kopf.objects").info("Handler 'nodes' succeeded.")
    logging.getLogger("kopf.objects").error("failed")
    assert [line["message"] for line in lines(stream)] == ["failed"]


def test_a_traceback_stays_in_one_object(stream):
    try:
        raise ValueError("oh")
    except ValueError:
        structlog.get_logger("poolwise.test").exception("failed")
    [line] = lines(stream)
    assert "ValueError: oh" in line["exception"]

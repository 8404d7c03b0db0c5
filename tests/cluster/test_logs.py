"""Logs are one JSON object a line, whoever writes them and whatever users wrote."""

from __future__ import annotations

import json
import logging

import structlog


def lines(log):
    return [json.loads(line) for line in log.getvalue().splitlines()]


def test_our_own_and_foreign_loggers_write_alike(log):
    structlog.get_logger("poolwise.test").info("placed", pool="h100")
    logging.getLogger("somebody").warning("careful")
    ours, theirs = lines(log)
    assert (ours["message"], ours["level"], ours["pool"]) == ("placed", "info", "h100")
    assert (theirs["message"], theirs["level"], theirs["logger"]) == (
        "careful",
        "warning",
        "somebody",
    )
    assert {"time", "logger"} <= ours.keys() & theirs.keys()


def test_text_of_users_cannot_break_out_of_its_line(log):
    structlog.get_logger("poolwise.test").info("seen", name="a\n{}\x1b[31mred")
    [line] = lines(log)
    assert line["name"] == "a\n{}\x1b[31mred"
    assert "\x1b" not in log.getvalue()


def test_kopf_is_quiet_unless_something_is_wrong(log):
    logging.getLogger("kopf.objects").info("Handler 'nodes' succeeded.")
    logging.getLogger("kopf.objects").error("failed")
    assert [line["message"] for line in lines(log)] == ["failed"]


def test_a_traceback_stays_in_one_object(log):
    try:
        raise ValueError("oh")
    except ValueError:
        structlog.get_logger("poolwise.test").exception("failed")
    [line] = lines(log)
    assert "ValueError: oh" in line["exception"]

"""JSON logs on standard error, one object a line; kopf's and everybody else's go the same way.

Text that users wrote is escaped by JSON. Whole objects, environments and headers are never logged.
"""

from __future__ import annotations

import logging
import sys
from typing import TextIO

import structlog

_SHARED: tuple[structlog.typing.Processor, ...] = (
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
)


def _is_news(record: logging.LogRecord) -> bool:
    """kopf tells of each attempt of each watch while the API server is away; we say it once."""
    return not str(record.msg).startswith("Request attempt #")


def configure(level: str, stream: TextIO = sys.stderr) -> None:
    """Send all logging of the process to ``stream`` as JSON, from ``level`` up."""
    handler = logging.StreamHandler(stream)
    handler.addFilter(_is_news)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*_SHARED, structlog.stdlib.ExtraAdder(allow=[])],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info,
                structlog.processors.EventRenamer("message"),
                structlog.processors.JSONRenderer(),
            ],
        )
    )
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    logging.captureWarnings(True)
    # kopf tells of every event it hands over, aiohttp of every probe; that is detail.
    for talkative in ("kopf", "aiohttp.access"):
        logging.getLogger(talkative).setLevel("DEBUG" if level == "debug" else "WARNING")
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *_SHARED,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )

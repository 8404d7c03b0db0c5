"""What the controller has learned of a service, as text in ``status.scaling.memory``.

A restarted operator, or the next leader, goes on with it instead of learning for minutes. Opaque
and bounded: JSON, deflated, in base64. What is damaged, too old or of another version is nothing,
and never an error: then it is learned again.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import zlib
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from poolwise.plan.live.mismatch.clue import Baseline, Mismatch
from poolwise.plan.live.mismatch.watch import Raised, Watch
from poolwise.plan.scaling.memory import Memory

VERSION = 2
LONGEST_CHARACTERS = 16384
LONGEST_BYTES = 2**18
"""Inflated: a text of the allowed length could hold 12 MB."""
STEP, STEPS = 0.06, 255
"""Of a logarithm of a weight of what is believed: below 3e-7 of the likeliest all are alike."""
MOST_ERRORS = 700
"""Of the counts of forecasts' errors: the largest. An hour of Azure's code leaves 444 of them."""
LARGEST = 1e15
"""No count, length or time of ours is larger."""
KEPT_SECONDS = 24 * 3600.0
"""What is older tells of another day."""
CLOCK_SECONDS = 300.0
"""By which the clock of the process before may have been ahead."""


def written(memory: Memory, watch: Watch, now_seconds: float) -> str:
    """What is worth keeping; the same text for the same knowledge at the same time."""
    learned = memory.as_mapping()
    since = now_seconds if memory.since_seconds is None else memory.since_seconds
    belief = np.minimum(np.round(-np.array(learned["belief"]) / STEP), STEPS).astype(int)
    errors = sorted(learned["errors"], key=lambda each: -each[-1])[:MOST_ERRORS]
    document = {
        "version": VERSION,
        "at": now_seconds,
        "since": since if math.isfinite(since) else None,
        "memory": {**learned, "belief": belief.ravel().tolist(), "errors": sorted(errors)},
        "shape": list(belief.shape),
        "told": {kind.value: asdict(each) for kind, each in watch.raised.items()},
    }
    text = json.dumps(document, separators=(",", ":"), sort_keys=True)
    found = base64.b64encode(zlib.compress(text.encode(), 9)).decode()
    return found if len(found) <= LONGEST_CHARACTERS else ""


def read(text: object, now_seconds: float) -> tuple[Memory, Watch] | None:
    """What :func:`written` wrote; None for anything else."""
    try:
        document = _document(text)
        age_seconds = now_seconds - float(document["at"])
        if document["version"] != VERSION or not -CLOCK_SECONDS <= age_seconds <= KEPT_SECONDS:
            return None
        return _memory(document), _watch(document["told"])
    except (ValueError, TypeError, LookupError, AttributeError, zlib.error, RecursionError):
        return None


def _document(text: object) -> Mapping[str, Any]:
    """Unpacked; ValueError for what is no such text."""
    if not isinstance(text, str) or not 0 < len(text) <= LONGEST_CHARACTERS:
        raise ValueError("no text")
    try:
        packed = base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError("no base64") from error
    inflated = zlib.decompressobj().decompress(packed, LONGEST_BYTES)
    document: Mapping[str, Any] = json.loads(inflated, parse_constant=_refused)
    _check(document)
    return document


def _refused(constant: str) -> float:
    raise ValueError(f"{constant} is no number of ours")


def _check(value: Any) -> None:
    """ValueError for a number that none of ours can be."""
    if isinstance(value, Mapping):
        value = value.values()
    elif isinstance(value, int | float) and not isinstance(value, bool):
        if not abs(value) <= LARGEST:  # so that NaN is none; an integer may be beyond any float
            raise ValueError(f"{value} is no number of ours")
        return
    elif not isinstance(value, list):
        return
    for each in value:
        _check(each)


def _memory(document: Mapping[str, Any]) -> Memory:
    learned = document["memory"]
    belief = -STEP * np.array(learned["belief"], float).reshape(document["shape"])
    memory, since = Memory.read({**learned, "belief": belief.tolist()}), document["since"]
    return memory if since is None else replace(memory, since_seconds=float(since))


def _watch(told: Mapping[str, Any]) -> Watch:
    return Watch(raised={Mismatch(kind): _raised(each) for kind, each in told.items()})


def _raised(fields: Mapping[str, Any]) -> Raised:
    baseline, gone = fields["baseline"], fields["gone_since_seconds"]
    return Raised(
        str(fields["told"]),
        float(fields["since_seconds"]),
        float(fields["worded_seconds"]),
        float(fields["known_seconds"]),
        None if gone is None else float(gone),
        None if baseline is None else _baseline(baseline),
    )


def _baseline(fields: Mapping[str, Any]) -> Baseline:
    load = {str(name): float(value) for name, value in fields["load"].items()}
    seconds = float(fields["seconds"])
    if seconds <= 0.0:
        raise ValueError("a tail is longer than nothing")
    return Baseline(str(fields["target"]), float(fields["percentile"]), seconds, load)

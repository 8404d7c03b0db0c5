"""Numbers in sentences: one spelling for bytes, money, times, shares and rates."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence

from poolwise.plan.amounts import HUGE_PAGES

MIB, GIB = 2**20, 2**30
MOST_DECIMALS = 6
"""Of an amount in GiB: kibibytes."""
LEAST_MONEY = 1e-4
"""That is told in digits."""
SENTENCE_LIMIT = 1024
"""Characters of one sentence in a status; a condition's message may hold more of them."""
VALUE_LIMIT = 80
"""Characters of a wrong value that are repeated to its author."""

_SYMBOLS = {"USD": "$", "EUR": "€", "GBP": "£"}
_LARGE = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_UNITS = (
    (31_557_600.0, "years", 63_115_200.0),
    (86_400.0, "d", 864_000.0),
    (3_600.0, "h", 7_200.0),
    (60.0, "min", 300.0),
    (1.0, "s", 1.0),
    (1e-3, "ms", 1e-3),
)
"""Length in seconds, name, and the time from which it is the natural one."""


def significant(value: float, digits: int = 4) -> float:
    """``value`` rounded to so many significant digits, as an integer where it is one.

    >>> significant(125.0374)
    125.0
    """
    if not value or not math.isfinite(value):
        return value
    rounded = float(f"{value:.{digits - 1}e}")
    return int(rounded) if isinstance(value, int) else rounded


def gib(size_bytes: float) -> str:
    """Memory with one decimal: ``91.2 GiB``; small amounts in MiB."""
    if 0 < size_bytes < 0.1 * GIB:
        return f"{size_bytes / MIB:.0f} MiB"
    return f"{size_bytes / GIB:.1f} GiB"


def apart(first: float, second: float) -> tuple[str, str]:
    """Two amounts with one decimal, or with as many as it takes to tell one from the other.

    >>> apart(23.24, 23.18)
    ('23.24', '23.18')
    >>> apart(2162.3, 78.6)
    ('2,162.3', '78.6')
    """
    for decimals in range(1, MOST_DECIMALS):
        shown = f"{first:,.{decimals}f}", f"{second:,.{decimals}f}"
        if shown[0] != shown[1]:
            return shown
    return f"{first:,.{MOST_DECIMALS}f}", f"{second:,.{MOST_DECIMALS}f}"


def money(amount: float, currency: str = "USD") -> str:
    """``$36,400``, ``$38.20``, ``0.31 CHF``: cents below 100, four digits where it is tiny, and
    below those that it is less."""
    if 0 < abs(amount) < LEAST_MONEY / 2:
        return f"less than {money(LEAST_MONEY, currency)}"
    shown = f"{amount:,.4f}" if 0 < abs(amount) < 0.1 else f"{amount:,.2f}"
    if abs(amount) >= 100:
        shown = f"{amount:,.0f}"
    symbol = _SYMBOLS.get(currency)
    return f"{symbol}{shown}" if symbol else f"{shown} {currency}"


def duration(seconds: float) -> str:
    """A time in its natural unit: ``350 ms``, ``118 s``, ``83 h``, ``12 d``, ``3 years``."""
    if not math.isfinite(seconds):
        return "for ever"
    unit_seconds, unit = time_unit(seconds)
    return f"{three_digits(seconds / unit_seconds)} {unit}"


def time_unit(seconds: float) -> tuple[float, str]:
    """The natural unit of a time: its length in seconds, and its name."""
    for unit_seconds, unit, above in _UNITS:
        if seconds >= above:
            return unit_seconds, unit
    return 1e-6, "µs"


def amount_of(resource: str, amount: float) -> str:
    """So much of a resource, bytes where it is storage.

    >>> amount_of("rdma/hca", 2.0), amount_of("hugepages-2Mi", 2.0**30), amount_of("a/b", 1e12)
    ('2 rdma/hca', '1.0 GiB of hugepages-2Mi', '1,000,000,000,000 a/b')
    """
    if resource.endswith("storage") or resource.startswith(HUGE_PAGES):
        return f"{gib(amount)} of {resource}"
    return f"{amount:,.15g} {resource}"


def percent(fraction: float) -> str:
    """A share, with a decimal where it is small: ``74 %``, ``7.1 %``, ``0.04 %``."""
    share = 100 * fraction
    decimals = 0 if abs(share) >= 10 else 1 if abs(share) >= 0.1 or not share else 2
    return f"{share:.{decimals}f} %"


def change(fraction: float) -> str:
    """A signed share: ``+7.1 %``."""
    return f"{'+' if fraction >= 0 else '-'}{percent(abs(fraction))}"


def quantity(amount: float) -> str:
    """A large count in short: ``67k``, ``20G``, ``1.3M``; small ones as they are."""
    for unit, letter in _LARGE:
        if abs(amount) >= unit:
            return f"{three_digits(amount / unit)}{letter}"
    return three_digits(amount)


def three_digits(value: float) -> str:
    """At most three significant digits without an exponent: ``125``, ``8.4``, ``0.071``."""
    rounded = significant(float(value), 3)
    if abs(rounded) >= 100 or rounded == int(rounded):
        return f"{rounded:.0f}"
    return f"{rounded:.6f}".rstrip("0").rstrip(".")


def plural(count: int, noun: str) -> str:
    """``1 node``, ``8 nodes``."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def first_of(names: Sequence[str], most: int, between: str = ", ") -> str:
    """A list that is told in part: ``a, b and 3 more``."""
    told, more = between.join(names[:most]), len(names) - most
    return f"{told} and {more} more" if more > 0 else told


def are(count: int) -> str:
    """``is`` of one, ``are`` of none or of several."""
    return "is" if count == 1 else "are"


def are_free(count: int, total: int | None = None) -> str:
    """``1 is free``, ``8 are free``; ``1 of 4 is free``."""
    counted = str(count) if total is None else f"{count} of {total}"
    return f"{counted} {are(count)} free"


def sentence(text: str, limit: int = SENTENCE_LIMIT) -> str:
    """Text from outside (a container, a user) on one line, without control characters, bounded.

    Format characters go too: they can turn the reading direction of what follows.
    """
    kept = (
        " " if character.isspace() else character
        for character in text
        if character.isspace() or unicodedata.category(character)[0] != "C"
    )
    line = " ".join("".join(kept).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def measured(phase: str, ratio: float, samples: int, pool: str | None) -> str:
    """What a correction follows from; no pool: it is of others than the one it is told of.

    >>> measured("training", 1.123, 16, "h100")
    'measured 1.12x of the model on h100, 16 samples'
    """
    of = "" if phase == "training" else f"{phase} "
    where = pool or "other pools"
    return f"{of}measured {ratio:.2f}x of the model on {where}, {plural(samples, 'sample')}"

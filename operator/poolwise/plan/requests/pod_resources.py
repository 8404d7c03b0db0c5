"""What each pod asks of its node beside accelerators, as far as Kubernetes would take such a pod.

Admission has judged names and quantities by themselves. The API server judges those of a pod more
closely, and only once there is one: the workload would have a place by then, and never a pod.
Source: kubernetes/kubernetes, pkg/apis/core/validation (ValidateContainerResourceRequirements).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal

from poolwise.api.quantity import parse_quantity
from poolwise.api.resources import Resources
from poolwise.errors import InvalidInput
from poolwise.plan.amounts import HUGE_PAGES, OWN_FIELDS, STORAGE, is_whole
from poolwise.plan.requests.request import PodResources
from poolwise.plan.wording import VALUE_LIMIT, sentence

WHERE = "spec.run.resources"
PLAIN = frozenset({*OWN_FIELDS, STORAGE})
"""Names without a domain that containers may ask for, beside huge pages."""

_Amounts = Mapping[str, Decimal]


def pod_resources(resources: Resources) -> PodResources:
    """What the scheduler will count: requests, and limits where they stand alone.

    :raises InvalidInput: for what the API server would refuse a pod.
    """
    requests = _amounts("requests", resources.requests)
    limits = _amounts("limits", resources.limits)
    asked = {**limits, **requests}
    for name in sorted(asked):
        where = f"{WHERE}.{'requests' if name in requests else 'limits'}.{name}"
        _check_name(where, name)
        if is_whole(name):
            _check_whole(where, name, asked[name], limits)
    if any(name.startswith(HUGE_PAGES) for name in asked) and not OWN_FIELDS & asked.keys():
        raise InvalidInput(WHERE, "must ask for cpu or memory where it asks for huge pages")
    counted = {name: float(asked[name]) for name in sorted(asked)}
    cores, memory_bytes = counted.pop("cpu", 0.0), counted.pop("memory", 0.0)
    return PodResources(cores, memory_bytes, tuple(each for each in counted.items() if each[1]))


def _amounts(kind: str, given: Mapping[str, str]) -> _Amounts:
    return {name: _amount(f"{WHERE}.{kind}.{name}", text) for name, text in given.items()}


def _amount(where: str, text: str) -> Decimal:
    try:
        amount = parse_quantity(text)
        is_finite = amount >= 0 and float(amount) < math.inf
    except (ValueError, OverflowError) as error:
        raise InvalidInput(where, str(error)) from error
    if not is_finite:
        raise InvalidInput(where, f"must be a positive quantity, is {_shown(text)}")
    return amount


def _check_name(where: str, name: str) -> None:
    if "/" not in name and name not in PLAIN and not name.startswith(HUGE_PAGES):
        names = ", ".join(sorted(PLAIN))
        raise InvalidInput(
            where, f"must be {names}, huge pages or a name with a domain such as rdma/hca"
        )


def _check_whole(where: str, name: str, amount: Decimal, limits: _Amounts) -> None:
    if limits.get(name, amount) != amount:
        most = _plain(limits[name])
        told = f"must be what limits say ({most}), as of anything but cpu, memory and {STORAGE}"
        raise InvalidInput(where, f"{told}, is {_plain(amount)}")
    if not name.startswith(HUGE_PAGES):
        if amount % 1:
            raise InvalidInput(where, f"must be a whole number, is {_plain(amount)}")
    elif amount % _page_bytes(where, name):
        size = name.removeprefix(HUGE_PAGES)
        raise InvalidInput(where, f"must be whole pages of {size}, is {_plain(amount)} bytes")


def _page_bytes(where: str, name: str) -> Decimal:
    """Of huge pages, whose size is in their name."""
    size = name.removeprefix(HUGE_PAGES)
    try:
        page_bytes = parse_quantity(size)
    except ValueError:
        page_bytes = Decimal(0)
    if page_bytes <= 0 or page_bytes % 1:
        told = f"must have a size of pages in its name, as {HUGE_PAGES}2Mi has; {_shown(size)} is"
        raise InvalidInput(where, f"{told} none")
    return page_bytes


def _plain(amount: Decimal) -> str:
    """Without a suffix, an exponent or zeros at the end."""
    return f"{amount.normalize():f}"


def _shown(text: str) -> str:
    return sentence(str(text), VALUE_LIMIT)

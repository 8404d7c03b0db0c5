"""Whether what a pool's nodes cost, and on what terms, is the same for all of them.

A pool is planned as one kind of node: by its slowest network, its weakest host, and likewise by its
dearest node and by the least assured terms among its nodes. Discovered pools are alike by
construction. A declared one need not be, and is told to be split: then each part has its own price,
its own interruptions, and workloads can choose between them by ``capacityTypes``.
"""

from __future__ import annotations

from collections.abc import Iterator

from poolwise.plan.conditions import Reason, Type, condition
from poolwise.plan.pool import Condition
from poolwise.plan.pools.members import Draft, capacity_type
from poolwise.plan.pools.price import SHIPPED_CURRENCY, unit_prices
from poolwise.plan.wording import money

LEAST_DIFFERENCE = 0.01
"""Relative; prices that differ by less are one."""


def differences(draft: Draft) -> Iterator[Condition]:
    """The condition of a pool whose nodes are not alike in what they cost."""
    found = {Reason.TERMS_DIFFER: _terms(draft), Reason.PRICES_DIFFER: _prices(draft)}
    told = {reason: text for reason, text in found.items() if text}
    if told:
        text = "; ".join([*told.values(), "select them apart, in a pool each"])
        yield condition(Type.NODES_ALIKE, False, next(iter(told)), text)


def _terms(draft: Draft) -> str:
    bought = [member.node.capacity_type for member in draft.members]
    if draft.spec.capacity_type or len(set(bought)) < 2:
        return ""
    counted = (f"{bought.count(each)} {each}" for each in sorted(set(bought)))
    return (
        f"its nodes are bought on different terms ({', '.join(counted)}), and all are taken as"
        f" {capacity_type(draft)}"
    )


def _prices(draft: Draft) -> str:
    """By machine type, where the shipped tables are asked at all."""
    prices = () if draft.spec.price else tuple(unit_prices(draft))
    amounts = [each.amount for each in prices]
    if not amounts or max(amounts) <= (1 + LEAST_DIFFERENCE) * min(amounts):
        return ""
    unit = "vCPU" if draft.is_cpu else "accelerator"
    dearest = {each.source: each.amount for each in prices}
    ordered = sorted(dearest.items(), key=lambda each: (-each[1], each[0]))
    told = (f"{money(amount, SHIPPED_CURRENCY)} ({source})" for source, amount in ordered)
    return f"an hour of one {unit} costs {', '.join(told)}, and all are taken at the dearest"

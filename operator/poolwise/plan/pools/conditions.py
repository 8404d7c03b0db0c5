"""Conditions of a pool: what is known of its hardware, and whether work can start there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from poolwise.plan.conditions import Reason, Type, condition
from poolwise.plan.pool import Condition, Node
from poolwise.plan.pools.alike import differences
from poolwise.plan.pools.members import Draft
from poolwise.plan.wording import first_of, plural

NAMED_AT_MOST = 3
"""Nodes that one message names."""


def unusable_reason(draft: Draft) -> tuple[str, str] | None:
    """Why the pool gets no work at all: CamelCase reason and sentence; None: it may."""
    if draft.offer.problem is not None:
        return draft.offer.problem.reason, draft.offer.problem.message
    if draft.offer.sharing:
        text = f"its devices are shared ({draft.offer.sharing}); shared devices are not used"
        return Reason.SHARED_DEVICES, text
    return None


def conditions(
    draft: Draft, nodes: Sequence[Node], priced: Iterable[Condition] = ()
) -> tuple[Condition, ...]:
    """All conditions of a pool, ``Ready`` last; ``priced`` are those of its price."""
    accepted = () if _told(draft, Type.ACCEPTED) else (_ACCEPTED,)
    known = (*_hardware(draft), *_devices(draft), *differences(draft))
    return (*accepted, *draft.conditions, *known, *priced, _ready(draft, nodes))


_ACCEPTED = condition(Type.ACCEPTED, True, Reason.VALID, "the spec can be used")


def _hardware(draft: Draft) -> Iterator[Condition]:
    offer = draft.offer
    if offer.problem is not None:
        text = offer.problem.message
        if not draft.spec.accelerator:
            text += f"; to use the pool, name its hardware in {_where_to_name_it(draft)}"
        yield condition(Type.HARDWARE_KNOWN, False, offer.problem.reason, text)
        return
    odd = [m.node.name for m in draft.members if m.offer.problem is not None]
    left_out = (
        f"; not used for what they say of themselves: {first_of(odd, NAMED_AT_MOST)}" if odd else ""
    )
    source = offer.evidence or "the labels"
    told = f"{offer.product}: {source}{_overruled(draft)}{left_out}"
    yield condition(Type.HARDWARE_KNOWN, True, Reason.KNOWN, told)
    if offer.is_estimated and offer.cpu is not None:
        text = f"its CPU is not in the shipped table; taken as {offer.cpu.name}, the weakest known"
        told = f"{text} {offer.cpu.architecture}"
        yield condition(Type.HARDWARE_ESTIMATED, True, Reason.UNKNOWN_CPU, told)


def _where_to_name_it(draft: Draft) -> str:
    """What the object of a discovered pool is given is not read: somebody who followed the advice
    there would see it again, word by word."""
    if not draft.is_discovered:
        return "spec.accelerator"
    labels = ", ".join(f"{key}: {value}" for key, value in draft.spec.node_selector.items())
    selector = f"spec.nodeSelector {{{labels}}}" if labels else "a label to select its nodes by"
    return f"spec.accelerator of an AcceleratorPool of yours, with {selector}"


def _overruled(draft: Draft) -> str:
    """What labels say of nodes that a person says are something else: the person is believed."""
    row = draft.offer.accelerator
    if not draft.spec.accelerator or row is None:
        return ""
    told = [
        f"{member.node.name} is {each.accelerator.name}"
        for member in draft.members
        for each in member.node.offers
        if each.accelerator and each.accelerator.name != row.name
    ]
    return f", though by its labels {first_of(told, NAMED_AT_MOST)}" if told else ""


def _devices(draft: Draft) -> Iterator[Condition]:
    short = [
        f"{m.node.name} has {m.offer.count} of {m.offer.nominal_count}"
        for m in draft.members
        if m.offer.problem is None and m.offer.count < m.offer.nominal_count
    ]
    if short:
        named = first_of(short, NAMED_AT_MOST)
        text = f"{plural(len(short), 'node')} with fewer devices than built: {named}"
        yield condition(Type.DEVICES_HEALTHY, False, Reason.DEVICES_MISSING, text)


def _ready(draft: Draft, nodes: Sequence[Node]) -> Condition:
    bad_spec, taken = _told(draft, Type.ACCEPTED), _told(draft, Type.NODES_EXCLUSIVE)
    if bad_spec is not None:
        return condition(Type.READY, False, bad_spec.reason, bad_spec.message)
    barred = unusable_reason(draft)
    if barred is not None:
        return condition(Type.READY, False, *barred)
    if not nodes:
        growth = f"; it can grow to {draft.spec.max_nodes}" if draft.spec.max_nodes else ""
        if taken is not None:
            return condition(Type.READY, False, taken.reason, taken.message + growth)
        selector = ", ".join(f"{k}={v}" for k, v in draft.spec.node_selector.items())
        told = f"no node carries {selector}{growth}"
        return condition(Type.READY, False, Reason.NO_NODES, told)
    kept_off = [f"{node.name} {node.unusable_reason}" for node in nodes if node.unusable_reason]
    usable = len(nodes) - len(kept_off)
    text = f"{usable} of {plural(len(nodes), 'node')} can take work"
    text += f": {first_of(kept_off, NAMED_AT_MOST, '; ')}" if kept_off else ""
    reason = Reason.NODES_READY if usable else Reason.NO_USABLE_NODES
    return condition(Type.READY, usable > 0, reason, text)


def _told(draft: Draft, type_: str) -> Condition | None:
    """What its declaration is told of: only what is wrong."""
    return next((each for each in draft.conditions if each.type == type_), None)

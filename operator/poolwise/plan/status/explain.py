"""The story of a live object, in plain text, from its status alone (design.md, section 7).

::

    llama-70b runs on h100-ib (16 x H100-SXM5-80GB, dp2 tp8): 125 s (116-136) per step, ...
      bound by   Compute; 10 % more gives: Compute +7.1 %; time: Compute 74 %, ...
      based on   fitted on runs of this accelerator
      measured   131 s per step, 1.05x of the prediction (16 samples); step 1,200 of ...
      memory     61.0 of 79.0 GiB per accelerator: ...
      engine     at most 126 sequences of up to 8,192 tokens, 512 tokens a step, weights in fp8
      cost       $36,400 and 8.61 MWh in all; so far $1,320, 312 kWh, 48 accelerator-hours, at ...
      scarce     h100-ib: each accelerator-hour here delays the 3 workloads that wait by ...
      now        1 of 2 pods ready
      others     l40s-eth   impossible: needs 91.2 GiB per accelerator at the smallest shape, ...
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from poolwise.plan.conditions import Reason, Type, timestamp
from poolwise.plan.gateway import clients
from poolwise.plan.live import mixture
from poolwise.plan.observed import Object
from poolwise.plan.pool import CPU
from poolwise.plan.reading import Told, condition_of, mapping, number, objects
from poolwise.plan.status import figures
from poolwise.plan.status.costs import predicted_cost, so_far
from poolwise.plan.wording import duration, percent, plural, sentence

LABEL_WIDTH = 11
HEAD_LIMIT = 4096
"""Characters of the first line."""
_WARNING = {
    Type.PAUSED: "True",
    Type.SLO_MET: "False",
    Type.METRICS_AVAILABLE: "False",
    Type.SCALING_ACTIVE: "False",
    Type.AS_PLANNED: "False",
    Type.WITHIN_BUDGET: "False",
    Type.QUOTA_RESERVED: "Unknown",  # there is no Kueue; what Kueue says stands elsewhere
}
"""Conditions that a user should know of, with the status that says so."""
_FIRST = {"": "step", "TTFT ": "ttft", "E2E ": "e2e"}
"""The time of a candidate that is told: the first that is known, with its name for a service."""
OTHERS_SHOWN = 16
"""Candidates of a story; the rest is counted."""


def explain(resource: Object, now: datetime | None = None) -> str:
    """Where it runs or what it waits for, why, how fast, for how much, and why not elsewhere.

    ``now``: what it has cost is told up to this moment; else as the status has it.
    """
    status = resource.get("status") or {}
    told = mapping(status, "plan")
    details = [(label, text) for label, text in _details(status, told, now) if text]
    lines = [f"  {label:<{LABEL_WIDTH}}{text}" for label, text in details]
    return "\n".join([sentence(_head(resource, status, told), HEAD_LIMIT), *lines])


def _head(resource: Object, status: Told, told: Told) -> str:
    name = str(resource["metadata"]["name"])
    accepted, ready = condition_of(status, Type.ACCEPTED), condition_of(status, Type.READY)
    if not status:
        return f"{name} has no status yet. Is the operator running?"
    if accepted.get("status") == "False":
        return _ended(f"{name} is not accepted: {accepted.get('message')}")
    if not told.get("pool"):
        why = told.get("reason") or ready.get("message") or "nothing has been planned for it"
        return _ended(f"{name} runs nowhere: {why}")
    return f"{name} {_verb(status, told)} {_place(told)}: {_outlook(resource, told)}."


def _ended(text: str) -> str:
    """A sentence with its full stop; one that asks back ("did you mean h100?") has its mark."""
    return text if text.endswith(("?", ".")) else f"{text}."


def _verb(status: Told, told: Told) -> str:
    """What it does there, by the reason of ``Ready``."""
    ready = condition_of(status, Type.READY)
    match ready.get("reason"):
        case "Completed":
            return "has run on"
        case "Failed":
            return "has failed on"
        case "Suspended":
            return "is suspended, and would run on"
        case "PlanOnly":
            return "is only planned, and would run on"
        case "ScaledToZero":
            return "has no replica now, and runs on"
    if told.get("placed") is not True:
        return "waits for"
    return "runs on" if ready.get("status") == "True" else "is starting on"


def _place(told: Told) -> str:
    """``h100-ib (16 x H100-SXM5-80GB, dp2 tp8)``."""
    shape = mapping(told, "summary").get("shape")
    count, replicas = number(told, "count"), number(told, "replicas")
    accelerator = told.get("accelerator")
    devices = "" if accelerator in (CPU, None) or not count else f"{count:g} x {accelerator}"
    what = ", ".join(str(each) for each in (devices, shape) if each)
    if replicas is not None:
        what = f"{plural(round(replicas), 'replica')} of {what}"
    return f"{told.get('pool')} ({what})" if what else str(told.get("pool"))


def _outlook(resource: Object, told: Told) -> str:
    phrases = [figures.speed(told), _length(resource), *figures.cost(told)]
    text = ", ".join(filter(None, phrases))
    starts = told.get("expectedStartTime")
    if isinstance(starts, str) and told.get("placed") is not True:
        text = ", ".join(filter(None, (f"may start about {starts}", text)))
    if told.get("placed") is True or told.get("reasonCode") == Reason.PLAN_ONLY:
        return text or str(told.get("reason"))
    return ". There: ".join(filter(None, (_why_not_yet(told), text)))


def _why_not_yet(told: Told) -> str:
    """Its reason, without the opening that says again which pool it waits for."""
    reason = str(told.get("reason") or "").rstrip(".")
    opening, _, rest = reason.partition(f" in {told.get('pool')}: ")
    return rest if rest and opening.startswith("waits for ") else reason


def _length(resource: Object) -> str:
    """``2G tokens``, as the user wrote it."""
    training = mapping(resource, "spec", "training")
    written = ((word, training.get(word)) for word in ("tokens", "samples", "steps"))
    return next((f"{amount} {word}" for word, amount in written if amount), "")


def _details(status: Told, told: Told, now: datetime | None) -> Iterator[tuple[str, str]]:
    bound = told.get("bottleneck")
    why = [str(bound or ""), figures.gains(told), figures.shares(told)]
    yield "bound by", "; ".join(filter(None, why))
    yield "based on", figures.basis(told)
    yield "measured", _measured(status)
    yield "balance", figures.roofline(told)
    yield "memory", figures.memory(told)
    yield "engine", figures.engine(told)
    yield "cost", _cost(status, told, now)
    yield from _scarce(told)
    yield "why here", sentence(str(told.get("reason") or "")) if told.get("placed") else ""
    yield "replicas", _replicas(status)
    yield "pools", mixture.words(mapping(status, "scaling"))
    yield "gateway", clients.words(mapping(status, "scaling", "gateway"))
    yield "zero", sentence(str(condition_of(status, Type.SCALES_TO_ZERO).get("message") or ""))
    yield "now", _now(status, now)
    yield "beware", _warnings(status, told)
    yield from _others(told)


def _measured(status: Told) -> str:
    """What a run tells of itself: its step against the prediction, how far it is, what is safe.
    Of a service, its tokens against the prediction."""
    observed = mapping(status, "observed")
    run = mapping(observed, "training")
    step, samples = (number(run, name) for name in ("stepSeconds", "samples"))
    ratio, done = number(observed, "ratio"), number(run, "steps")
    of = number(run, "ofSteps")
    phrases = []
    if step is not None and samples:
        times = f", {ratio:.2f}x of the prediction" if ratio is not None else ""
        phrases.append(f"{duration(step)} per step{times} ({plural(round(samples), 'sample')})")
    elif ratio is not None and not run:
        phrases.append(f"a token takes {ratio:.2f}x the time predicted at the measured batch")
    if done is not None and of:
        phrases.append(f"step {done:,.0f} of {of:,.0f}, {percent(min(done / of, 1.0))}")
    saved, ends = run.get("lastCheckpointTime"), observed.get("expectedFinishTime")
    phrases += [f"last checkpoint at {saved}"] if isinstance(saved, str) else []
    phrases += [f"ends about {ends}"] if phrases and isinstance(ends, str) else []
    return "; ".join(phrases)


def _cost(status: Told, told: Told, now: datetime | None) -> str:
    """What it is predicted to cost and use, and what it has."""
    accrued = mapping(status, "observed", "accrued")
    phrases = [so_far(accrued, now)] if accrued else []
    if told.get("placed") is True or number(told, "totalSeconds") is not None:
        phrases.insert(0, predicted_cost(told))
    return "; ".join(filter(None, phrases))


def _scarce(told: Told) -> Iterator[tuple[str, str]]:
    """What the pools that others wait for cost them."""
    label = "scarce"
    for each in objects(told, "prices"):
        if each.get("pool"):
            yield label, f"{each['pool']}: {sentence(str(each.get('reason') or ''))}"
            label = ""


def _now(status: Told, now: datetime | None) -> str:
    """The state of the pods, and what keeps them back."""
    pods, ready = condition_of(status, Type.PODS_READY), condition_of(status, Type.READY)
    ends = [condition_of(status, type_) for type_ in (Type.COMPLETE, Type.FAILED)]
    ended = next((each for each in ends if each.get("status") == "True"), None)
    shown = ended or (pods if pods.get("reason") != "NoPods" else {})
    phrases = [sentence(str(shown.get("message") or ""))]
    finish = mapping(status, "observed").get("expectedFinishTime")
    if finish and ready.get("status") == "True":
        is_late = now is not None and str(finish) < timestamp(now)
        phrases.append(f"{'was to be done' if is_late else 'done'} about {finish}")
    return ", ".join(filter(None, phrases))


def _replicas(status: Told) -> str:
    """How many a service should have and why, and what holds that back."""
    scaling, active = mapping(status, "scaling"), condition_of(status, Type.SCALING_ACTIVE)
    if not scaling.get("reason"):
        return ""
    is_held = active.get("status") == "True" and active.get("reason") != Reason.FOLLOWS_LOAD
    phrases = [str(scaling["reason"]), str(active.get("message") or "") if is_held else ""]
    return sentence("; ".join(filter(None, phrases)))


def _warnings(status: Told, told: Told) -> str:
    """Whether it is paused, what users miss, what cannot be seen or set, what replicas do that
    the plan does not count on, and limits that do not hold, with the advice; each reason once, and
    none that the first line tells."""
    quiet = {Reason.NO_METRICS_PORT, *(() if told.get("pool") else (Reason.SLO_UNREACHABLE,))}
    found = [(condition_of(status, type_), warns) for type_, warns in _WARNING.items()]
    wrong = {
        each.get("reason"): sentence(str(each.get("message") or ""))
        for each, warns in reversed(found)
        if each.get("status") == warns and each.get("reason") not in quiet
    }
    return ". Also, ".join(reversed(wrong.values()))


def _others(told: Told) -> Iterator[tuple[str, str]]:
    others = [c for c in objects(told, "candidates") if not _is_the_one(c, told)]
    width = max((len(str(each.get("pool"))) for each in others), default=0)
    label = "others"
    for each in others[:OTHERS_SHOWN]:
        yield label, f"{each.get('pool')!s:<{width}}  {_candidate(each)}"
        label = ""
    more = len(others) - OTHERS_SHOWN + round(number(told, "candidatesOmitted") or 0)
    if more > 0:
        yield label, f"and {more} more"


def _is_the_one(candidate: Told, told: Told) -> bool:
    """Chosen, or awaited: told in the first line."""
    return candidate.get("chosen") is True or candidate.get("pool") == told.get("pool")


def _candidate(candidate: Told) -> str:
    """What it would give where that is known, and why it was not taken."""
    reason = sentence(str(candidate.get("reason") or ""))
    predicted = mapping(candidate, "predicted")
    known_times = (each for each in _FIRST.items() if f"{each[1]}Seconds" in predicted)
    name, first = next(known_times, ("", ""))
    time = f"{name}{figures.interval(predicted, first)}" if first else ""
    known = [each for each in figures.cost(candidate) if each.removesuffix("/h") not in reason]
    outlook = ", ".join(filter(None, (time, *known)))
    if candidate.get("feasible") is True:
        return ": ".join(filter(None, (outlook, reason)))
    if candidate.get("waits") is True:
        would = "have" if name else "take"
        return f"{reason}; would {would} {outlook}" if outlook else reason
    return f"impossible: {reason}"

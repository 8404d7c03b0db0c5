"""Phrases made from a told plan (``status.plan``): times, costs, memory, what would help.

They read the JSON and not the values behind it, since a story is told again long after the plan
was made. What is missing is left out; nothing raises on a status that somebody else wrote.
"""

from __future__ import annotations

from poolwise.model.work import Metric
from poolwise.plan.reading import Told, mapping, number, objects
from poolwise.plan.wording import (
    GIB,
    change,
    duration,
    measured,
    money,
    percent,
    plural,
    quantity,
    sentence,
    three_digits,
    time_unit,
)

_TAILS = {each.lower(): each.value for each in Metric}
_BASES = {
    "measured": "measured on this accelerator",
    "fitted": "fitted on runs of this accelerator",
    "inherited": "fitted on runs of other accelerators",
    "specification": "from data sheets: no published run to fit",
}
"""Provenances in words."""
_USES = ("weights", "gradients", "optimizer", "activations", "kvCache", "reserve")


def speed(told: Told) -> str:
    """``125 s per step (116-136), 67.1k tokens/s``, or the latencies and capacity of a replica."""
    predicted = mapping(told, "predicted")
    if number(predicted, "stepSeconds") is not None:
        phrases = [f"{interval(predicted, 'step')} per step", rate(predicted)]
    else:
        phrases = [*_tails(predicted), _capacity(predicted)]
    return ", ".join(filter(None, phrases))


def _tails(predicted: Told) -> list[str]:
    """Each latency once: the first token of an encoder's answer is its last."""
    is_one = number(predicted, "ttftSeconds") == number(predicted, "e2eSeconds")
    shown = {name: word for name, word in _TAILS.items() if not (is_one and name == "ttft")}
    told = ((word, interval(predicted, name)) for name, word in shown.items())
    return [f"{word} {text}" for word, text in told if text]


def interval(predicted: Told, name: str) -> str:
    """``125 s (116-136)``."""
    mid = number(predicted, f"{name}Seconds")
    if mid is None:
        return ""
    low, high = (number(predicted, f"{name}Seconds{end}") for end in ("Low", "High"))
    if low is None or high is None or low == high:
        return duration(mid)
    unit_seconds, unit = time_unit(mid)
    ends = f"{three_digits(low / unit_seconds)}-{three_digits(high / unit_seconds)}"
    return f"{three_digits(mid / unit_seconds)} {unit} ({ends})"


def rate(predicted: Told) -> str:
    """``67.1k tokens/s`` or ``820 samples/s``."""
    for name, unit in (("tokensPerSecond", "tokens/s"), ("samplesPerSecond", "samples/s")):
        value = number(predicted, name)
        if value is not None:
            return f"{quantity(value)} {unit}"
    return ""


def _capacity(predicted: Told) -> str:
    capacity = number(predicted, "requestsPerSecondPerReplica")
    if capacity is None:
        return ""
    limiting = predicted.get("limiting")
    stop = f" (limited by {limiting})" if isinstance(limiting, str) and limiting else ""
    ends = (number(predicted, f"requestsPerSecondPerReplica{end}") for end in ("Low", "High"))
    known = [three_digits(end) for end in ends if end is not None]
    span = f" ({'-'.join(known)})" if len(known) == 2 else ""
    return f"up to {three_digits(capacity)}{span} requests/s per replica{stop}"


def cost(told: Told) -> list[str]:
    """``83 h`` and ``$36,400``, or ``$20.60/h``."""
    currency = str(told.get("currency") or "USD")
    total, seconds = number(told, "totalCost"), number(told, "totalSeconds")
    hourly = number(told, "costPerHour")
    phrases = [duration(seconds)] if seconds is not None else []
    if total is not None:
        phrases.append(money(total, currency))
    elif hourly is not None:
        phrases.append(f"{money(hourly, currency)}/h")
    return phrases


def gains(told: Told) -> str:
    """``+10 % Compute gives +7.1 %, Interconnect +1.3 %``: the largest three."""
    values = {name: number(mapping(told, "gains"), name) or 0.0 for name in mapping(told, "gains")}
    largest = sorted(values.items(), key=lambda item: (-item[1], item[0]))[:3]
    phrases = [f"{name} {change(gain)}" for name, gain in largest if gain >= 0.0005]
    return f"10 % more gives: {', '.join(phrases)}" if phrases else ""


def shares(told: Told) -> str:
    """``Time: Compute 74 %, Interconnect 14 %, rest 12 %``: terms of 5 % and more, and the rest."""
    terms = objects(told, "ledger")
    seconds = {str(each.get("term")): number(each, "seconds") or 0.0 for each in terms}
    total = sum(seconds.values())
    if total <= 0:
        return ""
    ordered = sorted(seconds.items(), key=lambda item: (-item[1], item[0]))
    large = [(name, value / total) for name, value in ordered if value >= 0.05 * total]
    rest = 1 - sum(share for _, share in large)
    phrases = [f"{name} {percent(share)}" for name, share in large]
    return "time: " + ", ".join([*phrases, *([f"rest {percent(rest)}"] if rest >= 0.005 else [])])


def memory(told: Told) -> str:
    """``61.0, at most 64.6, of 79.0 GiB per accelerator: weights 17.0, ...``, largest first."""
    uses = mapping(told, "memory")
    needed, usable = number(uses, "neededBytes"), number(uses, "usableBytes")
    if needed is None or usable is None:
        return ""
    most = number(uses, "mostBytes")
    bound = f", at most {most / GIB:.1f}," if most else ""
    sizes = {use: number(uses, f"{use}Bytes") or 0.0 for use in _USES}
    largest = sorted(sizes.items(), key=lambda item: -item[1])
    shown = [(use, size) for use, size in largest if size >= 0.05 * GIB]
    listed = ", ".join(f"{_spaced(use)} {size / GIB:.1f}" for use, size in shown)
    per = "replica" if told.get("accelerator") == "CPU" else "accelerator"
    whole = f"{needed / GIB:.1f}{bound} of {usable / GIB:.1f} GiB per {per}"
    return f"{whole}: {listed}" if listed else whole


def engine(told: Told) -> str:
    """``at most 126 sequences of up to 8,192 tokens, 512 tokens a step, weights in fp8``: what the
    engine of a service is told to do at once, so that targets hold and the cache fits."""
    shape = mapping(told, "shape")
    names = ("maxNumSeqs", "maxModelLength", "maxBatchedTokens")
    sequences, longest, step = (number(shape, name) for name in names)
    if sequences is None or longest is None or step is None:
        return ""
    at_once = f"at most {plural(round(sequences), 'sequence')}"
    weights = f", weights in {shape['weightFormat']}" if shape.get("weightFormat") else ""
    return (
        f"{at_once} of up to {plural(round(longest), 'token')}, "
        f"{plural(round(step), 'token')} a step{weights}"
    )


def roofline(told: Told) -> str:
    """Arithmetic intensity against the ridge point, and the side that it is on."""
    intensity, ridge = number(told, "arithmeticIntensity"), number(told, "ridgePoint")
    if intensity is None or not ridge:
        return ""
    side = "compute" if intensity >= ridge else "memory bandwidth"
    return (
        f"{three_digits(intensity)} FLOP per byte, the ridge is at {three_digits(ridge)}: "
        f"on the side of {side}"
    )


def basis(told: Told) -> str:
    """What stands behind the times: ``fitted on runs of this accelerator; measured here: ...``."""
    phrases = [_BASES.get(str(told.get("provenance")), ""), _corrections(told)]
    doubt = told.get("lowConfidence")
    if isinstance(doubt, str) and doubt:
        phrases.append(f"low confidence: {sentence(doubt)}")
    return "; ".join(filter(None, phrases))


def measurements(told: Told) -> str:
    """``measured 1.12x of the model on h100, 16 samples``, of each phase that was."""
    of_phase, pool = mapping(told, "correctedFrom"), str(told.get("pool", "its pool"))
    phrases = []
    for phase in sorted(of_phase):
        ratio, count = (number(mapping(of_phase, phase), name) for name in ("ratio", "samples"))
        if ratio is not None and count:
            where = None if mapping(of_phase, phase).get("elsewhere") is True else pool
            phrases.append(measured(phase, ratio, round(count), where))
    return "; ".join(phrases)


def _corrections(told: Told) -> str:
    factors = mapping(told, "correctedBy")
    known = {name: number(factors, name) for name in sorted(factors)}
    phrases = [f"{name} {change(value - 1)}" for name, value in known.items() if value is not None]
    if not phrases:
        return ""
    found = measurements(told)
    source = f" ({found})" if found else ""
    return f"corrected by what was measured: {', '.join(phrases)}{source}"


def _spaced(use: str) -> str:
    return "key-value cache" if use == "kvCache" else use

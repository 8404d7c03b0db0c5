"""From the spec of an InferenceService to the work it is and the limits it sets."""

from __future__ import annotations

import math

from poolwise.api.inferenceservice import InferenceServiceSpec
from poolwise.api.service import TokenLengths
from poolwise.errors import InvalidInput
from poolwise.model.shapes import Custom, Model
from poolwise.model.work import Metric, ServingWork, Target, Tokens
from poolwise.plan.learning import is_undescribed
from poolwise.plan.requests.engine_arguments import FIELD, EngineArguments, read_arguments
from poolwise.plan.requests.experts import read_sizes
from poolwise.plan.requests.model import beyond_context, read_model
from poolwise.plan.requests.request import FixedReplica, Goal, PodResources, ServingRequest, Where
from poolwise.settings import Settings
from poolwise.tables import Tables

ONE = Tokens(1.0, 1.0)
NO_TOKENS = Tokens(0.0, 0.0)
RATE = "Throughput"
"""The class of traffic of which only the rate counts: its targets are measured and told, and no
replica is added, sized or laid out for them."""


def read_service(
    spec: InferenceServiceSpec,
    tables: Tables,
    settings: Settings,
    where: Where,
    pod: PodResources,
) -> ServingRequest:
    """The request of one service. Raises InvalidInput."""
    model = read_model(spec.model, tables)
    if is_undescribed(model):
        raise InvalidInput(
            "spec.model.custom.forwardFlopsPerSample",
            "is required for a service, whose targets are met by prediction",
        )
    row = tables.model(spec.model.preset or "")
    scaling, arguments = spec.scaling, (*spec.run.args, *spec.engine.args)
    told = read_arguments(arguments, spec.engine.type)
    if scaling.min_replicas > scaling.max_replicas:
        raise InvalidInput(
            "spec.scaling.minReplicas",
            f"must be at most maxReplicas ({scaling.max_replicas}), is {scaling.min_replicas}",
        )
    return ServingRequest(
        work=_work(spec, model, settings, told),
        fixed=_fixed(spec, model, told),
        where=where,
        least_replicas=scaling.min_replicas,
        most_replicas=scaling.max_replicas,
        redundancy=scaling.redundancy,
        given_replicas=_given(spec),
        goal=Goal(spec.objective.goal),
        max_cost_per_hour=spec.objective.max_cost_per_hour,
        has_image=bool(spec.run.image or spec.engine.image),
        hub_id=row.hf_id if row else None,
        pod=pod,
        arguments=arguments,
    )


def _given(spec: InferenceServiceSpec) -> int | None:
    """What somebody else sets, as far as the spec allows: to refuse a number that HPA or KEDA
    writes would leave them with the one before, which may be further off."""
    scaling = spec.scaling
    return None if scaling.mode == "Direct" else min(spec.replicas, scaling.max_replicas)


def _work(
    spec: InferenceServiceSpec, model: Model, settings: Settings, told: EngineArguments
) -> ServingWork:
    traffic = spec.traffic
    longest = _max_model_tokens(spec, model, told)
    targets, is_rate_all = _targets(spec, model), spec.traffic_class == RATE
    inputs, outputs = _lengths(spec, model, settings, longest or model.max_context_tokens)
    return ServingWork(
        model=model,
        requests_per_second=traffic.requests_per_second,
        input_tokens=inputs,
        output_tokens=outputs,
        prefix_hit_fraction=_prefix_hit_fraction(spec, model),
        max_model_tokens=longest,
        targets=() if is_rate_all else targets,
        reported=targets if is_rate_all else (),
        engine=spec.engine.type,
        memory_fraction=told.memory_fraction,
    )


def _prefix_hit_fraction(spec: InferenceServiceSpec, model: Model) -> float:
    """Tokens of who only reads attend to those that follow: no two texts have a start in common."""
    return spec.traffic.prefix_hit_percent / 100 if model.generates else 0.0


def _targets(spec: InferenceServiceSpec, model: Model) -> tuple[Target, ...]:
    if not spec.slo and spec.traffic_class != RATE:
        raise InvalidInput("spec.slo", "must have a target unless trafficClass is Throughput")
    for index, target in enumerate(spec.slo):
        if target.metric != "E2E" and not model.generates:
            raise InvalidInput(
                f"spec.slo[{index}].metric",
                f"must be E2E, since {model.name} does not generate tokens, is {target.metric}",
            )
    return tuple(
        Target(Metric(target.metric), target.percentile, target.target) for target in spec.slo
    )


def _max_model_tokens(
    spec: InferenceServiceSpec, model: Model, told: EngineArguments
) -> int | None:
    own, given = model.max_context_tokens, told.max_model_tokens or spec.model.max_model_length
    if given is not None and own is not None and given > own:
        raise InvalidInput(
            FIELD if told.max_model_tokens else "spec.model.maxModelLength",
            f"must be at most the {own} tokens of {model.name}, is {given}{beyond_context(model)}",
        )
    return given


def _lengths(
    spec: InferenceServiceSpec, model: Model, settings: Settings, longest: int | None
) -> tuple[Tokens, Tokens]:
    """Lengths of prompts and answers: as given, else those of a public trace, cut to fit.

    An encoder reads its prompt and writes no token, one of images reads all of its patches,
    whatever the spec says.
    """
    if isinstance(model.shape, Custom):
        return ONE, ONE
    if model.shape.reads_images and model.max_context_tokens:
        patches = float(model.max_context_tokens)
        return Tokens(patches, patches), NO_TOKENS
    inputs = _tokens(spec.traffic.input_tokens)
    outputs = _tokens(spec.traffic.output_tokens) if model.generates else NO_TOKENS
    told = (inputs.p95 if inputs else 0.0) + (outputs.p95 if outputs else 0.0)
    if longest is not None and told > max(longest, 1):
        raise InvalidInput(
            "spec.traffic",
            f"prompt and answer together are {told:.0f} tokens long at the 95th percentile,"
            f" more than the {longest} that {model.name} is to serve"
            f"{beyond_context(model) if longest == model.max_context_tokens else ''}",
        )
    untold = [
        Tokens(*default)
        for default, known in (
            (settings.default_input_tokens, inputs),
            (settings.default_output_tokens, outputs),
        )
        if known is None
    ]
    room = math.inf if longest is None else longest - told
    share = min(1.0, room / sum(each.p95 for each in untold)) if untold else 1.0
    cut = [_scaled(each, share) for each in untold]
    return inputs or cut[0], outputs or cut[-1]


def _tokens(given: TokenLengths | None) -> Tokens | None:
    if given is None:
        return None
    if given.p50 > given.p95:
        raise InvalidInput(
            "spec.traffic", f"p95 must be at least p50 ({given.p50}), is {given.p95}"
        )
    return Tokens(given.p50, given.p95)


def _scaled(tokens: Tokens, share: float) -> Tokens:
    return Tokens(max(1.0, tokens.p50 * share), max(1.0, tokens.p95 * share))


def _fixed(spec: InferenceServiceSpec, model: Model, told: EngineArguments) -> FixedReplica:
    by_flag = {"tensor": told.tensor, "pipeline": told.pipeline}
    update = {what: size for what, size in by_flag.items() if size is not None}
    sizes = read_sizes(spec.parallelism.model_copy(update=update), model, spec.engine.type)
    per_replica = spec.accelerators.per_replica
    given = (sizes.tensor or 1) * (sizes.pipeline or 1)
    whole = sizes.tensor is not None and sizes.pipeline is not None
    if per_replica is not None and (per_replica % given or (whole and per_replica != given)):
        raise InvalidInput(
            FIELD if update else "spec.parallelism",
            f"tensor x pipeline must be accelerators.perReplica ({per_replica}), is {given}",
        )
    return FixedReplica(
        per_replica,
        sizes.tensor,
        sizes.pipeline,
        sizes.expert,
        told.quantization or spec.model.quantization,
        told.kv_format,
        told.max_num_seqs,
        told.max_batched_tokens,
    )

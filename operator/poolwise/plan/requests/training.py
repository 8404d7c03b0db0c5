"""From the spec of a TrainingJob to the work it is and the limits it sets."""

from __future__ import annotations

from datetime import UTC, datetime

from poolwise.api.accelerators import TrainingAccelerators
from poolwise.api.training import Training
from poolwise.api.trainingjob import TrainingJobSpec
from poolwise.errors import InvalidInput
from poolwise.model.shapes import Custom, Model
from poolwise.model.work import Execution, Method, Optimizer, Recompute, TrainingWork
from poolwise.plan.requests.model import beyond_context, read_model
from poolwise.plan.requests.parts import SIZES, check_parts
from poolwise.plan.requests.request import FixedLayout, Goal, PodResources, TrainingRequest, Where
from poolwise.tables import Tables


def read_training(
    spec: TrainingJobSpec, tables: Tables, where: Where, pod: PodResources
) -> TrainingRequest:
    """The request of one run. Raises InvalidInput."""
    work = _work(spec, read_model(spec.model, tables))
    fixed = _fixed(spec.training)
    least, most = _counts(spec.accelerators)
    _check_sizes(spec, fixed, least, most)
    check_parts(work.model, fixed)
    return TrainingRequest(
        work=work,
        fixed=fixed,
        least=least,
        most=most,
        where=where,
        goal=Goal(spec.objective.goal),
        deadline=with_zone(spec.objective.deadline),
        max_cost=spec.objective.max_cost,
        pod=pod,
    )


def with_zone(moment: datetime | None) -> datetime | None:
    """The moment in UTC where it names no zone, so that all can be compared."""
    if moment is None or moment.tzinfo is not None:
        return moment
    return moment.replace(tzinfo=UTC)


def _work(spec: TrainingJobSpec, model: Model) -> TrainingWork:
    training = spec.training
    sequence = _sequence_tokens(training, model)
    return TrainingWork(
        model=model,
        global_batch_samples=training.global_batch_size,
        sequence_tokens=sequence,
        precision=training.precision,
        optimizer=Optimizer(training.optimizer),
        method=Method(training.method),
        lora_rank=training.lora_rank,
        execution=Execution(training.execution),
        steps=_steps(training, sequence),
        bytes_per_sample=spec.data.bytes_per_sample,
        cpu_seconds_per_sample=spec.data.cpu_time_per_sample,
        checkpoint_interval_seconds=spec.checkpoint.interval if spec.checkpoint else None,
    )


def _sequence_tokens(training: Training, model: Model) -> int | None:
    """Tokens of a sample: as given; an encoder of images has its own, a custom model none."""
    where, given = "spec.training.sequenceLength", training.sequence_length
    if given is None:
        if isinstance(model.shape, Custom):
            return None
        if model.shape.is_decoder or model.max_context_tokens is None:
            raise InvalidInput(where, f"is required for {model.name}, whose samples are tokens")
        return model.max_context_tokens
    if model.max_context_tokens is not None and given > model.max_context_tokens:
        raise InvalidInput(
            where,
            f"must be at most the {model.max_context_tokens} tokens of {model.name}, is {given}"
            f"{beyond_context(model)}",
        )
    return given


def _steps(training: Training, sequence_tokens: int | None) -> float:
    """Length of the run in optimizer steps: one at least, for no run stops inside its first."""
    return max(_given_steps(training, sequence_tokens), 1.0)


def _given_steps(training: Training, sequence_tokens: int | None) -> float:
    lengths = (training.tokens, training.samples, training.steps)
    given = sum(length is not None for length in lengths)
    if given != 1:
        raise InvalidInput(
            "spec.training", f"must have exactly one of tokens, samples and steps, has {given}"
        )
    if training.steps is not None:
        return training.steps
    if training.samples is not None:
        return training.samples / training.global_batch_size
    if sequence_tokens is None:
        raise InvalidInput(
            "spec.training.tokens", "needs sequenceLength; without it, give samples or steps"
        )
    return (training.tokens or 0.0) / (training.global_batch_size * sequence_tokens)


def _fixed(training: Training) -> FixedLayout:
    sizes = training.parallelism
    return FixedLayout(
        data=sizes.data,
        tensor=sizes.tensor,
        pipeline=sizes.pipeline,
        expert=sizes.expert,
        context=sizes.context,
        zero_stage=sizes.zero_stage,
        micro_batch_size=training.micro_batch_size,
        recompute=None if training.recompute == "Auto" else Recompute(training.recompute),
    )


def _counts(accelerators: TrainingAccelerators) -> tuple[int, int]:
    given = (accelerators.count, accelerators.min, accelerators.max)
    if given[0] is not None and given[1:] == (None, None):
        return given[0], given[0]
    least, most = given[1:]
    if given[0] is not None or least is None or most is None:
        raise InvalidInput("spec.accelerators", "must have either count, or both min and max")
    if least > most:
        raise InvalidInput("spec.accelerators.min", f"must be at most max ({most}), is {least}")
    return least, most


def _check_sizes(spec: TrainingJobSpec, fixed: FixedLayout, least: int, most: int) -> None:
    """What the given parallel sizes multiply to must be a number of accelerators."""
    batch = spec.training.global_batch_size
    sizes = (fixed.data, fixed.tensor, fixed.pipeline, fixed.context)
    product = 1
    for size in sizes:
        product *= size or 1
    if None not in sizes and not least <= product <= most:
        allowed = str(most) if least == most else f"from {least} to {most}"
        raise InvalidInput(
            SIZES,
            f"data x tensor x pipeline x context must be the number of accelerators ({allowed}),"
            f" is {product}",
        )
    if product > most or (least == most and most % product):
        raise InvalidInput(
            SIZES, f"the given sizes multiply to {product}, which does not divide {most}"
        )
    if fixed.data is not None and batch % fixed.data:
        raise InvalidInput(
            f"{SIZES}.data", f"must divide globalBatchSize ({batch}), is {fixed.data}"
        )
    if fixed.data is not None and fixed.expert is not None and fixed.data % fixed.expert:
        raise InvalidInput(f"{SIZES}.expert", f"must divide data ({fixed.data}), is {fixed.expert}")
    if fixed.micro_batch_size is not None and batch % fixed.micro_batch_size:
        raise InvalidInput(
            "spec.training.microBatchSize",
            f"must divide globalBatchSize ({batch}), is {fixed.micro_batch_size}",
        )

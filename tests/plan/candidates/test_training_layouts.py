"""Layouts divide what they must, keep what was fixed, fit the memory, and are fast."""

import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolwise.model.hardware import Resource
from poolwise.model.shapes import Custom, Model
from poolwise.model.training.memory import peak_bytes, training_memory
from poolwise.model.training.shard import shard
from poolwise.model.training.step import step_seconds
from poolwise.model.work import Method, Recompute, TrainingLayout, TrainingWork
from poolwise.plan.candidates.training.divisions import divisions_of, divisors, micro_batches
from poolwise.plan.candidates.training.layouts import (
    CLEARLY_FASTER,
    NoTrainingShape,
    TrainingSearch,
    TrainingShape,
)
from poolwise.plan.candidates.training.needs import Needs, with_batch
from poolwise.plan.memo import Page
from poolwise.plan.requests.request import FixedLayout
from tests.plan.machines import CALIBRATION, machine, model

H100 = machine("H100-SXM5-80GB")
L40S = machine("L40S", per_node=4, network_bytes_per_second=12.5e9)
FREE = FixedLayout()
MODELS = [
    "llama-3.1-8b",
    "llama-3.1-70b",
    "llama-3.1-405b",
    "mixtral-8x7b",
    "deepseek-v3",
    "falcon-7b",
]


def work(name="llama-3.1-70b", batch=512, sequence=2048, **more):
    return TrainingWork(model(name), batch, sequence, "bf16", steps=1000, **more)


def search(of=None, on=H100, fixed=FREE):
    return TrainingSearch(of or work(), fixed, on, CALIBRATION)


def surely_fits(memory):
    return peak_bytes(memory).high <= memory.usable_bytes


def layouts(count, of=None, fixed=FREE, on=H100):
    return list(divisions_of(count, of or work(), fixed, on.interconnect))


def test_state_is_sharded_as_far_as_it_helps():
    """Gradients of adapters are next to nothing; a pipeline would gather for each micro-batch."""
    for method, alone in ((Method.FULL, {1, 2, 3}), (Method.LORA, {1, 3})):
        found = layouts(16, work("llama-3.1-8b", method=method))
        for is_cut, stages in ((False, alone), (True, {1})):
            mine = {e.zero_stage for e in found if e.data > 1 and (e.pipeline > 1) == is_cut}
            assert mine == stages


def test_groups_that_share_tensors_end_where_nodes_end():
    """12 heads divide by 3, 6 and 12 too, but groups of 3 would straddle nodes of 8. Where links
    reach beyond nodes of 4, a group may take several whole ones."""
    assert {each.tensor for each in layouts(24, work("bert-base", 24, 512))} == {1, 2, 4}
    rack = replace(L40S, interconnect=replace(L40S.interconnect, domain_accelerators=72))
    assert {each.tensor for each in layouts(16, on=rack)} == {1, 2, 4, 8, 16}


@given(
    st.sampled_from(MODELS),
    st.integers(1, 300),
    st.sampled_from([1, 96, 512, 1024]),
    st.sampled_from([H100, L40S]),
)
def test_every_division_divides(name, count, batch, on):
    of = work(name, batch)
    shape = of.model.shape
    for layout in layouts(count, of, on=on):
        assert layout.count == count
        assert shape.heads % layout.tensor == 0
        assert layout.tensor <= on.interconnect.domain_accelerators
        assert batch % layout.data == 0
        assert layout.data % layout.expert == 0
        assert layout.expert == 1 or shape.experts.count % layout.expert == 0
        assert layout.pipeline <= shape.layers
        assert layout.zero_stage < 2 or layout.pipeline == 1


def test_divisors():
    assert divisors(12) == (1, 2, 3, 4, 6, 12)
    assert divisors(1) == (1,)


@pytest.mark.parametrize(
    ("fixed", "expected"),
    [
        pytest.param({"tensor": 4}, {4}, id="tensor"),
        pytest.param({"pipeline": 16}, {16}, id="pipeline"),
        pytest.param({"data": 8}, {8}, id="data"),
        pytest.param({"context": 2}, {2}, id="context, though the sequence is short"),
        pytest.param({"zero_stage": 3}, {3}, id="ZeRO stage"),
    ],
)
def test_what_is_fixed_is_kept(fixed, expected):
    found = layouts(64, fixed=FixedLayout(**fixed))
    assert {getattr(layout, *fixed) for layout in found} == expected


def test_fixed_micro_batch_and_recomputation_are_kept():
    fixed = FixedLayout(micro_batch_size=2, recompute=Recompute.FULL)
    layout = search(fixed=fixed).best(64).layout
    assert (layout.micro_batch_size, layout.recompute) == (2, Recompute.FULL)


def test_tensor_parallelism_stays_inside_a_node():
    assert max(layout.tensor for layout in layouts(64, on=L40S)) == 4
    assert not layouts(64, fixed=FixedLayout(tensor=8), on=L40S)


def test_uneven_stages_where_layers_are_odd():
    """Llama 3 405B ran 126 layers in 16 stages (arXiv 2407.21783)."""
    assert 16 in {layout.pipeline for layout in layouts(1024, work("llama-3.1-405b"))}


@pytest.mark.parametrize(("sequence", "most"), [(8192, 1), (131_072, 16)])
def test_context_parallelism_only_for_long_sequences(sequence, most):
    found = layouts(256, work("llama-3.1-8b", sequence=sequence))
    assert max(layout.context for layout in found) == most


@pytest.mark.parametrize("name", ["mpt-1b", "llama-3.1-8b", "falcon-7b"])
def test_a_faster_network_never_slows_a_run_down_much(name):
    """A pipeline that idles at its largest micro-batch may be the fastest at a smaller one."""
    of = work(name, batch=256)
    seconds = []
    for network_bytes_per_second in (1e9, 3e9, 5e9, 6e9, 8e9, 12.5e9, 50e9):
        on = machine("H100-SXM5-80GB", network_bytes_per_second=network_bytes_per_second)
        seconds.append(search(of, on).best(16).prediction.step_seconds.mid)
    for slower, faster in itertools.pairwise(seconds):
        assert faster <= slower / CLEARLY_FASTER


def test_chosen_layout_fits_and_none_of_its_neighbours_is_faster():
    of, on = work(), H100
    shape = search(of).best(64)
    assert isinstance(shape, TrainingShape)
    assert surely_fits(shape.prediction.memory)
    for sizes in layouts(64, of):
        for recompute in Recompute:
            other = replace(sizes, recompute=recompute)
            if surely_fits(training_memory(of, other, on)):
                seconds = step_seconds(of, other, on, CALIBRATION)
                assert seconds >= shape.prediction.step_seconds.mid * 0.99


@pytest.mark.parametrize("name", ["llama-3.1-8b", "mixtral-8x7b"])
def test_what_a_search_remembers_changes_no_time(name):
    """Stages of ZeRO that differ only in what is sent and kept share what a device does alone."""
    of, one = work(name), search(work(name))
    for layout in layouts(16, of):
        for recompute in Recompute:
            each = replace(layout, recompute=recompute)
            assert one.step_seconds(each) == step_seconds(of, each, H100, CALIBRATION)


def test_no_layout_tells_the_least_memory():
    found = search(on=L40S).best(8)
    assert isinstance(found, NoTrainingShape)
    assert found.smallest is not None
    assert found.smallest.memory.needed_bytes > found.smallest.memory.usable_bytes
    for layout in layouts(8, on=L40S):
        least = replace(layout, recompute=Recompute.FULL)
        need = training_memory(work(), least, L40S).needed_bytes
        assert need >= found.smallest.memory.needed_bytes


@pytest.mark.parametrize(
    ("of", "fixed", "says"),
    [
        pytest.param(
            TrainingWork(Model("custom", Custom(25e6, 25e6, 4e9, 9e7)), 512, None, "bf16"),
            FREE,
            "512 samples does not divide over 12 accelerators",
            id="batch",
        ),
        pytest.param(
            work(),
            FixedLayout(data=6, tensor=4),
            "the given data 6, tensor 4 cannot be laid over its accelerators: 12 of them",
            id="given sizes",
        ),
    ],
)
def test_what_does_not_divide_is_named(of, fixed, says):
    found = search(of, fixed=fixed).best(12)
    assert isinstance(found, NoTrainingShape)
    assert says in found.problem


def test_more_memory_buys_less_recomputation():
    """The layouts are chosen anew under more memory, which is what its elasticity measures."""
    of = work("llama-3.1-8b", batch=256, sequence=8192)
    chosen = search(of).best(8)
    more = search(of, on=H100.with_more(Resource.MEMORY_CAPACITY, 2.0))
    assert search(of).rechosen(chosen.layout) == pytest.approx(
        chosen.prediction.step_seconds.mid, rel=0.01
    )
    assert more.rechosen(chosen.layout) <= chosen.prediction.step_seconds.mid


def test_one_accelerator_shards_nothing():
    layout = search(work("llama-3.2-1b")).best(1).layout
    assert replace(layout, micro_batch_size=1, recompute=Recompute.NONE) == TrainingLayout(
        zero_stage=0
    )


def test_a_layout_that_fits_with_luck_alone_is_none():
    """The gate is the upper end of the range of the peak."""
    fixed = FixedLayout(micro_batch_size=1, recompute=Recompute.NONE)
    sizes = TrainingLayout(8, 8)
    needs = Needs(work(), fixed, sizes, H100, shard(work(), sizes))
    peak = peak_bytes(training_memory(work(), sizes, H100))
    assert needs.fitting(peak.high) == [sizes]
    assert not needs.fitting(peak.mid)
    assert not needs.fitting(peak.high * 0.999)


@pytest.mark.parametrize("name", ["llama-3.1-8b", "mixtral-8x7b", "deepseek-v3"])
@pytest.mark.parametrize("count", [1, 4, 8, 32])
def test_what_a_search_on_one_accelerator_leaves_for_others_changes_no_answer(name, count):
    """What fits and what there is to do is counted once for all of them."""
    of, shared = work(name), Page()
    names = ("H100-SXM5-80GB", "A100-SXM4-80GB", "A100-SXM4-40GB", "B200-SXM-180GB", "L4", "MI300X")
    for on in map(machine, names):
        beside = TrainingSearch(of, FREE, on, CALIBRATION, shared)
        assert beside.best(count) == search(of, on).best(count)
        assert beside.has_room_on(count) == search(of, on).has_room_on(count)


@pytest.mark.parametrize("name", ["llama-3.1-405b", "mixtral-8x7b"])
def test_where_nothing_fits_the_layout_that_needs_least_is_told(name):
    of, on = work(name), machine("L4")
    found = search(of, on).best(8)
    assert isinstance(found, NoTrainingShape)
    assert found.smallest is not None
    needed = [
        training_memory(of, with_batch(sizes, Recompute.FULL, size), on).needed_bytes
        for sizes in layouts(8, of, on=on)
        for size in micro_batches(of, FREE, sizes)
    ]
    assert found.smallest.memory.needed_bytes == min(needed)


def fits(of, layout, usable_bytes):
    return peak_bytes(training_memory(of, layout, H100)).high <= usable_bytes


@pytest.mark.parametrize("batch", [2, 4, 8, 32])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_the_whole_batch_at_once_may_fit_where_parts_of_it_do_not(batch, count):
    """It adds no gradients up in fp32: 8B on 2 H100 under ZeRO-2 has room for a batch of 4 so, and
    was said to have none. Held against every size there is."""
    of, usable_bytes = work("llama-3.1-8b", batch=batch), 79e9
    for sizes in layouts(count, of):
        found = Needs(of, FREE, sizes, H100, shard(of, sizes)).fitting(usable_bytes)
        fitting = [
            size
            for size in micro_batches(of, FREE, sizes)
            if fits(of, with_batch(sizes, Recompute.FULL, size), usable_bytes)
        ]
        largest = max((each.micro_batch_size for each in found), default=0)
        assert largest == max(fitting, default=0), sizes
        assert all(fits(of, each, usable_bytes) for each in found)


@pytest.mark.parametrize("gigabytes", [10, 20, 40, 80, 160, 320])
@pytest.mark.parametrize("name", ["llama-3.1-8b", "mixtral-8x7b"])
def test_batches_that_fit_are_the_largest_and_recompute_no_more_than_they_must(name, gigabytes):
    of = work(name, batch=64)
    for sizes in layouts(16, of):
        fitting = Needs(of, FREE, sizes, H100, shard(of, sizes)).fitting(gigabytes * 1e9)
        assert len({each.micro_batch_size for each in fitting}) == len(fitting)
        for each in fitting:
            assert peak_bytes(training_memory(of, each, H100)).high <= gigabytes * 1e9
            more = replace(each, micro_batch_size=2 * each.micro_batch_size)
            accumulates = more.data * more.micro_batch_size < 64 and each.pipeline == 1
            if accumulates and (64 // each.data) % more.micro_batch_size == 0:
                assert peak_bytes(training_memory(of, more, H100)).high > gigabytes * 1e9


def test_nobody_knows_how_the_sequences_of_a_custom_model_divide():
    """What is told of it are counts of a whole sample; its length only says how long the run is."""
    model = Model("custom", Custom(25e6, 25e6, 4e9, 9e7))
    long = TrainingWork(model, 1, 65_536, "bf16")
    assert [layout.count for layout in layouts(1, long)] == [1]
    assert isinstance(search(long).fastest(4), NoTrainingShape)

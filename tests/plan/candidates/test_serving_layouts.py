"""Replicas start, keep what was fixed, and take only formats that the device computes in."""

import math
from dataclasses import replace

import pytest

from poolwise.model.hardware import Host, Interconnect, Machine
from poolwise.model.serving.latency import latencies
from poolwise.model.serving.load import state
from poolwise.model.serving.memory import kv_tokens, request_cache_bytes, serving_memory
from poolwise.model.serving.replica import replica
from poolwise.model.shapes import Custom, Model
from poolwise.model.work import Metric, ServingWork, Target, Tokens
from poolwise.plan.candidates.reasons import Verdict
from poolwise.plan.candidates.serving.layouts import (
    NoReplicaShape,
    ServingSearch,
    bounded,
    needed_tokens,
    weight_format,
)
from poolwise.plan.candidates.serving.sizes import Node
from poolwise.plan.nodes.machines import cpu_device
from poolwise.plan.records.shape import serving_layout, shape
from poolwise.plan.requests.request import FixedReplica
from tests.plan.machines import CALIBRATION, TABLES, machine, model

H100 = machine("H100-SXM5-80GB")
L4 = machine("L4", per_node=4)
EIGHT = Node(accelerators=8, cores=96, memory_bytes=1e12)


def work(name="llama-3.1-8b", longest=8192, itl_seconds=0.08):
    return ServingWork(
        model(name),
        requests_per_second=None,
        input_tokens=Tokens(300, 1200),
        output_tokens=Tokens(350, 900),
        prefix_hit_fraction=0.0,
        max_model_tokens=longest,
        targets=(Target(Metric.TTFT, 99, 2.0), Target(Metric.ITL, 99, itl_seconds)),
    )


def search(of=None, on=H100, node=EIGHT, may_pipeline=True, **fixed):
    return ServingSearch(of or work(), FixedReplica(**fixed), on, node, CALIBRATION, may_pipeline)


def layouts(*given, **more):
    found = search(*given, **more).layouts()
    assert not isinstance(found, NoReplicaShape), found
    return found


def refusal(*given, **more):
    found = search(*given, **more).layouts()
    assert isinstance(found, NoReplicaShape)
    return found


def tensors(*given, **more):
    return [layout.tensor for layout in layouts(*given, **more)]


def test_sizes_are_powers_of_two_within_a_node():
    assert tensors() == [1, 2, 4, 8]
    assert tensors(node=replace(EIGHT, accelerators=6)) == [1, 2, 4]


def test_only_sizes_that_start_are_left():
    """141 GB of weights do not fit one device of 80 GB, and just fit two."""
    assert min(tensors(work("llama-3.1-70b"))) == 2
    for layout in layouts(work("llama-3.1-70b")):
        assert serving_memory(work("llama-3.1-70b"), layout, H100, CALIBRATION).fits


def test_a_replica_that_starts_only_with_luck_is_none():
    """Published: 671 G parameters in 689 GB of files; four B200 give 688 GB at 0.9 of theirs."""
    assert tensors(work("deepseek-v3", longest=None), on=machine("B200-SXM")) == [8]
    assert tensors(work("deepseek-v3", longest=None), on=machine("H200-SXM-141GB")) == [8]


def test_items_with_large_activations_start_with_a_small_batch():
    """Whisper: 3.1 GB of weights, and 0.75 GB alive for each of at most 1,024 items."""
    for name in ("whisper-large-v3", "sdxl", "flux.1-schnell"):
        on = machine("H200-SXM-141GB")
        (layout,) = layouts(work(name, longest=None), on=on)
        assert 1 <= layout.max_num_seqs < 1024
        assert serving_memory(work(name), layout, on, CALIBRATION).fits
        more = replace(layout, max_num_seqs=layout.max_num_seqs * 2)
        memory = serving_memory(work(name), more, on, CALIBRATION)
        assert memory.most_bytes > memory.usable_bytes


def test_heads_limit_tensor_parallelism():
    """falcon-7b has 71 heads: nothing divides it, so larger replicas need a pipeline."""
    found = layouts(work("falcon-7b", longest=2048))
    assert {layout.tensor for layout in found} == {1}
    assert {layout.pipeline for layout in found} == {1, 2, 4, 8}
    assert {layout.pipeline for layout in layouts(work("falcon-7b", 2048), may_pipeline=False)} == {
        1
    }


@pytest.mark.parametrize(
    ("fixed", "expected"),
    [
        pytest.param({"tensor": 4}, {(4, 1), (4, 2)}, id="tensor"),
        pytest.param({"pipeline": 2, "tensor": 2}, {(2, 2)}, id="pipeline"),
        pytest.param({"accelerators": 2}, {(2, 1)}, id="accelerators"),
    ],
)
def test_what_is_fixed_is_kept(fixed, expected):
    assert {(layout.tensor, layout.pipeline) for layout in layouts(**fixed)} == expected


@pytest.mark.parametrize(
    ("fixed", "says"),
    [
        pytest.param({"tensor": 16}, "tensor 16", id="beyond a node"),
        pytest.param({"accelerators": 3}, "accelerators.perReplica 3", id="three"),
        pytest.param(
            {"tensor": 3}, "parallelism.tensor 3 does not divide the model's 32 heads", id="heads"
        ),
        pytest.param({"tensor": 2, "expert": 4}, "expert 4", id="expert"),
    ],
)
def test_what_cannot_be_is_named(fixed, says):
    found = refusal(**fixed)
    assert found.verdict is Verdict.SHAPE_DOES_NOT_FIT
    assert says in found.problem


def test_a_model_that_is_not_divided_is_told_as_such():
    of = work("resnet-50", longest=None)
    found = refusal(of, tensor=2, pipeline=1)
    assert found.problem == (
        "only a transformer is divided over accelerators,"
        " the spec gives parallelism.tensor 2, parallelism.pipeline 1"
    )


def test_an_engine_without_stages_is_told_as_the_reason():
    found = refusal(may_pipeline=False, pipeline=2)
    assert found.problem == "parallelism.pipeline is 2, and the engine has no stages"


def test_a_node_of_one_accelerator_is_told_as_one():
    found = refusal(node=replace(EIGHT, accelerators=1), tensor=2)
    assert "does not fit a node of 1 accelerator and the model's heads" in found.problem


def test_too_large_a_model_tells_the_smallest_need():
    found = refusal(work("llama-3.1-70b"), on=L4, node=replace(EIGHT, accelerators=4))
    assert found.verdict is Verdict.MEMORY_DOES_NOT_FIT
    assert found.smallest is not None
    assert found.smallest.memory.needed_bytes > 141e9 / 4, "16-bit weights over four devices"


def test_untold_context_is_what_the_cache_holds():
    of = work(longest=None)
    for layout in layouts(of, on=L4, node=replace(EIGHT, accelerators=4)):
        assert needed_tokens(of) <= layout.max_model_tokens <= 131_072
        assert layout.max_model_tokens <= kv_tokens(of, layout, L4, CALIBRATION)
    assert {layout.max_model_tokens for layout in layouts(of)} == {131_072}


def test_told_context_is_kept_or_refused():
    assert {layout.max_model_tokens for layout in layouts(work(longest=4096))} == {4096}
    small = replace(EIGHT, accelerators=1)
    assert refusal(work(longest=131_072), on=L4, node=small).verdict is Verdict.MEMORY_DOES_NOT_FIT


def test_needed_context_is_far_in_the_tail():
    """Of a log-normal with median 300 and p95 1200, p99.9 is 300 * 4 ** (3.09 / 1.645)."""
    of = replace(work(), output_tokens=Tokens(1, 1))
    assert needed_tokens(of) == pytest.approx(300 * 4 ** (3.0902 / 1.6449) + 1, rel=0.01)


def test_needed_context_of_an_encoder_is_its_prompt():
    of = replace(work(), output_tokens=Tokens(0, 0))
    assert needed_tokens(of) == needed_tokens(replace(of, output_tokens=Tokens(1, 1))) - 1


@pytest.mark.parametrize(
    ("name", "quantization", "device", "expected"),
    [
        pytest.param("llama-3.1-8b", "Auto", H100, "bf16", id="published wide"),
        pytest.param("llama-3.1-8b", "fp8", H100, "fp8", id="asked and there"),
        pytest.param("llama-3.1-8b", "fp8", machine("A100-SXM4-80GB"), None, id="asked, not there"),
        pytest.param("deepseek-v3", "Auto", H100, "fp8", id="published and there"),
        pytest.param("deepseek-v3", "Auto", machine("A100-SXM4-80GB"), "bf16", id="not there"),
        pytest.param("deepseek-v3", "None", H100, "bf16", id="not wanted"),
        pytest.param("llama-3.1-8b", "int4", H100, "int4", id="packed: anywhere"),
        pytest.param("llama-3.1-8b", "nvfp4", H100, None, id="no fp4 on Hopper"),
        pytest.param("llama-3.1-8b", "nvfp4", machine("B200-SXM"), "nvfp4", id="fp4 on Blackwell"),
        pytest.param("bert-base", "Auto", H100, "bf16", id="published in 32 bits"),
        pytest.param("llama-3.1-8b", "Auto", machine("T4"), "fp16", id="bf16 where only fp16 is"),
        pytest.param("llama-3.1-8b", "None", machine("T4"), "fp16", id="16 bits on Turing"),
        pytest.param("bert-base", "Auto", machine("T4"), "fp16", id="32 bits on Turing"),
        pytest.param("whisper-large-v3", "Auto", H100, "fp16", id="fp16 where it is"),
    ],
)
def test_weight_formats(name, quantization, device, expected):
    assert weight_format(work(name), quantization, device.device) == expected


def test_fp16_runs_as_bf16_where_a_cpu_has_that_alone():
    row = TABLES.cpu("Graviton3")
    assert row is not None
    graviton = cpu_device(row, 16, 64e9)
    assert weight_format(work("whisper-large-v3"), "Auto", graviton) == "bf16"


def test_sequences_are_bounded_by_what_the_targets_allow_in_flight():
    def sequences(itl_seconds):
        one = search(work(itl_seconds=itl_seconds), tensor=1, pipeline=1)
        (layout,) = layouts(work(itl_seconds=itl_seconds), tensor=1, pipeline=1)
        return bounded(one.shape(layout), 1.5).max_num_seqs

    assert 8 <= sequences(0.012) < sequences(0.2) <= 1024


@pytest.mark.parametrize("on", [H100, machine("A100-SXM4-80GB"), L4])
@pytest.mark.parametrize("itl_seconds", [0.015, 0.02, 0.03, 0.05, 0.08, 0.1, 0.2])
@pytest.mark.parametrize("percentile", [50, 99])
def test_a_whole_batch_meets_the_target_of_tokens(on, itl_seconds, percentile):
    """Requests beyond it wait for their turn; those under way stay in time."""
    asked = work(itl_seconds=itl_seconds)
    itl = Target(Metric.ITL, percentile, itl_seconds)
    asked = replace(asked, targets=(asked.targets[0], itl))
    one = search(asked, on=on, tensor=1, pipeline=1)
    (layout,) = layouts(asked, on=on, tensor=1, pipeline=1)
    shape = one.tuned(layout)
    if not shape.serves:
        return
    most = bounded(shape, 1.5)
    found = one.in_time(shape, most).max_num_seqs
    assert math.ceil(shape.in_flight) <= found <= most.max_num_seqs
    served = replica(asked, shape.layout, on, CALIBRATION)
    whole = latencies(served, state(served, min(float(found), served.slots)))
    is_least = found == math.ceil(shape.in_flight)
    assert is_least or whole.token_percentile(percentile) <= itl_seconds
    if found < most.max_num_seqs:  # and no more would
        more = latencies(served, state(served, min(found + 8.0, served.slots)))
        assert more.token_percentile(percentile) > itl_seconds


def test_without_a_target_of_tokens_nothing_is_cut():
    asked = replace(work(), targets=())
    (layout,) = layouts(asked, tensor=1, pipeline=1)
    one = search(asked, tensor=1, pipeline=1)
    shape = one.tuned(layout)
    assert one.in_time(shape, shape.layout) == shape.layout


def test_engine_can_start_with_the_tuned_chunk():
    """vLLM wants a step to hold a token of each sequence."""
    for layout in layouts(work(itl_seconds=0.015)):
        shape = search(work(itl_seconds=0.015)).tuned(layout)
        assert shape.layout.max_batched_tokens >= shape.layout.max_num_seqs


def cpu_machine(cores=32.0, memory_bytes=128e9):
    row = TABLES.cpu("Xeon-8488C")
    assert row is not None
    link = Interconnect(1, 1e9, 1.5e9, 1, False)
    return Machine(
        cpu_device(row, cores / 2, memory_bytes), link, Host(cores, memory_bytes, 1e9, 1e10, 1e9)
    )


def test_a_node_of_less_than_a_core_holds_no_replica():
    """As small machines of clouds, which allocate 940m of their cores."""
    found = refusal(on=cpu_machine(), node=Node(accelerators=0, cores=0.94, memory_bytes=2e9))
    assert found.verdict is Verdict.SHAPE_DOES_NOT_FIT
    assert found.problem == "a replica takes one core at least, the largest node allocates 0.94"


def test_cpu_replicas_are_powers_of_two_of_cores():
    small = replace(work(), model=Model("tiny", Custom(22e6, 22e6, 5.5e9, 1e7)), targets=())
    node = Node(accelerators=0, cores=31.5, memory_bytes=120e9)
    found = layouts(small, on=cpu_machine(), node=node)
    assert [layout.cpu_cores for layout in found] == [1, 2, 4, 8, 16]
    assert all(layout.count == 0 for layout in found)
    for layout in found:
        assert layout.cpu_memory_bytes <= node.memory_bytes * layout.cpu_cores / node.cores
        assert serving_memory(small, layout, cpu_machine(), CALIBRATION).fits


@pytest.mark.parametrize("device", ["H100-SXM5-80GB", "B200-SXM-180GB", "L40S"])
def test_what_a_tuned_replica_serves_is_what_it_serves_by_itself(device):
    """Measured runs make each chunk slower by a factor of its own."""
    asked = search(on=machine(device))
    chosen = [asked.tuned(each) for each in asked.layouts()[:2]]
    assert chosen == [asked.shape(each.layout) for each in chosen]


def test_a_cache_in_fp8_holds_twice_as_many_sequences():
    usual, halved = search(), search(kv_format="fp8")
    for one, other in zip(usual.layouts(), halved.layouts(), strict=True):
        slots = usual.replica(one).cache_slots, halved.replica(other).cache_slots
        assert slots[1] == pytest.approx(2 * slots[0], rel=0.02)
        assert serving_layout(shape(other)) == other
        assert "kvCacheFormat" not in shape(one)


def test_sequences_that_a_flag_tells_are_kept_whatever_the_targets():
    asked = search(tensor=1, pipeline=1, max_num_seqs=96)
    shape = asked.tuned(asked.layouts()[0])
    assert asked.bounded(shape).max_num_seqs == shape.layout.max_num_seqs == 96
    free = search(tensor=1, pipeline=1)
    most = free.bounded(free.tuned(free.layouts()[0])).max_num_seqs
    assert most != 96


def test_fewer_sequences_are_not_tried_where_a_flag_tells_how_many():
    """Whisper holds 0.75 GB alive for each of them."""
    found = refusal(work("whisper-large-v3", longest=None), on=L4, max_num_seqs=1024)
    assert found.verdict is Verdict.MEMORY_DOES_NOT_FIT
    assert found.smallest is not None
    assert found.smallest.layout.max_num_seqs == 1024


@pytest.mark.parametrize("tokens", [100, 3000, 16384])
def test_a_step_that_a_flag_tells_is_the_only_one_tried(tokens):
    asked = search(tensor=1, pipeline=1, max_batched_tokens=tokens)
    shape = asked.tuned(asked.layouts()[0])
    assert shape.layout.max_batched_tokens == tokens
    assert shape.layout.max_num_seqs <= tokens
    assert shape.capacity_requests_per_second > 0
    assert shape == asked.shape(shape.layout)


def test_a_reader_of_whole_prompts_keeps_the_step_that_a_flag_tells():
    reader = replace(work("bert-large", longest=512), targets=())
    asked = search(reader, max_batched_tokens=256)
    assert asked.tuned(asked.layouts()[0]).layout.max_batched_tokens == 256


@pytest.mark.parametrize("sequences", [4000, 10_000])
def test_a_step_has_a_token_of_each_sequence_that_a_flag_tells(sequences):
    asked = search(tensor=2, pipeline=1, max_num_seqs=sequences)
    layout = asked.tuned(asked.layouts()[0]).layout
    assert layout.max_num_seqs == sequences <= layout.max_batched_tokens


def test_a_smaller_share_of_the_memory_holds_fewer_sequences():
    """The cache has what is left: a fifth of the device less is a fifth of the device."""
    shares = [search(replace(work(), memory_fraction=share)) for share in (None, 0.9, 0.7)]
    untold, usual, less = (each.replica(each.layouts()[0]).cache_slots for each in shares)
    assert untold == usual
    slot_bytes = request_cache_bytes(work(), layouts()[0], 1.0)
    device_bytes = H100.device.memory_bytes
    tokens = [kv_tokens(each.work, each.layouts()[0], H100, CALIBRATION) for each in shares[1:]]
    assert (tokens[0] - tokens[1]) * slot_bytes == pytest.approx(0.2 * device_bytes, rel=1e-6)
    assert less < usual


def test_a_flag_says_nothing_of_a_cpus_memory():
    small = replace(work(), model=Model("tiny", Custom(22e6, 22e6, 5.5e9, 1e7)), targets=())
    node, told = (
        Node(accelerators=0, cores=31.5, memory_bytes=120e9),
        replace(small, memory_fraction=0.1),
    )
    on = cpu_machine()
    assert layouts(told, on=on, node=node) == layouts(small, on=on, node=node)

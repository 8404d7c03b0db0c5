"""What holds for every manifest, whatever people write."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolwise.errors import InvalidInput
from poolwise.model.prediction import Interval, ServingPrediction
from poolwise.model.work import ServingLayout
from poolwise.plan.children.manifests import changes_to_run, children, record_of
from poolwise.plan.children.serving import least_pods, least_replicas
from poolwise.plan.decision import Plan
from poolwise.plan.names import PLACEMENT, child_name
from poolwise.plan.records.placement_record import parse
from poolwise.settings import Settings
from tests.plan.children.cases import CASES, manifests
from tests.plan.children.given import (
    cpu_pool,
    h100_pool,
    placed_job,
    placed_service,
    service,
    training_job,
)

API_PAGE = Path(__file__).parents[3].joinpath("docs", "api.md").read_text(encoding="utf-8")
DNS_LABEL = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")


def job_of(job, plan=None):
    return children(job, plan or placed_job(), h100_pool(), Settings())[-1]


def deployment_of(isvc, layout=None, pool=None, **plan):
    pool = pool or h100_pool()
    placed = placed_service(pool, layout or ServingLayout(), **plan)
    return children(isvc, placed, pool, Settings())[-1]


def pod_of(child):
    return child["spec"]["template"]["spec"]


def container_of(child):
    (container,) = pod_of(child)["containers"]
    return container


def environment_of(child):
    return {each["name"]: each for each in container_of(child)["env"]}


@pytest.mark.parametrize("name", CASES)
def test_same_decision_same_bytes(name):
    assert json.dumps(manifests(CASES[name]())) == json.dumps(manifests(CASES[name]()))


@pytest.mark.parametrize("name", CASES)
def test_every_child_goes_with_its_owner(name):
    resource, plan, _ = CASES[name]()
    for child in manifests(CASES[name]()):
        (owner,) = child["metadata"]["ownerReferences"]
        assert (owner["uid"], owner["controller"]) == (plan.uid, True)
        assert child["metadata"]["namespace"] == resource["metadata"]["namespace"]


@pytest.mark.parametrize("name", CASES)
def test_a_kept_plan_gives_the_same_bytes(name):
    resource, plan, pool = CASES[name]()
    first = children(resource, plan, pool, Settings())
    record = parse(first[-1]["metadata"]["annotations"][PLACEMENT], plan.key)
    kept = Plan(plan.key, plan.uid, 2, True, "", "PlanReady", None, (), plan.claim, True, record)
    assert children(resource, kept, pool, Settings()) == first


@pytest.mark.parametrize("name", CASES)
def test_nothing_of_the_node_and_no_token(name):
    pod = pod_of(manifests(CASES[name]())[-1])
    assert not {"hostNetwork", "hostPID", "hostIPC", "nodeName", "schedulerName"} & set(pod)
    assert pod.get("automountServiceAccountToken") is (
        None if pod.get("serviceAccountName") else False
    )
    assert pod["securityContext"]["seccompProfile"]["type"] == "RuntimeDefault"
    assert not any("hostPath" in volume for volume in pod["volumes"])


@pytest.mark.parametrize("name", CASES)
def test_pods_are_for_the_chosen_pool_only(name):
    _, _, pool = CASES[name]()
    pod = pod_of(manifests(CASES[name]())[-1])
    assert pod["nodeSelector"] == pool.node_selector
    assert pod.get("tolerations", []) == list(pool.tolerations)


@pytest.mark.parametrize("owner", ["a" * 63, "a.b." + "c" * 200, "0-digit", "x" * 250])
def test_names_are_dns_labels(owner):
    job = children(training_job(owner), placed_job(), h100_pool(), Settings())
    isvc = children(
        service(owner), placed_service(h100_pool(), ServingLayout()), h100_pool(), Settings()
    )
    for child in (*job, *isvc):
        assert DNS_LABEL.fullmatch(child["metadata"]["name"])
        assert all(len(value) <= 63 for value in child["metadata"]["labels"].values())
    assert DNS_LABEL.fullmatch(f"{job[-1]['metadata']['name']}-99999")


def test_names_of_different_owners_differ():
    assert child_name("a.b") != child_name("a-b")


TEXT = st.text(min_size=1, max_size=80).filter(lambda text: "\x00" not in text)


@given(TEXT)
def test_a_users_argument_stays_one_argument(text):
    job = job_of(training_job(run={"image": "i", "args": [text]}))
    assert container_of(job)["args"] == [text]


@given(TEXT)
def test_a_users_value_stays_one_value(text):
    env = [{"name": "NOTE", "value": text}]
    variables = environment_of(job_of(training_job(run={"image": "i", "env": env})))
    assert variables["NOTE"] == {"name": "NOTE", "value": text}


@pytest.mark.parametrize("path", ["$(HOME)", "a b", 'a"b', "ü", "a\nb"])
def test_a_path_in_a_uri_is_not_expanded(path):
    model = {"preset": "llama-3.1-8b", "uri": f"pvc://models/{path}"}
    first = container_of(deployment_of(service(model=model)))["args"][0]
    assert first == f"/mnt/models/{path}".replace("$(", "$$(")


def test_a_checkpoint_path_is_not_expanded():
    job = job_of(training_job(checkpoint={"claimName": "c", "path": "/x/$(HOME)"}))
    assert environment_of(job)["POOLWISE_CHECKPOINT_DIR"]["value"] == "/x/$$(HOME)"


class TestTrainingEnvironment:
    def test_torchrun_gets_all_processes_of_a_node(self):
        variables = environment_of(job_of(training_job()))
        assert variables["PET_NNODES"]["value"] == "2"
        assert variables["PET_NPROC_PER_NODE"]["value"] == "8"
        assert variables["PET_RDZV_ENDPOINT"]["value"] == "llama-70b-0.llama-70b-ranks:29500"
        assert "WORLD_SIZE" not in variables and "RANK" not in variables

    def test_one_process_per_pod_gets_rank_and_world_size(self):
        run = {"image": "i", "processesPerNode": 1}
        variables = environment_of(job_of(training_job(run=run)))
        assert variables["WORLD_SIZE"]["value"] == "2"
        index = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
        assert variables["RANK"]["valueFrom"]["fieldRef"]["fieldPath"] == index

    def test_a_users_variable_wins_in_place(self):
        env = [{"name": "MASTER_PORT", "value": "1"}, {"name": "X", "value": "$(MASTER_PORT)"}]
        names = list(environment_of(job_of(training_job(run={"image": "i", "env": env}))))
        assert names.index("MASTER_PORT") < names.index("X")
        assert names.count("MASTER_PORT") == 1

    def test_a_reserved_variable_is_ours(self):
        env = [{"name": "POOLWISE_NODES", "value": "99"}, {"name": "POOLWISE_X", "value": "1"}]
        variables = environment_of(job_of(training_job(run={"image": "i", "env": env})))
        assert variables["POOLWISE_NODES"]["value"] == "2"
        assert "POOLWISE_X" not in variables

    def test_every_name_once(self):
        names = [each["name"] for each in container_of(job_of(training_job()))["env"]]
        assert len(names) == len(set(names))

    def test_docs_name_them_all(self):
        run = {"image": "i", "processesPerNode": 1}
        checkpoint = {"claimName": "c", "interval": "30m"}
        job = job_of(training_job(run=run, checkpoint=checkpoint))
        told = API_PAGE.partition("## What a training container gets")[2].partition("\n## ")[0]
        assert set(re.findall(r"`([A-Z]+_[A-Z_]+|RANK)`", told)) == set(environment_of(job))


class TestJob:
    def test_gang_is_whole_and_disruptions_are_free(self):
        spec = job_of(training_job(backoffLimit=2))["spec"]
        assert spec["parallelism"] == spec["completions"] == 2
        assert (spec["backoffLimitPerIndex"], spec["maxFailedIndexes"]) == (2, 0)
        (rule,) = spec["podFailurePolicy"]["rules"]
        assert rule["action"] == "Ignore"

    def test_pods_are_one_per_node_near_the_claim(self):
        affinity = pod_of(job_of(training_job()))["affinity"]
        assert affinity["podAntiAffinity"]
        (near,) = affinity["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
        assert near["preference"]["matchExpressions"][0]["values"] == ["a3-0", "a3-1"]

    def test_one_pod_needs_no_distance(self):
        job = job_of(training_job(), placed_job({"a3-3": 4}))
        assert "podAntiAffinity" not in pod_of(job)["affinity"]
        assert container_of(job)["resources"]["limits"] == {"nvidia.com/gpu": "4"}

    def test_a_users_mount_takes_the_place_of_ours(self):
        run = {
            "image": "i",
            "volumes": [{"name": "shm", "emptyDir": {"sizeLimit": "1Gi"}}],
            "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm/"}],
        }
        pod = pod_of(job_of(training_job(run=run)))
        assert [volume["name"] for volume in pod["volumes"]] == ["shm"]

    def test_the_deadline_may_change_later(self):
        changes = changes_to_run(training_job(activeDeadlineSeconds=60), "Job")
        assert changes == {"spec": {"activeDeadlineSeconds": 60}}


def prediction_of(plan: Plan) -> ServingPrediction:
    assert plan.chosen is not None
    assert isinstance(plan.chosen.prediction, ServingPrediction)
    return plan.chosen.prediction


def predicting(plan: Plan, **changes: Any) -> Plan:
    """The same plan with another prediction."""
    assert plan.chosen is not None
    prediction = replace(prediction_of(plan), **changes)
    return replace(plan, chosen=replace(plan.chosen, prediction=prediction))


class TestReplica:
    def test_scaling_changes_nothing_in_the_pod(self):
        one, three = (deployment_of(service(), replicas=n) for n in (1, 3))
        assert one["spec"]["template"] == three["spec"]["template"]

    def test_budgets_stay_when_planned_again_in_the_same_shape(self):
        plan = placed_service(h100_pool(), ServingLayout())
        first = record_of(plan, h100_pool(), Settings())
        slower = Settings(engine_start_seconds=5000)
        again = placed_service(h100_pool(), ServingLayout(), replicas=5, record=first)
        assert record_of(again, h100_pool(), slower).start_budget_seconds == (
            first.start_budget_seconds
        )

    def test_start_budget_follows_the_weights(self):
        # 15 GiB over 5 GB/s is 3.2 s; three times that and 600 s of engine: below 1200 s
        probe = container_of(deployment_of(service()))["startupProbe"]
        assert probe["failureThreshold"] * probe["periodSeconds"] == 1200

    def test_each_node_of_a_replica_loads_its_own_weights(self):
        # 8 x 70 GB over 5 GB/s is 112 s; three times that and 600 s of engine: below 1200 s
        pool, records = h100_pool(), []
        for nodes in (1, 2):
            plan = placed_service(pool, ServingLayout(tensor=8, pipeline=nodes), replicas=1)
            memory = replace(prediction_of(plan).memory, weights_bytes=70e9)
            heavy = predicting(plan, memory=memory)
            records.append(record_of(heavy, pool, Settings()))
        assert [each.nodes_per_replica for each in records] == [1, 2]
        assert [each.start_budget_seconds for each in records] == [1200, 1200]

    def test_a_drain_ends_at_its_limit_however_long_requests_take(self):
        plan, settings = placed_service(h100_pool(), ServingLayout()), Settings()
        slow = predicting(plan, e2e_seconds=Interval(3000.0, 2000.0, 5000.0))
        found = record_of(slow, h100_pool(), settings)
        assert found.drain_seconds == settings.drain_limit_seconds < 5000

    def test_grace_covers_endpoints_drain_and_margin(self):
        pod = pod_of(deployment_of(service()))
        sleep = pod["containers"][0]["lifecycle"]["preStop"]["sleep"]["seconds"]
        assert pod["terminationGracePeriodSeconds"] > sleep + 7.9

    @pytest.mark.parametrize(
        ("engine", "waits"),
        [
            ({}, True),
            ({"image": "vllm/vllm-openai:v0.11.0"}, False),
            ({"image": "vllm/vllm-openai:v0.29.0", "args": ["--shutdown-timeout", "60"]}, True),
            ({"type": "sglang", "image": "lmsysorg/sglang:v0.4.0"}, True),
            ({"type": "triton"}, True),
            ({"type": "custom", "image": "mine:1"}, False),
        ],
    )
    def test_who_would_abort_its_requests_is_told_to_end_when_they_have_ended(self, engine, waits):
        isvc = service(engine=engine, model={"preset": "llama-3.1-8b", "uri": "pvc://models/x"})
        settings, pool = Settings(), h100_pool()
        plan = placed_service(pool, ServingLayout())
        drain_seconds = record_of(plan, pool, settings).drain_seconds or 0
        pod = pod_of(deployment_of(isvc))
        sleep = pod["containers"][0]["lifecycle"]["preStop"]["sleep"]["seconds"]
        assert drain_seconds > 0
        assert sleep == settings.endpoint_removal_seconds + (0 if waits else drain_seconds)
        assert pod["terminationGracePeriodSeconds"] >= sleep

    @pytest.mark.parametrize(
        ("engine", "drain_seconds", "more_seconds"),
        [
            ({"type": "tgi"}, 600, 0),
            ({"type": "tgi", "image": "tgi:2.4.0"}, 60, 0),
            ({"type": "tgi", "image": "tgi:2.4.0"}, 600, 510),
            ({"type": "sglang"}, 600, 0),
        ],
    )
    def test_what_an_engine_does_not_wait_is_waited_for_it(
        self, engine, drain_seconds, more_seconds
    ):
        """TGI waits for 90 s where nothing tells it how long."""
        isvc, settings, pool = service(engine=engine), Settings(), h100_pool()
        plan = placed_service(pool, ServingLayout())
        record = replace(record_of(plan, pool, settings), drain_seconds=drain_seconds)
        pod = pod_of(children(isvc, replace(plan, kept=True, record=record), pool, settings)[-1])
        sleep = pod["containers"][0]["lifecycle"]["preStop"]["sleep"]["seconds"]
        assert sleep == settings.endpoint_removal_seconds + more_seconds
        told = "--graceful-termination-timeout=600" in pod["containers"][0]["args"]
        assert told == (engine == {"type": "tgi"})

    def test_update_surges_only_where_there_is_room(self):
        def strategy(may_surge):
            child = deployment_of(service(), may_surge=may_surge)
            return child["spec"]["strategy"]["rollingUpdate"]

        assert strategy(True) == {"maxSurge": 1, "maxUnavailable": 0}
        assert strategy(False) == {"maxSurge": 0, "maxUnavailable": 1}

    @pytest.mark.parametrize(
        ("replicas", "redundancy", "minimum"), [(1, 0, 0), (3, 0, 2), (5, 2, 3), (2, 5, 1)]
    )
    def test_disruption_budget(self, replicas, redundancy, minimum):
        isvc = service(scaling={"redundancy": redundancy, "maxReplicas": 10})
        plan = placed_service(h100_pool(), ServingLayout(), replicas=replicas)
        _, budget, _ = children(isvc, plan, h100_pool(), Settings())
        assert budget["spec"]["minAvailable"] == minimum

    @pytest.mark.parametrize(
        ("redundancy", "least", "minimum"),
        [(0, None, 9), (0, 6, 6), (0, 10, 9), (0, 12, 9), (2, 8, 8), (2, 10, 8), (2, 3, 3)],
    )
    def test_disruption_budget_follows_what_meets_the_targets(self, redundancy, least, minimum):
        pool = h100_pool()
        plan = placed_service(pool, ServingLayout(), replicas=10)
        record = record_of(plan, pool, Settings())
        assert least_pods(record, redundancy, least) == minimum
        assert least_pods(record, redundancy, least_replicas(record, minimum)) == minimum
        # Each pod that goes may be of another replica.
        wide = replace(record, nodes_per_replica=2)
        assert least_pods(wide, redundancy, least) == 10 + minimum
        assert least_replicas(wide, 10 + minimum) == least_replicas(record, minimum)

    def test_flags_of_recent_versions_only_for_our_image(self):
        own = container_of(deployment_of(service(engine={"image": "vllm/vllm-openai:v0.11.0"})))
        assert not any("--shutdown-timeout" in argument for argument in own["args"])

    def test_a_users_argument_replaces_the_plans(self):
        args = container_of(deployment_of(service(engine={"args": ["--max-num-seqs", "4"]})))[
            "args"
        ]
        assert args[-2:] == ["--max-num-seqs", "4"]
        assert not any(argument.startswith("--max-num-seqs=") for argument in args)

    def test_a_preset_is_loaded_from_where_it_is_published(self):
        isvc = service(model={"preset": "llama-3.1-8b"})
        child = deployment_of(isvc, hub_id="meta-llama/Llama-3.1-8B")
        assert container_of(child)["args"][0] == "meta-llama/Llama-3.1-8B"

    def test_a_revision_is_told(self):
        model = {"preset": "llama-3.1-8b", "uri": "hf://org/model:refs/pr/2"}
        args = container_of(deployment_of(service(model=model)))["args"]
        assert args[:2] == ["org/model", "--revision=refs/pr/2"]

    @pytest.mark.parametrize(
        "uri", ["hf://--trust-remote-code", "hf://a/b/c", "s3://bucket/x", "oci://"]
    )
    def test_what_no_engine_can_load_is_one_sentence(self, uri):
        model = {"preset": "llama-3.1-8b", "uri": uri}
        with pytest.raises(InvalidInput, match=r"spec\.model\.uri: .* cannot be loaded by engine"):
            deployment_of(service(model=model))

    def test_an_engine_without_a_build_for_the_pool_is_one_sentence(self):
        layout = ServingLayout(cpu_cores=4, cpu_memory_bytes=2**33)
        with pytest.raises(InvalidInput, match="engine sglang has no default image for pool cpu"):
            deployment_of(service(engine={"type": "sglang"}), layout, cpu_pool())


@pytest.mark.parametrize("name", [name for name in CASES if not name.startswith("training")])
def test_docs_say_what_a_serving_container_gets(name):
    told = API_PAGE.partition("## What a serving container gets")[2]
    [runner] = [each for each in manifests(CASES[name]()) if each["kind"] == "Deployment"]
    container = container_of(runner)
    mounts = {each["mountPath"] for each in container["volumeMounts"]}
    ports = {str(each["containerPort"]) for each in container["ports"] if each["name"] != "http"}
    paths = {probe.get("httpGet", {}).get("path") for probe in (container["readinessProbe"],)}
    ours = {each["name"] for each in container.get("env", ())} - {"VLLM_LOGGING_LEVEL"}
    for word in mounts | ports | (paths - {None}) | ours:
        assert word in told, word


@pytest.mark.parametrize("kind", ["job", "service"])
def test_what_keeps_other_nodes_out_is_required(kind):
    expression = {"key": "example.com/old", "operator": "DoesNotExist"}
    pool = replace(h100_pool(), node_expressions=(expression,))
    if kind == "job":
        child = children(training_job(), placed_job(), pool, Settings())[-1]
    else:
        child = deployment_of(service(), pool=pool)
    required = pod_of(child)["affinity"]["nodeAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]
    assert required == {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}


def test_nothing_to_record_where_nothing_is_placed():
    plan = Plan(placed_job().key, "uid", 1, False, "waits", "InsufficientCapacity", None, ())
    with pytest.raises(ValueError, match="not placed"):
        record_of(plan, h100_pool(), Settings())


@pytest.mark.parametrize("engine", ["vllm", "sglang", "tgi"])
def test_weights_kept_in_fp16_are_asked_for(engine):
    """vLLM refuses a bf16 checkpoint where the device has no bf16."""

    def words(weight_format):
        isvc = service(engine={"type": engine})
        layout = ServingLayout(weight_format=weight_format)
        return container_of(deployment_of(isvc, layout))["args"]

    assert "--dtype=float16" in words("fp16")
    assert not any("dtype" in word for word in words("bf16"))

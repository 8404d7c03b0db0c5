"""What JobSet, Kubeflow Trainer and LeaderWorkerSet are asked to run."""

import json
import re
from dataclasses import replace

import pytest

from poolwise.errors import InvalidInput
from poolwise.model.work import ServingLayout
from poolwise.plan.children.manifests import changes_to_run, check, children, record_of
from poolwise.plan.decision import Plan
from poolwise.plan.names import PLACEMENT
from poolwise.plan.observed import Observed
from poolwise.plan.records.placement_record import parse
from poolwise.plan.records.runtimes import Served, check_runtime
from poolwise.settings import Settings
from tests.plan.children.given import h100_pool, placed_job, placed_service, service, training_job
from tests.plan.children.set_cases import (
    APIS,
    RACK,
    SET_CASES,
    TORCH,
    fabric_pool,
    runtime,
    set_manifests,
    spanning,
)

DNS_LABEL = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
LONG = "x" * 250


def run_of(job, apis=APIS, plan=None, runtimes=None):
    runtimes = [runtime()] if runtimes is None else runtimes
    return children(job, plan or placed_job(), h100_pool(), Settings(), Served(apis, runtimes))


def served(runtimes):
    return Observed(apis=APIS, training_runtimes=runtimes)


def groups_of(isvc, layout=None, pool=None, replicas=2, **plan):
    pool = pool or fabric_pool()
    layout = layout or ServingLayout(tensor=8, pipeline=2)
    return children(isvc, spanning(pool, layout, replicas, **plan), pool, Settings(), Served(APIS))


def job_of(job_set):
    (role,) = job_set["spec"]["replicatedJobs"]
    return role["template"]["spec"]


def container_of(template):
    (container,) = template["spec"]["containers"]
    return container


def values_of(container):
    return {each["name"]: each.get("value") for each in container["env"]}


@pytest.mark.parametrize("name", SET_CASES)
def test_same_decision_same_bytes(name):
    case = SET_CASES[name]
    assert json.dumps(set_manifests(case())) == json.dumps(set_manifests(case()))


@pytest.mark.parametrize("name", SET_CASES)
def test_a_kept_plan_gives_the_same_bytes(name):
    resource, plan, pool = SET_CASES[name]()
    first = set_manifests((resource, plan, pool))
    record = parse(first[-1]["metadata"]["annotations"][PLACEMENT], plan.key)
    kept = Plan(plan.key, plan.uid, 2, True, "", "PlanReady", None, (), plan.claim, True, record)
    assert set_manifests((resource, kept, pool)) == first


@pytest.mark.parametrize("name", SET_CASES)
def test_nothing_takes_the_place_of_a_child_whose_api_is_gone(name):
    resource, plan, pool = SET_CASES[name]()
    record = parse(
        set_manifests((resource, plan, pool))[-1]["metadata"]["annotations"][PLACEMENT], plan.key
    )
    kept = Plan(plan.key, plan.uid, 1, True, "", "PlanReady", None, (), plan.claim, True, record)
    assert children(resource, kept, pool, Settings(), Served({}, [runtime()])) == ()


class TestWhichRuntime:
    @pytest.mark.parametrize(
        ("spec", "apis", "nodes", "kind"),
        [
            ({}, APIS, {"a3-0": 8, "a3-1": 8}, "JobSet"),
            ({}, APIS, {"a3-0": 8}, "Job"),
            ({}, {}, {"a3-0": 8, "a3-1": 8}, "Job"),
            ({"runtime": "Job"}, APIS, {"a3-0": 8, "a3-1": 8}, "Job"),
            ({"runtime": "JobSet"}, APIS, {"a3-0": 8}, "JobSet"),
            ({"runtimeRef": {"name": TORCH}}, APIS, {"a3-0": 8}, "TrainJob"),
        ],
    )
    def test_by_spec_pods_and_apis(self, spec, apis, nodes, kind):
        made = run_of(training_job(**spec), apis, placed_job(nodes))
        assert made[-1]["kind"] == kind

    def test_a_job_set_that_nobody_serves_is_told_with_what_works(self):
        job = training_job(runtime="JobSet")
        with pytest.raises(InvalidInput) as refused:
            check_runtime(job, Observed())
        assert str(refused.value) == (
            "spec.runtime: asks for a JobSet, but the cluster does not serve jobset.x-k8s.io: "
            "install JobSet, or say Auto or Job"
        )

    def test_why_an_api_cannot_be_used_is_repeated(self):
        off = {"trainer.kubeflow.org": "Poolwise may not read it"}
        job = training_job(runtimeRef={"name": TORCH})
        with pytest.raises(InvalidInput, match="Poolwise may not read it: install Kubeflow"):
            check_runtime(job, Observed(apis_off=off))

    def test_a_missing_runtime_is_told_with_those_that_there_are(self):
        job = training_job(runtimeRef={"name": "torch"})
        with pytest.raises(InvalidInput) as refused:
            check_runtime(job, served([runtime("jax", None), runtime()]))
        assert str(refused.value) == (
            "spec.runtimeRef: names ClusterTrainingRuntime torch, which does not exist "
            "(there are jax, torch-distributed)"
        )

    def test_a_runtime_of_another_namespace_is_none(self):
        of_other = runtime() | {"kind": "TrainingRuntime"}
        of_other["metadata"] = {"name": TORCH, "namespace": "other"}
        job = training_job(runtimeRef={"name": TORCH, "kind": "TrainingRuntime"})
        with pytest.raises(InvalidInput, match=r"in namespace research \(there is none\)"):
            check_runtime(job, served([of_other]))

    @pytest.mark.parametrize(
        "spec",
        [{}, {"runtime": "Job"}, {"runtime": "Auto"}, {"runtime": "JobSet", "mode": "Plan"}],
    )
    def test_a_job_works_everywhere(self, spec):
        check_runtime(training_job(**spec), Observed())

    def test_a_runtime_brings_its_image(self):
        job = training_job(run={}, runtimeRef={"name": TORCH})
        check(job)
        (train_job,) = run_of(job)
        assert "image" not in train_job["spec"]["trainer"]


class TestJobSet:
    def test_one_attempt_for_all_and_disruptions_are_free(self):
        (job_set,) = run_of(training_job(backoffLimit=2))
        policy = job_set["spec"]["failurePolicy"]
        assert (policy["maxRestarts"], policy["restartStrategy"]) == (2, "BlockingRecreate")
        assert job_of(job_set)["backoffLimit"] == 0
        (rule,) = job_of(job_set)["podFailurePolicy"]["rules"]
        assert rule["action"] == "FailJob"
        assert policy["rules"][0]["action"] == "RestartJobSetAndIgnoreMaxRestarts"

    def test_ranks_find_the_first_by_the_names_that_job_set_gives(self):
        (job_set,) = run_of(training_job())
        variables = values_of(container_of(job_of(job_set)["template"]))
        master = "llama-70b-node-0-0.llama-70b-ranks"
        assert variables["MASTER_ADDR"] == master
        assert variables["PET_RDZV_ENDPOINT"] == f"{master}:29500"
        assert job_set["spec"]["network"]["subdomain"] == "llama-70b-ranks"

    @pytest.mark.parametrize("kind", ["JobSet", "TrainJob"])
    def test_nothing_of_its_run_may_change(self, kind):
        assert changes_to_run(training_job(activeDeadlineSeconds=60), kind) == {"spec": {}}

    def test_a_required_domain_is_in_the_selector(self):
        (job_set,) = run_of(training_job(), plan=replace(placed_job(), domain={RACK: "r1"}))
        pod = job_of(job_set)["template"]["spec"]
        assert pod["nodeSelector"][RACK] == "r1"
        assert (
            "requiredDuringSchedulingIgnoredDuringExecution" not in pod["affinity"]["nodeAffinity"]
        )

    @pytest.mark.parametrize("owner", ["a.b." + "c" * 200, "0-digit", LONG])
    def test_pods_have_room_for_their_names(self, owner):
        (job_set,) = run_of(training_job(owner))
        assert DNS_LABEL.fullmatch(f"{job_set['metadata']['name']}-node-0-99999-abcde")
        assert DNS_LABEL.fullmatch(job_set["spec"]["network"]["subdomain"])


class TestTrainJob:
    def test_a_torch_runtime_sets_its_own_variables(self):
        (train_job,) = run_of(training_job(runtimeRef={"name": TORCH}))
        trainer = train_job["spec"]["trainer"]
        assert (trainer["numNodes"], trainer["numProcPerNode"]) == (2, 8)
        variables = values_of(trainer)
        assert "PET_NNODES" not in variables and "PET_NODE_RANK" not in variables
        assert variables["MASTER_ADDR"] == "llama-70b-node-0-0.llama-70b"

    def test_another_runtime_gets_them_from_us(self):
        plain = runtime("plain", None)
        (train_job,) = run_of(training_job(runtimeRef={"name": "plain"}), runtimes=[plain])
        variables = values_of(train_job["spec"]["trainer"])
        assert variables["PET_NNODES"] == "2"

    def test_the_patch_is_our_own_and_says_where(self):
        (train_job,) = run_of(training_job(runtimeRef={"name": TORCH}))
        (patch,) = train_job["spec"]["runtimePatches"]
        assert patch["manager"] == "poolwise.dev/planner"
        (role,) = patch["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"]
        pod = role["template"]["spec"]["template"]["spec"]
        assert pod["nodeSelector"] == h100_pool().node_selector
        assert pod["tolerations"] == list(h100_pool().tolerations)
        (container,) = pod["containers"]
        assert (container["name"], "env" in container) == ("node", False)

    def test_a_subdomain_of_the_runtime_is_where_ranks_meet(self):
        own = runtime()
        own["spec"]["template"]["spec"]["network"] = {"subdomain": "fabric"}
        (train_job,) = run_of(training_job(runtimeRef={"name": TORCH}), runtimes=[own])
        assert values_of(train_job["spec"]["trainer"])["MASTER_ADDR"] == "llama-70b-node-0-0.fabric"

    def test_a_runtime_that_trains_nowhere_is_refused(self):
        empty = runtime()
        empty["spec"]["template"]["spec"]["replicatedJobs"] = []
        with pytest.raises(InvalidInput, match="has no container node to train in"):
            run_of(training_job(runtimeRef={"name": TORCH}), runtimes=[empty])


class TestGroups:
    def test_the_engine_starts_on_each_node_and_the_leader_answers(self):
        service_, _, lws = groups_of(service())
        group = lws["spec"]["leaderWorkerTemplate"]
        leader, worker = (container_of(group[f"{role}Template"]) for role in ("leader", "worker"))
        assert group["size"] == 2
        assert {"--nnodes=2", "--node-rank=$(LWS_WORKER_INDEX)"} <= set(leader["args"])
        assert set(worker["args"]) - set(leader["args"]) == {"--headless"}
        assert "readinessProbe" in leader and "readinessProbe" not in worker
        assert leader["resources"]["limits"] == {"nvidia.com/gpu": "8"}
        assert service_["spec"]["selector"]["leaderworkerset.sigs.k8s.io/worker-index"] == "0"

    def test_sglang_is_told_in_its_own_words(self):
        *_, lws = groups_of(service(engine={"type": "sglang"}))
        group = lws["spec"]["leaderWorkerTemplate"]
        leader, worker = (container_of(group[f"{role}Template"]) for role in ("leader", "worker"))
        assert "--dist-init-addr=$(LWS_LEADER_ADDRESS):29500" in leader["args"]
        assert worker["args"] == leader["args"]

    @pytest.mark.parametrize("engine", ["vllm", "sglang"])
    def test_no_pod_of_a_group_is_told_to_end_before_its_requests_have_ended(self, engine):
        """Workers end at once: the leader alone could not go on with what is in flight."""
        *_, lws = groups_of(service(engine={"type": engine}))
        group = lws["spec"]["leaderWorkerTemplate"]
        for role in ("leader", "worker"):
            pod = group[f"{role}Template"]["spec"]
            sleep = container_of(group[f"{role}Template"])["lifecycle"]["preStop"]["sleep"]
            removal_seconds = Settings().endpoint_removal_seconds
            drain_seconds = pod["terminationGracePeriodSeconds"] - removal_seconds - 15
            assert drain_seconds > 0
            assert sleep["seconds"] == removal_seconds + drain_seconds

    @pytest.mark.parametrize(
        ("topology", "required", "preferred"),
        [
            ({}, [], [RACK]),
            ({"mode": "Required"}, [RACK], []),
            ({"mode": "Required", "level": "zone"}, ["zone"], []),
            ({"mode": "Unconstrained"}, [], []),
        ],
    )
    def test_pods_of_a_group_are_near_each_other(self, topology, required, preferred):
        *_, lws = groups_of(service(placement={"topology": topology}))
        assert levels_of(lws) == (required, preferred)

    def test_a_tensor_group_beyond_its_node_stays_where_the_link_reaches(self):
        *_, lws = groups_of(service(), ServingLayout(tensor=16), fabric_pool(RACK))
        assert levels_of(lws) == ([RACK], [])
        *_, stages = groups_of(service(), ServingLayout(tensor=8, pipeline=2), fabric_pool(RACK))
        assert levels_of(stages) == ([], [RACK])

    @pytest.mark.parametrize(
        ("replicas", "redundancy", "minimum"), [(1, 0, 0), (2, 0, 3), (3, 2, 4), (2, 5, 3)]
    )
    def test_disruption_budget_counts_pods(self, replicas, redundancy, minimum):
        isvc = service(scaling={"redundancy": redundancy, "maxReplicas": 10})
        _, budget, _ = groups_of(isvc, replicas=replicas)
        assert budget["spec"]["minAvailable"] == minimum

    def test_scaling_changes_nothing_in_the_pods(self):
        one, two = (groups_of(service(), replicas=n)[-1]["spec"] for n in (1, 2))
        assert one["leaderWorkerTemplate"] == two["leaderWorkerTemplate"]

    def test_a_replica_of_one_node_stays_a_deployment(self):
        plan = placed_service(h100_pool(), ServingLayout(tensor=8))
        made = children(service(), plan, h100_pool(), Settings(), Served(APIS))
        assert made[-1]["kind"] == "Deployment"
        assert record_of(plan, h100_pool(), Settings()).nodes_per_replica == 1

    @pytest.mark.parametrize("owner", ["a.b." + "c" * 200, "0-digit", LONG])
    def test_groups_have_room_for_their_names(self, owner):
        made = groups_of(service(owner))
        names = [child["metadata"]["name"] for child in made]
        assert names[0] != names[-1], "its headless Service would be ours"
        assert DNS_LABEL.fullmatch(f"{names[-1]}-9999-5f6d7c8b9d")


def levels_of(lws):
    affinity = lws["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"].get("affinity", {})
    near = affinity.get("podAffinity", {})
    required = near.get("requiredDuringSchedulingIgnoredDuringExecution", [])
    preferred = near.get("preferredDuringSchedulingIgnoredDuringExecution", [])
    return (
        [each["topologyKey"] for each in required],
        [each["podAffinityTerm"]["topologyKey"] for each in preferred],
    )

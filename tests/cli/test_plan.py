from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from e2e.profiles import render
from poolwise.cli.app import app
from poolwise.cli.table import why
from poolwise.errors import InvalidInput

EXAMPLES = Path(__file__).resolve().parent.parent.parent / "examples"


@pytest.fixture
def nodes(tmp_path: Path) -> Path:
    return written(tmp_path / "nodes.yaml", {"kind": "List", "items": render("demo")})


def written(path: Path, *documents: Any) -> Path:
    path.write_text(yaml.safe_dump_all(documents))
    return path


def example(name: str) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load((EXAMPLES / f"{name}.yaml").read_text())
    return document


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["plan", *map(str, arguments)])


def answer(*arguments: object) -> dict[str, Any]:
    result = run(*arguments, "-o", "json")
    assert result.exit_code == 0, result.output
    document: dict[str, Any] = json.loads(result.stdout)
    return document


def test_every_example_is_placed_with_its_story(nodes: Path) -> None:
    workloads = answer("-f", EXAMPLES, "--nodes", nodes)["workloads"]
    assert len(workloads) == len(list(EXAMPLES.glob("*.yaml")))
    for workload in workloads:
        assert workload["reason"]
        assert len(workload["candidates"]) == 4
    placed = {each["name"] for each in workloads if each["placed"]}
    # All of it together wants more H100 than there are, so one waits when names decide the order.
    assert {"chat", "embeddings", "summaries", "defect-vision", "llama-8b"} <= placed


def test_the_table_names_every_workload_and_pool(nodes: Path) -> None:
    result = run("-f", EXAMPLES, "--nodes", nodes)
    assert result.exit_code == 0
    report = answer("-f", EXAMPLES, "--nodes", nodes)
    for row in (*report["workloads"], *report["pools"]):
        assert row["name"] in result.stdout


def test_sentences_below_the_table_of_a_terminal_are_whole(
    nodes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # what rich takes for a terminal
    monkeypatch.setenv("COLUMNS", "80")
    lines = run("-f", EXAMPLES, "--nodes", nodes).stdout.split()
    for row in answer("-f", EXAMPLES, "--nodes", nodes)["workloads"]:
        assert " ".join(why(row).split()) in " ".join(lines)


def test_what_fits_nowhere_is_no_error(tmp_path: Path, nodes: Path) -> None:
    document = example("training-llama-70b")
    document["spec"]["accelerators"] = {"count": 4096}
    [workload] = answer("-f", written(tmp_path / "big.yaml", document), "--nodes", nodes)[
        "workloads"
    ]
    assert workload["placed"] is False
    assert "needs 4,096" in workload["reason"] or "needs 4096" in workload["reason"]


def test_running_pods_are_subtracted(tmp_path: Path, nodes: Path) -> None:
    pods = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"other-{i}", "namespace": "other"},
            "spec": {
                "nodeName": f"h100-{i}",
                "containers": [
                    {"name": "c", "resources": {"requests": {"nvidia.com/gpu": "8"}}},
                ],
            },
            "status": {"phase": "Running"},
        }
        for i in range(3)
    ]
    job = EXAMPLES / "training-llama-70b.yaml"
    [free] = answer("-f", job, "--nodes", nodes)["workloads"]
    busy_file = written(tmp_path / "pods.yaml", {"kind": "List", "items": pods})
    [busy] = answer("-f", job, "--nodes", nodes, "--pods", busy_file)["workloads"]
    assert free["placed"] is True
    assert busy["placed"] is False
    assert "56 of 80 are free" in busy["reason"]


def test_a_workload_does_not_wait_for_its_own_pods(tmp_path: Path, nodes: Path) -> None:
    job = example("training-llama-70b")

    def pod(owner: str, index: int) -> dict[str, Any]:
        labels = {
            "app.kubernetes.io/managed-by": "poolwise",
            "poolwise.dev/owner-kind": "TrainingJob",
            "poolwise.dev/owner": owner,
        }
        asked = {"resources": {"requests": {"nvidia.com/gpu": "8"}}}
        return {
            "kind": "Pod",
            "metadata": {"name": f"{owner}-{index}", "namespace": "default", "labels": labels},
            "spec": {"nodeName": f"h100-{index}", "containers": [asked]},
            "status": {"phase": "Running"},
        }

    def planned(owner: str) -> Result:
        pods = {"kind": "List", "items": [pod(owner, index) for index in range(8)]}
        job["metadata"]["namespace"] = "default"
        job_file = written(tmp_path / "job.yaml", job)
        pods_file = written(tmp_path / "pods.yaml", pods)
        return run("-f", job_file, "--nodes", nodes, "--pods", pods_file, "-o", "json")

    own, others = planned(job["metadata"]["name"]), planned("another")
    assert [json.loads(each.stdout)["workloads"][0]["placed"] for each in (own, others)] == [
        True,
        False,
    ]
    assert "64 are held by pods of others" in others.stdout
    assert "8 pods of --pods that Poolwise placed count as they stand" in others.stderr
    assert "TrainingJob default/another" in others.stderr and not own.stderr


def test_what_pods_ask_for_beside_accelerators_is_counted(tmp_path: Path) -> None:
    """Of pods, disks and devices as nodes tell them; a node written by hand tells no disks."""
    hca, plain = "rdma/hca_shared_devices_a", render("demo")
    document = example("training-llama-8b")
    document["spec"]["run"]["resources"] = {"requests": {hca: "1", "ephemeral-storage": "1Ti"}}
    job = written(tmp_path / "job.yaml", document)
    fitted = render("demo")
    for node in fitted:
        del node["status"]["allocatable"]["pods"]
        node["status"]["allocatable"].pop("ephemeral-storage", None)
        if node["metadata"]["name"].startswith("l40s"):
            node["status"]["allocatable"][hca] = "8"
    for nodes, placed in ((plain, False), (fitted, True)):
        given = written(tmp_path / "nodes.yaml", {"kind": "List", "items": nodes})
        [workload] = answer("-f", job, "--nodes", given)["workloads"]
        assert workload["placed"] is placed
        reasons = {each["pool"]: each["reason"] for each in workload["candidates"]}
        h100 = next(reason for pool, reason in reasons.items() if pool.startswith("h100"))
        assert h100 == f"has no {hca} on its 10 nodes, each pod asks for 1 {hca}"
    assert "l40s" in workload["pool"]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        pytest.param(
            lambda spec: spec["training"].update(globalBatchSize=0),
            "spec.training.globalBatchSize",
            id="below-the-minimum",
        ),
        pytest.param(
            lambda spec: spec.update(acelerators=1), 'unknown field "spec.acelerators"', id="typo"
        ),
        pytest.param(
            lambda spec: spec["model"].update(preset="lama-3.1-8b"), "llama-3.1-8b", id="preset"
        ),
        pytest.param(
            lambda spec: spec["model"].update(custom={"parameters": "1M"}), "spec.model", id="both"
        ),
    ],
)
def test_bad_input_names_file_document_and_field(
    tmp_path: Path, nodes: Path, change: Any, sentence: str
) -> None:
    document = example("training-llama-8b")
    change(document["spec"])
    file = written(tmp_path / "bad.yaml", example("inference-chat"), document)
    result = run("-f", file, "--nodes", nodes, "-o", "json")
    assert result.exit_code == 2
    assert f"{file}: document 2 (TrainingJob/llama-8b): " in result.stderr
    assert sentence.lower() in result.stderr.lower()
    placed = {each["name"]: each["placed"] for each in json.loads(result.stdout)["workloads"]}
    assert placed.pop("chat"), "what is refused holds up no other"
    assert not any(placed.values())


def test_nothing_is_planned_where_everything_is_refused(tmp_path: Path, nodes: Path) -> None:
    document = example("inference-chat")
    document["spec"]["accelerators"] = -1
    result = run("-f", written(tmp_path / "bad.yaml", document), "--nodes", nodes)
    assert result.exit_code == 2
    assert "document 1 (InferenceService/chat): " in result.stderr
    assert result.stdout == ""


def test_a_file_that_is_no_yaml_holds_up_no_other(tmp_path: Path, nodes: Path) -> None:
    written(tmp_path / "chat.yaml", example("inference-chat"))
    broken = tmp_path / "broken.yaml"
    broken.write_text("spec: [\n")
    arguments = ("-f", tmp_path / "chat.yaml", "-f", broken, "--nodes", nodes, "-o", "json")
    result = run(*arguments)
    assert result.exit_code == 2
    assert [each["name"] for each in json.loads(result.stdout)["workloads"]] == ["chat"]
    [line] = result.stderr.splitlines()
    assert line.startswith(f"poolwise: {broken}: document 1, line 2, column 1: ")


def test_one_name_twice_is_refused(tmp_path: Path, nodes: Path) -> None:
    file = written(tmp_path / "twice.yaml", example("inference-chat"), example("inference-chat"))
    result = run("-f", file, "--nodes", nodes, "-o", "json")
    assert result.exit_code == 2
    assert "document 2 (InferenceService/chat): given before in" in result.stderr
    assert [each["name"] for each in json.loads(result.stdout)["workloads"]] == ["chat"]


def test_other_kinds_in_the_file_are_left_alone(tmp_path: Path, nodes: Path) -> None:
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "other"}}
    file = written(tmp_path / "mixed.yaml", claim, example("inference-chat"))
    assert len(answer("-f", file, "--nodes", nodes)["workloads"]) == 1


def test_a_file_without_any_workload_is_bad_input(tmp_path: Path, nodes: Path) -> None:
    file = written(tmp_path / "none.yaml", {"kind": "Deployment", "apiVersion": "apps/v1"})
    result = run("-f", file, "--nodes", nodes)
    assert result.exit_code == 2
    assert "no TrainingJob, InferenceService or AcceleratorPool found" in result.stderr


def test_a_priority_class_in_the_files_decides_who_goes_first(tmp_path: Path, nodes: Path) -> None:
    priority = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "urgent"},
        "value": 1000,
    }
    usual, urgent = example("training-llama-70b"), example("training-llama-70b")
    usual["metadata"]["name"], urgent["metadata"]["name"] = "a", "b"
    urgent["spec"]["priorityClassName"] = "urgent"
    jobs = written(tmp_path / "jobs.yaml", usual, urgent, priority)
    placed = {
        each["name"]: each["placed"] for each in answer("-f", jobs, "--nodes", nodes)["workloads"]
    }
    assert placed == {"a": False, "b": True}


def test_a_node_that_is_given_twice_is_refused(tmp_path: Path) -> None:
    twice = written(tmp_path / "nodes.yaml", {"kind": "List", "items": render("demo") * 2})
    command = [sys.executable, "-m", "poolwise", "plan", "-f", str(EXAMPLES), "--nodes", str(twice)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert "item 22 (Node/h100-0): given before in" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_file_without_nodes_is_refused_unless_a_pool_may_grow(tmp_path: Path) -> None:
    nodes = written(tmp_path / "none.yaml")
    result = run("-f", EXAMPLES, "--nodes", nodes)
    assert result.exit_code == 2
    assert "none.yaml holds no Node, and no AcceleratorPool with maxNodes is" in result.stderr
    assert not result.stdout
    spec = {"nodeSelector": {"cloud.google.com/gke-nodepool": "l4"}, "accelerator": "L4"}
    kind = {"apiVersion": "poolwise.dev/v1alpha1", "kind": "AcceleratorPool"}
    pool = {**kind, "metadata": {"name": "l4"}, "spec": {**spec, "maxNodes": 2}}
    result = run("-f", EXAMPLES, "-f", written(tmp_path / "l4.yaml", pool), "--nodes", nodes)
    assert result.exit_code == 0
    assert "none.yaml holds no Node" in result.stderr


def test_what_would_have_a_place_and_no_pods_is_told(tmp_path: Path, nodes: Path) -> None:
    """The operator refuses it once it makes the children: no image, or no weights."""
    job, chat = example("training-llama-8b"), example("inference-chat")
    del job["spec"]["run"]
    shape = {"layers": 16, "hidden": 2048, "ffn": 8192, "heads": 32, "vocab": 128256}
    chat["spec"]["model"] = {"transformer": shape, "maxModelLength": 8192}
    file = written(tmp_path / "both.yaml", job, chat)
    result = run("-f", file, "--nodes", nodes)
    assert result.exit_code == 0
    first, second = result.stderr.splitlines()
    assert first.startswith(f"poolwise: {file}: document 1 (TrainingJob/llama-8b): planned, but ")
    assert first.endswith(
        "would not run: spec.run.image: must name an image where mode is Run, is empty"
    )
    assert "(InferenceService/chat): planned, but would not run: spec.model.uri: is empty" in second
    for each in (job, chat):
        each["spec"]["mode"] = "Plan"
    assert not run("-f", written(file, job, chat), "--nodes", nodes).stderr


def test_a_priority_class_that_no_file_has_is_told(tmp_path: Path, nodes: Path) -> None:
    job = example("training-llama-8b")
    job["spec"]["priorityClassName"] = "urgent"
    file = written(tmp_path / "job.yaml", job)
    result = run("-f", file, "--nodes", nodes)
    assert result.exit_code == 0
    assert result.stderr == (
        f"poolwise: {file}: document 1 (TrainingJob/llama-8b): planned with priority 0: "
        "spec.priorityClassName is urgent, and no file has that PriorityClass\n"
    )
    kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 9}
    urgent = written(tmp_path / "urgent.yaml", {**kind, "metadata": {"name": "urgent"}})
    assert not run("-f", file, "-f", urgent, "--nodes", nodes).stderr


def test_a_plan_that_is_only_reported_says_where_it_would_be(tmp_path: Path, nodes: Path) -> None:
    document = example("training-llama-70b")
    document["spec"]["mode"] = "Plan"
    file = written(tmp_path / "plan.yaml", document)
    [workload] = answer("-f", file, "--nodes", nodes)["workloads"]
    assert f"would be {workload['pool']}" in run("-f", file, "--nodes", nodes).stdout


def test_measurements_correct_the_plan(tmp_path: Path, nodes: Path) -> None:
    workload = written(tmp_path / "job.yaml", example("training-llama-8b"))
    before = answer("-f", workload, "--nodes", nodes)["workloads"][0]
    measured = {"model": "llama-3.1-8b", "phase": "training", "pool": before["pool"], "ratio": 1.2}
    seen = tmp_path / "seen.yaml"
    seen.write_text(yaml.safe_dump([measured]))
    after = answer("-f", workload, "--nodes", nodes, "--observed", seen)["workloads"][0]
    (same,) = (each for each in after["candidates"] if each["pool"] == before["pool"])
    assert 1 < same["correctedBy"]["training"] < 1.2
    assert same["predicted"]["stepSeconds"] > before["predicted"]["stepSeconds"]


def test_measurements_of_pools_that_are_not_there_are_told(tmp_path: Path, nodes: Path) -> None:
    seen = tmp_path / "seen.yaml"
    seen.write_text("- {model: llama-3.1-8b, phase: training, pool: moon, ratio: 1.2}")
    shown = run("-f", EXAMPLES / "training-llama-8b.yaml", "--nodes", nodes, "--observed", seen)
    assert shown.exit_code == 0
    assert f"{seen}: what was measured on 'moon' is not used: the pools are " in shown.stderr


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("- {model: nobody, phase: token, pool: a, ratio: 1}", "item 1: 'nobody' is not a known"),
        (
            "- {model: llama-3.1-8b, phase: lunch, pool: a, ratio: 1.1}",
            "seen.yaml: item 1: phase: 'lunch' cannot be used: input should be 'training', ",
        ),
        (
            "- {model: llama-3.1-8b, phase: token, pool: a, ratio: 0}",
            "seen.yaml: item 1: ratio: 0 cannot be used: input should be greater than 0",
        ),
        ("- {model: llama-3.1-8b, phase: token, pool: a}", "seen.yaml: item 1: ratio: is missing"),
        (
            "- {ration: 1}",
            "seen.yaml: item 1: ration: is not a field; there are model, phase, pool,",
        ),
        ("- 3", "seen.yaml: item 1: is 3, expected an object"),
        ("[", "seen.yaml: document 1, line 2"),
        ("[" * 20_000, "is nested more than 200 deep"),
        ("- {ratio: " + "9" * 5_000 + "}", "seen.yaml: document 1: is not YAML"),
        ("a: 1", "seen.yaml: holds an object, must hold a list"),
        ("# nothing\n", "seen.yaml: holds 0 documents, must hold one list"),
        ("--- []\n--- []\n", "seen.yaml: holds 2 documents, must hold one list"),
    ],
    ids=[
        *("model", "phase", "ratio", "missing", "no-field", "no-object"),
        *("cut-off", "deep", "long-number", "no-list", "empty", "two"),
    ],
)
def test_measurements_that_cannot_be_used_are_refused(
    tmp_path: Path, nodes: Path, text: str, says: str
) -> None:
    workload = written(tmp_path / "job.yaml", example("training-llama-8b"))
    seen = tmp_path / "seen.yaml"
    seen.write_text(text)
    result = run("-f", workload, "--nodes", nodes, "--observed", seen)
    assert isinstance(result.exception, InvalidInput)
    assert says in str(result.exception)
    assert "\n" not in str(result.exception)


def test_the_table_says_what_predictions_are_based_on(nodes: Path) -> None:
    shown = run("-f", EXAMPLES / "training-llama-8b.yaml", "--nodes", nodes).output
    assert "BASIS" in shown
    assert "fitted" in shown


def test_a_model_that_no_node_holds_needs_an_api_that_files_do_not_tell(
    tmp_path: Path, nodes: Path
) -> None:
    large = example("inference-chat") | {"metadata": {"name": "large"}}
    model = {"preset": "llama-3.1-405b", "quantization": "None", "maxModelLength": 8192}
    slo = [{"metric": "TTFT", "percentile": 99, "target": "10s"}]
    large["spec"] = {"model": model, "slo": slo, "traffic": {"requestsPerSecond": "1"}}
    where = ("-f", written(tmp_path / "large.yaml", large), "--nodes", nodes)
    (without,) = answer(*where)["workloads"]
    assert not without["placed"] and "LeaderWorkerSet" in without["reason"]
    (planned,) = answer(*where, "--api", "LeaderWorkerSet")["workloads"]
    assert planned["placed"] and planned["count"] > 8


def test_files_do_not_tell_what_a_cluster_runs_jobs_with(tmp_path: Path, nodes: Path) -> None:
    job = example("training-llama-8b")
    for more in ({"runtime": "JobSet"}, {"runtimeRef": {"name": "torch-distributed"}}):
        asked = {**job, "spec": {**job["spec"], **more}}
        (planned,) = answer("-f", written(tmp_path / "j.yaml", asked), "--nodes", nodes)[
            "workloads"
        ]
        assert planned["placed"]


def test_what_is_amiss_with_a_pool_is_told_once(tmp_path: Path) -> None:
    """Two conditions say it, one with what to do about it."""
    odd = written(tmp_path / "odd.yaml", {"kind": "List", "items": render("dirty-labels")})
    job = EXAMPLES / "training-llama-8b.yaml"
    shown = [line for line in run("-f", job, "--nodes", odd).stdout.splitlines() if ": " in line]
    [unlabelled] = [line for line in shown if line.startswith("unknown-")]
    assert "; to use the pool, name its hardware in spec.accelerator of" in unlabelled
    assert len(set(shown)) == len(shown)


def test_a_price_that_is_only_assumed_is_told_below_the_pools(tmp_path: Path) -> None:
    """The column has the on-demand price of spot nodes, which is not what they cost."""
    bought = render("eks-p5-g6")
    for each in bought:
        each["metadata"]["labels"]["eks.amazonaws.com/capacityType"] = "SPOT"
    nodes = written(tmp_path / "spot.yaml", {"kind": "List", "items": bought})
    shown = run("-f", EXAMPLES / "training-llama-8b.yaml", "--nodes", nodes).stdout
    assert ": its nodes are Spot, and only an on-demand price is known ($55.04 per node" in shown

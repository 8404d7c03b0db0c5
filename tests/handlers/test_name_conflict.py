"""A child's name is somebody else's: told, and the place goes to others, whatever comes between."""

from poolwise.cluster.resources import INFERENCE_SERVICES, JOBS
from poolwise.handlers.story import Story
from tests.handlers.shell import Shell, chat_service, condition, h100_node, training_job

NOW = "2026-11-24T12:00:00Z"
FOREIGN = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "chat", "namespace": "a"},
    "spec": {"ports": [{"port": 80}]},
}


def placed(shell):
    document = shell.kube.objects[INFERENCE_SERVICES, "a", "chat"]
    conditions = document["status"]["conditions"]
    return next(each for each in conditions if each["type"] == "Placed")


def test_a_pass_between_the_story_and_the_child_keeps_nobody_in_a_place(monkeypatch):
    """The pass finds the workload placed, by a child that is never written."""
    shell, tell, passes = Shell(), Story.tell, [1]

    async def tell_and_plan(story, *args):
        await tell(story, *args)
        if passes:
            passes.pop()
            await shell.engine.planner.plan()

    monkeypatch.setattr(Story, "tell", tell_and_plan)
    shell.put(h100_node(), FOREIGN, chat_service("a", "chat"))
    shell.run()
    told = placed(shell)
    assert (told["status"], told["reason"]) == ("False", "NameConflict")
    assert "Service chat exists" in told["message"]


def test_a_job_of_an_earlier_one_of_its_name_is_waited_for_while_it_is_deleted():
    """A finalizer holds it."""
    shell, job = Shell(), training_job("a", "t1", 8)
    shell.put(h100_node(), job)
    shell.run()
    [old] = shell.kube.all(JOBS)

    def come_again() -> None:
        shell.kube.vanish(shell.look(job))
        shell.put({**old, "metadata": {**old["metadata"], "deletionTimestamp": NOW}}, job)

    shell.run(come_again)
    told = {name: condition(shell.look(job), name) for name in ("Ready", "Reconciling", "Stalled")}
    assert told["Ready"]["reason"] == "NameInDeletion"
    assert "belongs to an earlier TrainingJob t1 and is being deleted" in told["Ready"]["message"]
    assert (told["Reconciling"]["status"], told["Stalled"]["status"]) == ("True", "False")
    shell.run(lambda: shell.kube.vanish(shell.kube.all(JOBS)[0]))
    [new] = shell.kube.all(JOBS)
    assert new["metadata"]["uid"] != old["metadata"]["uid"]
    assert condition(shell.look(job), "Placed")["status"] == "True"

"""A child's name is somebody else's: told, and the place goes to others, whatever comes between."""

from poolwise.cluster.resources import INFERENCE_SERVICES
from poolwise.handlers.story import Story
from tests.handlers.shell import Shell, chat_service, h100_node

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

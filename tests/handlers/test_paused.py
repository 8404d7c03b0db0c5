"""The annotation that stops all writes for an object."""

from __future__ import annotations

from poolwise.cluster.resources import JOBS
from tests.handlers.shell import Shell, h100_node, training_job


def test_one_that_is_paused_before_its_children_are_written_holds_no_nodes():
    shell, first, second = Shell(), training_job("a", "first", 8), training_job("a", "second", 8)
    shell.put(h100_node(), first)

    def pause_once_told(write):
        if write == "patch status trainingjobs/first":
            shell.kube.after_write = lambda write: None
            live = shell.look(first)
            paused = {**live["metadata"], "annotations": {"poolwise.dev/paused": "true"}}
            shell.put({**live, "metadata": paused})

    shell.kube.after_write = pause_once_told
    shell.run(lambda: shell.put(second))
    assert [job["metadata"]["name"] for job in shell.kube.all(JOBS)] == ["second"]
    assert shell.run() == []

"""Pipelines whose stages are shorter than a node."""

from poolwise.model.training.step import predict_training
from poolwise.model.work import TrainingLayout
from tests.model.training_cases import CALIBRATION, machine, pretraining


def test_stages_shorter_than_a_node_need_its_network_too() -> None:
    """Sixteen stages of four devices are on eight nodes, whatever two neighbours share."""
    layout = TrainingLayout(tensor=4, pipeline=16)
    fast, slow = (
        predict_training(
            pretraining("llama-3.1-70b", 64), layout, machine("H100-SXM5-80GB", each), CALIBRATION
        ).step_seconds.mid
        for each in (400e9, 125e6)
    )
    assert slow > 1.5 * fast

"""What a pod's template has of the run block, and what of ours."""

import pytest

from poolwise.api.run import Run
from poolwise.plan.children.pods import ports

OURS = {"name": "steps", "containerPort": 9100, "protocol": "TCP"}


@pytest.mark.parametrize(
    ("given", "is_there"),
    [
        pytest.param({"name": "http", "containerPort": 8000}, True, id="another"),
        pytest.param({"name": "steps", "containerPort": 8000}, False, id="its name"),
        pytest.param({"name": "http", "containerPort": 9100}, False, id="its number"),
        pytest.param({"name": "dns", "containerPort": 9100, "protocol": "UDP"}, True, id="of UDP"),
    ],
)
def test_our_port_is_there_unless_its_name_or_number_is_taken(given, is_there):
    found = ports(Run.model_validate({"ports": [given]}), [OURS])
    assert found[0] == {"protocol": "TCP"} | given
    assert (OURS in found) is is_there

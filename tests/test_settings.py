"""Settings come from the environment, or say in one sentence why not."""

from __future__ import annotations

import pytest

from poolwise.environment import from_environment
from poolwise.errors import InvalidInput
from poolwise.settings import Settings


def test_an_empty_environment_gives_the_defaults():
    assert from_environment({"PATH": "/bin"}) == Settings()


def test_each_field_has_a_reason():
    assert [name for name, field in Settings.model_fields.items() if not field.description] == []


def test_values_are_parsed_by_type():
    settings = from_environment(
        {
            "POOLWISE_NAMESPACES": "research, serving",
            "POOLWISE_QUEUE_WORKERS": "4",
            "POOLWISE_LEADER_ELECTION": "false",
            "POOLWISE_METRICS_LISTEN": "127.0.0.1:0",
        }
    )
    assert settings.namespaces == ("research", "serving")
    assert settings.queue_workers == 4
    assert settings.leader_election is False
    assert settings.metrics_listen == "127.0.0.1:0"


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        pytest.param("QUEUE_WORKERS", "many", "'many' cannot be used", id="not-a-number"),
        pytest.param("NAMESPACES", "ml,Team A", "'Team A' cannot be used", id="no-namespace"),
        pytest.param("NAMESPACES", "Team", "must be lower-case letters, digits", id="no-label"),
        pytest.param("LEASE_NAME", "a_b", "must be lower-case letters, digits", id="no-lease-name"),
        pytest.param("NAMESPACE_SHARES", "a=2", "must be NAMESPACE=SHARE", id="no-share"),
        pytest.param("NAMESPACE_SHARES", "a=0.5,a=0.7", "name each namespace once", id="twice"),
        pytest.param("DEFAULT_INPUT_TOKENS", "0,10", "median of at least 1", id="no-length"),
        pytest.param("DEFAULT_OUTPUT_TOKENS", "400,100", "no smaller", id="median-too-large"),
        pytest.param("DEFAULT_OUTPUT_TOKENS", "nan,nan", "finite number", id="nan"),
        pytest.param("REQUEST_TIMEOUT_SECONDS", "inf", "finite number", id="endless"),
        pytest.param("CURRENCY", "eur", "must be three capitals", id="no-currency"),
        pytest.param("QUEUE_WORKERS", "0", "greater than or equal to 1", id="too-small"),
        pytest.param("LOG_LEVEL", "loud", "'debug', 'info'", id="not-one-of"),
        pytest.param("METRICS_LISTEN", "8080", "must be ADDRESS:PORT", id="no-address"),
        pytest.param("METRICS_LISTEN", "::99999", "must be ADDRESS:PORT", id="port-too-large"),
        pytest.param("NAMESPACE", "a", "did you mean POOLWISE_NAMESPACES?", id="typing-error"),
    ],
)
def test_a_bad_value_is_named_with_what_is_allowed(variable, value, said):
    with pytest.raises(InvalidInput) as caught:
        from_environment({f"POOLWISE_{variable}": value})
    assert f"POOLWISE_{variable}" in str(caught.value)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "pattern" not in str(caught.value)


def test_a_leader_must_stop_before_another_may_start():
    with pytest.raises(InvalidInput, match="lease_renew_seconds < lease_seconds") as caught:
        from_environment({"POOLWISE_LEASE_SECONDS": "5"})
    assert "they are 2, 10, 5" in str(caught.value)


def test_service_links_of_kubernetes_are_left_alone():
    links = {"POOLWISE_METRICS_PORT": "tcp://10.0.0.7:8080", "POOLWISE_SERVICE_HOST": "10.0.0.7"}
    assert from_environment(links) == Settings()

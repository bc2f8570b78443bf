"""What the process knows of its endpoints."""

from dataclasses import replace

from hermes.errors import ProviderConnectionError, ProviderStatusError, ProviderTimeoutError
from hermes.providers.memory import EndpointMemory
from hermes.providers.registry import Endpoint

ENDPOINT = Endpoint(name="a", protocol="openai_chat", base_url="http://h/v1", api_key="k")


def limited(after: float | None) -> ProviderStatusError:
    return ProviderStatusError(
        "x", status=429, code="rate_limited", retryable=True, retry_after=after
    )


def test_one_state_for_each_key_address_and_model() -> None:
    memory = EndpointMemory()
    state = memory.state(ENDPOINT, "m")
    assert memory.state(replace(ENDPOINT, name="b", context_length=5), "m") is state
    assert memory.state(ENDPOINT, "n") is not state
    assert memory.state(replace(ENDPOINT, api_key="other"), "m") is not state
    assert memory.state(replace(ENDPOINT, base_url="http://g/v1"), "m") is not state


def test_the_oldest_state_is_forgotten_when_there_are_too_many() -> None:
    memory = EndpointMemory()
    first = memory.state(ENDPOINT, "first")
    used = memory.state(ENDPOINT, "used")
    for number in range(1023):
        memory.state(ENDPOINT, str(number))
        assert memory.state(ENDPOINT, "used") is used
    assert memory.state(ENDPOINT, "first") is not first


def test_rest_begins_with_the_third_failure_grows_and_has_an_end() -> None:
    state = EndpointMemory().state(ENDPOINT, "m")
    for error in (ProviderTimeoutError("x"), ProviderConnectionError("x")):
        state.gave_up(error, 0.0)
    assert not state.rests(0.0)
    state.gave_up(ProviderTimeoutError("x"), 0.0)
    assert state.rests(29.9)
    assert not state.rests(30.0)
    state.gave_up(ProviderTimeoutError("x"), 100.0)
    assert state.rests(159.0)
    for _ in range(20):
        state.gave_up(ProviderTimeoutError("x"), 200.0)
    assert not state.rests(500.0)


def test_content_ends_rest_and_count() -> None:
    state = EndpointMemory().state(ENDPOINT, "m")
    for _ in range(3):
        state.gave_up(ProviderTimeoutError("x"), 0.0)
    state.delivered()
    assert not state.rests(0.0)
    state.gave_up(ProviderTimeoutError("x"), 0.0)
    assert not state.rests(0.0)


def test_a_rate_limit_rests_as_long_as_it_says_within_reason() -> None:
    state = EndpointMemory().state(ENDPOINT, "m")
    state.gave_up(limited(None), 0.0)
    assert not state.rests(0.0)
    state.gave_up(limited(90.0), 0.0)
    assert state.rests(89.0)
    assert not state.rests(90.0)
    state.gave_up(limited(86400.0), 0.0)
    assert not state.rests(600.0)


def test_a_refused_request_is_no_failure_of_the_endpoint() -> None:
    state = EndpointMemory().state(ENDPOINT, "m")
    for _ in range(9):
        state.gave_up(ProviderStatusError("x", status=400, code="provider_request"), 0.0)
    assert not state.rests(0.0)


def test_a_model_that_was_found_is_looked_for_again_when_it_has_gone() -> None:
    state = EndpointMemory().state(ENDPOINT, "")
    state.found_model = "gone"
    state.gave_up(ProviderStatusError("x", status=404, code="not_found"), 0.0)
    assert state.found_model == ""

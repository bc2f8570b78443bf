"""Quirks: what a refusal teaches, once."""

import orjson
import pytest

from hermes.errors import ProviderStatusError
from hermes.messages import ModelOptions, ModelRequest, text_message
from hermes.wire.failures import status_error
from hermes.wire.openai_chat import encode_request
from hermes.wire.quirks import Quirks, learn


def refused(parameter, code="unsupported_parameter"):
    return ProviderStatusError("x", status=400, code=code, parameter=parameter)


def test_a_refused_name_of_the_output_limit_is_exchanged_and_then_given_up():
    request = ModelRequest(
        model="m",
        messages=(text_message("user", "hi"),),
        options=ModelOptions(max_output_tokens=9),
    )
    message = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens'"
    body = orjson.dumps({"error": {"message": message}})
    first = learn(Quirks(), status_error(400, {}, body))
    assert first is not None
    assert encode_request(request, first)["max_completion_tokens"] == 9
    assert "max_tokens" not in encode_request(request, first)
    second = learn(first, refused("max_completion_tokens"))
    assert second is not None
    assert not encode_request(request, second).keys() & {"max_tokens", "max_completion_tokens"}
    assert learn(second, refused("max_completion_tokens")) is None


def test_any_other_parameter_is_dropped_once():
    learned = learn(Quirks(), refused("parallel_tool_calls"))
    assert learned == Quirks(dropped=frozenset({"parallel_tool_calls"}))
    assert learn(learned, refused("parallel_tool_calls")) is None


@pytest.mark.parametrize(
    "error",
    [
        refused("model"),
        refused("messages"),
        refused("messages[0].content"),
        refused("tools[0].function.strict"),
        refused("input.x"),
        refused(""),
        refused("seed", code="provider_request"),
    ],
)
def test_what_the_protocol_needs_or_no_refusal_teaches_nothing(error):
    assert learn(Quirks(), error) is None


def test_a_refused_signature_strips_the_reasoning_once():
    learned = learn(Quirks(), refused("", code="invalid_signature"))
    assert learned == Quirks(strip_reasoning=True)
    assert learn(learned, refused("", code="invalid_signature")) is None


def test_a_refused_way_of_thinking_is_exchanged_once():
    learned = learn(Quirks(), refused("thinking.type.enabled"))
    assert learned == Quirks(adaptive_thinking=True)
    again = learn(learned, refused("thinking.type.adaptive"))
    assert again is not None
    assert again.adaptive_thinking is True
    assert learn(Quirks(), refused("thinking.type.adaptive")) == Quirks(adaptive_thinking=False)

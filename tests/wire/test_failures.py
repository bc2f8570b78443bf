"""Failures of endpoints: classified by status, headers and words; nothing secret in them."""

import email.utils
import time

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.wire.failures import MAX_MESSAGE_CHARS, event_error, status_error


def http(status, body, **headers):
    raw = body if isinstance(body, bytes) else orjson.dumps(body)
    return status_error(status, {k.replace("_", "-"): v for k, v in headers.items()}, raw)


def said(message, **members):
    return {"error": {"message": message, **members}}


KINDS = {
    "openai context": (
        400,
        said(
            "This model's maximum context length is 8192 tokens, however you requested 9000.",
            code="context_length_exceeded",
        ),
        "context_length_exceeded",
        False,
    ),
    "anthropic context": (
        400,
        said("prompt is too long: 210000 tokens > 200000 maximum", type="invalid_request_error"),
        "context_length_exceeded",
        False,
    ),
    "anthropic input and limit": (
        400,
        said("input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000"),
        "context_length_exceeded",
        False,
    ),
    "llama.cpp context": (
        400,
        said(
            "the request exceeds the available context size, try increasing it",
            type="exceed_context_size_error",
        ),
        "context_length_exceeded",
        False,
    ),
    "gemini context": (
        400,
        [said("The input token count (1200000) exceeds the maximum number of tokens allowed")],
        "context_length_exceeded",
        False,
    ),
    "a server error about context": (
        500,
        said("Input is too long for requested model"),
        "context_length_exceeded",
        False,
    ),
    "body too large": (413, b"Request Entity Too Large", "context_length_exceeded", False),
    "tokens per minute are no context": (
        429,
        said("Request too large: 30000 tokens per min (TPM). Reduce the length of the messages."),
        "rate_limited",
        True,
    ),
    "rate limit": (429, said("Rate limit reached for gpt-x"), "rate_limited", True),
    "upstream": (429, said("upstream temporarily unavailable"), "rate_limited", True),
    "openrouter's upstream": (
        429,
        said(
            "Provider returned error",
            code=429,
            metadata={"raw": "x is temporarily rate-limited upstream. Billing is unchanged."},
        ),
        "rate_limited",
        True,
    ),
    "quota": (
        429,
        said("You exceeded your current quota, please check your plan.", code="insufficient_quota"),
        "quota_exhausted",
        False,
    ),
    "gemini's refilling quota": (
        429,
        [
            {
                "error": {
                    "code": 429,
                    "message": "You exceeded your current quota, please check your billing.",
                    "status": "RESOURCE_EXHAUSTED",
                    "details": [{"@type": "x/RetryInfo", "retryDelay": "17s"}],
                }
            }
        ],
        "rate_limited",
        True,
    ),
    "credit": (400, said("Your credit balance is too low"), "quota_exhausted", False),
    "payment": (402, said("x"), "quota_exhausted", False),
    "openrouter credit": (
        402,
        said("This request requires more credits"),
        "quota_exhausted",
        False,
    ),
    "throttled": (400, {"code": "Throttling.RateQuota", "message": "x"}, "rate_limited", True),
    "bad key": (401, said("Incorrect API key provided"), "authentication", False),
    "gemini's bad key": (
        400,
        [said("API key not valid. Please pass a valid API key.")],
        "authentication",
        False,
    ),
    "forbidden": (403, said("no access to this model"), "permission", False),
    "no such model": (
        404,
        said("The model `x` does not exist or you do not have access to it."),
        "not_found",
        False,
    ),
    "overloaded": (529, said("Overloaded", type="overloaded_error"), "overloaded", True),
    "unavailable": (503, said("x"), "overloaded", True),
    "loading": (503, said("Loading model", type="unavailable_error"), "overloaded", True),
    "overloaded as 500": (500, said("The server is overloaded"), "overloaded", True),
    "server error": (500, said("The server had an error"), "provider_server", True),
    "bad gateway": (502, b"<html><h1>502 Bad Gateway</h1></html>", "provider_server", True),
    "cloudflare": (524, b"error code: 524", "provider_server", True),
    "not implemented": (501, said("x"), "provider_server", False),
    "request timeout": (408, b"", "provider_request", True),
    "conflict": (409, said("x"), "provider_request", True),
    "bad request": (400, said("Invalid 'messages'"), "provider_request", False),
    "an empty 400": (400, b"", "provider_request", True),
    "a blank 400": (400, b" \r\n", "provider_request", True),
    "an empty 404": (404, b"", "not_found", False),
    "template": (
        500,
        said("Error rendering prompt with jinja template: roles must alternate"),
        "provider_request",
        False,
    ),
    "signature": (
        400,
        said("messages.1.content.0: Invalid `signature` in `thinking` block"),
        "invalid_signature",
        False,
    ),
    "modified thinking": (
        400,
        said("`thinking` or `redacted_thinking` blocks in the latest message cannot be modified."),
        "invalid_signature",
        False,
    ),
    "gemini's signature": (
        400,
        [said("Function call is missing a thought_signature in functionCall parts.")],
        "invalid_signature",
        False,
    ),
    "encrypted reasoning": (
        400,
        said("The encrypted content for item rs_1 could not be verified."),
        "invalid_signature",
        False,
    ),
    "filtered": (
        400,
        said("The response was filtered", code="content_filter"),
        "content_filter",
        False,
    ),
}


@pytest.mark.parametrize(("status", "body", "code", "retryable"), KINDS.values(), ids=KINDS)
def test_an_answer_is_classified_by_what_it_says(status, body, code, retryable):
    error = http(status, body)
    assert (error.status, error.code, error.retryable) == (status, code, retryable)
    assert error.message


REFUSALS = {
    "max_tokens": (
        said(
            "Unsupported parameter: 'max_tokens' is not supported with this model. "
            "Use 'max_completion_tokens' instead.",
            param="max_tokens",
            code="unsupported_parameter",
        ),
        "max_tokens",
    ),
    "the same in words only": (
        said("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens'."),
        "max_tokens",
    ),
    "unrecognized": (
        said("Unrecognized request argument supplied: parallel_tool_calls"),
        "parallel_tool_calls",
    ),
    "value": (
        said(
            "Unsupported value: 'temperature' does not support 0.2 with this model.",
            param="temperature",
            code="unsupported_value",
        ),
        "temperature",
    ),
    "value in words only": (
        said("'temperature' does not support 0.2 with this model."),
        "temperature",
    ),
    "a value's parameter": (
        said(
            "Unsupported value: 'xhigh' is not supported with this model.",
            param="reasoning.effort",
            code="unsupported_value",
        ),
        "reasoning.effort",
    ),
    "backticks": (said("`top_p` is not supported by this model"), "top_p"),
    "deprecated": (said("`temperature` is deprecated for this model."), "temperature"),
    "anthropic": (said("service_tier: Extra inputs are not permitted"), "service_tier"),
    "nested": (said("thinking.display: Extra inputs are not permitted"), "thinking.display"),
    "google": (
        [said('Invalid JSON payload received. Unknown name "seed": Cannot find field.')],
        "seed",
    ),
    "pydantic": (
        {"detail": [{"msg": "Extra inputs are not permitted", "loc": ["body"]}], "code": 400},
        "",
    ),
    "python": (said("create() got an unexpected keyword argument 'logit_bias'"), "logit_bias"),
    "groq": (said("property 'reasoning_effort' is unsupported"), "reasoning_effort"),
    "ollama": (said("registry.ollama.ai/library/gemma:2b does not support tools"), "tools"),
    "xai": (said("Model grok-4 does not support parameter reasoning_effort."), "reasoning_effort"),
    "vllm": (
        said("Unknown parameter: 'stream_options.include_usage'"),
        "stream_options.include_usage",
    ),
    "adaptive": (
        said("adaptive thinking is not supported on this model"),
        "thinking.type.adaptive",
    ),
    "budget": (
        said(
            '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive"'
        ),
        "thinking.type.enabled",
    ),
    "a picture is no parameter": (said("This model does not support image input"), ""),
    "a model is no parameter": (said("The model gpt-x is not supported"), ""),
    "a sentence about a model": (said("gpt-x does not support this"), ""),
}


@pytest.mark.parametrize(("body", "parameter"), REFUSALS.values(), ids=REFUSALS)
def test_a_refused_parameter_is_named(body, parameter):
    error = http(400, body)
    expected = "unsupported_parameter" if parameter else "provider_request"
    assert (error.code, error.parameter, error.retryable) == (expected, parameter, False)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "3"}, 3.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"Retry-After-Ms": "1500", "Retry-After": "9"}, 1.5),
        ({"Retry-After": "86400"}, 86400.0),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "-1"}, None),
        ({"Retry-After": "nan"}, None),
        ({}, None),
    ],
)
def test_a_wait_is_read_from_the_headers(headers, seconds):
    assert status_error(429, headers, b"{}").retry_after == seconds


def test_a_wait_may_be_a_date():
    date = email.utils.formatdate(time.time() + 30, usegmt=True)
    delay = status_error(503, {"Retry-After": date}, b"").retry_after
    assert delay is not None
    assert 25 < delay <= 31
    past = email.utils.formatdate(0, usegmt=True)
    assert status_error(503, {"Retry-After": past}, b"").retry_after == 0


@pytest.mark.parametrize(
    ("message", "seconds"),
    [
        ("Please try again in 20s.", 20.0),
        ("Please try again in 1m30.5s.", 90.5),
        ("Please try again in 250ms", 0.25),
        ("retry after 7 seconds", 7.0),
        ("Please wait a bit", None),
    ],
)
def test_a_wait_may_be_in_the_words_and_headers_win(message, seconds):
    assert http(429, said(message)).retry_after == seconds
    assert http(429, said(message), Retry_After="2").retry_after == 2


def test_the_endpoint_may_say_whether_to_retry():
    assert http(500, said("x"), X_Should_Retry="false").retryable is False
    assert http(400, said("x"), x_should_retry="true").retryable is True


SECRET = "sk-proj-abcdefghijklmnop123456"


@pytest.mark.parametrize("pad", [0, 470, 480, 490, 499])
def test_a_message_is_redacted_before_it_is_cut(pad):
    message = "x" * pad + f" key {SECRET} https://h/x?key=abc123 " + "y" * 4000
    for body in (said(message), message.encode(), {"detail": message}):
        error = http(400, body)
        assert len(error.message) <= MAX_MESSAGE_CHARS
        assert "sk-" not in error.message
        assert "abc123" not in error.message


def test_headers_never_reach_the_message():
    error = http(401, b"", authorization="Bearer abc", x_request_id="req_1")
    assert error.message == "The endpoint answered 401."


IN_BAND = {
    "object": ({"error": {"message": "boom", "code": 429}}, 429, "rate_limited"),
    "type": ({"error": {"message": "boom", "type": "server_error"}}, 500, "provider_server"),
    "outer status": ({"error": {"message": "boom"}, "status_code": 503}, 503, "overloaded"),
    "string": ({"error": "boom"}, 500, "provider_server"),
    "string and message": ({"error": "x", "message": "boom", "status": 404}, 404, "not_found"),
    "error_type": (
        {
            "error_type": "context_length_exceeded",
            "error_message": "boom maximum context length is 163840",
        },
        400,
        "context_length_exceeded",
    ),
    "anthropic": (
        {"type": "error", "error": {"type": "overloaded_error", "message": "boom"}},
        529,
        "overloaded",
    ),
    "google": ({"error": {"status": "UNAVAILABLE", "message": "boom"}}, 503, "overloaded"),
    "dashscope": (
        {"code": "Throttling.AllocationQuota", "message": "boom"},
        429,
        "rate_limited",
    ),
    "detail list": ({"detail": [{"msg": "boom"}, {"msg": "too"}]}, 500, "provider_server"),
}


@pytest.mark.parametrize(("value", "status", "code"), IN_BAND.values(), ids=IN_BAND)
def test_an_error_in_band_is_known_in_every_shape(value, status, code):
    error = event_error(value)
    assert error is not None
    assert "boom" in error.message
    assert (error.status, error.code) == (status, code)


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        {},
        "text",
        {"error": None},
        {"error": {}},
        {"error": ""},
        {"id": "x", "choices": [], "code": 0, "message": "m"},
        {"type": "ping"},
        {"status": "in_progress"},
        {"message": "only a message"},
    ],
)
def test_what_is_no_error_is_none(value):
    assert event_error(value) is None


def test_an_event_named_error_is_one_whatever_it_holds():
    for value in (None, {}, "boom", {"x": 1}):
        error = event_error(value, named=True, status=429)
        assert error is not None
        assert (error.status, error.code, error.retryable) == (429, "rate_limited", True)


_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "error",
                    "message",
                    "code",
                    "type",
                    "status",
                    "param",
                    "detail",
                    "details",
                    "metadata",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)


@given(st.integers(400, 599), _values, st.text(max_size=10))
@settings(deadline=None)
def test_no_answer_breaks_the_classification(status, value, header):
    try:
        body = orjson.dumps(value)
    except (TypeError, ValueError):
        body = b"\xff"
    error = status_error(status, {"retry-after": header, "retry-after-ms": header}, body)
    assert error.status == status
    assert error.message
    event_error(value)


@given(st.binary(max_size=200))
@settings(deadline=None)
def test_no_bytes_break_the_classification(body):
    assert status_error(500, {}, body).status == 500


def test_a_hostile_message_takes_linear_time():
    start = time.process_time()
    for unit in ("a ", "not supported ", "'a' ", "retry ", "< ", "<script>"):
        http(400, said(unit * 100_000))
        http(400, (unit * 100_000).encode())
    assert time.process_time() - start < 10

"""``POST /v1/chat/completions``: one turn of the agent in OpenAI's chat format.

How a stream is written is in ``chat_stream``.
"""

import asyncio
import time
from collections.abc import Mapping
from typing import Any

import orjson
from aiohttp import web

from hermes.agent.cancel import TurnControl
from hermes.errors import RequestError
from hermes.gateway.platforms.api_server.admission import Slot, slot
from hermes.gateway.platforms.api_server.bridge import Callbacks, Ending, StreamQueue, ending
from hermes.gateway.platforms.api_server.chat_answer import answer_headers, usage_object
from hermes.gateway.platforms.api_server.chat_stream import RunningChat
from hermes.gateway.platforms.api_server.errors import (
    _redact_api_error_text,
    error_response,
    request_error_response,
    status_of,
)
from hermes.gateway.platforms.api_server.host import Host
from hermes.gateway.platforms.api_server.parse import (
    ChatRequest,
    _request_agent_overrides,
    chat_request,
    read_object,
)
from hermes.ids import new_id, new_session_id


async def handle_chat_completions(host: Host, request: web.Request) -> web.StreamResponse:
    """Answer a chat completion, whole or as a stream."""
    if (refused := host._check_auth(request)) is not None:
        return refused
    try:
        chat = chat_request(await read_object(request), request.headers)
        keywords = _run_keywords(host, chat)
    except RequestError as error:
        return request_error_response(error)
    if (limited := host._concurrency_limited_response()) is not None:
        return limited
    if chat.stream:
        return await _stream(host, request, chat, keywords)
    return await _answer(host, chat, keywords)


def _run_keywords(host: Host, chat: ChatRequest) -> dict[str, Any]:
    route = host._resolve_route(chat.model)
    overrides = _request_agent_overrides(
        chat.body, allow_bare_model=host._direct_model_requests and route is None
    )
    if route is None and not overrides.get("requested_model"):
        host._check_model_name(chat.model)
    plain = len(chat.user.parts) == 1 and chat.user.parts[0].kind == "text"
    return {
        "user_message": chat.user.text if plain and chat.user.role == "user" else chat.user,
        "conversation_history": chat.history,
        "session_id": chat.session_id or new_session_id(),
        "ephemeral_system_prompt": chat.system or None,
        "gateway_session_key": chat.session_key or None,
        "route": route,
        "options": chat.options,
        "stored": bool(chat.session_id),
        **overrides,
    }


async def _answer(host: Host, chat: ChatRequest, keywords: dict[str, Any]) -> web.Response:
    control = TurnControl()
    reasoning: list[str] = []
    with slot(host, control):
        try:
            result, counts = await host._run_agent(
                **keywords, control=control, live=False, reasoning_callback=reasoning.append
            )
        finally:
            control.cancel()
    end = ending(result, counts)
    headers = answer_headers(chat, keywords["session_id"], end)
    if end.failed:
        return _failure(end, headers)
    message: dict[str, Any] = {"role": "assistant", "content": end.text, "refusal": None}
    if chat.reasoning and reasoning:
        message["reasoning_content"] = "".join(reasoning)
    body: dict[str, Any] = {
        "id": completion_id(),
        "object": "chat.completion",
        "created": int(time.time()),
        "model": chat.model or host._model_name,
        "choices": [
            {"index": 0, "message": message, "logprobs": None, "finish_reason": end.finish_reason}
        ],
        "usage": usage_object(end.usage),
    }
    if end.finish_reason != "stop":
        body["hermes"] = end.facts()
    return web.Response(body=orjson.dumps(body), content_type="application/json", headers=headers)


def _failure(end: Ending, headers: Mapping[str, str]) -> web.Response:
    error = end.error
    assert error is not None
    facts = end.facts()
    if end.text:
        facts["partial_text"] = end.text
    retry_after = getattr(error, "retry_after", None)
    extra = {"Retry-After": str(max(1, round(retry_after)))} if retry_after else {}
    code = "agent_incomplete" if error.code == "turn_failed" else error.code
    status = 502 if code == "agent_incomplete" else status_of(error)
    return error_response(
        error.message,
        status=status,
        code=code,
        headers={**headers, **extra, "X-Hermes-Error": _header_text(error.message)},
        hermes=facts,
    )


def _header_text(text: str) -> str:
    line = " ".join(_redact_api_error_text(text, 200).split())
    return line.encode("ascii", "replace").decode()


async def _stream(
    host: Host, request: web.Request, chat: ChatRequest, keywords: dict[str, Any]
) -> web.StreamResponse:
    stream = StreamQueue()
    callbacks = Callbacks(stream)
    control = TurnControl()
    held = Slot(host, control)
    held.task = task = asyncio.ensure_future(
        host._run_agent(
            **keywords,
            control=control,
            event_sink=stream,
            stream_delta_callback=callbacks.text,
            tool_start_callback=callbacks.tool_started,
            tool_complete_callback=callbacks.tool_completed,
        )
    )

    def ended(_task: object) -> None:
        held.release()
        stream.put(None)

    task.add_done_callback(ended)
    # A turn may be stopped while it still waits for its model to be found.
    control.bind(task)
    return await host._write_sse_chat_completion(
        request,
        completion_id(),
        chat.model or host._model_name,
        int(time.time()),
        stream,
        RunningChat(chat=chat, task=task, control=control, session_id=keywords["session_id"]),
    )


def completion_id() -> str:
    """Return an id for a chat completion."""
    return new_id("chatcmpl-")

"""The embedded model as a provider: it first chooses a tool or none, then answers in plain words.

The choice is made under a schema, because models of this size write no usable tool calls by
themselves. Tools are not run here, and a configured provider is never replaced by this one.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from hermes.errors import EmptyAnswerError, ProviderConnectionError, ProviderProtocolError
from hermes.events import Delta, Finish, Retrying, TextDelta, ToolCallDelta
from hermes.ids import new_call_id
from hermes.messages import ModelOptions, ModelRequest, Usage
from hermes.providers.local_catalogue import DEFAULT_MODEL, LABEL, Weights, find_weights
from hermes.providers.local_child import ChildPolicy, LocalChild
from hermes.providers.local_client import LocalClient
from hermes.providers.local_conversation import Conversation, read_conversation
from hermes.providers.local_machine import Machine, find_problem, read_machine
from hermes.providers.local_process import Address
from hermes.providers.local_prompts import (
    ROUTED_TOOLS,
    Route,
    RoutedTool,
    offered,
    read_route,
    route_request,
)
from hermes.providers.local_sources import Progress
from hermes.providers.local_weights import pull, weights_path

_REPLY_TOKENS = 1024
_TEMPERATURE = 0.2


class _ProcessLostError(ProviderConnectionError):
    """The process ended before the first delta of an answer, which so can be asked for again."""


class LocalProvider:
    """A model of the catalogue in a process of its own; implements ``Provider``.

    ``model_id`` and ``label`` are what clients and people read. A crash before the first word is
    made good by asking the restarted process once more.
    """

    label = LABEL

    def __init__(self, home: Path, weights: Weights, *, policy: ChildPolicy | None = None) -> None:
        self.weights = weights
        self.model_id = weights.model_id
        self.child = LocalChild(
            weights, partial(weights_path, home, weights.name), warm=self._warm, policy=policy
        )
        self._client = LocalClient()
        self._tools = ROUTED_TOOLS

    def start(self) -> None:
        """Bring the model up in the background, so that the first question need not wait."""
        self.child.start()

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncGenerator[AsyncIterator[Delta]]:
        """Make one model call; see ``Provider.stream``.

        Raises:
            LocalModelError: the model cannot run here; besides what the port lists.
        """
        async with aclosing(self._deltas(request)) as deltas:
            yield deltas

    async def aclose(self) -> None:
        """End the process and the connections to it; idempotent."""
        await self._client.aclose()
        await self.child.aclose()

    async def _deltas(self, request: ModelRequest) -> AsyncGenerator[Delta]:
        conversation = read_conversation(request.messages)
        try:
            async with aclosing(self._once(request, conversation)) as deltas:
                async for delta in deltas:
                    yield delta
            return
        except _ProcessLostError as error:
            again = Retrying(attempt=1, delay=0.0, code=error.code, message=error.message)
        yield again
        async with aclosing(self._once(request, conversation)) as deltas:
            async for delta in deltas:
                yield delta

    async def _once(
        self, request: ModelRequest, conversation: Conversation
    ) -> AsyncGenerator[Delta]:
        started = False
        async with self.child.lease() as address:
            try:
                async with aclosing(self._answer(address, request, conversation)) as deltas:
                    async for delta in deltas:
                        started = True
                        yield delta
            except (ProviderConnectionError, ProviderProtocolError) as error:
                if started or not await self.child.gone(address):
                    raise
                raise _ProcessLostError("The local model's process ended.") from error

    async def _answer(
        self, address: Address, request: ModelRequest, conversation: Conversation
    ) -> AsyncGenerator[Delta]:
        tools, may_reply = _choices(request)
        spent = Usage()
        if tools and conversation.may_route():
            route, spent = await self._route(address, tools, conversation, may_reply=may_reply)
            tool = route.tool
            if tool and not conversation.has_made(tool.name, route.arguments):
                yield ToolCallDelta(
                    index=0,
                    id=new_call_id(),
                    name=tool.name,
                    arguments=json.dumps(dict(route.arguments), ensure_ascii=False),
                )
                yield self._finish(Finish(reason="tool_calls"), spent)
                return
        async with aclosing(self._reply(address, request, conversation, spent)) as deltas:
            async for delta in deltas:
                yield delta

    async def _reply(
        self, address: Address, request: ModelRequest, conversation: Conversation, spent: Usage
    ) -> AsyncGenerator[Delta]:
        given = request.options
        options = ModelOptions(
            temperature=_TEMPERATURE if given.temperature is None else given.temperature,
            top_p=given.top_p,
            max_output_tokens=given.max_output_tokens or _REPLY_TOKENS,
            stop=given.stop,
            seed=given.seed,
            response_format=given.response_format,
        )
        asked = ModelRequest(model="local", messages=conversation.reply_messages(), options=options)
        has_words = False
        async with self._client.stream(address, asked) as batches:
            async for batch in batches:
                for delta in batch:
                    has_words = has_words or isinstance(delta, TextDelta)
                    if not isinstance(delta, Finish):
                        yield delta
                    elif has_words:
                        yield self._finish(delta, spent)
                    else:
                        raise EmptyAnswerError("The local model ended without a word.")

    async def _route(
        self,
        address: Address,
        tools: tuple[RoutedTool, ...],
        conversation: Conversation,
        *,
        may_reply: bool,
    ) -> tuple[Route, Usage]:
        """Let the model choose; a choice that names a file out of thin air is made again."""
        self._tools = tools
        question = conversation.route_question()
        told = conversation.told()
        allowed, spent = tools, Usage()
        while True:
            text, usage = await self._complete(
                address, route_request(tools, allowed, question, may_reply=may_reply)
            )
            route, spent = read_route(text, allowed), spent + usage
            if route.tool is None or not route.tool.invents(route.arguments, told):
                return route, spent
            allowed = tuple(tool for tool in allowed if tool is not route.tool)
            if not allowed and not may_reply:
                return Route(), spent

    async def _complete(self, address: Address, request: ModelRequest) -> tuple[str, Usage]:
        text: list[str] = []
        usage = Usage()
        async with self._client.stream(address, request) as batches:
            async for batch in batches:
                text += [delta.text for delta in batch if isinstance(delta, TextDelta)]
                usage = sum(
                    (delta.usage for delta in batch if isinstance(delta, Finish)), start=usage
                )
        return "".join(text), usage

    async def _warm(self, address: Address) -> None:
        """Read the routing examples once: their cold reading would delay the first answer."""
        await self._complete(address, route_request(self._tools, self._tools, "hi", most_tokens=1))

    def _finish(self, finish: Finish, spent: Usage) -> Finish:
        return replace(
            finish, usage=finish.usage + spent, model=self.model_id, origin=self.model_id
        )


async def ensure_local(
    home: Path,
    name: str = DEFAULT_MODEL,
    progress: Progress = lambda _done, _total: None,
    *,
    policy: ChildPolicy | None = None,
    machine: Callable[[], Machine] = read_machine,
) -> LocalProvider:
    """Return a local model ready to be asked: pulled if need be, its process starting.

    ``name`` with or without ``local/``. What the machine lacks is found before anything is
    fetched, except what changes with time: that shows in the first answer.

    Raises:
        LocalModelError: ``weights_unknown``, what the machine lacks, or why the pull failed.
    """
    weights = find_weights(name)
    file = await asyncio.to_thread(weights_path, home, weights.name)
    if file is None:
        problem = find_problem(await asyncio.to_thread(machine), weights, None)
        if problem is not None and problem.code != "weights_missing":
            raise problem
        await pull(home, weights.name, progress)
    provider = LocalProvider(home, weights, policy=policy)
    provider.start()
    return provider


def _choices(request: ModelRequest) -> tuple[tuple[RoutedTool, ...], bool]:
    """The tools to choose from, and whether answering without one is allowed."""
    wish = request.options.tool_choice or "auto"
    tools = offered(request.tools)
    if wish == "none":
        return (), True
    if wish == "auto":
        return tools, True
    if wish != "required":
        tools = tuple(tool for tool in tools if tool.name == wish)
    return tools, False
